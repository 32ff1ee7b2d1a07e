// Package steps binds the steps of the feature files of features/conformance: a BMC,
// emulated or at an address, its faults and quirks, and the checks.
package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/scenarios/clientclock"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

var errStep = errors.New("the step ends with an error")

// scenario is the state that the steps of one scenario share.
type scenario struct {
	labs    *Labs
	feature string
	bmc     *emulated // nil: the BMC is at an address
	conf    conformance.Config
	faults  []string
	during  map[string][]fault.Rule // faults that begin and end with a check, by its ID
	quirks  []quirk.Setting
	results map[string]conformance.Result
	ran     []string // names of checks and groups
}

// Register binds all steps to a scenario.
func Register(sc *godog.ScenarioContext, labs *Labs) {
	s := &scenario{labs: labs, during: map[string][]fault.Rule{}}
	sc.Step(`^the BMC of a "([^"]*)" server$`, s.emulated)
	sc.Step(`^the BMC at "([^"]*)" with the user "([^"]*)" and the password in the file "([^"]*)"$`, s.address)
	sc.Step(`^the run has DMTF's schemas and profiles$`, s.schemas)
	sc.Step(`^the BMC has nothing wrong$`, func() {})
	sc.Step(`^the BMC has: (.*)$`, s.wrong)
	sc.Step(`^the (read-only|reversible|disruptive|destructive) checks run$`, func(ctx context.Context, level string) error {
		return s.run(ctx, conformance.Level(level))
	})
	sc.Step(`^the (read-only|reversible|disruptive|destructive) checks (\S+) run$`, func(ctx context.Context, level, names string) error {
		return s.run(ctx, conformance.Level(level), strings.Split(names, ",")...)
	})
	sc.Step(`^the (read-only|reversible|disruptive|destructive) checks around (\S+) run$`, func(ctx context.Context, level, id string) error {
		if sample.Full() {
			return s.run(ctx, conformance.Level(level))
		}
		return s.run(ctx, conformance.Level(level), around(id)...)
	})
	sc.Step(`^(\S+) is (pass|warn|fail|skip)$`, s.is)
	sc.Step(`^(\S+) is (pass|warn|fail|skip) because of "([^"]*)"$`, s.because)
	sc.Step(`^the quirk "([^"]*)" is found$`, s.found)
	sc.Step(`^beside (\S+), only these differ: (.*)$`, s.onlyThese)
	sc.Before(func(ctx context.Context, scenario *godog.Scenario) (context.Context, error) {
		s.feature = scenario.Uri
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		return ctx, errors.Join(err, s.end(ctx))
	})
}

// around returns a check, those of its group, those that it needs and those that
// need it.
func around(id string) []string {
	group, _, _ := strings.Cut(id, "-")
	names := []string{id, group}
	for _, c := range conformance.Checks() {
		if slices.ContainsFunc(c.After, func(before string) bool { return before == id || strings.HasPrefix(before, group+"-") }) {
			names = append(names, c.ID)
		}
	}
	return names
}

func (s *scenario) emulated(profile string) {
	s.bmc = s.labs.of(profile, s.feature)
	s.conf = s.bmc.conf
}

// address is of a BMC that is there. "EMULATED" stands for the emulated one's
// address, user and password.
func (s *scenario) address(url, user, file string) error {
	const emulated = "EMULATED"
	if url == emulated {
		e := s.labs.of("generic", s.feature)
		s.conf = conformance.Config{URL: e.conf.URL, Username: e.conf.Username, Password: e.conf.Password, CAs: e.conf.CAs, Clock: e.conf.Clock, Rate: 1e6}
		return nil
	}
	password, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s.conf = conformance.Config{URL: url, Username: user, Password: strings.TrimSpace(string(password)), Insecure: true}
	return nil
}

// schemas gives the run DMTF's archive, and also the runs that it is compared with.
func (s *scenario) schemas() error {
	if s.labs.archive == nil {
		return errors.New("the suite has no archive of DMTF's")
	}
	s.bmc.conf.Schemas, s.conf.Schemas = s.labs.archive, s.labs.archive
	return nil
}

// wrong switches quirks and faults on. They are separated by " and ". A "fault in BOOT-008"
// begins when that check does, and ends with it: what the checks before it read, and how
// often they poll, does not count.
func (s *scenario) wrong(text string) error {
	for part := range strings.SplitSeq(text, " and ") {
		kind, what, _ := strings.Cut(part, " ")
		switch kind {
		case "quirk":
			q, err := quirk.Parse(what)
			if err != nil {
				return err
			}
			s.quirks = append(s.quirks, q)
		case "fault":
			what, check, err := ofCheck(what)
			if err != nil {
				return err
			}
			r, err := parseFault(what)
			if err != nil {
				return err
			}
			r.BMC = s.bmc.lab.First().Name()
			if check != "" {
				s.during[check] = append(s.during[check], r)
				continue
			}
			if r, err = s.bmc.lab.AddFault(r); err != nil {
				return err
			}
			s.faults = append(s.faults, r.ID)
		case "nothing":
			if what != "bootable" {
				return fmt.Errorf("nothing %s: want nothing bootable", what)
			}
			s.bmc.starts.blank.Store(true)
		case "password":
			s.conf.Password = what
		case "provisioner":
			step, fails := strings.CutPrefix(what, "fault in ")
			if !fails && what != "leaves the server off" {
				return fmt.Errorf("a provisioner does not do %q", what)
			}
			p := provisioner{off: !fails}
			if fails {
				p.fails = conformance.Step(step)
			}
			s.conf.Provisioner = p
		case "insecure":
			s.conf.Insecure = true
		default:
			return fmt.Errorf("%q begins with neither quirk nor fault", part)
		}
	}
	if len(s.quirks) == 0 {
		return nil
	}
	err := s.bmc.lab.First().SetQuirks(s.quirks)
	s.conf.URL = s.bmc.lab.First().URL() // http-only changes the scheme
	return err
}

// ofCheck cuts the ID of a check off the beginning of a fault: "in BOOT-008 {...}".
func ofCheck(text string) (rest, check string, err error) {
	rest, has := strings.CutPrefix(text, "in ")
	if !has {
		return text, "", nil
	}
	check, rest, _ = strings.Cut(rest, " ")
	if !slices.ContainsFunc(conformance.Checks(), func(c conformance.Check) bool { return c.ID == check }) {
		return "", "", fmt.Errorf("fault in %q: there is no such check", check)
	}
	return rest, check, nil
}

func parseFault(text string) (r fault.Rule, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%s is no fault: %w", text, err)
	}
	return r, nil
}

// execute runs checks once.
func (s *scenario) execute(ctx context.Context, conf conformance.Config, level conformance.Level, names []string) (_ map[string]conformance.Result, err error) {
	conf.Level = level
	if s.bmc != nil {
		s.bmc.media.forget()
	}
	if conf.Provisioner == nil && s.bmc != nil {
		conf.Provisioner = provisioner{server: s.bmc}
	}
	if level != conformance.ReadOnly {
		j, err := s.labs.of("generic", s.feature).journal()
		if err != nil {
			return nil, err
		}
		defer j.Close()
		conf.Journal = j
		defer func() { err = errors.Join(err, s.broughtBack(ctx, conf)) }()
	}
	b, err := conformance.Open(conf)
	if err != nil {
		return nil, err
	}
	checks, err := conformance.Select(names)
	if err != nil {
		return nil, err
	}
	var placed error
	for i, c := range checks {
		if rules := s.during[c.ID]; len(rules) > 0 {
			checks[i].Run = func(ctx context.Context, r *conformance.Run) conformance.Outcome {
				out, err := s.runWith(rules, func() conformance.Outcome { return c.Run(ctx, r) })
				placed = errors.Join(placed, err)
				return out
			}
		}
	}
	all := map[string]conformance.Result{}
	if c, ok := conf.Clock.(*clientclock.Clock); ok {
		ctx = c.Trace(ctx)
	}
	for _, r := range b.Execute(ctx, checks) {
		if r.Verdict == conformance.Broken {
			err = errors.Join(err, fmt.Errorf("%s is error: %s", r.ID, r.Reason))
		}
		all[r.ID] = r
	}
	return all, placed
}

// runWith runs a check with faults, which are there for it alone.
func (s *scenario) runWith(rules []fault.Rule, check func() conformance.Outcome) (out conformance.Outcome, err error) {
	for _, r := range rules {
		added, failed := s.bmc.lab.AddFault(r)
		if err = errors.Join(err, failed); failed == nil {
			defer func() { err = errors.Join(err, s.bmc.lab.RemoveFault(added.ID)) }()
		}
	}
	return check(), err
}

// broughtBack removes the faults and quirks, and restores what the run could not restore.
func (s *scenario) broughtBack(ctx context.Context, conf conformance.Config) error {
	if len(conf.Journal.Open()) == 0 {
		return nil
	}
	if err := s.right(); err != nil {
		return err
	}
	b, err := conformance.Open(conf)
	if err != nil {
		return err
	}
	return b.RestoreAll(ctx)
}

func (s *scenario) run(ctx context.Context, level conformance.Level, names ...string) (err error) {
	s.ran = append([]string{string(level)}, names...)
	if s.bmc != nil {
		if _, err := s.baseline(ctx); err != nil {
			return err
		}
		if len(s.quirks) == 0 && len(s.faults) == 0 && len(s.during) == 0 && s.conf.Password == s.bmc.conf.Password && s.conf.Provisioner == nil && !s.conf.Insecure && !s.bmc.starts.blank.Load() {
			s.results, err = s.baseline(ctx)
			return err
		}
	}
	s.results, err = s.execute(ctx, s.conf, level, names)
	return err
}

// baseline returns the results of the same checks with nothing wrong.
func (s *scenario) baseline(ctx context.Context) (map[string]conformance.Result, error) {
	key := strings.Join(s.ran, " ")
	if known := s.bmc.baselines[key]; known != nil {
		return known, nil
	}
	defer s.bmc.starts.blank.Store(s.bmc.starts.blank.Swap(false))
	quirks, faults, during := s.quirks, s.faults, s.during
	s.during = nil
	defer func() { s.during = during }()
	if len(quirks) > 0 {
		if err := s.bmc.lab.First().SetQuirks(nil); err != nil {
			return nil, err
		}
	}
	held, err := s.hold(faults)
	if err != nil {
		return nil, err
	}
	got, err := s.execute(ctx, s.bmc.conf, conformance.Level(s.ran[0]), s.ran[1:])
	if err != nil {
		return nil, err
	}
	s.bmc.baselines[key] = got
	s.quirks, s.faults = quirks, nil
	for _, r := range held {
		if r, err = s.bmc.lab.AddFault(r); err != nil {
			return nil, err
		}
		s.faults = append(s.faults, r.ID)
	}
	return got, s.bmc.lab.First().SetQuirks(quirks)
}

// hold removes faults and returns their rules.
func (s *scenario) hold(ids []string) (rules []fault.Rule, err error) {
	for _, f := range s.bmc.lab.Faults() {
		if slices.Contains(ids, f.ID) {
			rules = append(rules, f.Rule)
			err = errors.Join(err, s.bmc.lab.RemoveFault(f.ID))
		}
	}
	return rules, err
}

// right removes all faults and quirks of the emulated BMC.
func (s *scenario) right() error {
	if s.bmc == nil {
		return nil
	}
	var err error
	for _, f := range s.bmc.lab.Faults() {
		err = errors.Join(err, s.bmc.lab.RemoveFault(f.ID))
	}
	s.faults, s.quirks = nil, nil
	clear(s.during)
	s.bmc.starts.blank.Store(false)
	return errors.Join(err, s.bmc.lab.First().SetQuirks(nil))
}

func (s *scenario) end(ctx context.Context) error {
	blocked := len(s.quirks) > 0 || s.bmc != nil && s.conf.Password != s.bmc.conf.Password
	err := s.right()
	if blocked { // accounts and addresses are blocked in the time of clients
		s.bmc.lab.Clock().Advance(10 * time.Minute)
	}
	if s.bmc != nil && len(s.ran) > 0 && conformance.Level(s.ran[0]).Allows(conformance.Disruptive) {
		_ = s.bmc.lab.First().Power(ctx, "ForceOff") // it may be off
		_ = s.bmc.lab.Clock().Sleep(ctx, 30*time.Second)
	}
	return err
}

func (s *scenario) result(id string) (conformance.Result, error) {
	r, ok := s.results[id]
	if !ok {
		return r, fmt.Errorf("%s did not run", id)
	}
	return r, nil
}

func (s *scenario) is(id, verdict string) error {
	r, err := s.result(id)
	if err == nil && string(r.Verdict) != verdict {
		err = fmt.Errorf("%s is %s %q, want %s", id, r.Verdict, r.Reason, verdict)
	}
	return err
}

func (s *scenario) because(id, verdict, reason string) error {
	if err := s.is(id, verdict); err != nil {
		return err
	}
	if r := s.results[id]; !strings.Contains(r.Reason, reason) {
		return fmt.Errorf("%s is %s because of %q, want %q", id, verdict, r.Reason, reason)
	}
	return nil
}

func (s *scenario) found(name string) error {
	var all []string
	for _, r := range s.results {
		for _, q := range r.Quirks {
			all = append(all, q.Name)
		}
	}
	if !slices.Contains(all, name) {
		slices.Sort(all)
		return fmt.Errorf("the quirks are %v, want %s", all, name)
	}
	return nil
}

// timed are the checks of durations: a busy computer lets them warn, whatever else is wrong.
var timed = []string{"NET-001", "ROB-002", "ROB-003"}

// onlyThese compares all other verdicts with those of the BMC with nothing wrong:
// a check that needs a failed one is skipped with its ID, and every other has the
// verdict of the list, such as "SYS-002 warn, SYS-003 fail", or the same as before.
func (s *scenario) onlyThese(ctx context.Context, id, list string) error {
	before, err := s.baseline(ctx)
	if err != nil {
		return err
	}
	want := map[string]string{}
	if list != "none" {
		for part := range strings.SplitSeq(list, ", ") {
			other, verdict, ok := strings.Cut(part, " ")
			if !ok {
				return fmt.Errorf("%q is not like SYS-002 warn", part)
			}
			want[other] = verdict
		}
	}
	var wrong []error
	for _, c := range conformance.Checks() {
		r, ran := s.results[c.ID]
		if !ran || c.ID == id || slices.Contains(timed, c.ID) && want[c.ID] == "" {
			continue
		}
		reason, verdict := "", cmp.Or(want[c.ID], string(before[c.ID].Verdict))
		for _, first := range c.After {
			if f, ok := s.results[first]; ok && f.Verdict != conformance.Pass && f.Verdict != conformance.Warn && f.Reason != conformance.NotBuilt {
				verdict, reason = string(conformance.Skip), first
			}
		}
		if string(r.Verdict) != verdict || !strings.Contains(r.Reason, reason) && before[c.ID].Verdict != conformance.Skip {
			wrong = append(wrong, fmt.Errorf("%s is %s %q, want %s %s", c.ID, r.Verdict, r.Reason, verdict, reason))
		}
	}
	return errors.Join(wrong...)
}

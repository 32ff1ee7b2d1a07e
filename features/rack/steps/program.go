package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// timeout is how long, in real time, a program may run. BMCs answer at once; a
// program that waits for a response gives up after 20 s.
const timeout = 60 * time.Second

// programRun is a run of a program.
type programRun struct {
	line     string
	out, err string
	status   int
}

func (r programRun) String() string {
	return fmt.Sprintf("%s: exit %d\n%s%s", r.line, r.status, r.out, r.err)
}

// connectionOptions return the options that name the BMC and the user. They come
// before the arguments of a step, which can override them.
var connectionOptions = map[string]func(host, port string) []string{
	"ipmitool": func(host, port string) []string {
		return []string{"-I", "lanplus", "-H", host, "-p", port, "-U", "ADMIN", "-P", "ADMIN"}
	},
}

// freeIPMI are the programs of FreeIPMI, which all take the same options.
var freeIPMI = []string{
	"bmc-info", "bmc-device", "ipmipower", "ipmi-chassis", "ipmi-sel", "ipmi-sensors", "ipmi-fru", "ipmi-dcmi", "ipmi-pef-config", "ipmi-config", "ipmi-raw", "ipmi-oem",
}

// withSDRCache are those of them that cache the SDR repository in a directory.
var withSDRCache = []string{"ipmi-sel", "ipmi-sensors", "ipmi-fru", "ipmi-pef-config"}

var errIPMIOff = errors.New("IPMI is switched off")

func connection(program, host, port string) ([]string, error) {
	if way, ok := connectionOptions[program]; ok {
		return way(host, port), nil
	}
	if slices.Contains(freeIPMI, program) {
		return []string{"-D", "LAN_2_0", "-h", host + ":" + port, "-u", "ADMIN", "-p", "ADMIN", "-l", "ADMIN"}, nil
	}
	return nil, fmt.Errorf("there are no connection options for %s", program)
}

func (s *scenario) registerPrograms(sc *stepRegistry) {
	users := func(n int, profile string) {
		s.define(profile, n)
		s.config.Rack.Accounts = []rackfile.Account{
			{Name: "ADMIN", Password: "ADMIN", Role: "Administrator"}, {Name: "op", Password: "op", Role: "Operator"},
			{Name: "usr", Password: "usr", Role: "ReadOnly"},
		}
		s.open()
	}
	sc.Step(`^a rack of (\d+) servers? whose users are ADMIN, op and usr$`, func(n int) { users(n, "generic") })
	sc.Step(`^a rack of (\d+) servers? of the profile "([^"]*)" whose users are ADMIN, op and usr$`, users)
	sc.Step(`^a rack of (\d+) servers? on the real clock$`, func(n int) {
		s.define("generic", n)
		s.config.Rack.Accounts = []rackfile.Account{{Name: "ADMIN", Password: "ADMIN", Role: "Administrator"}}
		s.config.Clock = clock.NewScaled(racktest.Origin, 1)
		s.open()
	})
	sc.Step("^the client runs `([^`]+)`$", s.runProgram)
	sc.Step("^the client runs `([^`]+)` against the second BMC$", func(line string) error { return s.runProgramAgainst(2, line) })
	sc.Step("^the client runs `([^`]+)` against all BMCs$", func(line string) error { return s.runProgramAgainst(0, line) })
	sc.Step("^the client runs `([^`]+)` until it exits with 0$", s.runProgramUntilSuccess)
	sc.Step(`^it succeeds$`, s.programSucceeded)
	sc.Step(`^it exits with 0$`, func() error { // stderr may have progress
		return errors.Join(s.programRan(), equal("the exit status", s.output.status, 0))
	})
	sc.Step(`^it fails$`, func() error {
		if s.output.status == 0 {
			return fmt.Errorf("it succeeds: %s", s.output)
		}
		return nil
	})
	sc.Step(`^every line of its output ends in "([^"]*)"$`, func(end string) error {
		for _, line := range strings.Split(strings.TrimSpace(s.output.out), "\n") {
			if !strings.HasSuffix(strings.TrimSpace(line), end) {
				return fmt.Errorf("%q does not: %s", line, s.output)
			}
		}
		return nil
	})
	sc.Step(`^the power was cycled, and never twice in one run$`, func() error {
		if len(s.powerOffsPerRun) == 0 || s.powerOffsPerRun[len(s.powerOffsPerRun)-1] != 1 || slices.Max(s.powerOffsPerRun) > 1 {
			return fmt.Errorf("the power went off so often in each run: %v", s.powerOffsPerRun)
		}
		return nil
	})
	sc.Step(`^it prints "([^"]*)"$`, s.outputContains)
	sc.Step(`^it prints:$`, func(doc *godog.DocString) error {
		for _, line := range strings.Split(doc.Content, "\n") {
			if strings.TrimSpace(line) == "" {
				return errors.New("a line of the step is empty: every program prints it")
			}
			if err := s.outputContains(strings.TrimSpace(line)); err != nil {
				return err
			}
		}
		return nil
	})
	sc.NegativeStep(`^it does not print "([^"]*)"$`, func(text string) error {
		if squeeze(s.output.out+s.output.err) == "" {
			return errors.New("it prints nothing")
		}
		if strings.Contains(squeeze(s.output.out+s.output.err), squeeze(text)) {
			return fmt.Errorf("it does: %s", s.output)
		}
		return nil
	})
	sc.Step(`^it prints a match of "([^"]*)"$`, func(pattern string) error {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return err
		}
		if re.MatchString("") {
			return fmt.Errorf("%q matches any text", pattern)
		}
		if !re.MatchString(s.output.out + s.output.err) {
			return fmt.Errorf("it does not: %s", s.output)
		}
		return nil
	})
	sc.Step(`^it prints (\d+) lines?$`, func(n int) error {
		return equal("the number of lines", len(slices.Collect(strings.Lines(strings.TrimSpace(s.output.out)))), n)
	})
	sc.Step(`^it prints the (UUID|SerialNumber|SKU|Model) of (\S+)$`, func(property, of string) error {
		return s.outputContainsProperty(s.uri(of), property)
	})
}

func (s *scenario) runProgram(line string) error { return s.runProgramAgainst(1, line) }

// runProgramAgainst runs a program with the address of the n-th server's BMC, or
// of all BMCs when n is 0.
func (s *scenario) runProgramAgainst(server int, line string) error {
	at, ok := s.server(max(1, server)).IPMI()
	if !ok {
		return errIPMIOff
	}
	host := at.Addr().String()
	if server == 0 { // all: hosts are numbered as FreeIPMI has them
		host = fmt.Sprintf("127.64.0.[1-%d]", len(s.lab.Hosts()))
	}
	return s.runProgramAt(line, host, fmt.Sprint(at.Port()))
}

// findProgram returns the path of a program. When it is missing, the scenario is skipped, or
// fails where that is a failure.
func (s *scenario) findProgram(name string) (string, error) {
	path, err := prerequisites.Find(name)
	if err != nil {
		return "", s.skip(err)
	}
	return path, nil
}

// skip skips the scenario for a reason, or fails it where that is a failure.
func (s *scenario) skip(reason error) error {
	if prerequisites.Required() {
		return reason
	}
	s.t.Logf("skipped: %v", reason)
	return godog.ErrSkip
}

// runProgramAt runs a program with an address.
func (s *scenario) runProgramAt(line, host, port string) error {
	words := fields(line)
	where, err := connection(words[0], host, port)
	if err != nil {
		return err
	}
	path, err := s.findProgram(words[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	if slices.Contains(withSDRCache, words[0]) { // else in the user's home
		where = append(where, "--sdr-cache-directory="+s.t.TempDir())
	}
	cmd := exec.CommandContext(ctx, path, append(where, words[1:]...)...)
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", "HOME="+s.t.TempDir())
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	s.output = programRun{line: line, out: out.String(), err: diagnostics.String(), status: cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		return fmt.Errorf("the program has not ended: %s", s.output)
	}
	return nil
}

// maxRuns is how often a program is run that loses datagrams: ipmitool sends each
// message of a login once, and gives up after a few logins.
const maxRuns = 20

// runProgramUntilSuccess runs a program until it exits with 0, and counts how often
// the power of the first server went off in each run.
func (s *scenario) runProgramUntilSuccess(line string) error {
	s.powerOffsPerRun = nil
	before, err := s.powerOffs()
	if err != nil {
		return err
	}
	for range maxRuns {
		if err := s.runProgram(line); err != nil {
			return err
		}
		s.lab.Advance(10 * time.Minute) // the server boots
		offs, err := s.powerOffs()
		if err != nil {
			return err
		}
		s.powerOffsPerRun = append(s.powerOffsPerRun, offs-before)
		before = offs
		if s.output.status == 0 {
			return nil
		}
	}
	return fmt.Errorf("not in %d runs: %s", maxRuns, s.output)
}

// powerOffs returns how often the power of the first server went off.
func (s *scenario) powerOffs() (int, error) {
	all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name(), What: "power.state"})
	offs := 0
	for _, e := range all {
		if e.Text == "PoweringOff" {
			offs++
		}
	}
	return offs, err
}

// fields splits a line into words; quotes keep several together.
func fields(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// programRan returns an error when no program has run.
func (s *scenario) programRan() error {
	if s.output.line == "" {
		return errors.New("no program has run")
	}
	return nil
}

func (s *scenario) programSucceeded() error {
	if err := s.programRan(); err != nil {
		return err
	}
	if s.output.status != 0 || s.output.err != "" {
		return fmt.Errorf("it does not succeed: %s", s.output)
	}
	return nil
}

// squeeze replaces each run of white space by one blank: programs align columns.
func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *scenario) outputContains(text string) error {
	if !strings.Contains(squeeze(s.output.out+" "+s.output.err), squeeze(text)) {
		return fmt.Errorf("it does not print %q: %s", text, s.output)
	}
	return nil
}

// outputContainsProperty looks for the value of a Redfish property, in upper or
// lower case.
func (s *scenario) outputContainsProperty(uri, property string) error {
	a, err := s.get(uri)
	if err != nil {
		return err
	}
	want, _ := a.at(property).(string)
	if want == "" || !strings.Contains(strings.ToLower(s.output.out), strings.ToLower(want)) {
		return fmt.Errorf("it does not print %q: %s", want, s.output)
	}
	return nil
}

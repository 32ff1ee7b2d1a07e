// Package steps binds the steps of the feature files of features/rack to a live
// rack without Kubernetes. Steps send Redfish requests over HTTPS and run IPMI
// clients, as a BMC engineer does, and check what the BMCs answer. Each scenario
// has a lab of its own, whose clock stands still until a step lets time pass.
//
// Steps see a BMC over the wire only. From the lab they use things that a BMC does
// not show: addresses, credentials, the journal, faults, drives and cables.
package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/fixtures"
)

// scenario is the state that the steps of one scenario share.
type scenario struct {
	t      testing.TB
	config rack.Config
	lab    *racktest.Rack
	saved  map[string]string // values that later steps compare with or send

	user           credentials // credentials of the next requests; zero: the administrator's
	token          string      // X-Auth-Token, sent instead unless it is ""
	sent           request     // the last that a feature has written
	response       response    // to the last request
	created        response    // to the last POST that has created something
	headers        http.Header // that were saved
	transportError error       // error of the last request that may fail
	bmcWasReset    bool
	connections    int    // that the last client with connections of its own has opened
	proto          string // that it has spoken

	certificates certificates
	outage       time.Duration // how long a system was off after one

	stepType messages.PickleStepType // type of the last step
	images   images
	receiver *eventReceiver
	streams  []*stream
	faultID  string

	ipmi            ipmiClient
	output          programRun // run of the last program
	release         func()     // releases the port of SSDP; nil: it is not held
	powerOffsPerRun []int      // how often the power went off in each of its runs
}

// Register binds all steps to a scenario.
func Register(sc *godog.ScenarioContext, t testing.TB) {
	s := &scenario{t: t, saved: map[string]string{}}
	s.register(&stepRegistry{sc: sc})
	sc.StepContext().Before(func(ctx context.Context, st *godog.Step) (context.Context, error) {
		s.beginStep(st)
		return ctx, Definitions().Check(st)
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if err != nil && s.response.status != 0 {
			s.t.Logf("last response: %s", s.response)
		}
		if err == nil {
			err = s.unchecked()
		}
		return ctx, errors.Join(err, s.end())
	})
}

// register binds all steps.
func (s *scenario) register(sc *stepRegistry) {
	sc.Step(`^a rack of (\d+) servers?$`, func(n int) { s.start("generic", n) })
	sc.Step(`^a rack of (\d+) servers? of the profile "([^"]*)"$`, func(n int, profile string) { s.start(profile, n) })
	sc.Step(`^a rack of (\d+) servers? with HTTP/2$`, func(n int) {
		s.define("generic", n)
		s.config.HTTP2 = true
		s.open()
	})
	sc.Step(`^a rack of (\d+) servers? of the dialect file:$`, s.startDialectFile)
	sc.Step(`^(\d+) (seconds?|minutes?|hours?) pass(?:es)?$`, s.advance)
	sc.Step(`^the lab is restarted$`, s.restart)
	sc.Step(`^the lab is created again from the same definition$`, s.recreate)
	for _, register := range []func(*stepRegistry){
		s.registerRequests, s.registerSessions, s.registerCollections, s.registerSystem, s.registerMedia, s.registerEvents, s.registerFaults,
		s.registerJournal, s.registerUpdates, s.registerIdentities, s.registerStorage, s.registerManager, s.registerPrograms, s.registerConsoles,
		s.registerIPMI, s.registerDiscovery, s.registerSecureBoot, s.registerIntegrity, s.registerNetwork, s.registerPowerLimit,
		s.registerTelemetry, s.registerJobs, s.registerQuirks, s.registerQueries, s.registerOutages, s.registerCertificates,
		s.registerInventory,
	} {
		register(sc)
	}
}

// beginStep begins a cause when a step is the first of a Given or a When: messages that the
// receiver has received before do not count.
func (s *scenario) beginStep(st *godog.Step) {
	begins := st.Type != s.stepType && st.Type != messages.PickleStepType_OUTCOME
	s.stepType = st.Type
	if begins && s.receiver != nil {
		s.lab.Settle()
		s.receiver.beginCause()
	}
}

func (s *scenario) start(profile string, servers int) {
	s.define(profile, servers)
	s.open()
}

// define sets the definition of the lab.
func (s *scenario) define(profile string, servers int) {
	r := rackfile.Default(servers)
	r.Seed, r.Hosts[0].Profile = 7, profile
	r.Accounts = []rackfile.Account{{Name: "admin", Password: "admin-password", Role: "Administrator"}}
	s.config = rack.Config{Dir: s.t.TempDir(), Rack: &r, Events: s.answerBoot}
}

// startDialectFile starts a lab whose servers are like those of the profile generic,
// with BMCs of a dialect file.
func (s *scenario) startDialectFile(servers int, dialect *godog.DocString) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(dialect.Content, "name: "), "\n")
	profile, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	if err != nil {
		return err
	}
	of := strings.NewReplacer("name: generic\n", "name: "+name+"\n", "dialect: generic\n", "dialect: "+name+"\n").Replace(string(profile))
	dir := s.t.TempDir()
	for file, text := range map[string]string{"profiles": of, "dialects": dialect.Content} {
		if err := os.Mkdir(filepath.Join(dir, file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file, name+".yaml"), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	models, err := rack.LoadModels(dir)
	if err != nil {
		return err
	}
	s.define(name, servers)
	if err := rack.KeepModels(s.config.Dir, models); err != nil {
		return err
	}
	s.open()
	return nil
}

func (s *scenario) open() {
	if s.lab != nil {
		s.lab.Stop()
	}
	s.lab = racktest.Start(s.t, s.config)
	if at, ok := s.server(1).IPMI(); ok {
		s.save("ipmi", at)
	}
}

// answerBoot answers the attempt of a machine to boot from a source: a virtual CD
// boots if its image begins with liveImageMark, and nothing else boots.
func (s *scenario) answerBoot(h *rack.Host, ev machine.Event) {
	tried, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
	if tried.Source.Kind == machine.Cd {
		if m, ok := h.Media("Cd"); ok {
			begin := make([]byte, len(liveImageMark))
			if _, err := m.ReadAt(begin, 0); err == nil && string(begin) == liveImageMark {
				answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: "live system"}
			}
			_ = m.Close()
		}
	}
	if err := h.Apply(context.Background(), answer); err != nil {
		s.t.Logf("boot of %s: %v", h.Name(), err)
	}
}

// end closes the streams, servers and sessions that the scenario has opened.
func (s *scenario) end() error {
	for _, st := range s.streams {
		st.close()
	}
	s.images.close()
	if s.receiver != nil {
		s.receiver.Close()
	}
	if s.lab != nil {
		s.lab.Stop()
	}
	if s.release != nil {
		s.release()
	}
	return nil
}

func (s *scenario) advance(n int, unit string) {
	each := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[unit[0]]
	s.lab.Advance(time.Duration(n) * each)
}

func (s *scenario) restart() { s.open() }

// recreate starts a lab of the same definition in an empty directory.
func (s *scenario) recreate() {
	s.lab.Stop()
	s.config.Dir = s.t.TempDir()
	s.open()
}

// server returns the n-th server of the rack, counted from 1.
func (s *scenario) server(n int) *rack.Host { return s.lab.Hosts()[n-1] }

// save remembers a value under a name, for equalsSaved.
func (s *scenario) save(name string, value any) { s.saved[name] = fmt.Sprint(value) }

func (s *scenario) equalsSaved(name string, value any) error {
	saved, ok := s.saved[name]
	if !ok {
		return fmt.Errorf("no step has saved %s", name)
	}
	if saved != fmt.Sprint(value) {
		return fmt.Errorf("%s is %v, and was %s", name, value, saved)
	}
	return nil
}

// equal returns an error that names what differs.
func equal(what string, got, want any) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // a pattern let only digits pass, or 0 is wrong as well
	return n
}

// Package steps binds the phrases of the feature files beside it to a live rack
// without Kubernetes: what an operator does to servers through their BMCs, over
// HTTPS, and what he then finds. Each scenario has a lab of its own, whose clock
// stands until time is said to pass. It looks into no BMC but over the wire, and
// into the lab only for what an operator of a rack holds in his hands: its
// addresses, its credentials, its journal and its faults.
package steps

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// scenario is what the steps of one scenario share.
type scenario struct {
	t               testing.TB
	config          lab.Config
	lab             *labtest.Lab
	saved           map[string]string // what a step found, for those after it
	response        response          // to the last request
	user            credentials       // of the next requests; zero: the administrator's
	token           string            // of a session; used instead when it is not ""
	images          images
	receiver        *eventReceiver
	streams         []*stream
	rule            string // ID of the fault that was added
	ipmi            ipmiClient
	output          programRun // the last program
	powerOffsPerRun []int      // how often the power went off in each of its runs
}

// Register binds all steps to a scenario.
func Register(sc *godog.ScenarioContext, t testing.TB) {
	s := &scenario{t: t, saved: map[string]string{}}
	sc.Step(`^a rack of (\d+) servers?$`, func(n int) error { return s.start("generic", n) })
	sc.Step(`^a rack of (\d+) servers? with RAID$`, func(n int) error { return s.start("raid", n) })
	sc.Step(`^(\d+) (seconds?|minutes?|hours?) pass(?:es)?$`, s.advance)
	sc.Step(`^the lab is restarted$`, s.restart)
	sc.Step(`^the lab is thrown away and made again from the same definition$`, s.recreate)
	for _, register := range []func(*godog.ScenarioContext){
		s.registerClients, s.registerPower, s.registerBoot, s.registerMedia, s.registerAccess, s.registerEvents, s.registerFaults,
		s.registerSettings, s.registerUpdates, s.registerParts, s.registerStorage, s.registerManager, s.registerPrograms, s.registerIPMI,
		s.registerCollections, s.registerDiscovery, s.registerSecureBoot, s.registerIntegrity, s.registerNetwork, s.registerTime, s.registerLimits,
		s.registerTelemetry, s.registerPushes, s.registerJobs, s.registerScripts, s.registerQuirks, s.registerVendors, s.registerIDRAC, s.registerILO, s.registerDialects,
	} {
		register(sc)
	}
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if err != nil && s.response.status != 0 {
			s.t.Logf("last answer: %s", s.response)
		}
		s.end()
		return ctx, nil
	})
}

func (s *scenario) start(profile string, servers int) error {
	s.define(profile, servers)
	s.open()
	return nil
}

// define says what the lab shall be.
func (s *scenario) define(profile string, servers int) {
	r := rack.Default(servers)
	r.Seed, r.Hosts[0].Profile = 7, profile
	r.Accounts = []rack.Account{{Name: "admin", Password: "admin-password", Role: "Administrator"}}
	s.config = lab.Config{Dir: s.t.TempDir(), Rack: &r, Events: s.boots}
}

func (s *scenario) open() { s.lab = labtest.Start(s.t, s.config) }

// boots is the world: a virtual CD boots when its image says that it can, and
// nothing else does.
func (s *scenario) boots(h *lab.Host, ev machine.Event) {
	tried, ok := ev.(machine.BootAttempted)
	if !ok {
		return
	}
	var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
	if tried.Source.Kind == machine.Cd {
		if m, ok := h.Media("Cd"); ok {
			begin := make([]byte, len(bootable))
			if _, err := m.ReadAt(begin, 0); err == nil && string(begin) == bootable {
				answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: "live system"}
			}
			_ = m.Close()
		}
	}
	if err := h.Apply(context.Background(), answer); err != nil {
		s.t.Logf("boot of %s: %v", h.Name(), err)
	}
}

func (s *scenario) end() {
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
}

func (s *scenario) advance(n int, unit string) {
	each := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour}[unit[0]]
	s.lab.Advance(time.Duration(n) * each)
}

func (s *scenario) restart() {
	s.lab.Stop()
	s.open()
}

// recreate makes the same lab in another directory.
func (s *scenario) recreate() {
	s.lab.Stop()
	s.config.Dir = s.t.TempDir()
	s.open()
}

// server is the n-th server of the rack, counted from 1.
func (s *scenario) server(n int) *lab.Host { return s.lab.Hosts()[n-1] }

// save remembers something under a name; same compares with it.
func (s *scenario) save(what string, is any) { s.saved[what] = fmt.Sprint(is) }

func (s *scenario) equalsSaved(what string, is any) error {
	if was := s.saved[what]; was != fmt.Sprint(is) {
		return fmt.Errorf("%s is %v, and was %s", what, is, was)
	}
	return nil
}

// equal says what differs.
func equal(what string, got, want any) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // a pattern let only digits pass
	return n
}

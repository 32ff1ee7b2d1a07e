package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// Path patterns of requests that faults match, on any dialect.
const (
	resetPath  = "/redfish/v1/Systems/*/Actions/ComputerSystem.Reset"
	insertPath = "/redfish/v1/**/VirtualMedia.InsertMedia"
	systemPath = "/redfish/v1/Systems/*"
)

// faults are the fault rules that steps can add to a BMC, by their phrase.
var faults = []struct {
	phrase string
	doc    string
	rule   fault.Rule
}{
	{"is offline", "takes the BMC off the network", fault.Rule{Offline: true}},
	{"is offline for two minutes", "takes the BMC off the network for two minutes of the lab's time",
		fault.Rule{Offline: true, Until: fault.Duration{Duration: 2 * time.Minute}}},
	{"refuses virtual media", "answers each insertion of a medium with 500",
		fault.Rule{Path: insertPath, Method: fault.Methods{"POST"}, Status: 500, Message: "no medium can be inserted"}},
	{"refuses virtual media once", "answers the next insertion of a medium with 500",
		fault.Rule{Path: insertPath, Method: fault.Methods{"POST"}, Status: 500, Count: 1, Message: "no medium can be inserted"}},
	{"refuses to change the power", "answers each reset with 500",
		fault.Rule{Path: resetPath, Method: fault.Methods{"POST"}, Status: 500, Message: "the power supply does not answer"}},
	{"refuses to change the power once", "answers the next reset with 500",
		fault.Rule{Path: resetPath, Method: fault.Methods{"POST"}, Status: 500, Count: 1, Message: "the power supply does not answer"}},
	{"refuses a graceful shutdown", "answers the next reset with 400, as a BMC without GracefulShutdown does",
		fault.Rule{Path: resetPath, Method: fault.Methods{"POST"}, Status: 400, Count: 1, Message: "no such reset type"}},
	{"accepts a reset and does nothing", "confirms the next reset without carrying it out",
		fault.Rule{Path: resetPath, Method: fault.Methods{"POST"}, Status: 204, Count: 1}},
	{"accepts resets and does nothing", "confirms each reset without carrying it out: the power is stuck",
		fault.Rule{Path: resetPath, Method: fault.Methods{"POST"}, Status: 204}},
	{"refuses boot overrides once", "answers the next change of the system with 500",
		fault.Rule{Path: systemPath, Method: fault.Methods{"PATCH"}, Status: 500, Count: 1}},
	{"answers with 503 for a while", "answers the next five requests with 503",
		fault.Rule{Status: 503, Count: 5, Path: "/redfish/v1/**"}},
	{"closes a connection within a response", "ends the next connection in the middle of a body",
		fault.Rule{Path: systemPath, Method: fault.Methods{"GET"}, Drop: fault.MidBody, Count: 1}},
	{"presents a self-signed certificate", "presents a certificate that no authority has signed",
		fault.Rule{TLS: fault.SelfSigned}},
}

func (s *scenario) registerFaults(sc *stepRegistry) {
	for _, f := range faults {
		s.registerTrigger(sc, f.phrase, f.doc, func(ctx context.Context) error {
			r := f.rule
			r.BMC = s.server.Name
			added, err := s.lab.Control().AddFaults(ctx, r)
			for _, a := range added {
				s.faults = append(s.faults, a.ID)
			}
			return err
		})
	}
	s.registerTrigger(sc, "restarts", "restarts the BMC: it loses its sessions and is offline for a while", func(ctx context.Context) error {
		_, err := s.lab.Control().ResetBMC(ctx, s.server.Name, control.BMCReset{Kind: "ForceRestart"})
		return err
	})
	sc.Step(`^the BMC works again$`, "removes the faults of the scenario", s.removeFaults)
	sc.Step(`^requests to the BMC are counted$`, "counts requests to the BMC from now on", func() { s.requestsFrom = s.mark() })
	sc.NegativeStep(`^the BMC has received no request$`, "asserts, once each controller has reconciled every object, that the journal has no request to the BMC since the count began", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		if all := s.requests(s.requestsFrom, journal.Query{}); len(all) > 0 {
			return fmt.Errorf("the BMC has received %d requests: %s %s …", len(all), all[0].Method, all[0].Path)
		}
		return nil
	})
}

// registerTrigger binds two steps: one that affects the BMC at once, and one that
// does so as soon as the host is in a state.
func (s *scenario) registerTrigger(sc *stepRegistry, phrase, doc string, does func(context.Context) error) {
	sc.Step(`^the BMC `+phrase+`$`, doc, does)
	sc.Step(`^the BMC `+phrase+` as soon as the host is "([^"]*)"$`, "does so when the host is next seen in this provisioning state", func(ctx context.Context, state string) error {
		ctx = context.WithoutCancel(ctx)
		return s.trap(state, func() error { return does(ctx) })
	})
}

func (s *scenario) removeFaults(ctx context.Context) error {
	for _, id := range s.faults {
		if err := s.lab.Control().RemoveFault(ctx, id); err != nil {
			return err
		}
	}
	s.faults = nil
	return nil
}

// requests returns the journal's requests to the server's BMC since a mark.
func (s *scenario) requests(since journal.Mark, q journal.Query) []journal.Entry {
	q.Host, q.Kind, q.After = s.server.Name, journal.Request, since
	all, _, err := s.lab.Rack().Journal().Select(q)
	if err != nil {
		panic(err) // the query is ours
	}
	return all
}

// mark returns the end of the journal.
func (s *scenario) mark() journal.Mark {
	return s.lab.Rack().Journal().Mark()
}

// resets returns how many resets the BMC has confirmed since the count began.
func (s *scenario) resets() int {
	return len(s.requests(s.resetsFrom, journal.Query{Method: "POST", Path: resetPath, Status: "2xx"}))
}

package steps

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
)

// faults are what an operator calls things that go wrong at the first server's
// BMC.
var faults = map[string]fault.Rule{
	"answers once that it is busy":        {Status: 503, Count: 1, RetryAfter: fault.Duration{Duration: 7 * time.Second}},
	"breaks off its answers":              {Truncate: "50%"},
	"answers with JSON that is broken":    {InvalidJSON: true},
	"is offline":                          {Offline: true},
	"shows what was true before":          {Stale: true},
	"answers only one request per second": {Limit: "1/1s"},
}

func (s *scenario) registerFaults(sc *godog.ScenarioContext) {
	sc.Step(`^the (?:first server's BMC|BMC) (answers once that it is busy|breaks off its answers|answers with JSON that is broken|is offline|shows what was true before|answers only one request per second)$`,
		func(what string) error {
			r := faults[what]
			r.BMC = s.server(1).Name()
			r, err := s.lab.AddFault(r)
			s.rule = r.ID
			return err
		})
	sc.Step(`^the fault is mended$`, func() error { return s.lab.RemoveFault(s.rule) })
	sc.Step(`^the operator tries to read the system$`, func() error {
		err := s.send("GET", systemURI, nil)
		s.saved["error"] = fmt.Sprint(err)
		return nil
	})
	sc.Step(`^he is asked to come again in (\d+) seconds$`, func(n int) error {
		return equal("the answer", fmt.Sprint(s.response.status, " ", s.response.header.Get("Retry-After")), fmt.Sprint("503 ", n))
	})
	sc.Step(`^he gets no answer$`, func() error {
		if s.response.status != 0 {
			return fmt.Errorf("he gets %s", s.response)
		}
		return nil
	})
	sc.Step(`^he gets an answer that he cannot read$`, func() error {
		if s.saved["error"] == "<nil>" && json.Valid([]byte(s.response.text)) {
			return fmt.Errorf("he gets %s", s.response)
		}
		return nil
	})
	sc.Step(`^the other server's BMC answers as ever$`, func() error {
		if err := s.sendTo(2, "GET", systemURI, nil); err != nil {
			return err
		}
		return equal("the answer", s.response.status, 200)
	})
	sc.Step(`^the operator is told that the server is (on|off)$`, func(state string) error {
		return s.power(1, map[string]string{"on": "On", "off": "Off"}[state])
	})
	sc.Step(`^one of two requests at the same time is refused as too many$`, func() error {
		var got []int
		for range 2 {
			if err := s.send("GET", systemURI, nil); err != nil {
				return err
			}
			got = append(got, s.response.status)
		}
		return equal("the answers", got, []int{200, 429})
	})
	sc.Step(`^the journal tells who switched the server on, and from where$`, func() error {
		return s.journaled("POST", systemURI+"/Actions/ComputerSystem.Reset", "admin")
	})
	sc.Step(`^every BMC answers at an address of its own$`, func() error {
		seen := map[string]bool{}
		for i, h := range s.lab.Hosts() {
			if err := s.sendTo(i+1, "GET", systemURI, nil); err != nil {
				return err
			}
			serial := fmt.Sprint(s.response.body["SerialNumber"])
			if s.response.status != 200 || seen[serial] || seen[h.Address().String()] {
				return fmt.Errorf("%s at %s answers %s", h.Name(), h.Address(), s.response)
			}
			seen[serial], seen[h.Address().String()] = true, true
		}
		return nil
	})
}

// journaled says whether the journal tells who has sent a request that was
// carried out.
func (s *scenario) journaled(method, path, user string) error {
	all, _, err := s.lab.Journal().Select(journal.Query{})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(e journal.Entry) bool {
		return e.Method == method && e.Path == path && e.User == user && e.From == "127.0.0.1" && e.Status > 0 && e.Status < 300
	}) {
		return fmt.Errorf("it tells %+v", all)
	}
	return nil
}

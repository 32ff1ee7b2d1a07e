package steps

import (
	"fmt"
	"slices"
	"time"

	"github.com/cucumber/godog"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
)

// scripts are what the definition of a rack says of what goes wrong there.
var scripts = map[string]fault.Rule{
	"takes the first BMC off the network for the third minute": {
		BMC: "node-0", Offline: true, From: fault.Duration{Duration: 2 * time.Minute}, Until: fault.Duration{Duration: 3 * time.Minute},
	},
	"has the BMCs be busy by chance, every other time": {Path: systemURI, Status: 503, Probability: 0.5},
	"has the BMCs be as slow as one that was measured": {Path: systemURI, Latency: "p50=300ms,p99=4s"},
}

func (s *scenario) registerScripts(sc *godog.ScenarioContext) {
	answered := make(chan error, 1) // of the request that waits
	ask := func() error {
		before := s.lab.Waiting()
		go func() { answered <- s.send("GET", systemURI, nil) }()
		return eventually(func() error { return equal("the number of requests that wait", s.lab.Waiting(), before+1) })
	}
	arrives := func() error {
		select {
		case err := <-answered:
			if err != nil {
				return err
			}
			return equal("the answer", s.response.status, 200)
		case <-time.After(10 * time.Second):
			return fmt.Errorf("there is none")
		}
	}
	sc.Step(`^a rack of (\d+) servers? whose script (takes the first BMC off the network for the third minute|has the BMCs be busy by chance, every other time|has the BMCs be as slow as one that was measured)$`,
		func(n int, does string) error {
			s.define("generic", n)
			s.config.Rack.Faults = []fault.Rule{scripts[does]}
			s.open()
			return nil
		})
	sc.Step(`^every answer of the BMC takes (\d+) seconds$`, func(n int) error {
		_, err := s.lab.AddFault(fault.Rule{BMC: s.server(1).Name(), Latency: fault.Latency(fmt.Sprintf("%ds", n))})
		return err
	})
	sc.Step(`^the operator asks for the system, and waits$`, ask)
	sc.Step(`^he waits still$`, func() error {
		s.lab.Settle()
		if len(answered) > 0 || s.lab.Waiting() != 1 {
			return fmt.Errorf("%d requests wait, and %d are answered", s.lab.Waiting(), len(answered))
		}
		return nil
	})
	sc.Step(`^he has his answer$`, arrives)
	sc.Step(`^the journal tells that it took (\d+) seconds$`, func(n int) error {
		took, _, err := s.asked()
		if err != nil {
			return err
		}
		return equal("what requests took", took, []time.Duration{time.Duration(n) * time.Second})
	})
	sc.Step(`^the operator asks for the system (\d+) times, one after the other$`, func(n int) error {
		for range n {
			if err := ask(); err != nil {
				return err
			}
			s.lab.Advance(time.Minute) // nothing takes longer
			if err := arrives(); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^half of the answers took less than (\d+) ms, and hardly one more than (\d+) seconds$`, func(ms, seconds int) error {
		took, _, err := s.asked()
		if err != nil {
			return err
		}
		s.save("what requests took", took)
		slices.Sort(took)
		half, most := time.Duration(ms)*time.Millisecond, time.Duration(seconds)*time.Second
		n := len(took)
		if n < 20 || took[n/4] > half || took[n*3/4] < half || took[n-1-n/20] > most || took[0] == took[n-1] {
			return fmt.Errorf("they took %v", took)
		}
		return nil
	})
	sc.Step(`^each took as long as it had before$`, func() error {
		took, _, err := s.asked()
		if err != nil {
			return err
		}
		return s.equalsSaved("what requests took", took)
	})
	sc.Step(`^the operator tries to read the system (\d+) times$`, func(n int) error {
		for range n {
			if err := s.send("GET", systemURI, nil); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the BMC was busy some of the times, and some not$`, func() error {
		_, statuses, err := s.asked()
		if err != nil {
			return err
		}
		s.save("the answers", statuses)
		if !slices.Contains(statuses, 503) || !slices.Contains(statuses, 200) {
			return fmt.Errorf("the answers were %v", statuses)
		}
		return nil
	})
	sc.Step(`^the BMC was busy at the same times$`, func() error {
		_, statuses, err := s.asked()
		if err != nil {
			return err
		}
		return s.equalsSaved("the answers", statuses)
	})
	sc.Step(`^the journal tells that the first BMC was gone for a minute$`, func() error {
		all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name()})
		if err != nil {
			return err
		}
		at := map[string]time.Time{}
		for _, e := range all {
			at[e.What] = e.At
		}
		return equal("how long it was gone", at["bmc.online"].Sub(at["bmc.offline"]), time.Minute)
	})
}

// asked is what the journal has of the requests for the system, in their order:
// how long each took, and how it was answered.
func (s *scenario) asked() (took []time.Duration, statuses []int, err error) {
	all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name()})
	for _, e := range all {
		if e.Kind == journal.Request && e.Path == systemURI {
			took, statuses = append(took, e.Took.Duration), append(statuses, e.Status)
		}
	}
	return took, statuses, err
}

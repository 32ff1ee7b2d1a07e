package steps

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

func (s *scenario) registerJournal(sc *stepRegistry) {
	sc.Step(`^the journal has (GET|POST|PATCH|DELETE) (\S+) by "([^"]*)" from (\S+)$`, s.journalHas)
	sc.Step(`^the journal has requests for (\S+) that took (\d+) seconds$`, func(path string, n int) error {
		took, _, err := s.journaledRequests(s.uri(path))
		if err != nil {
			return err
		}
		return equal("the durations", took, []time.Duration{time.Duration(n) * time.Second})
	})
	sc.Step(`^half of the requests took less than (\d+) ms, and at most one in twenty more than (\d+) seconds$`, func(ms, seconds int) error {
		took, _, err := s.journaledRequests(systemURI)
		if err != nil {
			return err
		}
		s.save("durations", took)
		slices.Sort(took)
		half, most := time.Duration(ms)*time.Millisecond, time.Duration(seconds)*time.Second
		n := len(took)
		if n < 20 || took[n/4] > half || took[n*3/4] < half || took[n-1-n/20] > most || took[0] == took[n-1] {
			return fmt.Errorf("they took %v", took)
		}
		return nil
	})
	sc.Step(`^each request took as long as before$`, func() error {
		took, _, err := s.journaledRequests(systemURI)
		if err != nil {
			return err
		}
		return s.equalsSaved("durations", took)
	})
	sc.Step(`^the journal has responses of 200 and of 503$`, func() error {
		_, statuses, err := s.journaledRequests(systemURI)
		if err != nil {
			return err
		}
		s.save("statuses", statuses)
		if !slices.Contains(statuses, 503) || !slices.Contains(statuses, 200) {
			return fmt.Errorf("the statuses are %v", statuses)
		}
		return nil
	})
	sc.Step(`^the statuses are the same as before$`, func() error {
		_, statuses, err := s.journaledRequests(systemURI)
		if err != nil {
			return err
		}
		return s.equalsSaved("statuses", statuses)
	})
	sc.Step(`^the journal has the first BMC offline for a minute$`, func() error {
		all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name()})
		if err != nil {
			return err
		}
		at := map[string]time.Time{}
		for _, e := range all {
			at[e.What] = e.At
		}
		return equal("the time between bmc.offline and bmc.online", at["bmc.online"].Sub(at["bmc.offline"]), time.Minute)
	})
	sc.Step(`^the client repeats GET (\S+) (\d+) times$`, func(path string, n int) error {
		for range n {
			if err := s.send("GET", s.uri(path), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// journalHas looks for a request that was carried out.
func (s *scenario) journalHas(method, path, user, from string) error {
	all, _, err := s.lab.Journal().Select(journal.Query{})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(e journal.Entry) bool {
		return e.Method == method && e.Path == s.uri(path) && e.User == user && e.From == from && e.Status > 0 && e.Status < 300
	}) {
		return fmt.Errorf("the journal is %+v", all)
	}
	return nil
}

// journaledRequests returns the duration and the status of each request for a path
// to the first BMC, from the journal and in its order.
func (s *scenario) journaledRequests(path string) (took []time.Duration, statuses []int, err error) {
	all, _, err := s.lab.Journal().Select(journal.Query{Host: s.server(1).Name()})
	for _, e := range all {
		if e.Kind == journal.Request && e.Path == path {
			took, statuses = append(took, e.Took.Duration), append(statuses, e.Status)
		}
	}
	return took, statuses, err
}

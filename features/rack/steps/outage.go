package steps

import (
	"errors"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// registerOutages binds the steps about mains power and about the system's software: the
// watchdog timer, and boots.
func (s *scenario) registerOutages(sc *stepRegistry) {
	sc.Step(`^the mains power fails$`, func() error {
		s.bmcWasReset = true
		return s.server(1).Apply(s.t.Context(), machine.CutAC{})
	})
	sc.Step(`^the mains power is back$`, func() error { return s.server(1).Apply(s.t.Context(), machine.RestoreAC{}) })
	sc.Step(`^the system is on again after a while$`, func() (err error) {
		s.outage, err = s.untilOn()
		return err
	})
	sc.Step(`^the system is on again after (\d+) seconds more$`, func(more int) error {
		took, err := s.untilOn()
		if err != nil {
			return err
		}
		return equal("the time until the system is on", took, s.outage+time.Duration(more)*time.Second)
	})
	sc.Step(`^the system's software resets the watchdog timer to (\d+) seconds$`, func(n int) error {
		h := s.server(1)
		if h.Machine().OS == nil {
			return errors.New("no system is running")
		}
		return h.Apply(s.t.Context(), machine.FeedWatchdog{Boot: h.Machine().OS.Boot, For: time.Duration(n) * time.Second})
	})
	sc.Step(`^the system has tried to boot (\d+) times$`, func(n uint64) error {
		return equal("the number of boots", s.server(1).Machine().Boots, n)
	})
}

// untilOn lets time pass until the system's power is on, which its BMC may not show
// yet, and returns how long it took.
func (s *scenario) untilOn() (time.Duration, error) {
	for took := time.Duration(0); took <= 10*time.Minute; took += time.Second {
		if s.server(1).Machine().Power == machine.PowerOn {
			return took, nil
		}
		s.lab.Advance(time.Second)
	}
	return 0, errors.New("ten minutes later the power is off")
}

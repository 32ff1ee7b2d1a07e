package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

func (s *scenario) registerServers(sc *stepRegistry) {
	sc.Step(`^the server is off$`, "waits until the server has no power", s.isOff)
	sc.Step(`^the server runs from its first disk$`, "waits until the server has booted from its first disk", s.runsDisk)
	sc.NegativeStep(`^the server's virtual CD is empty$`, "asserts, once each controller has reconciled every object, that no virtual media slot has an image", s.cdIsEmpty)
	sc.NegativeStep(`^the server has no boot override$`, "asserts, once each controller has reconciled every object, that the boot order alone decides", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.override(machine.Disabled)
	})
	sc.Step(`^the server's boot override is continuous$`, "asserts that the boot override is for every boot", func() error { return s.override(machine.Continuous) })
	sc.NegativeStep(`^the server's disks have no partition table$`, "asserts, once each controller has reconciled every object, that the first and last mebibyte of each disk are zero", s.disksAreBlank)
	sc.NegativeStep(`^the server's first disk does not boot$`, "asserts, once each controller has reconciled every object, that the disk's bytes are not bootable", s.firstDiskDoesNotBoot)
	sc.NegativeStep(`^the server booted the agent once for the image$`, "asserts, once each controller has reconciled every object, two boots since the image was set: agent and image", s.bootedOnce)
	sc.Step(`^somebody powers the server off at its BMC$`, "switches the server off at its BMC, and not by spec.online", s.switchOffAtBMC)
	sc.Step(`^the server is on$`, "waits until the server has power", s.isOn)
	sc.NegativeStep(`^the server stays (on|off)$`, "asserts, once each controller has reconciled every object, that the server has power, or has none", s.staysPowered)
	sc.Step(`^the server has nothing to boot$`, "waits until the server has tried every boot source in vain", s.hasNothingToBoot)
	sc.Step(`^the server's operating system ignores the power button$`, "lets the running system ignore a graceful shutdown", s.ignorePowerButton)
	sc.Step(`^the server's operating system crashes$`, "lets the running system panic", func(ctx context.Context) error { return s.host().Apply(ctx, machine.Crash{}) })
	sc.Step(`^the server's agent will not report$`, "lets the agent's system boot without its agent", func() { s.lab.SilenceAgent(s.server.Name, true) })
	sc.Step(`^the server's agent will report again$`, "lets the agent's system boot with its agent again", func() { s.lab.SilenceAgent(s.server.Name, false) })
	sc.Step(`^the server's agent runs without secure boot$`, "waits until the server has booted the agent, with secure boot disabled", func(ctx context.Context) error { return s.runsSecurely(ctx, lab.AgentOS, false) })
	sc.Step(`^the server runs its disk with secure boot$`, "waits until the server has booted its disk, with secure boot enabled", func(ctx context.Context) error { return s.runsSecurely(ctx, lab.DiskOS, true) })
	sc.Step(`^the server's next boot is without secure boot$`, "waits until secure boot is disabled for the next boot", func(ctx context.Context) error {
		return eventually(ctx, "secure boot is disabled", func(context.Context) (bool, string, error) {
			v := s.machine()
			return !v.SecureBoot.Enable, fmt.Sprintf("%+v", v.SecureBoot.Enable), nil
		})
	})
	sc.NegativeStep(`^the server was not reset$`, "asserts, once each controller has reconciled every object, that the BMC has confirmed no reset since the count began",
		func(ctx context.Context) error { return s.wasReset(ctx, 0) })
	sc.Step(`^resets of the server are counted$`, "counts resets from now on", func() { s.resetsFrom = s.mark() })
	sc.NegativeStep(`^the server was reset (\d+) times?$`, "asserts, once each controller has reconciled every object, how many resets the BMC has confirmed since the count began", s.wasReset)
	sc.Step(`^boots of the server are counted$`, "waits until the server has nothing to boot, and counts boots from then on", s.countStarts)
	sc.NegativeStep(`^the server has booted (\d+) times since, and was never off$`, "asserts, once each controller has reconciled every object, how many boots the server has begun since, and that its log has no power off", s.hasRestarted)
	sc.Step(`^the server's console has shown, in this order:$`, "waits until the console has shown these lines in this order, where … is any text", s.consoleShows)
	sc.NegativeStep(`^the server's console shows no token$`, "asserts, once each controller has reconciled every object, that the console has shown no token of an agent", func(ctx context.Context) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.consoleHoldsNoToken()
	})
	sc.Step(`^(\d+) minutes pass$`, "lets minutes of the lab's time pass, and waits until each controller has reconciled every object after that", func(ctx context.Context, n int) error { return s.pass(ctx, time.Duration(n)*time.Minute) })
	sc.Step(`^a minute passes$`, "lets a minute of the lab's time pass, likewise", func(ctx context.Context) error { return s.pass(ctx, time.Minute) })
	sc.Step(`^ten minutes pass$`, "lets ten minutes of the lab's time pass, likewise", func(ctx context.Context) error { return s.pass(ctx, 10*time.Minute) })
}

// pass lets time pass: see lab.Pass. What the host shows from now on is what "stays"
// is about.
func (s *scenario) pass(ctx context.Context, d time.Duration) error {
	s.recorder.mark()
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	walk := min(d, undisturbed)
	if err := s.letTimeGo(ctx, walk); err != nil {
		return err
	}
	return s.lab.Pass(ctx, d-walk)
}

// starts counts the boots that the server has begun, and the entries about power
// off in its BMC's log.
type starts struct {
	boots uint64
	offs  int
}

func (s *scenario) starts() starts {
	out := starts{boots: s.machine().Boots}
	for e := range s.host().BMC().Log.Entries() {
		if e.Kind == event.PowerOff {
			out.offs++
		}
	}
	return out
}

func (s *scenario) countStarts(ctx context.Context) error {
	if err := s.hasNothingToBoot(ctx); err != nil {
		return err
	}
	s.startsBefore = s.starts()
	return nil
}

func (s *scenario) hasRestarted(ctx context.Context, n int) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	now := s.starts()
	if now.boots != s.startsBefore.boots+uint64(n) || now.offs != s.startsBefore.offs {
		return fmt.Errorf("it has started %d times, and was off %d times", now.boots-s.startsBefore.boots, now.offs-s.startsBefore.offs)
	}
	return nil
}

// host returns the server in the rack.
func (s *scenario) host() *rack.Host {
	h, ok := s.lab.Rack().Host(s.server.Name)
	if !ok {
		panic("steps: the lab has lost " + s.server.Name)
	}
	return h
}

// hostNamed returns a server of the rack by its name, as a step has it.
func (s *scenario) hostNamed(name string) (*rack.Host, error) {
	h, ok := s.lab.Rack().Host(name)
	if !ok {
		return nil, fmt.Errorf("there is no server %s", name)
	}
	return h, nil
}

func (s *scenario) machine() *machine.View { return s.host().Machine() }

func (s *scenario) isOff(ctx context.Context) error {
	return eventually(ctx, "the server is off", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Power == machine.PowerOff, string(v.Phase), nil
	})
}

func (s *scenario) isOn(ctx context.Context) error {
	return eventually(ctx, "the server is on", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Power == machine.PowerOn, string(v.Phase), nil
	})
}

// override asserts how long the boot override of the server applies.
func (s *scenario) override(want machine.Enabled) error {
	if o := s.machine().Override; o.Enabled != want {
		return fmt.Errorf("the boot override is %s of %s, want %s", o.Enabled, o.Target, want)
	}
	return nil
}

func (s *scenario) staysPowered(ctx context.Context, how string) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	if v := s.machine(); (v.Power == machine.PowerOn) != (how == "on") {
		return fmt.Errorf("the power is %s", v.Power)
	}
	return nil
}

func (s *scenario) wasReset(ctx context.Context, times int) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	if n := s.resets(); n != times {
		return fmt.Errorf("it was reset %d times", n)
	}
	return nil
}

func (s *scenario) runsSecurely(ctx context.Context, os string, secure bool) error {
	return eventually(ctx, fmt.Sprintf("the server runs %s, secure boot %t", os, secure), func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Phase == machine.Running && v.OS.Name == os && v.SecureBoot.Current == secure, fmt.Sprintf("%s, %+v, secure boot %t", v.Phase, v.OS, v.SecureBoot.Current), nil
	})
}

func (s *scenario) ignorePowerButton(ctx context.Context) error {
	v := s.machine()
	if v.OS == nil {
		return fmt.Errorf("nothing runs: the server is %s", v.Phase)
	}
	return s.host().Apply(ctx, machine.IgnorePowerButton{Boot: v.OS.Boot, Ignore: true})
}

// changeBMCPassword changes the password of the BMC's administrator.
func (s *scenario) changeBMCPassword(ctx context.Context, password string) error {
	admin, ok := s.host().Admin()
	if !ok {
		return errors.New("the BMC has no administrator")
	}
	_, err := s.host().ApplyBMC(ctx, simbmc.ChangeAccount{ID: admin.ID, AccountChange: simbmc.AccountChange{Password: &password}})
	return err
}

func (s *scenario) hasNothingToBoot(ctx context.Context) error {
	return eventually(ctx, "the server has found nothing to boot", func(context.Context) (bool, string, error) {
		v := s.machine()
		return v.Phase == machine.Halted, string(v.Phase), nil
	})
}

func (s *scenario) runsDisk(ctx context.Context) error {
	return eventually(ctx, "the server runs its first disk", func(context.Context) (bool, string, error) {
		v := s.machine()
		first := v.Identity.Storage[0].Drives[0].ID
		return v.Phase == machine.Running && v.OS.Source == machine.Source{Kind: machine.Hdd, Device: first},
			fmt.Sprintf("%s, %+v", v.Phase, v.OS), nil
	})
}

func (s *scenario) cdIsEmpty(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	slots := s.host().BMC().Slots
	if len(slots) == 0 {
		return errors.New("the BMC has no virtual media")
	}
	for _, slot := range slots {
		if slot.Image != "" {
			return fmt.Errorf("slot %s holds %s", slot.ID, slot.Image)
		}
	}
	return nil
}

func (s *scenario) disk(i int) (io.ReaderAt, int64, error) {
	d := s.machine().Identity.Storage[0].Drives[i]
	m, err := s.host().Medium(d.ID)
	return m, d.Capacity, err
}

func (s *scenario) disksAreBlank(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	drives := s.machine().Identity.Storage[0].Drives
	if len(drives) == 0 {
		return errors.New("the server has no disk")
	}
	for i := range drives {
		m, size, err := s.disk(i)
		if err != nil {
			return err
		}
		for _, off := range []int64{0, size - 1<<20} {
			b := make([]byte, 1<<20)
			if _, err := m.ReadAt(b, off); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			for j, x := range b {
				if x != 0 {
					return fmt.Errorf("disk %d holds %#x at %d", i, x, off+int64(j))
				}
			}
		}
	}
	return nil
}

func (s *scenario) firstDiskDoesNotBoot(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	m, size, err := s.disk(0)
	if err != nil {
		return err
	}
	what, ok, err := images.Bootable(m, size)
	if err != nil {
		return err
	}
	if ok {
		return fmt.Errorf("the disk would boot: %s", what)
	}
	return nil
}

// bootedOnce asserts two boots since the image was set: of the agent and the image.
func (s *scenario) bootedOnce(ctx context.Context) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	if got := s.machine().Boots - s.bootsBefore; got != 2 {
		return fmt.Errorf("the server came up %d times since, want 2", got)
	}
	return nil
}

func (s *scenario) switchOffAtBMC(ctx context.Context) error {
	if _, err := s.lab.Control().Power(ctx, s.server.Name, string(machine.ForceOff)); err != nil {
		return err
	}
	return s.isOff(ctx)
}

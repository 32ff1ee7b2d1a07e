package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// RestorePolicy says what becomes of a machine when the mains come back; the
// values are Redfish's (DSP2046, ComputerSystem.PowerRestorePolicy).
type RestorePolicy string

// The policies.
const (
	AlwaysOn  RestorePolicy = "AlwaysOn"
	AlwaysOff RestorePolicy = "AlwaysOff"
	LastState RestorePolicy = "LastState"
)

// RestorePolicies are all of them.
var RestorePolicies = []RestorePolicy{AlwaysOn, AlwaysOff, LastState}

// PowerPolicy is how a machine comes on.
type PowerPolicy struct {
	Restore    RestorePolicy `json:"restore"`
	OnDelay    Duration      `json:"onDelay,omitzero"`    // before it comes on
	CycleDelay Duration      `json:"cycleDelay,omitzero"` // before it comes on again in a power cycle
}

// asMade is the policy of a machine whose policy nobody has set.
var asMade = &PowerPolicy{Restore: LastState}

// MaxDelay bounds the delays of a PowerPolicy.
const MaxDelay = time.Hour

// SetPowerPolicy sets the policy, whole.
type SetPowerPolicy struct{ PowerPolicy }

func (c SetPowerPolicy) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch p := c.PowerPolicy; {
	case p.Restore != AlwaysOn && p.Restore != AlwaysOff && p.Restore != LastState:
		return nil, fmt.Errorf("machine: power restore policy %q: %w", p.Restore, ErrUnknown)
	case p.OnDelay.Duration < 0 || p.OnDelay.Duration > MaxDelay:
		return nil, fmt.Errorf("machine: power-on delay %v: must be 0 to %v: %w", p.OnDelay, MaxDelay, ErrUnknown)
	case p.CycleDelay.Duration < 0 || p.CycleDelay.Duration > MaxDelay:
		return nil, fmt.Errorf("machine: power-cycle delay %v: must be 0 to %v: %w", p.CycleDelay, MaxDelay, ErrUnknown)
	}
	if *m.policy() != c.PowerPolicy {
		m.st.Policy = &c.PowerPolicy
	}
	return nil, nil
}

func (m *Machine) policy() *PowerPolicy {
	if m.st.Policy == nil {
		return asMade
	}
	return m.st.Policy
}

// onDelay is what a machine that is to come on waits for.
func (m *Machine) onDelay() time.Duration {
	if m.st.RestartAfterOff {
		return m.policy().CycleDelay.Duration
	}
	return m.policy().OnDelay.Duration
}

// PowerLoss is what took the power from a machine that nobody has switched off.
// Values are stored.
type PowerLoss string

// The losses.
const (
	LostMains  PowerLoss = "mains"
	LostSupply PowerLoss = "supply" // the last power supply that worked
	LostHeat   PowerLoss = "heat"
)

// CutAC takes the mains from a machine, and with them its BMC.
type CutAC struct{}

func (CutAC) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.ACCut {
		return nil, fmt.Errorf("%w: there are no mains", ErrPower)
	}
	m.main().ACCut = true
	return m.loseMains(now), nil
}

// RestoreAC gives the mains back. What follows is as the policy says.
type RestoreAC struct{}

func (RestoreAC) apply(m *Machine, now time.Time) ([]Event, error) {
	if !m.st.ACCut {
		return nil, fmt.Errorf("%w: the mains are there", ErrPower)
	}
	m.main().ACCut = false
	if !m.heat.View().Fed() {
		return nil, nil
	}
	return m.regainMains(now), nil
}

// loseMains leaves a machine without power, because nothing comes out of the
// wall or no power supply works. It may be so already.
func (m *Machine) loseMains(now time.Time) []Event {
	if !m.can(mainsGone) {
		return nil
	}
	own := m.main()
	switch m.st.Phase {
	case Off:
		own.WasOn = false
	case Stopping, Cutting:
		own.WasOn = own.RestartAfterOff
	default:
		own.WasOn = true
	}
	own.PowerLoss = LostSupply
	if own.ACCut {
		own.PowerLoss = LostMains
	}
	return append(m.step(now, mainsGone), event.ACPower{At: now})
}

// regainMains ends that.
func (m *Machine) regainMains(now time.Time) []Event {
	evs := m.step(now, mainsBack)
	evs = append(evs, event.ACPower{At: now, On: true}, note(now, event.ACRestored))
	if p := m.policy().Restore; p == AlwaysOff || p == LastState && !m.st.WasOn {
		return evs
	}
	own := m.main()
	own.Cause, own.RestoreCause = CauseRestore, m.policy().Restore
	on := pressOn
	if m.onDelay() > 0 {
		on = delay
	}
	return append(evs, m.step(now, on)...)
}

package machine

import (
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// RestorePolicy says what a machine does when AC power returns; the values are
// Redfish's (DSP2046, ComputerSystem.PowerRestorePolicy).
type RestorePolicy string

// The policies.
const (
	AlwaysOn  RestorePolicy = "AlwaysOn"
	AlwaysOff RestorePolicy = "AlwaysOff"
	LastState RestorePolicy = "LastState"
)

// RestorePolicies lists all policies.
var RestorePolicies = []RestorePolicy{AlwaysOn, AlwaysOff, LastState}

// PowerPolicy says how a machine powers on.
type PowerPolicy struct {
	Restore    RestorePolicy `json:"restore"`
	OnDelay    Duration      `json:"onDelay,omitzero"`    // before it powers on
	CycleDelay Duration      `json:"cycleDelay,omitzero"` // between off and on in a power cycle
}

// defaultPolicy is the policy of a machine on which none was set.
var defaultPolicy = &PowerPolicy{Restore: LastState}

// MaxDelay is the longest delay of a PowerPolicy.
const MaxDelay = time.Hour

// SetPowerPolicy replaces the power policy.
type SetPowerPolicy struct{ PowerPolicy }

func (c SetPowerPolicy) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch p := c.PowerPolicy; {
	case p.Restore != AlwaysOn && p.Restore != AlwaysOff && p.Restore != LastState:
		return nil, fmt.Errorf("power restore policy %q: %w", p.Restore, ErrUnknown)
	case p.OnDelay.Duration < 0 || p.OnDelay.Duration > MaxDelay:
		return nil, fmt.Errorf("power-on delay %v: must be 0 to %v: %w", p.OnDelay, MaxDelay, ErrUnknown)
	case p.CycleDelay.Duration < 0 || p.CycleDelay.Duration > MaxDelay:
		return nil, fmt.Errorf("power-cycle delay %v: must be 0 to %v: %w", p.CycleDelay, MaxDelay, ErrUnknown)
	}
	if *m.policy() != c.PowerPolicy {
		m.st.Policy = &c.PowerPolicy
	}
	return nil, nil
}

func (m *Machine) policy() *PowerPolicy {
	if m.st.Policy == nil {
		return defaultPolicy
	}
	return m.st.Policy
}

// onDelay returns how long a machine waits before it powers on.
func (m *Machine) onDelay() time.Duration {
	if m.st.RestartAfterOff {
		return m.policy().CycleDelay.Duration
	}
	return m.policy().OnDelay.Duration
}

// PowerLoss is why a machine lost power without a command. Values are stored.
type PowerLoss string

// The losses.
const (
	LostMains  PowerLoss = "mains"
	LostSupply PowerLoss = "supply" // the last working power supply failed
	LostHeat   PowerLoss = "heat"
)

// CutAC removes AC power from a machine, and so from its BMC.
type CutAC struct{}

func (CutAC) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.ACCut {
		return nil, fmt.Errorf("%w: there are no mains", ErrPower)
	}
	m.main().ACCut = true
	return m.losePower(now), nil
}

// RestoreAC restores AC power. The machine then follows its policy.
type RestoreAC struct{}

func (RestoreAC) apply(m *Machine, now time.Time) ([]Event, error) {
	if !m.st.ACCut {
		return nil, fmt.Errorf("%w: the mains are there", ErrPower)
	}
	m.main().ACCut = false
	if !m.heat.View().Fed() {
		return nil, nil
	}
	return m.restorePower(now), nil
}

// losePower takes the power away, because AC is cut or no power supply works.
// The machine may be without power already.
func (m *Machine) losePower(now time.Time) []Event {
	if !m.can(acLost) {
		return nil
	}
	main := m.main()
	switch m.st.Phase {
	case Off:
		main.WasOn = false
	case Stopping, Cutting:
		main.WasOn = main.RestartAfterOff
	default:
		main.WasOn = true
	}
	main.PowerLoss = LostSupply
	if main.ACCut {
		main.PowerLoss = LostMains
	}
	return append(m.step(now, acLost), event.ACPower{At: now})
}

// restorePower gives the power back.
func (m *Machine) restorePower(now time.Time) []Event {
	evs := m.step(now, acRestored)
	evs = append(evs, event.ACPower{At: now, On: true}, note(now, event.ACRestored))
	if p := m.policy().Restore; p == AlwaysOff || p == LastState && !m.st.WasOn {
		return evs
	}
	main := m.main()
	main.Cause, main.RestoreCause = CauseRestore, m.policy().Restore
	on := powerOn
	if m.onDelay() > 0 {
		on = powerOnDelayed
	}
	return append(evs, m.step(now, on)...)
}

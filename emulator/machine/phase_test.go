package machine

import (
	"errors"
	"testing"
	"time"
)

var triggers = []trigger{
	elapsed, powerOn, powerOnDelayed, powerCut, shutdownRequested, restart, loaded, nextTry, exhausted, retry, setupKey, osPowerOff, osRestart,
	osCrash, suspend, resume, restartFromOff, restartFromOffDelayed, acLost, acRestored,
}

// in makes a machine that is in phase p of its first boot.
func in(t *testing.T, p Phase) *Machine {
	t.Helper()
	m := newMachine(t)
	m.st.Phase, m.st.Boots = p, 1
	switch p {
	case Selecting:
		m.st.PendingSources = []Source{{Kind: Hdd, Device: "Disk.0"}}
	case Loading, Running, Paused, Stopping:
		m.st.OS = &OS{Source: Source{Kind: Hdd, Device: "Disk.0"}, Name: "disk", Boot: 1}
	}
	if phases[p].lasts != nil {
		m.st.Deadline = origin
	}
	return m
}

// Every pair of a phase and a trigger leads to the phase in the transition table;
// a pair that is not in it changes nothing, and a phase's duration is its
// deadline.
func TestEveryPhaseAnswersEveryTrigger(t *testing.T) {
	for p := range phases {
		for _, on := range triggers {
			m := in(t, p)
			before := m.State()
			want, ok := transitions[transition{p, on}]
			if got := m.can(on); got != ok {
				t.Errorf("%s: can(%s) = %v, want %v", p, on, got, ok)
			}
			evs := m.step(origin, on)
			if !ok {
				if len(evs) != 0 || !sameState(m.State(), before) {
					t.Errorf("%s: step(%s) is no move, yet it gave %v and %+v", p, on, evs, m.State())
				}
				continue
			}
			if m.st.Phase != want {
				t.Errorf("%s: step(%s) = %s, want %s", p, on, m.st.Phase, want)
			}
			var deadline time.Time
			if lasts := phases[want].lasts; lasts != nil {
				if d := lasts(m); d != never {
					deadline = origin.Add(d)
				}
			}
			if got := m.st.Deadline; !got.Equal(deadline) {
				t.Errorf("%s: after %s the deadline is %v, want %v", p, on, got, deadline)
			}
		}
	}
}

func TestEveryPhaseIsReachable(t *testing.T) {
	seen := map[Phase]bool{Off: true}
	for todo := []Phase{Off}; len(todo) > 0; {
		from := todo[0]
		todo = todo[1:]
		for _, on := range triggers {
			if to, ok := transitions[transition{from, on}]; ok && !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	for p := range phases {
		if !seen[p] {
			t.Errorf("phase %s cannot be reached", p)
		}
	}
	for mv, to := range transitions {
		if _, ok := phases[mv.from]; !ok {
			t.Errorf("move %v starts at no phase", mv)
		}
		if _, ok := phases[to]; !ok {
			t.Errorf("move %v ends at no phase: %s", mv, to)
		}
	}
}

// Every phase has a power state, and time ends exactly the phases that have a
// duration.
func TestPhasesAndMovesAgree(t *testing.T) {
	for p, is := range phases {
		_, byTime := transitions[transition{p, elapsed}]
		if byTime != (is.lasts != nil) {
			t.Errorf("%s: lasts a time: %v, ends with time: %v", p, is.lasts != nil, byTime)
		}
		if is.power == "" {
			t.Errorf("%s: no power state", p)
		}
	}
}

// Each reset changes the phase, has no effect, or is refused because of the power
// state; a refusal changes nothing.
func TestEveryPhaseAnswersEveryReset(t *testing.T) {
	quiet := map[Phase][]ResetKind{
		POST:      osResets,
		Selecting: osResets,
		InSetup:   osResets,
		Halted:    osResets,
		Loading:   osResets,
		Running:   {Nmi},
		Crashed:   osResets,
	}
	for p := range phases {
		unheard := map[ResetKind]bool{}
		for _, k := range quiet[p] {
			unheard[k] = true
		}
		for _, k := range ResetKinds {
			m := in(t, p)
			m.st.Deadline = time.Time{} // time plays no part here
			before := m.State()
			moves := false
			for _, w := range resets[k] {
				moves = moves || m.can(w.on) && k != Nmi // test profile: systems take an NMI calmly
			}
			evs, err := m.Apply(origin, Reset{Kind: k})
			switch {
			case moves:
				if err != nil {
					t.Errorf("%s: Reset(%s) = %v, want nil", p, k, err)
				}
			case unheard[k]:
				if err != nil || len(unnoted(evs)) != 0 || !sameState(m.State(), before) {
					t.Errorf("%s: Reset(%s) = %v, %v, want it unheard", p, k, evs, err)
				}
			default:
				if !errors.Is(err, ErrPower) || len(evs) != 0 || !sameState(m.State(), before) {
					t.Errorf("%s: Reset(%s) = %v, %v, want %v", p, k, evs, err, ErrPower)
				}
			}
		}
	}
}

package firmware

import "testing"

var triggers = []trigger{
	elapsed, refused, needless, atOnce, atReset, atTime, atRequest, hostReset, started, further, restarts, needsHost, notActivated, broke, cutOff, expired, cancelled,
}

var phases = []Phase{Received, Verifying, Scheduled, Waiting, Held, Applying, Restarting, Awaiting, Finished, Failed, Cancelled}

func TestEveryPhaseIsReachableAndLeadsToAnEnd(t *testing.T) {
	seen := map[Phase]bool{Received: true}
	for todo := []Phase{Received}; len(todo) > 0; {
		from := todo[0]
		todo = todo[1:]
		for _, on := range triggers {
			if to, ok := moves[move{from, on}]; ok && !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	for _, p := range phases {
		if !seen[p] {
			t.Errorf("phase %s cannot be reached", p)
		}
		leaves := false
		for _, on := range triggers {
			_, ok := moves[move{p, on}]
			leaves = leaves || ok
		}
		if leaves == p.ended() {
			t.Errorf("phase %s: leads on: %v, is an end: %v", p, leaves, p.ended())
		}
		if (phaseMessages[p] == "") != p.ended() {
			t.Errorf("phase %s tells %q", p, phaseMessages[p])
		}
	}
	if len(seen) != len(phases) {
		t.Errorf("%d phases, want %d", len(seen), len(phases))
	}
}

// Every pair of a phase and a trigger leads to the phase in the table moves; a
// pair that is not in it changes nothing.
func TestEveryPhaseAnswersEveryTrigger(t *testing.T) {
	for _, p := range phases {
		if p.ended() {
			continue
		}
		for _, on := range triggers {
			b := newRack(t, true)
			u := Update{ID: "u", Task: "1", Image: bios("2.4.0"), Targets: []string{"BIOS"}, When: When{Apply: Immediate}, Phase: p}
			b.f.st = &State{Updates: []Update{u}}
			was := b.f.st
			evs := b.f.step(origin, u, on, "")
			want, ok := moves[move{p, on}]
			left := b.f.View().Updates()
			switch {
			case !ok && (len(evs) > 0 || b.f.st != was):
				t.Errorf("%s: step(%s) is no move, yet it gave %v", p, on, evs)
			case ok && want.ended() && len(left) > 0:
				t.Errorf("%s: step(%s): the update is still there", p, on)
			case ok && !want.ended() && (len(left) != 1 || left[0].Phase != want):
				t.Errorf("%s: step(%s) = %+v, want %s", p, on, left, want)
			}
		}
	}
}

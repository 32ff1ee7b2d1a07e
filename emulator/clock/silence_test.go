package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// A clock that wakes late was starved, and so may be whoever would have sent a
// message: it jumps only after a silence that it has watched.
func TestJumpingTakesNoStarvationForSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const late = 50 * time.Millisecond
		c := NewJumping(origin)
		c.NewTimer(time.Minute)
		if got := c.round(); got != Quiet {
			t.Fatalf("round() after activity = %v, want %v", got, Quiet)
		}
		time.Sleep(Quiet + late) //nolint:forbidigo // the time of the bubble
		if got := c.round(); got != late || c.Since(origin) >= time.Minute {
			t.Errorf("round() that is %v late = %v at %v of lab time, want %v and no jump", late, got, c.Since(origin), late)
		}
		time.Sleep(late) //nolint:forbidigo // the time of the bubble
		if c.round(); c.Since(origin) < time.Minute {
			t.Errorf("the clock has not jumped after a silence of %v", late)
		}
	})
}

// What passed between an activity and the clock's first look at it is not observed.
func TestJumpingWatchesFromItsFirstLook(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		c.NewTimer(time.Minute)
		time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble: the goroutine of Run is starved
		if got := c.round(); got != Quiet {
			t.Errorf("round() a second after activity = %v, want %v", got, Quiet)
		}
	})
}

// The message of a starved sender arrives while the clock watches anew.
func TestJumpingHearsWhoWasStarvedWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		deadline := c.NewTimer(time.Minute)
		time.Sleep(c.round() + 20*time.Millisecond) //nolint:forbidigo // the time of the bubble
		c.round()
		time.Sleep(15 * time.Millisecond) //nolint:forbidigo // the time of the bubble
		leave := c.Enter()                // the message is received
		time.Sleep(time.Second)           //nolint:forbidigo // the time of the bubble
		c.round()
		if got := c.Since(origin); fired(deadline) || got >= time.Minute {
			t.Errorf("at %v of lab time the deadline has passed before the message was answered", got)
		}
		leave()
	})
}

func TestSilenceThatAJumpNeeds(t *testing.T) {
	const ms = time.Millisecond
	type look struct{ late, left time.Duration } // a look so much later than asked, and how long it then asks for
	for _, tt := range []struct {
		name  string
		need  time.Duration // as earlier jumps left it
		looks []look
		after time.Duration // what the next jump needs
	}{
		{"on time", 0, []look{{0, 0}}, 0},
		{"as late as every timer is", 0, []look{{Quiet, 0}}, 0},
		{"late once", 0, []look{{Quiet + 1, 2 * Quiet}, {0, 0}}, Quiet},
		{"very late once", 0, []look{{50 * ms, 50 * ms}, {0, 0}}, 25 * ms},
		{"late again, but by less than the silence", 0, []look{{50 * ms, 50 * ms}, {49 * ms, 0}}, 25 * ms},
		{"later and later", 0, []look{{5 * ms, 5 * ms}, {6 * ms, 10 * ms}, {90 * ms, 90 * ms}, {time.Second, Longest}, {time.Second, 0}}, Longest},
		{"always late", Longest, []look{{time.Hour, 0}}, Longest},
		{"on time after starvation", Longest, []look{{0, 0}}, Longest / 2},
		{"on time long after starvation", Quiet, []look{{0, 0}}, Quiet / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := silence{need: tt.need}
			active := origin
			now := active
			asked := s.left(active, active, now)
			if want := max(Quiet, tt.need); asked != want {
				t.Fatalf("left() after activity = %v, want %v", asked, want)
			}
			for i, l := range tt.looks {
				now = now.Add(asked + l.late)
				if asked = s.left(active, active, now); asked != l.left {
					t.Fatalf("look %d, %v late: left() = %v, want %v", i, l.late, asked, l.left)
				}
			}
			if s.need != tt.after {
				t.Errorf("the next jump needs %v, want %v", s.need, tt.after)
			}
		})
	}
}

// However late a clock always wakes, it jumps after a few looks.
func TestSilenceIsBounded(t *testing.T) {
	for _, late := range []time.Duration{0, Quiet, 2 * Quiet, 10 * Quiet, Longest, 2 * Longest, time.Hour} {
		var s silence
		now := origin
		looks := 0
		for asked := s.left(origin, origin, now); asked > 0; looks++ {
			if asked > Longest {
				t.Fatalf("always %v late: left() = %v, want at most %v", late, asked, Longest)
			}
			now = now.Add(asked + late)
			asked = s.left(origin, origin, now)
		}
		if looks > 7 {
			t.Errorf("always %v late: a jump after %d looks", late, looks)
		}
	}
}

// The bound of a clock's speed is no silence to be watched again.
func TestEarliestJumpIsNotPostponedByLateness(t *testing.T) {
	const speed = time.Minute
	var s silence
	earliest := origin.Add(speed)
	if got := s.left(origin, earliest, origin); got != speed {
		t.Fatalf("left() = %v, want %v", got, speed)
	}
	if got, want := s.left(origin, earliest, earliest.Add(2*Quiet)), 2*Quiet; got != want {
		t.Errorf("left() of a look %v late = %v, want %v", 2*Quiet, got, want)
	}
}

// Run jumps as soon as ever on a machine that wakes it on time.
func TestRunOnTimeJumpsAfterQuiet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		began := time.Now()
		run(t, c)
		for range 10 {
			<-c.NewTimer(time.Minute).C()
		}
		synctest.Wait()
		if got, want := time.Since(began), 10*Quiet; got != want {
			t.Errorf("ten jumps took %v of real time, want %v", got, want)
		}
	})
}

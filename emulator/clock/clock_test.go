package clock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// run runs the clock until the test ends.
func run(t *testing.T, c *Clock) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run() = %v, want %v", err, context.Canceled)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// pass waits until a while of real time has passed on a clock that runs in real
// time whenever it does not jump: long enough for a jump that must not happen.
func pass(c *Clock) {
	tick := c.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 5 {
		<-tick.C()
	}
}

func fired(t *Timer) bool {
	select {
	case <-t.C():
		return true
	default:
		return false
	}
}

func TestVirtualFiresInOrderAndAtItsTime(t *testing.T) {
	c := NewVirtual(origin)
	var timers []*Timer
	for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
		timers = append(timers, c.NewTimer(d))
	}
	if at, ok := c.Next(); !ok || !at.Equal(origin.Add(time.Second)) {
		t.Errorf("Next() = %v, %v, want %v", at, ok, origin.Add(time.Second))
	}
	c.Advance(2 * time.Second)
	if got, want := c.Now(), origin.Add(2*time.Second); !got.Equal(want) {
		t.Errorf("Now() = %v, want %v", got, want)
	}
	if fired(timers[0]) {
		t.Error("a timer of 3s fired after 2s")
	}
	for i, want := range map[int]time.Time{1: origin.Add(time.Second), 2: origin.Add(2 * time.Second)} {
		select {
		case got := <-timers[i].C():
			if !got.Equal(want) {
				t.Errorf("timer %d ticked with %v, want %v", i, got, want)
			}
		default:
			t.Errorf("timer %d did not fire", i)
		}
	}
	if got := c.NewTimer(0); !fired(got) {
		t.Error("a timer of 0 did not fire at once")
	}
}

func TestTiesFireInOrderOfCreation(t *testing.T) {
	c := NewVirtual(origin)
	lazy, timer := c.LazyFunc(time.Second, func() {}), c.NewTimer(time.Second)
	if got := c.first(); got != lazy.w {
		t.Errorf("first() = wait %d, want %d", got.seq, lazy.w.seq)
	}
	lazy.Reset(time.Second) // now it is the younger one
	if got := c.first(); got != timer.w {
		t.Errorf("first() = wait %d, want %d", got.seq, timer.w.seq)
	}
}

func TestStopAndReset(t *testing.T) {
	c := NewVirtual(origin)
	a := c.NewTimer(time.Second)
	if !a.Stop() || a.Stop() {
		t.Error("Stop() must report true once, then false")
	}
	c.Advance(time.Minute)
	if fired(a) {
		t.Error("a stopped timer fired")
	}
	if a.Reset(time.Second) {
		t.Error("Reset() of a stopped timer = true, want false")
	}
	if !a.Reset(2 * time.Second) {
		t.Error("Reset() of a waiting timer = false, want true")
	}
	c.Advance(time.Second)
	if fired(a) {
		t.Error("a timer fired at its time before Reset")
	}
	c.Advance(time.Second)
	if a.Stop() {
		t.Error("Stop() of a fired timer = true, want false")
	}
	a.Reset(time.Second) // drops the tick that nobody read
	if fired(a) {
		t.Error("Reset() left the old tick")
	}
	c.Advance(time.Second)
	if !fired(a) {
		t.Error("a timer did not fire after Reset")
	}
}

func TestTicker(t *testing.T) {
	c := NewVirtual(origin)
	tick := c.NewTicker(time.Second)
	for i := 1; i <= 3; i++ {
		c.Advance(time.Second)
		select {
		case got := <-tick.C():
			if want := origin.Add(time.Duration(i) * time.Second); !got.Equal(want) {
				t.Errorf("tick %d = %v, want %v", i, got, want)
			}
		default:
			t.Errorf("tick %d is missing", i)
		}
	}
	tick.Stop()
	c.Advance(time.Minute)
	select {
	case <-tick.C():
		t.Error("a stopped ticker ticked")
	default:
	}
}

func TestAfterFuncIsWorkInFlight(t *testing.T) {
	c := NewVirtual(origin)
	var ran atomic.Bool
	hold := make(chan struct{})
	c.AfterFunc(time.Second, func() { <-hold; ran.Store(true) })
	c.Advance(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Settle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Settle() while the function runs = %v, want %v", err, context.Canceled)
	}
	close(hold)
	if err := c.Settle(t.Context()); err != nil || !ran.Load() {
		t.Errorf("Settle() = %v, function ended: %v", err, ran.Load())
	}
}

func TestSleep(t *testing.T) {
	c := NewJumping(origin)
	run(t, c)
	if err := c.Sleep(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := c.Since(origin); got < time.Hour {
		t.Errorf("Since(origin) after a sleep of 1h = %v", got)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := NewVirtual(origin).Sleep(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("Sleep() = %v, want %v", err, why)
	}
}

func TestJumpingJumpsOnlyWhenIdle(t *testing.T) {
	c := NewJumping(origin)
	run(t, c)
	leave, other := c.Enter(), c.Enter()
	timer := c.NewTimer(time.Hour)
	leave()
	leave() // twice is as good as once: the other one still holds the clock
	pass(c)
	if fired(timer) || c.Since(origin) >= time.Hour {
		t.Error("the clock jumped while work was in flight")
	}
	other()
	if at := <-timer.C(); at.Before(origin.Add(time.Hour)) {
		t.Errorf("the timer ticked at %v, want %v or later", at, origin.Add(time.Hour))
	}
}

func TestJumpingWaitsForRunningFunctions(t *testing.T) {
	c := NewJumping(origin)
	run(t, c)
	var second *Timer
	done := make(chan bool)
	c.AfterFunc(time.Minute, func() {
		second = c.NewTimer(time.Hour)
		pass(c)
		done <- fired(second)
	})
	if <-done {
		t.Error("the clock jumped while a timer's function ran")
	}
	<-second.C()
}

func TestTickersDoNotCauseJumps(t *testing.T) {
	c := NewJumping(origin)
	run(t, c)
	tick := c.NewTicker(time.Hour)
	defer tick.Stop()
	lazy := make(chan struct{})
	c.LazyFunc(time.Hour, func() { close(lazy) })
	pass(c)
	if c.Since(origin) >= time.Hour {
		t.Error("the clock jumped for housekeeping")
	}
	if at, ok := c.Next(); ok {
		t.Errorf("Next() = %v, want none", at)
	}
	<-c.NewTimer(3 * time.Hour).C() // passes them for another reason
	<-tick.C()
	<-lazy
	select {
	case at := <-tick.C():
		t.Errorf("missed tick at %v was not dropped", at)
	default:
	}
}

// A wake-up that tells nothing must not cut short the quiet that a jump needs.
func TestJumpingWaitsForQuiet(t *testing.T) {
	c := NewJumping(origin)
	c.NewTimer(time.Hour)
	c.active = time.Now().Add(time.Hour) // certainly not quiet
	for range 3 {
		if got := c.round(); got <= 0 {
			t.Errorf("round() = %v, want a wait", got)
		}
	}
	if c.Since(origin) >= time.Hour {
		t.Error("the clock jumped without quiet")
	}
	jump(c)
	if c.Since(origin) < time.Hour {
		t.Error("the clock did not jump after quiet")
	}
}

// jump makes one jump, and returns how far it went.
func jump(c *Clock) time.Duration {
	before, now := c.base, time.Now()
	c.active = now.Add(-time.Hour) // certainly quiet
	c.silence = silence{since: now.Add(-Longest), need: Longest}
	c.round()
	return c.base.Sub(before)
}

func TestFewTimersAreJumpedToOneByOne(t *testing.T) {
	c := NewJumping(origin)
	for i := range few {
		c.NewTimer(time.Hour + time.Duration(i)*time.Second)
	}
	first := c.timers[0].at
	jump(c)
	if !c.base.Equal(first) {
		t.Errorf("the jump went to %v, want %v", c.base, first)
	}
}

func TestManyTimersFireTogether(t *testing.T) {
	const n, apart = 2000, 10 * time.Millisecond
	c := NewJumping(origin)
	var timers []*Timer
	for i := range n {
		timers = append(timers, c.NewTimer(time.Hour+time.Duration(i)*apart))
	}
	jump(c)
	c.round() // fires
	count := 0
	var last time.Time
	for i, x := range timers {
		select {
		case at := <-x.C():
			if i != count {
				t.Fatalf("timer %d fired before timer %d", i, count)
			}
			if at.Before(last) {
				t.Errorf("timer %d ticked at %v, the one before it at %v", i, at, last)
			}
			if late := at.Sub(origin.Add(time.Hour + time.Duration(i)*apart)); late < 0 {
				t.Errorf("timer %d fired %v early", i, -late)
			}
			last = at
			count++
		default:
		}
	}
	if want := int(Slack / apart); count < want || count == n {
		t.Errorf("%d of %d timers fired together, want %d or a few more", count, n, want)
	}
}

func TestNoTimerIsLaterThanSlack(t *testing.T) {
	for _, n := range []int{1, few, few + 1, 10 * few, 100 * few} {
		c := NewJumping(origin)
		x := c.NewTimer(time.Hour)
		for range n - 1 {
			c.NewTimer(2 * time.Hour)
		}
		due := x.w.at
		jump(c)
		if late := c.base.Sub(due); late < 0 || late > Slack || n <= few && late != 0 {
			t.Errorf("the first of %d timers is %v late", n, late)
		}
	}
}

func TestTimerStandsForOthers(t *testing.T) {
	c := NewJumping(origin)
	x := c.NewTimer(time.Hour)
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"made", func() {}, 1},
		{"for many", func() { x.Stand(1000) }, 1000},
		{"beside another", func() { c.NewTimer(time.Hour) }, 1001},
		{"set anew", func() { x.Reset(time.Minute) }, 1001},
		{"for fewer", func() { x.Stand(10) }, 11},
		{"for none", func() { x.Stand(0) }, 2},
		{"stopped", func() { x.Stop() }, 1},
		{"for many while it is stopped", func() { x.Stand(7) }, 1},
		{"set again", func() { x.Reset(time.Minute) }, 8},
		{"beside housekeeping", func() { c.LazyFunc(time.Second, func() {}).Stand(100) }, 8},
	} {
		step.do()
		if c.crowd != step.want {
			t.Errorf("%s: the crowd is %d, want %d", step.name, c.crowd, step.want)
		}
	}
}

func TestScaled(t *testing.T) {
	c := NewScaled(origin, 3600)
	run(t, c)
	at := <-c.NewTimer(time.Minute).C()
	if at.Before(origin.Add(time.Minute)) {
		t.Errorf("tick at %v, want %v or later", at, origin.Add(time.Minute))
	}
	c.Advance(240 * time.Hour)
	if got := c.Since(origin); got < 240*time.Hour {
		t.Errorf("Since(origin) after Advance(240h) = %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("NewScaled(0) did not panic")
		}
	}()
	NewScaled(origin, 0)
}

func TestManyTimers(t *testing.T) {
	const workers, each = 20, 500
	for name, c := range map[string]*Clock{"virtual": NewVirtual(origin), "jumping": NewJumping(origin)} {
		t.Run(name, func(t *testing.T) {
			run(t, c)
			var ran atomic.Int64
			var making sync.WaitGroup
			leave := c.Enter()
			for w := range workers {
				making.Go(func() {
					for i := range each {
						f := c.AfterFunc(time.Duration(1+i*workers+w)*time.Second, func() { ran.Add(1) })
						switch i % 4 {
						case 0:
							if !f.Stop() {
								t.Error("Stop() = false, want true")
							}
						case 1:
							f.Reset(time.Duration(1+i) * time.Second)
						}
					}
				})
			}
			making.Wait()
			leave()
			last := c.NewTimer(2 * workers * each * time.Second)
			c.Advance(workers * each * time.Second)
			c.Advance(workers * each * time.Second)
			<-last.C()
			if err := c.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := ran.Load(), int64(workers*each*3/4); got != want {
				t.Errorf("%d functions ran, want %d", got, want)
			}
		})
	}
}

func TestWall(t *testing.T) {
	before := time.Now()
	if got := Wall(); got.Before(before) {
		t.Errorf("Wall() = %v, want %v or later", got, before)
	}
	if got := NewWall().Now(); got.Before(before.Round(0)) {
		t.Errorf("NewWall().Now() = %v, want %v or later", got, before)
	}
}

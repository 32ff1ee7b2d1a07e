package rack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

// fastClocks are clocks whose lab time outruns real time. pause lets real time pass
// (within synctest: at once), and as much lab time as the clock's mode makes of it.
var fastClocks = []struct {
	name  string
	new   func(origin time.Time) *clock.Clock
	pause func(t *testing.T, c *clock.Clock, d time.Duration)
}{
	{"60x", func(at time.Time) *clock.Clock { return clock.NewScaled(at, 60) }, func(_ *testing.T, _ *clock.Clock, d time.Duration) { time.Sleep(d) }}, //nolint:forbidigo // the time of the bubble
	{"max", clock.NewJumping, func(t *testing.T, c *clock.Clock, d time.Duration) {
		time.Sleep(d)                                              //nolint:forbidigo // the time of the bubble
		if err := c.Sleep(t.Context(), 24*time.Hour); err != nil { // the clock jumps, as it does for other hosts
			t.Error(err)
		}
	}},
}

// Nothing between a client and its BMC times out while the client pauses for less
// than the time-out by its own clock; an explicit advance counts for both clocks.
func TestClientTimeoutsOutlastAPauseAtAnySpeed(t *testing.T) {
	for _, speed := range fastClocks {
		t.Run(speed.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := speed.new(origin)
				l := open(t, Config{Clock: c})
				runClock(t, c)
				l.releaseClock() // Serve does
				h := l.hosts[0]
				admin, _ := h.Admin()
				wrong := bmc.Credentials{Name: admin.Name, Password: "wrong", To: bmc.ForRedfish, From: "192.0.2.7"}
				right := wrong
				right.Password = admin.Password
				if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: admin, Token: "token"}); err != nil {
					t.Fatal(err)
				}
				policy := h.BMC().Policy
				for range policy.LockoutThreshold {
					h.Login(wrong)
				}
				if err := h.Apply(t.Context(), machine.SetSystemBootOptions{Request: &machine.Override{Enabled: machine.Once, Target: machine.Pxe, Mode: machine.UEFI}}); err != nil {
					t.Fatal(err)
				}
				speed.pause(t, c, 31*time.Second) // 31 minutes at 60x
				if lab := c.Since(origin); lab < 31*time.Minute {
					t.Fatalf("in the pause %v of lab time have passed, want 31m or more", lab)
				}
				if err := h.Apply(t.Context(), machine.Identify{Interval: time.Second}); err != nil { // a step
					t.Fatal(err)
				}
				if h.Machine().Override.Enabled != machine.Once {
					t.Error("the request for a boot has ended")
				}
				if _, ok := h.Resume("token"); !ok {
					t.Errorf("a session of %v has ended", h.BMC().SessionTimeout)
				}
				if _, ok := h.Login(right); ok {
					t.Errorf("a lock of %v has ended", policy.LockoutDuration)
				}
				c.Advance(31 * time.Minute)
				if _, ok := h.Resume("token"); ok {
					t.Errorf("a session of %v has outlasted Advance(31m)", h.BMC().SessionTimeout)
				}
				if _, ok := h.Login(right); !ok {
					t.Errorf("a lock of %v has outlasted Advance(31m)", policy.LockoutDuration)
				}
				if err := h.Apply(t.Context(), machine.Identify{Interval: time.Second}); err != nil {
					t.Fatal(err)
				}
				if h.Machine().Override.Enabled != machine.Disabled {
					t.Error("a request for a boot has outlasted Advance(31m)")
				}
			})
		})
	}
}

// runClock runs a clock until the test ends.
func runClock(t *testing.T, c *clock.Clock) {
	ended := make(chan error)
	go func() { ended <- c.Run(t.Context()) }() // the context ends before cleanups
	t.Cleanup(func() { <-ended })
}

// A rack that is opened again continues client time, whether it was closed or
// killed: a lock does not end because lab time was ahead.
func TestClientTimeSurvivesARestart(t *testing.T) {
	for _, speed := range fastClocks {
		for _, killed := range []bool{false, true} {
			name := speed.name + map[bool]string{false: " closed", true: " killed"}[killed]
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := speed.new(origin)
					l := open(t, Config{Clock: c})
					runClock(t, c)
					l.releaseClock()
					h := l.hosts[0]
					admin, _ := h.Admin()
					for range h.BMC().Policy.LockoutThreshold {
						h.Login(bmc.Credentials{Name: admin.Name, Password: "wrong", To: bmc.ForRedfish})
					}
					speed.pause(t, c, time.Minute)
					if err := h.Apply(t.Context(), machine.Identify{Interval: time.Second}); err != nil { // saves the lab's time
						t.Fatal(err)
					}
					if killed {
						if err := l.store.Close(); err != nil { // nothing is saved any more
							t.Fatal(err)
						}
					}
					_ = l.Close() // fails when it is killed
					client := c.ClientNow()

					again := clock.NewVirtual(lastTime(t, l.dir))
					l, err := Open(t.Context(), Config{Dir: l.dir, Clock: again, Listen: "lo:0"})
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					if got := again.ClientNow(); got.Before(client.Add(-lagPrecision)) || got.After(client.Add(lagPrecision)) {
						t.Errorf("client time is %v, want %v as before", got, client)
					}
					login := func() bool {
						_, ok := l.hosts[0].Login(bmc.Credentials{Name: admin.Name, Password: admin.Password, To: bmc.ForRedfish})
						return ok
					}
					if login() {
						t.Error("the lock has ended with the restart")
					}
					again.Advance(5 * time.Minute)
					if !login() {
						t.Error("the lock has not ended 5 minutes after the restart")
					}
				})
			})
		}
	}
}

func lastTime(t *testing.T, dir string) time.Time {
	t.Helper()
	at, err := LastTime(dir)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Where client time is lab time, the store holds nothing about it.
func TestNoClientTimeIsStoredOnAVirtualClock(t *testing.T) {
	l := open(t, Config{})
	l.clock.Advance(time.Hour)
	if err := l.save(l.clock.Now()); err != nil {
		t.Fatal(err)
	}
	var lag time.Duration
	if found, err := l.store.Load(store.Meta, clientLagKey, &lag); found || err != nil {
		t.Errorf("the store holds %s = %v, %v", clientLagKey, lag, err)
	}
}

package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs f with a source of real time that passes only in time.Sleep.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		synctest.Wait()
	})
}

// clocks are clocks of every mode, and which share of real time passes in their
// lab time and in their client time when nothing is advanced.
var clocks = []struct {
	name        string
	new         func() *Clock
	lab, client float64
}{
	{"virtual", func() *Clock { return NewVirtual(origin) }, 0, 0},
	{"0.5x", func() *Clock { return NewScaled(origin, 0.5) }, 0.5, 0.5},
	{"1x", func() *Clock { return NewScaled(origin, 1) }, 1, 1},
	{"60x", func() *Clock { return NewScaled(origin, 60) }, 60, 1},
	{"max", func() *Clock { return NewJumping(origin) }, 1, 1},
}

func share(of time.Duration, by float64) time.Duration { return time.Duration(float64(of) * by) }

func TestClientTimeIsTheSlowerOfLabAndRealTime(t *testing.T) {
	const pause, step, lag = 10 * time.Second, 31 * time.Minute, time.Hour
	for _, tt := range clocks {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := tt.new()
				c.SetClientLag(lag)
				check := func(when string, lab, client time.Duration) {
					t.Helper()
					client -= lag
					if got := c.Since(origin); got != lab {
						t.Errorf("%s: lab time has moved by %v, want %v", when, got, lab)
					}
					if got := c.ClientNow().Sub(origin); got != client {
						t.Errorf("%s: client time is %v from the origin, want %v", when, got, client)
					}
					if got := c.ClientLag(); got != lab-client {
						t.Errorf("%s: ClientLag() = %v, want %v", when, got, lab-client)
					}
				}
				check("at first", 0, 0)
				time.Sleep(pause) //nolint:forbidigo // the time of the bubble
				lab, client := share(pause, tt.lab), share(pause, tt.client)
				check("after a pause", lab, client)
				c.Advance(step)
				check("after Advance", lab+step, client+step)
				c.Advance(-step)
				check("after a negative Advance", lab+step, client+step)
				c.SetClientLag(c.ClientLag()) // as a rack that is opened again on the same clock
				check("after SetClientLag", lab+step, client+step)
			})
		})
	}
}

func TestJumpsDoNotMoveClientTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		run(t, c)
		if err := c.Sleep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		elapsed := c.ClientNow().Sub(origin)
		if lab := c.Since(origin); lab < time.Hour || elapsed > time.Second {
			t.Errorf("after a jump of 1h lab time has moved by %v and client time by %v", lab, elapsed)
		}
		c.Advance(time.Minute)
		if err := c.Sleep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if lab := c.Since(origin); lab < 2*time.Hour+time.Minute || lab > 2*time.Hour+time.Minute+time.Second {
			t.Errorf("after two jumps of 1h and Advance(1m) lab time has moved by %v", lab)
		}
	})
}

// A walk of a clock that jumps moves client time by the whole way, though the
// clock goes a part of it by itself.
func TestWalkMovesClientTimeByAllOfIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		run(t, c)
		c.AfterFunc(time.Minute, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.base = c.base.Add(10 * time.Minute) // as a jump between two steps of the walk does
		})
		if err := c.Walk(t.Context(), 31*time.Minute); err != nil {
			t.Fatal(err)
		}
		if lab, client := c.Since(origin), c.ClientNow().Sub(origin); lab != 31*time.Minute || client != 31*time.Minute {
			t.Errorf("after Walk(31m) lab time has moved by %v and client time by %v", lab, client)
		}
	})
}

func TestClientFuncWaitsForClientTime(t *testing.T) {
	const wait = time.Minute
	for _, tt := range clocks {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := tt.new()
				run(t, c)
				c.Advance(time.Hour)
				c.NewTimer(10 * time.Hour) // a clock that jumps jumps to it
				began, called := c.ClientNow(), make(chan time.Time, 1)
				c.ClientFunc(wait, func() { called <- c.ClientNow() })
				if tt.client > 0 {
					time.Sleep(share(wait, 1/tt.client)) //nolint:forbidigo // the time of the bubble
				} else {
					c.Advance(wait)
				}
				synctest.Wait()
				select {
				case at := <-called:
					if got := at.Sub(began); got != wait {
						t.Errorf("called after %v of client time, want %v", got, wait)
					}
				default:
					t.Errorf("not called when client time had moved by %v", c.ClientNow().Sub(began))
				}
				c.ClientFunc(wait, func() { called <- c.ClientNow() })
				c.Advance(wait)
				synctest.Wait()
				if len(called) == 0 {
					t.Errorf("not called after Advance(%v)", wait)
				}
				stopped := c.ClientFunc(wait, func() { t.Error("a stopped ClientFunc was called") })
				if !stopped.Stop() {
					t.Error("Stop() = false, want true")
				}
				c.Advance(time.Hour)
			})
		})
	}
}

// A wait for client time alone moves no clock that jumps.
func TestClientFuncMakesNoJump(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := NewJumping(origin)
		run(t, c)
		c.ClientFunc(time.Hour, func() {})
		time.Sleep(10 * time.Second) //nolint:forbidigo // the time of the bubble
		if got := c.Since(origin); got != 10*time.Second {
			t.Errorf("in 10s lab time has moved by %v", got)
		}
	})
}

func TestClientTicker(t *testing.T) {
	for _, tt := range clocks {
		if tt.client == 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := tt.new()
				run(t, c)
				tick := c.NewClientTicker(time.Minute)
				defer tick.Stop()
				for range 3 {
					began := time.Now()
					<-tick.C()
					if got, want := time.Since(began), share(time.Minute, 1/tt.client); got != want {
						t.Errorf("a tick after %v of real time, want %v", got, want)
					}
				}
			})
		})
	}
}

func TestClientWait(t *testing.T) {
	for name, want := range map[string]time.Duration{"virtual": 0, "0.5x": 2 * time.Minute, "1x": time.Minute, "60x": time.Second, "max": 0} {
		for _, tt := range clocks {
			if tt.name != name {
				continue
			}
			c := tt.new()
			if got := c.ClientWait(time.Minute); got != want {
				t.Errorf("%s: ClientWait(1m) = %v, want %v", name, got, want)
			}
			if got := c.ClientWait(-time.Minute); got != 0 {
				t.Errorf("%s: ClientWait(-1m) = %v, want 0", name, got)
			}
		}
	}
}

func TestRealTimeOfAClock(t *testing.T) {
	for _, tt := range clocks {
		inBubble(t, func(t *testing.T) {
			at, ok := tt.new().Real()
			if want := tt.name != "virtual"; ok != want || ok && !at.Equal(time.Now()) {
				t.Errorf("%s: Real() = %v, %v, want %v", tt.name, at, ok, want)
			}
		})
	}
}

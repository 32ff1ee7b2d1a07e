package host

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// reads returns how often the BMC was asked for its system.
func reads(b *bench) (n int) {
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.ReadSystem {
			n++
		}
	}
	return n
}

// waiting brings a host to where it waits for an agent that does not come up.
func waiting(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, 1, withImage)
	b.deaf = true
	b.until("inspecting", in(metal3.StateInspecting))
	for range 20 { // until the agent's medium is in and the server is on
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
		if sys, m := b.bmc.Now(); sys.Power == bmc.On && m.Image != "" {
			break
		}
	}
	if _, err := b.pass(); err != nil { // the last reading
		t.Fatal(err)
	}
	return b
}

// B-12 B-121: the agent is checked every ten seconds or a little more, and the BMC every
// minute.
func TestBMCIsReadOnceAMinuteDuringAWait(t *testing.T) {
	b := waiting(t)
	before, start, passes := reads(b), b.clock.Now(), 0
	for ; b.clock.Since(start) < 10*time.Minute; passes++ {
		res, err := b.pass()
		if err != nil || res.RequeueAfter < 10*time.Second || res.RequeueAfter > 12500*time.Millisecond {
			t.Fatalf("pass = %+v, %v, want another one in 10s to 12.5s", res, err)
		}
	}
	n := reads(b) - before
	if n < 9 || n > 11 {
		t.Errorf("asked %d times in %d passes of ten minutes, want ten", n, passes)
	}
}

func TestPowerLossDuringAWaitIsNoticed(t *testing.T) {
	b := waiting(t)
	b.bmc.Press(bmc.Off)
	start := b.clock.Now()
	for b.clock.Since(start) <= readingMaxAge {
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
		if sys, _ := b.bmc.Now(); sys.Power == bmc.On {
			return
		}
	}
	t.Errorf("the server is still off %v later", b.clock.Since(start))
}

// No action is based on the reading of an earlier pass: when the wait ends, the
// BMC is read.
func TestBMCIsReadWhenAWaitEnds(t *testing.T) {
	for name, end := range map[string]func(*bench){
		"the agent is up": func(b *bench) { b.deaf = false; b.agent() },
		"another specification": func(b *bench) {
			b.change(func(h *metal3.BareMetalHost) {
				h.Spec.Description = "another"
				h.Generation++ // as the API server does
			})
		},
		"deletion": func(b *bench) {
			if err := b.kube.Delete(t.Context(), b.host()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := waiting(t)
			if _, err := b.pass(); err != nil {
				t.Fatal(err)
			}
			before := reads(b)
			if _, err := b.pass(); err != nil || reads(b) != before {
				t.Fatalf("asked %d times in a wait (%v), want never", reads(b)-before, err)
			}
			end(b)
			if _, err := b.pass(); err != nil || reads(b) == before {
				t.Errorf("the BMC was not asked (%v)", err)
			}
		})
	}
}

// A silent BMC is noticed while the agent works, too.
func TestSilentBMCDuringAWaitIsReported(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.answers[job.Write] = job.Report{State: job.Running, Percent: 10}
	b.until("writing", func(*metal3.BareMetalHost) bool { return len(b.ran) == 3 })
	b.bmc.Unplug()
	start := b.clock.Now()
	for b.clock.Since(start) < silentWait+2*readingMaxAge {
		_, _ = b.pass() // fails until the error is reported
		if b.host().Status.ErrorType == metal3.RegistrationError {
			return
		}
	}
	t.Errorf("not told of after %v", b.clock.Since(start))
}

package elemental_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/elemental"
)

func running(a *api, s *server) func(context.Context) error {
	return func(ctx context.Context) error { return elemental.Run(ctx, config(a, s)) }
}

// E-16: an idle host is Running, once per reconciliation; os-version.yaml is written whenever it
// is not as wanted.
func TestIdleHostIsRunning(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.osVersion = `{"osVersion":"v1.2"}` })
		start(t, running(a, s))
		pass(2*period + time.Second)
		pair := []string{"PATCH phase=Running", "PATCH OSVersionReady=True"}
		if diff := cmp.Diff(slices.Concat(pair, pair, pair), a.seen()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		file := workDir + "/os-version.yaml"
		if got := s.read(file); got != "osVersion: v1.2\n" {
			t.Errorf("os-version.yaml = %q", got)
		}
		before, err := s.system.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		pass(period)
		if after, err := s.system.Stat(file); err != nil || !after.Modified.Equal(before.Modified) {
			t.Errorf("os-version.yaml was written again: %v, %v", after.Modified, err)
		}
		if err := s.system.Host().Remove(file); err != nil {
			t.Fatal(err)
		}
		pass(period)
		if got := s.read(file); got != "osVersion: v1.2\n" {
			t.Errorf("os-version.yaml that was removed = %q, want it again", got)
		}
	})
}

// E-20: the bootstrap configuration is written, the host reboots once, and the sentinel makes it
// bootstrapped.
func TestBootstrap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() {
			h.bootstrapReady = true
			a.bootstrap = map[string]string{"format": "cloud-config", "config": "#cloud-config\nruncmd: [x]\n"}
		})
		r := start(t, running(a, s))
		if err, ended := r.ended(); !ended || err != nil {
			t.Fatalf("after the bootstrap: ended %v, error %v", ended, err)
		}
		if diff := cmp.Diff([]string{
			"PATCH phase=Running", "PATCH OSVersionReady=True", "PATCH phase=Bootstrapping", "GET bootstrap", "PATCH BootstrapReady=False/WaitingForBootstrap",
		}, a.seen()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if got := s.read(elemental.CloudConfigFile); got != a.bootstrap["config"] {
			t.Errorf("%s = %q", elemental.CloudConfigFile, got)
		}
		if got := s.mode(elemental.CloudConfigFile); got != "0600" {
			t.Errorf("mode of %s = %s, want 0600: it has secrets", elemental.CloudConfigFile, got)
		}
		if reboots, _ := s.counts(); reboots != 1 {
			t.Fatalf("%d reboots, want 1", reboots)
		}
		a.forget()
		s.boot()
		s.put(elemental.SentinelFile, "success\n")
		start(t, running(a, s))
		pass(3 * period)
		if h.labels["bootstrapped"] != "true" || h.conditions["BootstrapReady"].Status != "True" {
			t.Errorf("host = %+v, want it bootstrapped", h)
		}
		if got := a.seen()[2:5]; !slices.Equal(got, []string{"PATCH phase=Bootstrapping", "PATCH bootstrapped=true BootstrapReady=True", "PATCH phase=Running"}) {
			t.Errorf("requests = %q", got)
		}
		if reboots, _ := s.counts(); reboots != 1 {
			t.Errorf("%d reboots, want no second one", reboots)
		}
	})
}

// An agent that is killed between the file and the reboot makes up for the reboot, once.
func TestKilledBootstrapReboots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.bootstrapReady = true })
		ctx, cancel := context.WithCancel(t.Context())
		c := config(a, s)
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin { return &killedReboot{d, cancel} })
		if err := elemental.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run() = %v, want that it was killed", err)
		}
		if s.read(elemental.CloudConfigFile) == "" {
			t.Fatal("the bootstrap configuration was not written")
		}
		if err := elemental.Run(bounded(t), config(a, s)); err != nil {
			t.Fatal(err)
		}
		if reboots, _ := s.counts(); reboots != 1 {
			t.Errorf("%d reboots, want 1", reboots)
		}
		s.boot() // without a sentinel: nothing reboots again
		start(t, running(a, s))
		pass(3 * period)
		if reboots, _ := s.counts(); reboots != 1 || a.condition("BootstrapReady").Reason != "BootstrapFailed" {
			t.Errorf("%d reboots, BootstrapReady %+v; want no second reboot", reboots, a.condition("BootstrapReady"))
		}
	})
}

type killedReboot struct {
	*elemental.Dummy
	kill func()
}

func (k *killedReboot) Reboot(ctx context.Context) error { k.kill(); return ctx.Err() }

// E-21: a boot without the sentinel is a failure until a human acts, and a reset is possible.
// E-32: a reset precedes a bootstrap that has failed.
func TestBootWithoutSentinel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.bootstrapReady = true })
		if err := elemental.Run(bounded(t), config(a, s)); err != nil {
			t.Fatal(err)
		}
		s.boot()
		r := start(t, running(a, s))
		pass(3 * period)
		want := condition{"False", "Error", "BootstrapFailed", "applying bootstrap config: bootstrap already applied: " + elemental.CloudConfigFile + " exists"}
		if got := a.condition("BootstrapReady"); got != want {
			t.Errorf("BootstrapReady = %+v, want %+v", got, want)
		}
		if reboots, _ := s.counts(); reboots != 1 || h.labels["bootstrapped"] != "" {
			t.Errorf("%d reboots, labels %v; want one, and no host that is bootstrapped", reboots, h.labels)
		}
		a.forget()
		a.change(func() { h.labels["needs-reset"] = "true"; h.labels["in-place-update"] = "pending" })
		pass(period)
		if err, ended := r.ended(); !ended || err != nil {
			t.Errorf("with needs-reset: ended %v, error %v", ended, err)
		}
		if diff := cmp.Diff([]string{"PATCH phase=Running", "PATCH phase=Triggering Reset", "PATCH ResetReady=False/WaitingForReset"}, a.seen()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// E-22: an Ignition configuration has a file of its own; another format is an error.
func TestBootstrapFormats(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.bootstrapReady = true; a.bootstrap = map[string]string{"format": "toml", "config": "x"} })
		r := start(t, running(a, s))
		pass(period)
		if got := a.condition("BootstrapReady"); got.Reason != "BootstrapFailed" || !strings.Contains(got.Message, `unsupported bootstrap format "toml": use cloud-config or ignition`) {
			t.Errorf("BootstrapReady = %+v, want the format refused", got)
		}
		a.change(func() { a.bootstrap = map[string]string{"format": "ignition", "config": `{"ignition":{}}`} })
		pass(period)
		if err, ended := r.ended(); !ended || err != nil {
			t.Fatalf("with ignition: ended %v, error %v", ended, err)
		}
		if got := s.read(elemental.IgnitionFile); got != `{"ignition":{}}` {
			t.Errorf("%s = %q", elemental.IgnitionFile, got)
		}
		if reboots, _ := s.counts(); reboots != 1 {
			t.Errorf("%d reboots, want 1", reboots)
		}
	})
}

// E-28: a version that needs a reboot is reported before it, and the host reboots once.
func TestOSVersionThatNeedsAReboot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() {
			h.labels["bootstrapped"], h.labels["in-place-update"], h.osVersion = "true", "pending", `{"osVersion":"v2"}`
		})
		c := config(a, s)
		has := "v1"
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin {
			return &failing{Dummy: d, osVersion: func(input string) (bool, error) {
				if strings.Contains(input, has) {
					return false, nil
				}
				has = "v2"
				return true, nil
			}}
		})
		if err := elemental.Run(bounded(t), c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"PATCH phase=Running", "PATCH phase=Reconciling OS Version", "PATCH OSVersionReady=False/WaitingForPostReconcileReboot"}, a.seen()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		a.forget()
		s.boot()
		c.System = s.system.Host()
		start(t, func(ctx context.Context) error { return elemental.Run(ctx, c) })
		pass(2*period + time.Second)
		if diff := cmp.Diff([]string{"PATCH phase=Running", "PATCH OSVersionReady=True", "PATCH inPlaceUpdate=done", "PATCH phase=Running", "PATCH phase=Running"}, a.seen()); diff != "" {
			t.Errorf("requests after the reboot (-want +got):\n%s", diff)
		}
		if reboots, _ := s.counts(); reboots != 1 {
			t.Errorf("%d reboots, want 1", reboots)
		}
	})
}

// E-27: the version of a host that is bootstrapped is left alone until its label is pending, and
// then the label is done.
func TestInPlaceUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.labels["bootstrapped"], h.osVersion = "true", `{"osVersion":"v2"}` })
		start(t, running(a, s))
		pass(2 * period)
		if got := s.read(workDir + "/os-version.yaml"); got != "" {
			t.Errorf("os-version.yaml = %q, want none without the label", got)
		}
		a.change(func() { h.labels["in-place-update"] = "pending" })
		pass(period)
		if got := s.read(workDir + "/os-version.yaml"); got != "osVersion: v2\n" || h.labels["in-place-update"] != "done" || h.conditions["OSVersionReady"].Status != "True" {
			t.Errorf("os-version.yaml = %q, host %+v; want the update done", got, h)
		}
	})
}

// A version that cannot be reconciled is reported, and tried again.
func TestOSVersionThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		c := config(a, s)
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin {
			return &failing{Dummy: d, osVersion: func(string) (bool, error) { return false, errors.New("no such image") }}
		})
		start(t, func(ctx context.Context) error { return elemental.Run(ctx, c) })
		pass(period)
		want := condition{"False", "Error", "OSVersionReconciliationFailed", "reconciling OS version: no such image"}
		if got := a.condition("OSVersionReady"); got != want {
			t.Errorf("OSVersionReady = %+v, want %+v", got, want)
		}
	})
}

// E-29: a reset is triggered by needs.reset, and ends the agent.
func TestTriggerReset(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		s.put(workDir+"/reset.needed", "1\n")
		a.change(func() { h.labels["needs-reset"] = "true" })
		if err := elemental.Run(bounded(t), config(a, s)); err != nil {
			t.Fatal(err)
		}
		if got := s.read(workDir + "/needs.reset"); got != "1\n" || h.phase != "Triggering Reset" {
			t.Errorf("needs.reset = %q, phase %q", got, h.phase)
		}
		if s.read(workDir+"/reset.needed") != "" {
			t.Error("reset.needed is left beside needs.reset")
		}
		want := condition{"False", "Info", "WaitingForReset", "Reset was triggered successfully. Waiting for host to reset."}
		if got := a.condition("ResetReady"); got != want {
			t.Errorf("ResetReady = %+v, want %+v", got, want)
		}
		if reboots, offs := s.counts(); reboots+offs != 0 {
			t.Errorf("%d reboots, %d power-offs, want none", reboots, offs)
		}
	})
}

func TestTriggerThatFailsIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { h.labels["needs-reset"] = "true" })
		c := config(a, s)
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin { return &failing{Dummy: d, reset: errors.New("k3s stays")} })
		r := start(t, func(ctx context.Context) error { return elemental.Run(ctx, c) })
		pass(period)
		if got := a.condition("ResetReady"); got != (condition{"False", "Error", "ResetFailed", "triggering reset: k3s stays"}) {
			t.Errorf("ResetReady = %+v", got)
		}
		if _, ended := r.ended(); ended {
			t.Error("the agent has ended")
		}
	})
}

// E-30: a reset of a host that is not prepared fails and is tried again, with no reset.yaml; and
// with one in the order of the provider's dummy. It succeeds once the sentinel is removed.
func TestReset(t *testing.T) {
	for _, compat := range []bool{false, true} {
		for _, sentinel := range []string{"needs.reset", "reset.needed"} {
			inBubble(t, func(t *testing.T) {
				a := newAPI(t, registrationWith(`,"reset":{"resetOem":true},"agent":{"postReset":{"reboot":true}}`))
				s := registered(t, a)
				s.put(workDir+"/"+sentinel, "1\n")
				c := config(a, s)
				c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin { d.CompatReset = compat; return d })
				r := start(t, func(ctx context.Context) error { return elemental.Reset(ctx, c) })
				pass(2*period + time.Second)
				want := condition{"False", "Error", "ResetFailed", "resetting host: unmanaged OS reset sentinel file still exists: " + workDir + "/" + sentinel}
				if got := a.condition("ResetReady"); got != want {
					t.Errorf("compat %v, %s: ResetReady = %+v, want %+v", compat, sentinel, got, want)
				}
				if got := s.read(workDir+"/reset.yaml") != ""; got != compat {
					t.Errorf("compat %v, %s: reset.yaml exists: %v", compat, sentinel, got)
				}
				if got := count(a.seen(), "DELETE"); got != 3 {
					t.Errorf("compat %v: %d DELETE, want one for each of 3 attempts", compat, got)
				}
				a.forget()
				if err := s.system.Host().Remove(workDir + "/" + sentinel); err != nil {
					t.Fatal(err)
				}
				pass(period)
				if err, ended := r.ended(); !ended || err != nil {
					t.Fatalf("compat %v: when it is prepared: ended %v, error %v", compat, ended, err)
				}
				if diff := cmp.Diff([]string{"DELETE", "GET registration", "PATCH reset=true ResetReady=True"}, a.seen()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if len(a.hosts) != 0 || s.read(workDir+"/reset.yaml") != "resetOem: true\n" {
					t.Errorf("compat %v: %d hosts, reset.yaml %q", compat, len(a.hosts), s.read(workDir+"/reset.yaml"))
				}
				if reboots, _ := s.counts(); reboots != 1 {
					t.Errorf("compat %v: %d reboots, want that of postReset", compat, reboots)
				}
			})
		}
	}
}

func count(all []string, want string) (n int) {
	for _, s := range all {
		if s == want {
			n++
		}
	}
	return n
}

// A reset whose agent is killed after its report ends when it runs again, though the host is gone.
// The server registers again under another name.
func TestKilledResetEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		name, _ := a.only()
		ctx, cancel := context.WithCancel(t.Context())
		c := config(a, s)
		c.Plugins = dummy(func(d *elemental.Dummy) elemental.Plugin { return d })
		a.fail = func(_, _ string, body map[string]any) int {
			if body["reset"] == true {
				cancel()
			}
			return 0
		}
		_ = elemental.Reset(ctx, c) // it is killed in its report, or right after it
		a.change(func() { a.fail = nil })
		if err := elemental.Reset(bounded(t), config(a, s)); err != nil {
			t.Fatalf("Reset() of a host that is gone = %v", err)
		}
		if err := elemental.Register(bounded(t), config(a, s), false); err != nil {
			t.Fatal(err)
		}
		if again, _ := a.only(); again == name {
			t.Errorf("the server registered again as %s, want a new name", again)
		}
	})
}

// A system whose agent was killed before it reported the installation is reported by the agent
// that runs on it.
func TestInstallationIsReportedLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		a.change(func() { delete(h.labels, "installed") })
		start(t, running(a, s))
		pass(0)
		if h.labels["installed"] != "true" {
			t.Errorf("labels = %v, want installed", h.labels)
		}
	})
}

// A reset waits for another agent's operation on the host, and precedes those that wait.
func TestResetWaitsForAnotherAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		_, h := a.only()
		c := config(a, s)
		c.Broker = broker.New(s.system.Host().Reboot, func(error) {})
		end, err := c.Broker.Try(broker.Operation{Family: broker.LCM, Name: "item a"})
		if err != nil {
			t.Fatal(err)
		}
		a.change(func() { h.labels["needs-reset"] = "true" })
		r := start(t, func(ctx context.Context) error { return elemental.Run(ctx, c) })
		pass(3 * period)
		if _, ended := r.ended(); ended || s.read(workDir+"/needs.reset") != "" {
			t.Fatal("the reset does not wait for the item")
		}
		_, err = c.Broker.Try(broker.Operation{Family: broker.LCM, Name: "item b"})
		if err == nil || !strings.Contains(err.Error(), "blocked by") {
			t.Errorf("another item = %v, want it behind the reset", err)
		}
		end()
		if err, ended := r.ended(); !ended || err != nil || s.read(workDir+"/needs.reset") == "" {
			t.Errorf("after the item: ended %v, error %v, needs.reset %q", ended, err, s.read(workDir+"/needs.reset"))
		}
	})
}

// A host whose object is gone, or whose key is another's, is polled and changes nothing.
func TestHostThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newAPI(t, registrationWith(""))
		s := registered(t, a)
		a.change(func() { clear(a.hosts) })
		r := start(t, running(a, s))
		pass(2*period + time.Second)
		if _, ended := r.ended(); ended || count(a.seen(), "PATCH phase=Running") != 3 || len(a.seen()) != 3 {
			t.Errorf("ended %v, requests %q; want a poll per period and nothing else", ended, a.seen())
		}
		if err := r.kill(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run() that is stopped = %v", err)
		}
	})
}

func TestCommandsNeedARegistration(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, s := newAPI(t, registrationWith("")), newServer(t)
		s.seed("")
		for name, do := range map[string]func(context.Context, elemental.Config) error{"install": elemental.Install, "run": elemental.Run, "reset": elemental.Reset} {
			if err := do(t.Context(), config(a, s)); err == nil || !strings.Contains(err.Error(), "this server is not registered: run register first") {
				t.Errorf("%s = %v, want that it is not registered", name, err)
			}
		}
	})
}

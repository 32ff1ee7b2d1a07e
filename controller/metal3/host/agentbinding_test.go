package host

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// rogueAgent runs an agent on another machine, with the token of a boot medium that it has read.
type rogueAgent struct {
	*bench
	key   string
	token string // token of the last medium that it has read
	got   []job.Job
}

var tokenOnMedium = regexp.MustCompile(`"token": "([^"]+)"`)

// fetch reads the medium of a boot, and returns the status of the answer.
func (x *rogueAgent) fetch(b inband.Boot) int {
	x.t.Helper()
	at, err := url.Parse(x.r.Boot.ISO(b))
	if err != nil {
		x.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	x.r.Boot.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at.RequestURI(), nil))
	iso, err := io.ReadAll(w.Result().Body)
	if err != nil {
		x.t.Fatal(err)
	}
	if found := tokenOnMedium.FindSubmatch(iso); w.Code == http.StatusOK && found != nil {
		x.token = string(found[1])
	}
	return w.Code
}

// lease asks for work with the stolen token.
func (x *rogueAgent) lease() int {
	x.t.Helper()
	var j job.Job
	code := x.postAs(x.key, job.LeasePath, x.token, job.Lease{}, &j)
	if code == http.StatusOK {
		x.got = append(x.got, j)
	}
	return code
}

// events returns the messages of a host's events with a reason.
func (b *bench) events(reason string) (messages []string) {
	b.t.Helper()
	var l corev1.EventList
	if err := b.kube.List(b.t.Context(), &l); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range l.Items {
		if e.Reason == reason {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// While the server boots, a user of the BMC can read the medium's URL, the medium, and the
// token in it. Once the server's agent has leased, every process of the controller refuses
// other agents with the token, and the medium is no longer served.
func TestStolenTokenIsWorthNothingOnceTheAgentIsUp(t *testing.T) {
	for _, scheme := range []string{"redfish-virtualmedia", "redfish", "redfish-uefihttp", "ipmi"} {
		t.Run(scheme, func(t *testing.T) {
			b := newBench(t, 1, withImage)
			if scheme != "redfish-virtualmedia" {
				b = newNetBench(t, 1, scheme, withImage)
			}
			x := &rogueAgent{bench: b, key: "rogue"}
			b.answers[job.Inventory] = job.Report{State: job.Running}
			booting := func(*metal3.BareMetalHost) bool { sys, _ := b.bmc.Now(); return sys.Power == bmc.On }
			b.until("inspecting", in(metal3.StateInspecting))
			boot, _ := currentBoot(b.host())
			b.deaf = true
			b.until("booting", booting)
			if code := x.fetch(boot); code != http.StatusOK {
				t.Fatalf("the medium while the server boots = %d, want 200", code)
			}
			b.deaf = false
			b.until("bound", func(h *metal3.BareMetalHost) bool { return boundKey(h, boot) != "" })
			b.until("at work", func(*metal3.BareMetalHost) bool { return len(b.ran) == 1 })
			for _, restarted := range []bool{false, true} {
				if restarted {
					b.replace()
					if code := x.fetch(boot); code != http.StatusServiceUnavailable {
						t.Errorf("the medium after a restart = %d, want 503", code)
					}
					if code := x.lease(); code != http.StatusServiceUnavailable {
						t.Errorf("lease after a restart, before a pass = %d, want 503", code)
					}
					b.deaf = true // the server's agent leases after the rogue agent
					if _, err := b.pass(); err != nil {
						t.Fatal(err)
					}
				}
				if code := x.lease(); code != http.StatusForbidden {
					t.Errorf("restarted %t: lease with the stolen token = %d, want 403", restarted, code)
				}
				if code := x.fetch(boot); code != http.StatusNotFound {
					t.Errorf("restarted %t: the medium = %d, want 404", restarted, code)
				}
				if _, err := b.pass(); err != nil {
					t.Fatal(err)
				}
				b.deaf = false
			}
			refusals := b.events("AgentRefused")
			if len(refusals) != 2 || !strings.Contains(refusals[0], boot.ID) || !strings.Contains(refusals[0], "192.0.2.1") { // once in each process
				t.Errorf("AgentRefused events %q, want two, with the boot and the rogue agent's address", refusals)
			}
			b.answers[job.Inventory] = job.Report{State: job.Done, Inventory: &job.Hardware{Hostname: hostName}}
			b.done = map[string]job.Report{}
			b.until("provisioned", in(metal3.StateProvisioned))
			if code := x.lease(); code != http.StatusServiceUnavailable && code != http.StatusForbidden {
				t.Errorf("lease after provisioning = %d, want a refusal", code)
			}
			if code := x.fetch(boot); code != http.StatusNotFound {
				t.Errorf("the medium after provisioning = %d, want 404", code)
			}
			if len(x.got) != 0 {
				t.Errorf("the rogue agent got %+v", x.got)
			}
			if c := meta.FindStatusCondition(b.host().Status.Conditions, AgentBoundCondition); c != nil {
				t.Errorf("a provisioned host has the condition %+v", c)
			}
		})
	}
}

// A rogue agent that leases before the server's agent is bound to the boot. The
// server's agent is refused, and an event of the host reports it.
func TestRogueAgentThatLeasesFirstIsReported(t *testing.T) {
	b := newBench(t, 1, nil)
	x := &rogueAgent{bench: b, key: "rogue"}
	b.until("inspecting", in(metal3.StateInspecting))
	boot, _ := currentBoot(b.host())
	if code := x.fetch(boot); code == http.StatusOK {
		if code := x.lease(); code != http.StatusNoContent { // nobody but the controller knows the URL yet
			t.Errorf("lease before the boot = %d, want 204", code)
		}
	}
	b.deaf = true
	b.until("booting", func(*metal3.BareMetalHost) bool { sys, _ := b.bmc.Now(); return sys.Power == bmc.On })
	x.fetch(boot)
	if code := x.lease(); code != http.StatusNoContent {
		t.Fatalf("lease of the rogue agent = %d, want 204", code)
	}
	b.deaf = false
	b.until("told", func(*metal3.BareMetalHost) bool { return len(b.events("AgentRefused")) > 0 })
	if len(b.ran) != 0 {
		t.Errorf("the server's agent ran %v, want nothing", b.ran)
	}
	// The rogue agent leases no more, so the boot times out. The next one has another token.
	b.until("a new boot", func(h *metal3.BareMetalHost) bool { now, _ := currentBoot(h); return now != boot })
	if h := b.host(); h.Status.ErrorType != metal3.InspectionError || !strings.Contains(h.Status.ErrorMessage, "another one with its token was refused") {
		t.Errorf("%s: %s, want that two agents had the token", h.Status.ErrorType, h.Status.ErrorMessage)
	}
	if code := x.lease(); code == http.StatusOK || code == http.StatusNoContent {
		t.Errorf("lease of the rogue agent in the next boot = %d, want a refusal", code)
	}
	b.until("available", in(metal3.StateAvailable))
}

// Once an agent can lease a job, other agents with its token are refused, though the
// controller is killed at every step, and though they lease first from the next process.
func TestRogueAgentIsRefusedThoughControllersAreKilled(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, seed, withImage)
			m := &mortality{die: func(int) bool { return b.chance.IntN(12) == 0 }}
			m.take(b)
			x := &rogueAgent{bench: b, key: "rogue"}
			boots := map[string]bool{} // in which the rogue agent has tried it
			b.beforeAgent = func() {
				h := b.host()
				if boot, _ := currentBoot(h); boundKey(h, boot) != "" {
					x.token = b.r.Inband.Media(boot).Token
					if code := x.lease(); code != http.StatusForbidden && code != http.StatusServiceUnavailable {
						t.Errorf("seed %d: lease in a boot that is bound to another agent = %d", seed, code)
					}
					boots[boot.ID] = true
				}
			}
			b.until("provisioned", in(metal3.StateProvisioned))
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("available", in(metal3.StateAvailable))
			if len(x.got) > 0 || len(boots) < 3 {
				t.Errorf("seed %d: in %d boots the rogue agent got %+v", seed, len(boots), x.got)
			}
		})
	}
}

// A server that went off while the controller was down is booted with another token: its
// agent's key is gone.
func TestServerThatWentOffUnseenGetsAnotherBoot(t *testing.T) {
	b := newBench(t, 1, nil)
	b.answers[job.Inventory] = job.Report{State: job.Running}
	b.until("at work", func(*metal3.BareMetalHost) bool { return len(b.ran) == 1 })
	boot, _ := currentBoot(b.host())
	b.bmc.Press(bmc.Off)
	b.replace()
	b.answers[job.Inventory] = job.Report{State: job.Done, Inventory: &job.Hardware{Hostname: hostName}}
	before := b.clock.Now()
	b.until("available", in(metal3.StateAvailable))
	if took := b.clock.Since(before); took > 5*time.Minute {
		t.Errorf("it took %v", took)
	}
	if n := len(b.events("AgentRefused")); n > 0 {
		t.Errorf("%d agents were refused", n)
	}
	if start := b.host().Status.OperationHistory.Inspect.Start; !start.After(before.Add(-time.Second)) {
		t.Errorf("the inspection began at %v, before the boot %s was lost at %v", start, boot.ID, before)
	}
}

// The files for the network boot have the token, too.
func TestNetworkBootFilesAreServedOnlyWhileTheBootIsAwaited(t *testing.T) {
	b := newNetBench(t, 1, "redfish", nil)
	b.network = &netboot.Network{Server: netip.MustParseAddr("192.0.2.3"), Pool: netip.MustParsePrefix("198.51.100.0/24")}
	b.replace()
	b.deaf = true
	b.until("booting", func(*metal3.BareMetalHost) bool { sys, _ := b.bmc.Now(); return sys.Power == bmc.On })
	boot, _ := currentBoot(b.host())
	status := func(file string) int {
		uri := strings.Replace(strings.TrimPrefix(b.r.Boot.ISO(boot), "http://192.0.2.3"), netboot.ISOFile, file, 1)
		w := httptest.NewRecorder()
		b.r.Boot.ServeHTTP(w, httptest.NewRequest(http.MethodGet, uri, nil))
		return w.Code
	}
	check := func(want int) {
		t.Helper()
		for _, file := range []string{"boot.ipxe", "agent.cpio", netboot.KernelFile, netboot.InitrdFile, netboot.ISOFile} {
			if got := status(file); got != want {
				t.Errorf("%s = %d, want %d", file, got, want)
			}
		}
	}
	check(http.StatusOK)
	b.deaf = false
	b.until("bound", func(h *metal3.BareMetalHost) bool { return boundKey(h, boot) != "" })
	check(http.StatusNotFound)
	if n := b.verbs(bmctest.InsertMedia, func(bmctest.Call) bool { return true }); n != 0 {
		t.Errorf("%d media were inserted", n)
	}
}

func TestBoundKeyIsOfTheCurrentBootAlone(t *testing.T) {
	h := &metal3.BareMetalHost{}
	h.Status.Provisioning.State = metal3.StateInspecting
	b, _ := currentBoot(h)
	if b.ID == "" {
		t.Fatal("no boot")
	}
	o := &observation{boot: b, agent: inband.Status{Key: "SHA256:abc"}}
	if got := boundKey(h, b); got != "" {
		t.Errorf("boundKey = %q before it is set", got)
	}
	setAgentCondition(h, o, phase.Decision{})
	if got := boundKey(h, b); got != "SHA256:abc" {
		t.Errorf("boundKey = %q, want SHA256:abc", got)
	}
	for _, other := range []inband.Boot{{}, {Host: b.Host, ID: b.ID + "x"}, {Host: b.Host, ID: b.ID[:len(b.ID)-1]}} {
		if got := boundKey(h, other); got != "" {
			t.Errorf("boundKey of %v = %q, want none", other, got)
		}
	}
	// A pass that has not seen the agent leaves the binding, and one that boots the server
	// again ends it.
	setAgentCondition(h, &observation{}, phase.Decision{})
	if got := boundKey(h, b); got != "SHA256:abc" {
		t.Errorf("boundKey = %q after a pass without the agent", got)
	}
	setAgentCondition(h, o, phase.Decision{Do: phase.PowerOn})
	if got := boundKey(h, b); got != "" {
		t.Errorf("boundKey = %q after a power on", got)
	}
	setAgentCondition(h, o, phase.Decision{})
	h.Status.Provisioning.State = metal3.StateAvailable
	setAgentCondition(h, &observation{}, phase.Decision{})
	if len(h.Status.Conditions) != 0 {
		t.Errorf("conditions %+v of a host without a boot", h.Status.Conditions)
	}
}

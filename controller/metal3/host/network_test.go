package host

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/netboot"
)

const bootMAC = "02:00:00:00:00:01"

// newNetBench returns a bench with a provisioning network, and a host with this
// kind of address.
func newNetBench(t *testing.T, seed uint64, scheme string, change func(*metal3.BareMetalHost)) *bench {
	t.Helper()
	b := newBench(t, seed, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address, h.Spec.BootMACAddress = scheme+"://192.0.2.2/redfish/v1/Systems/1", bootMAC
		if change != nil {
			change(h)
		}
	})
	b.network = &netboot.Network{Server: netip.MustParseAddr("192.0.2.3"), Pool: netip.MustParsePrefix("198.51.100.0/24")}
	b.bmc.NoMedia = strings.HasPrefix(scheme, "ipmi")
	b.replace()
	return b
}

// bootsByNetwork reports whether the last boot override before the last power on
// was for one network boot.
func (b *bench) bootsByNetwork() bool {
	next, booted := bmc.Boot{}, bmc.Boot{}
	for _, c := range b.bmc.Calls() {
		switch {
		case c.Verb == bmctest.SetBoot:
			next = c.Boot
		case c.Verb == bmctest.SetPower && (c.Power == bmc.PowerOn || c.Power == bmc.PowerReset):
			booted = next
			if !next.Persistent {
				next = bmc.Boot{}
			}
		}
	}
	return !booted.Persistent && (booted.Device == bmc.BootPXE || booted.Device == bmc.BootHTTP && booted.URL != "")
}

// verbs counts the calls of a verb.
func (b *bench) verbs(v bmctest.Verb, which func(bmctest.Call) bool) int {
	n := 0
	for _, c := range b.bmc.Calls() {
		if c.Verb == v && which(c) {
			n++
		}
	}
	return n
}

func poweredOn(c bmctest.Call) bool { return c.Power == bmc.PowerOn }

// B-131 B-133: every scheme that boots over the network.
func TestHostIsProvisionedOverTheNetwork(t *testing.T) {
	for scheme, want := range map[string]bmc.Device{
		"ipmi": bmc.BootPXE, "libvirt": bmc.BootPXE, "redfish": bmc.BootPXE, "ilo5-redfish": bmc.BootPXE, "idrac-redfish": bmc.BootPXE,
		"ibmc": bmc.BootPXE, "idrac": bmc.BootPXE, "ilo4": bmc.BootPXE, "ilo5": bmc.BootPXE, "irmc": bmc.BootPXE,
		"redfish-uefihttp": bmc.BootHTTP,
	} {
		t.Run(scheme, func(t *testing.T) {
			b := newNetBench(t, 1, scheme, withImage)
			b.until("provisioned", in(metal3.StateProvisioned))
			if want := []job.Kind{job.Inventory, job.Clean, job.Write}; !cmp.Equal(b.ran, want) {
				t.Errorf("the agent ran %v, want %v", b.ran, want)
			}
			if b.statusWrites > maxStatusWrites {
				t.Errorf("%d status writes, want at most %d", b.statusWrites, maxStatusWrites)
			}
			var boots []bmc.Boot
			for _, c := range b.bmc.Calls() {
				switch c.Verb {
				case bmctest.SetBoot:
					boots = append(boots, bmc.Boot{Device: c.Boot.Device, Persistent: c.Boot.Persistent})
				case bmctest.ReadMedia, bmctest.InsertMedia, bmctest.EjectMedia:
					t.Errorf("asked for %s", c.Verb)
				}
			}
			if want := []bmc.Boot{{Device: want}, {Device: want}, {Device: bmc.BootDisk, Persistent: true}}; !cmp.Equal(boots, want) {
				t.Errorf("boot overrides %+v, want %+v", boots, want)
			}
			if on := b.verbs(bmctest.SetPower, poweredOn); on != 3 {
				t.Errorf("powered on %d times, want 3: to inspect, to write, to run", on)
			}
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("deprovisioned", in(metal3.StateAvailable))
			if last := b.ran[len(b.ran)-1]; len(b.ran) != 4 || last != job.Clean {
				t.Errorf("the agent ran %v, want it to clean at last", b.ran)
			}
			if err := b.kube.Delete(t.Context(), b.host()); err != nil {
				t.Fatal(err)
			}
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
			if sys, _ := b.bmc.Now(); sys.Power != bmc.Off {
				t.Errorf("power %s, want it off (B-70)", sys.Power)
			}
		})
	}
}

// B-125: as with virtual media, a server that must stay on is restarted into its
// agent and into its image. A new controller restarts it at most once more, and
// never while its agent works.
func TestDisablePowerOffIsNeverViolatedWithNetworkBoot(t *testing.T) {
	for _, scheme := range []string{"ipmi", "redfish", "redfish-uefihttp"} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s %d", scheme, seed), func(t *testing.T) {
				b := newNetBench(t, seed, scheme, func(h *metal3.BareMetalHost) {
					withImage(h)
					h.Spec.DisablePowerOff = true
				})
				b.bmc.Press(bmc.On)
				if seed > 0 {
					m := &mortality{die: func(int) bool { return b.chance.IntN(60) == 0 }}
					m.take(b)
				}
				b.until("provisioned", in(metal3.StateProvisioned))
				if b.bootsByNetwork() {
					t.Error("the server was restarted into its agent last")
				}
				b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
				b.until("available", in(metal3.StateAvailable))
				if err := b.kube.Delete(t.Context(), b.host()); err != nil {
					t.Fatal(err)
				}
				b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
				resets := 0
				for _, c := range b.bmc.Calls() {
					switch {
					case c.Verb == bmctest.SetPower && c.Power == bmc.PowerReset:
						resets++
					case c.Verb == bmctest.SetPower:
						t.Errorf("the BMC was told %+v", c)
					}
				}
				if seed == 0 && resets != 4 {
					t.Errorf("restarted %d times, want 4: to inspect, to write, to run, to clean", resets)
				}
				if want := []job.Kind{job.Inventory, job.Clean, job.Write, job.Clean}; b.power() != bmc.On || !cmp.Equal(b.ran, want) {
					t.Errorf("power %s, the agent ran %v, want %v", b.power(), b.ran, want)
				}
			})
		}
	}
}

// As with virtual media: another controller finds out which system a server runs.
func TestKilledControllersDoNothingTwiceWithNetworkBoot(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newNetBench(t, seed, "ipmi", withImage)
			m := &mortality{die: func(int) bool { return b.chance.IntN(15) == 0 }}
			m.take(b)
			b.until("provisioned", in(metal3.StateProvisioned))
			if want := []job.Kind{job.Inventory, job.Clean, job.Write}; !cmp.Equal(b.ran, want) {
				t.Errorf("seed %d: the agent ran %v, want %v", seed, b.ran, want)
			}
			if on := b.verbs(bmctest.SetPower, poweredOn); on != 3 {
				t.Errorf("seed %d: powered on %d times, want 3: to inspect, to write, to run", seed, on)
			}
		})
	}
}

// A server that runs something else is powered off first, and so is one whose
// attempt has failed: it runs the agent of an earlier boot.
func TestForeignSystemIsNotTakenForTheAgent(t *testing.T) {
	b := newNetBench(t, 1, "ipmi", nil)
	if err := b.bmc.SetPower(t.Context(), bmc.PowerOn); err != nil {
		t.Fatal(err)
	}
	b.until("inspecting", in(metal3.StateInspecting))
	if !b.host().Status.PoweredOn {
		t.Error("status.poweredOn is false of a server that is on")
	}
	b.deaf = true
	b.until("inspection error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == metal3.InspectionError })
	b.deaf = false
	b.until("available", in(metal3.StateAvailable))
	off := b.verbs(bmctest.SetPower, func(c bmctest.Call) bool { return c.Power == bmc.PowerOff })
	if off != 3 {
		t.Errorf("switched off %d times, want 3: what it ran, the attempt that failed, the agent", off)
	}
	if want := []job.Kind{job.Inventory}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
}

// B-153
func TestLiveISONeedsVirtualMedia(t *testing.T) {
	b := newNetBench(t, 1, "redfish", func(h *metal3.BareMetalHost) {
		format := liveISO
		h.Spec.Image = &metal3.Image{URL: "http://192.0.2.1/live.iso", DiskFormat: &format}
	})
	b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == metal3.ProvisioningError })
	if got := b.host().Status.ErrorMessage; !strings.Contains(got, "virtual media") {
		t.Errorf("message %q, want it to name virtual media", got)
	}
}

// B-47
func TestSecureBootWithoutDriverSupport(t *testing.T) {
	b := newNetBench(t, 1, "ipmi", func(h *metal3.BareMetalHost) { h.Spec.BootMode = metal3.UEFISecureBoot })
	b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	if got, want := b.host().Status.ErrorMessage, "BMC driver ipmi does not support secure boot"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// B-47 B-141
func TestMACConflictIsReported(t *testing.T) {
	b := newNetBench(t, 1, "ipmi", nil)
	if err := b.r.Boot.Know(netboot.Client{Host: "u-0", Name: "other", MAC: bootMAC}); err != nil {
		t.Fatal(err)
	}
	b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	want := "MAC address " + bootMAC + " conflicts with existing node other"
	if s := b.host().Status; s.ErrorType != metal3.RegistrationError || s.ErrorMessage != want {
		t.Errorf("%s: %q, want %q", s.ErrorType, s.ErrorMessage, want)
	}
}

// B-73 B-15: a host waits for a slot, shows that, and continues when there is one.
func TestHostWaitsForASlot(t *testing.T) {
	for _, address := range []string{"ipmi", "redfish"} {
		b := newNetBench(t, 1, address, withImage)
		b.r.Limit = 1
		one := busy(1)
		b.create(one)
		b.until("delayed", func(h *metal3.BareMetalHost) bool {
			return h.Status.OperationalStatus == metal3.OperationalStatusDelayed
		})
		for range 5 {
			res, err := b.pass()
			if err != nil || res.RequeueAfter <= time.Minute || res.RequeueAfter > 2*time.Minute || !in(metal3.StateRegistering)(b.host()) {
				t.Fatalf("pass of a host that waits = %+v, %v, in %s", res, err, b.host().Status.Provisioning.State)
			}
		}
		if err := b.kube.Delete(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		b.until("provisioned", in(metal3.StateProvisioned))
		if s := b.host().Status; s.OperationalStatus != metal3.OperationalStatusOK {
			t.Errorf("operational status %s", s.OperationalStatus)
		}
		b.create(busy(2))
		b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
		b.until("delayed again", func(h *metal3.BareMetalHost) bool {
			return h.Status.OperationalStatus == metal3.OperationalStatusDelayed
		})
		if !in(metal3.StateProvisioned)(b.host()) || b.power() != bmc.On {
			t.Errorf("in %s, power %s: it has begun already", b.host().Status.Provisioning.State, b.power())
		}
	}
}

// B-73: a failed host gives its slot back until its next attempt.
func TestFailedHostFreesItsSlot(t *testing.T) {
	b := newNetBench(t, 1, "ipmi", nil)
	b.r.Limit = 1
	b.answers[job.Inventory] = job.Report{State: job.Failed, Error: "no"}
	b.until("failed", hasError(metal3.InspectionError))
	other := types.UID("other")
	if !b.r.memory.takeSlot(other, nil, 1) {
		t.Fatal("the place is not free")
	}
	b.answers[job.Inventory] = job.Report{State: job.Done, Inventory: &job.Hardware{}}
	b.until("delayed", func(h *metal3.BareMetalHost) bool {
		return h.Status.OperationalStatus == metal3.OperationalStatusDelayed
	})
	b.r.memory.leaveSlot(other)
	b.until("available", in(metal3.StateAvailable))
}

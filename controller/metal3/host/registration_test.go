package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

const mac = "02:00:00:00:00:0A"

// create adds an object beside the host of the bench.
func (b *bench) create(o client.Object) {
	b.t.Helper()
	if err := b.kube.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// get reads a Secret; nil if there is none.
func (b *bench) get(name string) *corev1.Secret {
	var s corev1.Secret
	if err := b.kube.Get(b.t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, &s); err != nil {
		return nil
	}
	return &s
}

// password changes the password in the host's Secret.
func (b *bench) password(p string) {
	b.t.Helper()
	s := b.get("secret")
	s.Data["password"] = []byte(p)
	if err := b.kube.Update(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

func hasError(t metal3.ErrorType) func(*metal3.BareMetalHost) bool {
	return func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == t }
}

// other returns a second host, which is not reconciled.
func other(name string, change func(*metal3.BareMetalHost)) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: "u-" + "other"}}
	h.Spec.BootMACAddress = mac
	if change != nil {
		change(h)
	}
	return h
}

// B-47 B-141: of two hosts with one MAC address the second is not registered.
func TestMACAddressOfAnotherHostIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		other *metal3.BareMetalHost
		want  string
	}{
		"registered":   {other("node-9", func(h *metal3.BareMetalHost) { h.Status.Provisioning.ID = "x" }), "MAC address " + mac + " conflicts with existing node lab~node-9"},
		"as old":       {other("a-node", nil), "MAC address " + mac + " conflicts with existing node lab~a-node"},
		"written else": {other("a-node", func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = strings.ToLower(mac) }), "MAC address " + mac + " conflicts with existing node lab~a-node"},
		"younger":      {other("node-9", nil), ""},
		"another":      {other("a-node", func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = "02:00:00:00:00:0b" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = mac })
			status := tt.other.Status
			b.create(tt.other)
			tt.other.Status = status
			if err := b.kube.Status().Update(t.Context(), tt.other); err != nil {
				t.Fatal(err)
			}
			b.until("an end of registering", func(h *metal3.BareMetalHost) bool {
				return h.Status.ErrorType != "" || in(metal3.StateInspecting)(h)
			})
			if s := b.host().Status; s.ErrorMessage != tt.want || tt.want != "" && s.ErrorType != metal3.RegistrationError {
				t.Fatalf("%s %q, want %q", s.ErrorType, s.ErrorMessage, tt.want)
			}
			if tt.want == "" {
				return
			}
			if err := b.kube.Delete(t.Context(), tt.other); err != nil {
				t.Fatal(err)
			}
			b.until("available once the other has gone", in(metal3.StateAvailable))
		})
	}
}

// B-47: reasons that prevent registration are reported in upstream's words, and
// once they are removed the host continues.
func TestRegistrationErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*bench)
		repair func(*bench)
		want   string
		event  string
	}{
		"network data": {
			change: func(b *bench) {
				b.change(func(h *metal3.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = "net" })
			},
			repair: func(b *bench) { b.secret("net", corev1.SecretTypeOpaque, map[string]string{"networkData": "{}"}) },
			want:   `failed to read preprovisioningNetworkData: secrets "net" not found`,
		},
		"wrong password B-114": {
			change: func(b *bench) { b.bmc.SetCredentials(bmc.Credentials{Username: "admin", Password: "other"}) },
			repair: func(b *bench) { b.password("other") },
			want:   "bmctest: the BMC refused the credentials: correct username and password in the Secret lab/secret",
		},
		"silent": {
			change: func(b *bench) { b.bmc.Unplug() },
			repair: func(b *bench) { b.bmc.Plug() },
			want:   "bmctest: the BMC does not answer",
		},
		"untrusted B-134": {
			change: func(b *bench) { b.bmc.SelfSigned = true },
			repair: func(b *bench) {
				b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.DisableCertificateVerification = true })
			},
			want: "bmctest: the BMC's certificate is not trusted: name the authority that signs it with the controller's --ca, or set spec.bmc.disableCertificateVerification of the host to true",
		},
		"unknown system": {
			change: func(b *bench) { b.bmc.Path = "/redfish/v1/Systems/2" },
			repair: func(b *bench) {
				b.change(func(h *metal3.BareMetalHost) {
					h.Spec.BMC.Address = "redfish-virtualmedia://192.0.2.2/redfish/v1/Systems/2"
				})
			},
			want: "bmctest: the BMC has no such system: /redfish/v1/Systems/1",
		},
		"secret missing B-111": {
			change: func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "late" }) },
			repair: func(b *bench) {
				b.secret("late", corev1.SecretTypeOpaque, map[string]string{"username": "admin", "password": "good"})
			},
			want:  "BMC CredentialsName secret doesn't exist The BMC secret lab/late does not exist",
			event: "BMCCredentialError",
		},
		"unknown scheme B-112": {
			change: func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "foo://192.0.2.2" }) },
			repair: func(b *bench) {
				b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "redfish-virtualmedia://192.0.2.2" })
			},
			want:  "Unknown BMC type 'foo' for address foo://192.0.2.2",
			event: "BMCCredentialError",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, nil)
			tt.change(b)
			b.until("an error", hasError(metal3.RegistrationError))
			s := b.host().Status
			status := metal3.OperationalStatusError
			if tt.event != "" && !strings.HasPrefix(tt.want, "Unknown BMC type") { // its credentials are not known (B-80)
				status = metal3.OperationalStatusDiscovered
			}
			if s.ErrorMessage != tt.want || s.OperationalStatus != status || s.ErrorCount != 1 || s.Provisioning.State != metal3.StateRegistering || s.GoodCredentials.Reference != nil {
				t.Errorf("status %+v\nwant %q", s, tt.want)
			}
			reason := cmpOr(tt.event, "RegistrationError")
			if got := b.events(reason); !slices.Contains(got, tt.want) {
				t.Errorf("events %s: %q, want %q", reason, got, tt.want)
			}
			tt.repair(b)
			b.until("available", in(metal3.StateAvailable))
			if s := b.host().Status; s.ErrorType != "" || s.ErrorCount != 0 || s.OperationalStatus != metal3.OperationalStatusOK || s.GoodCredentials.Reference == nil {
				t.Errorf("afterwards %+v, want no error", s)
			}
		})
	}
}

func cmpOr[T ~string](a, b T) T {
	if a != "" {
		return a
	}
	return b
}

// B-12 B-13 B-111 B-112: the wait after each kind of registration error.
func TestRegistrationErrorBackoff(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*bench)
		from, min time.Duration // range (from, min]
	}{
		"missing secret":   {func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "x" }) }, 9 * time.Second, 10 * time.Second},
		"no secret named":  {func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "" }) }, -1, 0},
		"no address":       {func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "" }) }, -1, 0},
		"unknown scheme":   {func(b *bench) { b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "foo://x" }) }, -1, 0},
		"no password":      {func(b *bench) { b.password(" ") }, -1, 0},
		"refused password": {func(b *bench) { b.password("x") }, time.Minute, 2 * time.Minute},
		"silent BMC":       {func(b *bench) { b.bmc.Unplug() }, time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, nil)
			tt.change(b)
			var last time.Duration
			for b.host().Status.ErrorType == "" {
				res, err := b.pass()
				if err != nil {
					t.Fatal(err)
				}
				last = res.RequeueAfter
			}
			if last <= tt.from || last > tt.min {
				t.Errorf("the next pass is after %v, want in ]%v, %v]", last, tt.from, tt.min)
			}
		})
	}
}

// B-46 B-114: a changed password is noticed in any state; a wrong one changes only
// the error, and the right one ends it.
func TestCredentialsCanBeChangedInEveryState(t *testing.T) {
	for _, state := range []metal3.ProvisioningState{metal3.StateAvailable, metal3.StateProvisioned, metal3.StateExternallyProvisioned} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				if state != metal3.StateAvailable {
					withImage(h)
				}
				h.Spec.ExternallyProvisioned = state == metal3.StateExternallyProvisioned
			})
			b.until(string(state), in(state))
			b.passes(5)
			before := b.host().Status
			b.bmc.SetCredentials(bmc.Credentials{Username: "admin", Password: "new"})
			b.password("wrong")
			b.until("an error", hasError(metal3.RegistrationError))
			s := b.host().Status
			if s.Provisioning.State != state || s.GoodCredentials.Version != before.GoodCredentials.Version || s.TriedCredentials.Version == before.TriedCredentials.Version {
				t.Errorf("good %+v, tried %+v in %s; were %+v, %+v", s.GoodCredentials, s.TriedCredentials, s.Provisioning.State, before.GoodCredentials, before.TriedCredentials)
			}
			b.password("new")
			b.until("no error", hasError(""))
			s = b.host().Status
			if s.Provisioning.State != state || s.GoodCredentials.Version != s.TriedCredentials.Version || s.GoodCredentials.Version == before.GoodCredentials.Version || s.ErrorCount != 0 {
				t.Errorf("afterwards %+v", s)
			}
			r, was := s.OperationHistory.Register, before.OperationHistory.Register
			if !r.Start.After(was.Start.Time) || r.End.Before(&r.Start) {
				t.Errorf("registered from %v to %v, want after %v (B-46)", r.Start, r.End, was.Start)
			}
			validated := 0
			for _, e := range b.reasons() {
				if e == "BMCAccessValidated" {
					validated++
				}
			}
			if validated != 2 {
				t.Errorf("%d events BMCAccessValidated, want 2", validated)
			}
		})
	}
}

// B-63: the BMC of a host in use answers, but does not know its system.
func TestHostOfAnUnknownSystemIsAdoptedAgain(t *testing.T) {
	b := benchProvisioned(t, nil)
	b.passes(5)
	b.bmc.Fail(bmctest.ReadSystem, fmt.Errorf("bmctest: %w", bmc.ErrNoSystem))
	b.until("an error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	s := b.host().Status
	if s.ErrorType != metal3.ProvisionedRegistrationError || s.ErrorMessage != "Host adoption failed: bmctest: the BMC has no such system" || s.Provisioning.State != metal3.StateProvisioned {
		t.Errorf("status %+v", s)
	}
	if !slices.Contains(b.reasons(), "ProvisionedRegistrationError") {
		t.Errorf("events %v", b.reasons())
	}
	b.bmc.Plug()
	b.until("no error", hasError(""))
	if s := b.host().Status; s.Provisioning.State != metal3.StateProvisioned || s.OperationalStatus != metal3.OperationalStatusOK {
		t.Errorf("afterwards %+v", s)
	}
}

// B-14 B-47: a long silence of the BMC is reported, and the host continues where
// it was.
func TestSilentBMCBecomesAnErrorOfTheHost(t *testing.T) {
	for _, state := range []metal3.ProvisioningState{metal3.StateInspecting, metal3.StateAvailable, metal3.StateProvisioned} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				if state == metal3.StateProvisioned {
					withImage(h)
				}
			})
			b.until(string(state), in(state))
			start := b.clock.Now()
			b.bmc.Unplug()
			for b.host().Status.ErrorType == "" && b.clock.Since(start) < time.Hour {
				if _, err := b.pass(); err != nil && !errors.Is(err, bmc.ErrUnreachable) {
					t.Fatal(err)
				}
			}
			s := b.host().Status
			if waited := b.clock.Since(start); s.ErrorType != metal3.RegistrationError || s.ErrorMessage != "bmctest: the BMC does not answer" || s.Provisioning.State != state || waited < silentWait {
				t.Errorf("after %v: %+v", waited, s)
			}
			b.bmc.Plug()
			b.until("no error", hasError(""))
			if state == metal3.StateInspecting {
				b.until("available", in(metal3.StateAvailable))
			}
			if s := b.host().Status; s.OperationalStatus != metal3.OperationalStatusOK || s.ErrorCount != 0 {
				t.Errorf("afterwards %+v", s)
			}
		})
	}
}

// B-113 B-71: a Secret belongs to all hosts that use it, and is released with the
// last of them.
func TestSecretIsDeletedWithItsLastHost(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = "net" })
	b.secret("net", corev1.SecretTypeOpaque, map[string]string{"networkData": "{}"})
	b.create(other("node-9", func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "secret" }))
	b.until("available", in(metal3.StateAvailable))
	for _, name := range []string{"secret", "net"} {
		s := b.get(name)
		if s.Labels[secretLabel] != secretLabelValue || !slices.Contains(s.Finalizers, "baremetalhost.metal3.io/secret") ||
			len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Controller != nil || s.OwnerReferences[0].Name != hostName {
			t.Errorf("secret %s: labels %v, finalizers %v, owners %v", name, s.Labels, s.Finalizers, s.OwnerReferences)
		}
	}
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	if s := b.get("secret"); len(s.Finalizers) != 1 || len(s.OwnerReferences) != 0 {
		t.Errorf("the other host's secret: finalizers %v, owners %v", s.Finalizers, s.OwnerReferences)
	}
	if s := b.get("net"); len(s.Finalizers) != 0 {
		t.Errorf("the secret of nobody: finalizers %v", s.Finalizers)
	}
}

// B-113: a Secret that the host no longer names is released.
func TestReplacedSecretIsReleased(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("available", in(metal3.StateAvailable))
	b.secret("next", corev1.SecretTypeOpaque, map[string]string{"username": "admin", "password": "good"})
	b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "next" })
	b.passes(5)
	if old, next := b.get("secret"), b.get("next"); len(old.Finalizers) != 0 || len(old.OwnerReferences) != 0 || len(next.Finalizers) != 1 {
		t.Errorf("old: %v %v, new: %v", old.Finalizers, old.OwnerReferences, next.Finalizers)
	}
	if s := b.host().Status; s.GoodCredentials.Reference.Name != "next" {
		t.Errorf("good credentials %+v", s.GoodCredentials)
	}
}

// B-113: the deletion of a Secret waits for its host, and ends.
func TestSecretInDeletionKeepsItsFinalizer(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("available", in(metal3.StateAvailable))
	if err := b.kube.Delete(context.Background(), b.get("secret")); err != nil {
		t.Fatal(err)
	}
	b.passes(5)
	if s := b.get("secret"); s == nil || b.host().Status.ErrorType != "" {
		t.Fatalf("secret %v, error %q: the host has lost it", s, b.host().Status.ErrorType)
	}
	if err := b.kube.Delete(context.Background(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	if b.get("secret") != nil {
		t.Error("the secret is still there")
	}
}

// B-43 B-55 B-65: the status has the hints that a host was prepared with, and
// other hints have it prepared again.
func TestChangedHintsPrepareTheHostAgain(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.until("provisioned", in(metal3.StateProvisioned))
	if got := b.host().Status.Provisioning.RootDeviceHints; got == nil || got.DeviceName != "/dev/sda" {
		t.Errorf("hints %+v", got)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", in(metal3.StateAvailable))
	b.passes(10)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.RootDeviceHints = &metal3.RootDeviceHints{Model: "disk"} })
	b.until("preparing", in(metal3.StatePreparing))
	b.until("available again", in(metal3.StateAvailable))
	if got := b.host().Status.Provisioning.RootDeviceHints; got == nil || got.Model != "disk" {
		t.Errorf("hints %+v", got)
	}
	writes := b.statusWrites
	b.passes(10)
	if b.statusWrites != writes {
		t.Errorf("%d writes of a host at rest", b.statusWrites-writes)
	}
}

// B-252: the architecture from the inspection is used to choose images.
func TestArchitectureIsFilledIn(t *testing.T) {
	for _, given := range []string{"", "aarch64"} {
		b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.Architecture = given })
		rep := b.answers["inventory"]
		rep.Inventory.CPU.Arch = "x86_64"
		b.until("available", in(metal3.StateAvailable))
		if got, want := b.host().Spec.Architecture, cmpOr(given, "x86_64"); got != want {
			t.Errorf("given %q: architecture %q, want %q", given, got, want)
		}
	}
}

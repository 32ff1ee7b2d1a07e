package inventory

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

func TestPasswordMovesToASecret(t *testing.T) {
	c := credential("account")
	c.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"password":{"value":"the-password"}}}`, "note": "stays"}
	l := start(t, c)
	l.settle()
	c = l.credential("account")
	s := get(l, "account-bmc-account", new(corev1.Secret))
	if string(s.Data["username"]) != "admin" || string(s.Data["password"]) != "the-password" || !metav1.IsControlledBy(s, c) {
		t.Errorf("the Secret is %+v", s)
	}
	if c.Spec.Password != (kaasv1.CredentialPassword{Name: s.Name}) || !c.Status.Ready || c.Status.ErrorMessage != "" {
		t.Errorf("the credential is %+v %+v", c.Spec, c.Status)
	}
	if len(c.Annotations) != 1 || c.Annotations["note"] != "stays" {
		t.Errorf("annotations %v, want those without kubectl's copy of the password", c.Annotations)
	}

	before := len(l.writes)
	l.settle()
	if len(l.writes) != before {
		t.Errorf("nothing has changed, and it writes %q", l.writes[before:])
	}
	edit(l, c, func(c *kaasv1.BareMetalHostCredential) { c.Spec.Username, c.Spec.Password.Value = "root", "another" })
	l.settle()
	s = get(l, s.Name, new(corev1.Secret))
	if string(s.Data["username"]) != "root" || string(s.Data["password"]) != "another" {
		t.Errorf("the changed account is not in the Secret: %q", s.Data)
	}
	edit(l, l.credential("account"), func(c *kaasv1.BareMetalHostCredential) { c.Spec.Username = "admin" })
	l.settle()
	if s = get(l, s.Name, new(corev1.Secret)); string(s.Data["username"]) != "admin" || string(s.Data["password"]) != "another" {
		t.Errorf("the changed user name is not in the Secret: %q", s.Data)
	}
}

func TestCredentialThatCannotBeUsedStopsItsInventories(t *testing.T) {
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "account-bmc-account"}, Data: map[string][]byte{"password": []byte("of-a-user")}}
	for _, tt := range []struct {
		name    string
		objects func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential
		secret  *corev1.Secret
		want    []string
	}{
		{"missing", func(*kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential { return nil }, nil, []string{"spec.bmc.bmhCredentialsName", `no BareMetalHostCredential "account"`}},
		{"of another provider", func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential {
			c.Labels = nil
			return []*kaasv1.BareMetalHostCredential{c}
		}, nil, []string{`BareMetalHostCredential "account"`, "label kaas.mirantis.com/provider=baremetal"}},
		{"blank password", func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential {
			c.Spec.Password.Value = " \n"
			return []*kaasv1.BareMetalHostCredential{c}
		}, nil, []string{`BareMetalHostCredential "account"`, "spec.password.value"}},
		{"name of another Secret", func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential {
			c.Spec.Password = kaasv1.CredentialPassword{Name: "other"}
			return []*kaasv1.BareMetalHostCredential{c}
		}, nil, []string{`BareMetalHostCredential "account"`, `spec.password.name: Secret "other"`, "spec.password.value"}},
		{"Secret that is lost", func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential {
			c.Spec.Password = kaasv1.CredentialPassword{Name: "account-bmc-account"}
			return []*kaasv1.BareMetalHostCredential{c}
		}, nil, []string{`BareMetalHostCredential "account"`, `Secret "account-bmc-account" has no password`}},
		{"Secret of a user", func(c *kaasv1.BareMetalHostCredential) []*kaasv1.BareMetalHostCredential {
			return []*kaasv1.BareMetalHostCredential{c}
		}, foreign, []string{`BareMetalHostCredential "account"`, "is not the credential's: remove it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := start(t, server("node"))
			for _, c := range tt.objects(credential("account")) {
				c.Namespace = ns
				l.must(l.Create(t.Context(), c))
			}
			if tt.secret != nil {
				s := tt.secret.DeepCopy()
				s.Namespace = ns
				l.must(l.Create(t.Context(), s))
			}
			l.settle()
			l.gone("node", new(metal3.BareMetalHost))
			i := l.inventory("node")
			contains(t, i.Status.ErrorMessage, tt.want...)
			if i.Status.ErrorType != kaasv1.InventoryError {
				t.Errorf("errorType %q, want %q", i.Status.ErrorType, kaasv1.InventoryError)
			}
			if tt.secret != nil {
				if s := get(l, tt.secret.Name, new(corev1.Secret)); string(s.Data["password"]) != "of-a-user" {
					t.Errorf("the Secret of a user is overwritten: %q", s.Data)
				}
			}
		})
	}
}

// statement H40: an edit of the BareMetalHost is overwritten.
func TestBareMetalHostFollowsItsInventory(t *testing.T) {
	l := start(t, credential("account"), server("node"))
	l.settle()
	want := l.host("node")
	s := want.Spec
	if s.BMC.CredentialsName != "account-bmc-account" || s.BMC.Address != "redfish://192.0.2.1/redfish/v1/Systems/1" ||
		s.BootMACAddress != "52:54:00:00:00:01" || s.BootMode != metal3.Legacy || !s.Online || want.Labels["rack"] != "a" {
		t.Fatalf("the host is %+v %+v", want.ObjectMeta, s)
	}
	for name, change := range map[string]func(*metal3.BareMetalHost){
		"address":       func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "ipmi://192.0.2.9" },
		"online":        func(h *metal3.BareMetalHost) { h.Spec.Online = false },
		"label":         func(h *metal3.BareMetalHost) { h.Labels["rack"] = "b" },
		"another label": func(h *metal3.BareMetalHost) { h.Labels["more"] = "" },
		"image":         func(h *metal3.BareMetalHost) { h.Spec.Image = &metal3.Image{URL: "http://192.0.2.2/i.raw"} },
		"RAID": func(h *metal3.BareMetalHost) {
			h.Spec.RAID = &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{{Level: "1"}}}
		},
		"paused": func(h *metal3.BareMetalHost) {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.PausedAnnotation, "")
		},
		"consumer": func(h *metal3.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}
		},
		"missing Machine":  func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = consumer("w-0") },
		"taken over":       func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true },
		"removed firmware": func(h *metal3.BareMetalHost) { h.Spec.Firmware = &metal3.FirmwareConfig{} }, //nolint:staticcheck // the specification has it
	} {
		edit(l, l.host("node"), change)
		l.settle()
		got := l.host("node")
		got.ResourceVersion, got.Annotations = want.ResourceVersion, nil
		if a, b := got.DeepCopy().Spec, want.Spec; !equal(a, b) || !equal(got.Labels, want.Labels) || len(l.host("node").Annotations) != 0 {
			t.Errorf("%s: the host is\n%+v %v, want\n%+v %v", name, a, got.Labels, b, want.Labels)
		}
	}
	edit(l, l.inventory("node"), func(i *kaasv1.BareMetalHostInventory) {
		i.Labels["rack"], i.Spec.Online = "c", ptr.To(false)
		i.Annotations = map[string]string{metal3.PausedAnnotation: "", metal3.RebootAnnotationPrefix: ""}
	})
	l.settle()
	h := l.host("node")
	if _, paused := h.Annotations[metal3.PausedAnnotation]; !paused || h.Labels["rack"] != "c" || h.Spec.Online {
		t.Errorf("the host does not follow its inventory: %+v %+v", h.ObjectMeta, h.Spec)
	}
	if _, asked := h.Annotations[metal3.RebootAnnotationPrefix]; !asked {
		t.Error("the reboot that the inventory demands is not demanded of the host")
	}
	edit(l, h, func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.RebootAnnotationPrefix) }) // the host has rebooted
	l.settle()
	if _, asked := l.host("node").Annotations[metal3.RebootAnnotationPrefix]; asked {
		t.Error("the host reboots twice")
	}
	before := len(l.writes)
	l.settle()
	if len(l.writes) != before {
		t.Errorf("nothing has changed, and it writes %q", l.writes[before:])
	}
}

func consumer(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Namespace: ns, Name: name}
}

// What the Machine that has claimed a host writes to it stays.
func TestClaimOfAMachineStays(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w-0", Annotations: map[string]string{clusterv1.BareMetalHostAnnotation: ns + "/node"}}}
	l := start(t, credential("account"), server("node"), m)
	l.settle()
	edit(l, l.host("node"), func(h *metal3.BareMetalHost) {
		h.Spec.ConsumerRef, h.Spec.Image = consumer("w-0"), &metal3.Image{URL: "http://192.0.2.2/i.raw"}
		h.Spec.UserData, h.Spec.NetworkData = &corev1.SecretReference{Name: "u"}, &corev1.SecretReference{Name: "n"}
		h.Spec.BMC.Address = "ipmi://192.0.2.9"
	})
	l.settle()
	s := l.host("node").Spec
	if s.Image == nil || s.UserData == nil || s.NetworkData == nil || s.ConsumerRef == nil || strings.HasPrefix(s.BMC.Address, "ipmi") {
		t.Errorf("the spec is %+v, want the Machine's image and the inventory's BMC", s)
	}
	if c := l.inventory("node").Status.ConsumerRef; c == nil || c.Name != "w-0" {
		t.Errorf("status.consumerRef is %+v", c)
	}
	l.remove(l.inventory("node"))
	l.settle()
	contains(t, l.inventory("node").Status.ErrorMessage, `Machine "w-0"`, "delete the Machine")
	if h := l.host("node"); !h.DeletionTimestamp.IsZero() || h.Spec.Image == nil {
		t.Errorf("the host of a Machine is deleted with its inventory: %+v", h)
	}
	l.remove(l.credential("account"))
	l.remove(get(l, "w-0", new(clusterv1.Machine)))
	l.settle()
	l.gone("node", new(kaasv1.BareMetalHostInventory))
	l.gone("node", new(metal3.BareMetalHost))
	l.gone("account", new(kaasv1.BareMetalHostCredential))
	l.gone("account-bmc-account", new(corev1.Secret))
	order := strings.Join(l.writes, "\n")
	if host, secret := strings.Index(order, "delete *v1alpha1.BareMetalHost node"), strings.Index(order, "delete *v1.Secret"); host < 0 || secret < host {
		t.Errorf("the order of deletions is wrong:\n%s", order)
	}
}

func TestInventoryShowsItsHost(t *testing.T) {
	l := start(t, credential("account"), server("node"))
	l.settle()
	h := l.host("node")
	h.Status.Provisioning.State, h.Status.OperationalStatus, h.Status.PoweredOn = metal3.StateRegistering, metal3.OperationalStatusError, true
	h.Status.ErrorType, h.Status.ErrorMessage = metal3.RegistrationError, "the BMC refuses"
	h.Status.HardwareDetails = &metal3.HardwareDetails{RAMMebibytes: 1024, Hostname: "node"}
	l.must(l.Status().Update(t.Context(), h))
	l.settle()
	s := l.inventory("node").Status
	if s.ProvisioningState != "registering" || s.OperationalStatus != "error" || !s.PoweredOn || s.ErrorType != "registration error" {
		t.Errorf("the status is %+v", s)
	}
	contains(t, s.ErrorMessage, `BareMetalHostCredential "account"`, "the BMC refuses")
	contains(t, string(s.HardwareDetails.Raw), `"ramMebibytes":1024`)
}

func TestBareMetalHostOfAUserStays(t *testing.T) {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: metal3.BareMetalHostSpec{Description: "of a user"}}
	l := start(t, credential("account"), server("node"), h)
	l.settle()
	contains(t, l.inventory("node").Status.ErrorMessage, `BareMetalHost "node"`, "not the inventory's: remove it")
	l.remove(l.inventory("node"))
	l.settle()
	if l.host("node").Spec.Description != "of a user" || len(l.host("node").OwnerReferences) > 0 {
		t.Errorf("the host of a user has become %+v", l.host("node"))
	}
}

// Objects without the provider's label stay as they are: their status alone says which they need,
// until they have it.
func TestObjectsOfOtherProvidersStay(t *testing.T) {
	c, i := credential("account"), server("node")
	c.Labels, i.Labels = nil, map[string]string{clusterv1.ProviderLabel: "vsphere"}
	l := start(t, c, i)
	l.settle()
	for _, w := range l.writes {
		if !strings.Contains(w, "status") {
			t.Errorf("it writes %q", w)
		}
	}
	if got := l.credential("account"); got.Spec.Password.Value == "" || got.Status.ErrorMessage != "the bare metal provider does not act on this object: give it the label kaas.mirantis.com/provider=baremetal" {
		t.Errorf("the credential says %q", got.Status.ErrorMessage)
	}
	if got := l.inventory("node").Status.ErrorMessage; !strings.Contains(got, `an object of the provider "vsphere"`) {
		t.Errorf("the inventory says %q", got)
	}
	c, i = l.credential("account"), l.inventory("node")
	c.Labels, i.Labels = credential("account").Labels, server("node").Labels
	l.must(l.Update(t.Context(), c))
	l.must(l.Update(t.Context(), i))
	l.settle()
	if c, i := l.credential("account"), l.inventory("node"); c.Status.ErrorMessage != "" || c.Spec.Password.Value != "" || i.Status.ErrorMessage != "" {
		t.Errorf("with the label: credential %+v, inventory %+v", c.Status, i.Status)
	}
}

// Secrets of users are not watched: a credential that waits for the removal of one looks again.
func TestSecretOfAUserIsWaitedFor(t *testing.T) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "account-bmc-account"}}
	l := start(t, credential("account"), s)
	r, err := New(Config{Client: l, Reader: l, Work: queue.Work{Clock: clock.RealClock{}}})
	l.must(err)
	again := func(want time.Duration) {
		t.Helper()
		got, err := r.credentials.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "account"}})
		if err != nil || got.RequeueAfter != want {
			t.Errorf("Reconcile() = %+v, %v, want it again after %s", got, err, want)
		}
	}
	again(queue.SecretWait)
	if c := l.credential("account"); c.Status.Ready {
		t.Errorf("status %+v beside a Secret of a user", c.Status)
	}
	l.remove(s)
	again(0)
	if c := l.credential("account"); !c.Status.Ready || c.Status.ErrorMessage != "" {
		t.Errorf("status %+v after the Secret is removed", c.Status)
	}
}

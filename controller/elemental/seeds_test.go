package elemental

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
)

// network records to which NICs the seeds of registrations are offered, and with which token.
type network struct {
	macs   map[string][]string
	tokens map[string]string
	refuse []string
	err    error
}

func newNetwork() *network {
	return &network{macs: map[string][]string{}, tokens: map[string]string{}}
}

// Offer implements Seeds.
func (n *network) Offer(g *elementalv1.ElementalRegistration, macs []string) ([]string, error) {
	n.macs[g.Name], n.tokens[g.Name] = macs, g.Spec.Config.Elemental.Registration.Token
	return n.refuse, n.err
}

// Withdraw implements Seeds.
func (n *network) Withdraw(key client.ObjectKey) { delete(n.macs, key.Name) }

// overNetwork is a registration whose seed NICs may boot.
func overNetwork(macs string) *elementalv1.ElementalRegistration {
	g := registrationNamed("fire")
	g.Annotations = map[string]string{elementalv1.NetworkBootAnnotation: macs}
	return g
}

const nic = "02:00:00:00:00:01"

func TestSeedIsOfferedToTheNICsOfTheAnnotation(t *testing.T) {
	l, n := start(t, overNetwork(nic+", 02:00:00:00:00:02")), newNetwork()
	l.seeds = n
	l.settle()
	g := get(l, "fire", new(elementalv1.ElementalRegistration))
	if want := []string{nic, "02:00:00:00:00:02"}; !slices.Equal(n.macs["fire"], want) {
		t.Errorf("offered to %q, want %q", n.macs["fire"], want)
	}
	if want := g.Spec.Config.Elemental.Registration.Token; n.tokens["fire"] != want || want == "" {
		t.Errorf("offered with the token %q, want that of the registration", n.tokens["fire"])
	}
	is(t, g, elementalv1.NetworkBootReady, "True")
	is(t, g, capi.ReadyCondition, "True")
	if c := condition.Get(g, elementalv1.NetworkBootReady); c.Message != elementalv1.NetworkBootMessage(2) {
		t.Errorf("message %q", c.Message)
	}

	edit(l, g, func(g *elementalv1.ElementalRegistration) { g.Annotations = nil })
	l.settle()
	g = get(l, "fire", new(elementalv1.ElementalRegistration))
	is(t, g, elementalv1.NetworkBootReady, "")
	is(t, g, capi.ReadyCondition, "True")
	if got, offered := n.macs["fire"]; offered {
		t.Errorf("still offered to %q", got)
	}
}

// A server of a BareMetalHost is the controller of hosts', whether the MAC address is in the
// specification or was found by the inspection.
func TestSeedIsNotOfferedToBareMetalHosts(t *testing.T) {
	named := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "named"}, Spec: metal3.BareMetalHostSpec{BootMACAddress: "02:00:00:00:00:0A"}}
	inspected := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "inspected"}}
	inspected.Status.HardwareDetails = &metal3.HardwareDetails{NIC: []metal3.NIC{{MAC: "02:00:00:00:00:0B"}}}
	l, n := start(t, overNetwork("02:00:00:00:00:0a,02-00-00-00-00-0B,"+nic), named, inspected), newNetwork()
	l.seeds = n
	l.settle()
	if want := []string{nic}; !slices.Equal(n.macs["fire"], want) {
		t.Errorf("offered to %q, want %q", n.macs["fire"], want)
	}
	g := get(l, "fire", new(elementalv1.ElementalRegistration))
	is(t, g, elementalv1.NetworkBootReady, "False NetworkBootRefused Error")
	is(t, g, capi.ReadyCondition, "False NetworkBootRefused Error")
	if m := condition.Get(g, elementalv1.NetworkBootReady).Message; !strings.Contains(m, "02:00:00:00:00:0a is that of the BareMetalHost named") || !strings.Contains(m, "inspected") {
		t.Errorf("message %q", m)
	}
	if keys := l.controllers().registrations.withNetworkBoot(t.Context(), named); len(keys) != 1 || keys[0].Name != "fire" {
		t.Errorf("a BareMetalHost wakes %v", keys)
	}
	if !changesMACs.Create(event.CreateEvent{Object: named}) || !changesMACs.Delete(event.DeleteEvent{Object: named}) ||
		!changesMACs.Update(event.UpdateEvent{ObjectOld: named, ObjectNew: inspected}) || changesMACs.Update(event.UpdateEvent{ObjectOld: named, ObjectNew: named}) {
		t.Error("events of BareMetalHosts that do not change their MAC addresses wake registrations, or others do not")
	}

	l.must(l.Delete(t.Context(), named))
	l.must(l.Delete(t.Context(), inspected))
	l.settle()
	if len(n.macs["fire"]) != 3 {
		t.Errorf("offered to %q once the BareMetalHosts are gone", n.macs["fire"])
	}
	is(t, get(l, "fire", new(elementalv1.ElementalRegistration)), capi.ReadyCondition, "True")
}

func TestSeedThatCannotBeOffered(t *testing.T) {
	for _, tt := range []struct {
		name    string
		network *network
		key     bool // the registration has one
		message string
		reason  string
	}{
		{"a NIC is another registration's", &network{macs: map[string][]string{}, tokens: map[string]string{}, refuse: []string{"it is another's"}}, true, "it is another's", "NetworkBootRefused"},
		{"the configuration is wrong", &network{macs: map[string][]string{}, tokens: map[string]string{}, err: errors.New("use https")}, true, "use https", "NetworkBootRefused"},
		{"no network", nil, true, "remove the annotation " + elementalv1.NetworkBootAnnotation, "NetworkBootRefused"},
		{"no token", newNetwork(), false, "is missing", "MissingSigningKey"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := overNetwork(nic)
			if !tt.key {
				g.Spec.PrivateKeyRef = reference(g, "Secret")
			}
			l := start(t, g)
			if tt.network != nil {
				l.seeds = tt.network
			}
			l.settle()
			g = get(l, "fire", new(elementalv1.ElementalRegistration))
			is(t, g, elementalv1.NetworkBootReady, "False "+tt.reason+" Error")
			is(t, g, capi.ReadyCondition, "False "+tt.reason+" Error")
			if m := condition.Get(g, elementalv1.NetworkBootReady).Message; !strings.Contains(m, tt.message) {
				t.Errorf("message %q, want one with %q", m, tt.message)
			}
			if !tt.key && len(tt.network.macs) > 0 {
				t.Errorf("offered to %q without a token", tt.network.macs)
			}
		})
	}
}

func TestSeedOfADeletedRegistrationIsWithdrawn(t *testing.T) {
	l, n := start(t, overNetwork(nic)), newNetwork()
	l.seeds = n
	l.settle()
	g := get(l, "fire", new(elementalv1.ElementalRegistration))
	l.must(l.Delete(t.Context(), g))
	_, err := l.controllers().registrations.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
	l.must(err)
	if len(n.macs) > 0 {
		t.Errorf("still offered to %q", n.macs)
	}
}

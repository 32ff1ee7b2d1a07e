package elemental

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
)

// Seeds offers NICs a system that registers its server. The system has the token of the
// registration: Seeds must serve it to these NICs and to no other.
type Seeds interface {
	// Offer offers the seed of a registration to the NICs with these MAC addresses, and ends its
	// earlier offers to others. It returns why it does not offer it to some of them.
	Offer(g *elementalv1.ElementalRegistration, macs []string) (problems []string, err error)
	// Withdraw ends the offers of a registration.
	Withdraw(key client.ObjectKey)
}

// offerSeed offers the seed of a registration to the NICs that its annotation names, but for those
// of BareMetalHosts: these are booted by the controller of hosts. It sets the conditions of the
// registration; ready is Ready without a network boot.
func (r *registrations) offerSeed(ctx context.Context, g *elementalv1.ElementalRegistration, ready capi.Condition) error {
	macs := g.NetworkBootMACs()
	if len(macs) == 0 || ready.Status != corev1.ConditionTrue {
		r.withdrawSeed(client.ObjectKeyFromObject(g))
	}
	if len(macs) == 0 {
		g.Status.Conditions = slices.DeleteFunc(g.Status.Conditions, func(c capi.Condition) bool { return c.Type == elementalv1.NetworkBootReady })
		condition.Set(g, ready, r.Wall.Now())
		return nil
	}
	c := ready
	if ready.Status == corev1.ConditionTrue {
		problems, err := r.offerTo(ctx, g, macs)
		if err != nil {
			return err
		}
		c.Message = elementalv1.NetworkBootMessage(len(macs))
		if len(problems) > 0 {
			c = condition.False(elementalv1.NetworkBootReady, elementalv1.NetworkBootRefusedReason, capi.ConditionSeverityError, strings.Join(problems, "; "))
		}
	}
	c.Type = elementalv1.NetworkBootReady
	condition.Set(g, c, r.Wall.Now()) // Ready is its summary
	return nil
}

// offerTo offers the seed of a registration to NICs. It returns why it does not offer it to some.
func (r *registrations) offerTo(ctx context.Context, g *elementalv1.ElementalRegistration, macs []string) (problems []string, err error) {
	if r.Seeds == nil {
		return []string{"these controllers serve no network from which servers boot seeds: remove the annotation " + elementalv1.NetworkBootAnnotation}, nil
	}
	owners, err := r.hostsByMAC(ctx)
	if err != nil {
		return nil, err
	}
	var free []string
	for _, m := range macs {
		if host := owners[canonicalMAC(m)]; host != "" {
			problems = append(problems, fmt.Sprintf("MAC address %s is that of the BareMetalHost %s", m, host))
			continue
		}
		free = append(free, m)
	}
	refused, err := r.Seeds.Offer(g, free)
	if err != nil { // a change of the registration is tried
		return append(problems, err.Error()), nil
	}
	return append(problems, refused...), nil
}

func (r *registrations) withdrawSeed(key client.ObjectKey) {
	if r.Seeds != nil {
		r.Seeds.Withdraw(key)
	}
}

// canonicalMAC returns a MAC address in the form in which all are compared.
func canonicalMAC(text string) string {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return text
	}
	return mac.String()
}

// macsOf returns the MAC addresses of a BareMetalHost, sorted: the one of its specification, and
// those that its inspection has found.
func macsOf(h *metal3.BareMetalHost) (out []string) {
	if h.Spec.BootMACAddress != "" {
		out = append(out, canonicalMAC(h.Spec.BootMACAddress))
	}
	if h.Status.HardwareDetails != nil {
		for _, n := range h.Status.HardwareDetails.NIC {
			if n.MAC != "" {
				out = append(out, canonicalMAC(n.MAC))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hostsByMAC returns the names of the BareMetalHosts by their MAC addresses.
func (r *registrations) hostsByMAC(ctx context.Context) (map[string]string, error) {
	var list metal3.BareMetalHostList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("BareMetalHosts: %w", err)
	}
	out := map[string]string{}
	for i := range list.Items {
		for _, m := range macsOf(&list.Items[i]) {
			out[m] = list.Items[i].Name
		}
	}
	return out, nil
}

// withNetworkBoot returns the registrations whose seeds servers may boot.
func (r *registrations) withNetworkBoot(ctx context.Context, _ *metal3.BareMetalHost) (out []client.ObjectKey) {
	var list elementalv1.ElementalRegistrationList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "registrations are not listed")
	}
	for i := range list.Items {
		if g := &list.Items[i]; g.Annotations[elementalv1.NetworkBootAnnotation] != "" {
			out = append(out, client.ObjectKeyFromObject(g))
		}
	}
	return out
}

// changesMACs are the events by which a BareMetalHost takes or leaves a MAC address.
var changesMACs = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*metal3.BareMetalHost)
		after, ok2 := e.ObjectNew.(*metal3.BareMetalHost)
		return ok && ok2 && !slices.Equal(macsOf(before), macsOf(after))
	},
}

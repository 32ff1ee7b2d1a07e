package elemental

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// association chooses the hosts of machines.
//
// A choice is the machine's hostRef, which is written before anything else: two passes over one
// machine, of whatever controllers, cannot both write it. The link is the host's machineRef, which
// one machine alone can write. A machine that finds its choice linked to another chooses again.
type association struct {
	Config
	written *readafterwrite.Reader // reads hosts
	// choosing lets one machine of this process choose at a time, so that machines that
	// wait do not choose the same host.
	choosing sync.Mutex
}

// free reports whether a host has no machine and can have one.
func free(h *elementalv1.ElementalHost) bool {
	_, resets := h.Labels[elementalv1.NeedsResetLabel]
	_, taken := h.Labels[elementalv1.MachineNameLabel]
	return h.Labels[elementalv1.InstalledLabel] == elementalv1.True && !resets && !taken && h.Spec.MachineRef == nil && h.DeletionTimestamp.IsZero()
}

// linkedTo reports whether a host is linked to a machine. The name counts, not the UID:
// objects that are moved to another cluster get new ones.
func linkedTo(h *elementalv1.ElementalHost, m *elementalv1.ElementalMachine) bool {
	if h.Spec.MachineRef != nil {
		return h.Spec.MachineRef.Name == m.Name
	}
	return h.Labels[elementalv1.ElementalMachineNameLabel] == m.Name
}

// associate returns the host of the machine, linked to it; nil when there is none yet.
func (p *pass) associate(ctx context.Context, owner *capi.Machine) (*elementalv1.ElementalHost, error) {
	const attempts = 4 // at hosts that others have taken meanwhile
	for range attempts {
		if p.m.Spec.HostRef == nil {
			found, err := p.choose(ctx)
			if err != nil || !found {
				return nil, err
			}
		}
		h, again, err := p.link(ctx, owner)
		if h != nil {
			p.wait = false
		}
		if err != nil || !again {
			return h, err
		}
	}
	p.wait = true
	return nil, nil
}

// choose chooses a free host and writes the choice to the machine. It reports false when no host
// is free.
func (p *pass) choose(ctx context.Context) (bool, error) {
	p.hosts.choosing.Lock()
	defer p.hosts.choosing.Unlock()
	h, err := p.candidate(ctx)
	if err != nil {
		return false, err
	}
	if h == nil {
		p.fail(elementalv1.AssociationReady, elementalv1.MissingAvailableHostsReason, capi.ConditionSeverityWarning, "No ElementalHosts available for association.")
		p.wait = true
		return false, nil
	}
	return true, p.changeSpec(ctx, func(m *elementalv1.ElementalMachine) { m.Spec.HostRef = reference(h, hostKind) })
}

// changeSpec changes the machine's spec at once, before what depends on it.
func (p *pass) changeSpec(ctx context.Context, change func(*elementalv1.ElementalMachine)) error {
	change(p.m)
	if err := p.write(ctx, p.before, p.m); err != nil {
		return &invalidated{err}
	}
	p.before = p.m.DeepCopy()
	return nil
}

// candidate returns the host that the machine should have: one that is linked to it already, or
// the first free one by name that its selector selects; nil when there is none.
func (p *pass) candidate(ctx context.Context) (*elementalv1.ElementalHost, error) {
	selector := labels.Everything()
	if p.m.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(p.m.Spec.Selector); err != nil {
			return nil, fmt.Errorf("spec.selector: %w", err)
		}
	}
	var all elementalv1.ElementalHostList
	if err := p.Client.List(ctx, &all, client.InNamespace(p.m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	chosen, err := p.chosen(ctx)
	if err != nil {
		return nil, err
	}
	var best *elementalv1.ElementalHost
	for i := range all.Items {
		h := &all.Items[i]
		_, resets := h.Labels[elementalv1.NeedsResetLabel]
		if linkedTo(h, p.m) && !resets {
			return h.DeepCopy(), nil
		}
		if free(h) && selector.Matches(labels.Set(h.Labels)) && !chosen[h.Name] && (best == nil || h.Name < best.Name) && !p.hosts.written.Stale(h) {
			best = h
		}
	}
	return best.DeepCopy(), nil
}

// chosen returns the hosts that other machines of the namespace have chosen.
func (p *pass) chosen(ctx context.Context) (map[string]bool, error) {
	var list elementalv1.ElementalMachineList
	if err := p.Client.List(ctx, &list, client.InNamespace(p.m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i := range list.Items {
		if ref := list.Items[i].Spec.HostRef; ref != nil {
			out[ref.Name] = true
		}
	}
	return out, nil
}

// link returns the chosen host, linked to the machine. It reports again when somebody else has
// changed the host meanwhile; the choice is withdrawn if another machine has it.
func (p *pass) link(ctx context.Context, owner *capi.Machine) (_ *elementalv1.ElementalHost, again bool, err error) {
	ref := p.m.Spec.HostRef
	h := new(elementalv1.ElementalHost)
	err = p.hosts.written.Get(ctx, client.ObjectKey{Namespace: p.m.Namespace, Name: ref.Name}, h)
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && h.UID != ref.UID && !linkedTo(h, p.m) { // another server has its name
		p.fail(elementalv1.AssociationReady, elementalv1.AssociatedHostNotFoundReason, capi.ConditionSeverityWarning, "Previously associated host not found: %s", ref.Name)
		return nil, false, p.withdraw(ctx)
	}
	if err != nil {
		p.fail(elementalv1.AssociationReady, elementalv1.AssociatedHostNotFoundReason, capi.ConditionSeverityWarning, "fetching associated ElementalHost '%s': %s", ref.Name, err)
		return nil, false, err
	}
	switch {
	case linkedTo(h, p.m) && h.Spec.MachineRef != nil:
		return h, false, nil
	case !linkedTo(h, p.m) && h.Labels[elementalv1.InstalledLabel] != elementalv1.True && h.Spec.MachineRef == nil && h.DeletionTimestamp.IsZero():
		return h, false, nil // a user has chosen it: it is linked when it is installed
	case !linkedTo(h, p.m) && !free(h):
		return nil, true, p.withdraw(ctx)
	}
	before := h.DeepCopy()
	h.Spec.MachineRef = reference(p.m, machineKind)
	h.Spec.BootstrapSecret = &corev1.ObjectReference{Kind: "Secret", Namespace: owner.Namespace, Name: *owner.Spec.Bootstrap.DataSecretName}
	h.Spec.OSVersionManagement = p.m.Spec.OSVersionManagement
	metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.MachineNameLabel, owner.Name)
	metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.ElementalMachineNameLabel, p.m.Name)
	if name := p.m.Labels[capi.ClusterNameLabel]; name != "" {
		metav1.SetMetaDataLabel(&h.ObjectMeta, capi.ClusterNameLabel, name)
	}
	if len(h.Spec.OSVersionManagement) > 0 {
		condition.Set(h, condition.False(elementalv1.OSVersionReady, elementalv1.WaitingForOSReconcileReason, capi.ConditionSeverityInfo,
			fmt.Sprintf("ElementalMachine %s OSVersionManagement mutated", p.m.Name)), p.now)
	}
	err = object.Patch(ctx, p.Client, before, h)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // somebody has changed it: look again
		return p.linkNow(ctx, ref.Name)
	case err != nil:
		return nil, false, err
	}
	p.hosts.written.Wrote(h)
	return h, false, nil
}

// linkNow looks at a host past the cache after its link has failed.
func (p *pass) linkNow(ctx context.Context, name string) (_ *elementalv1.ElementalHost, again bool, err error) {
	h := new(elementalv1.ElementalHost)
	err = p.Reader.Get(ctx, client.ObjectKey{Namespace: p.m.Namespace, Name: name}, h)
	if err == nil {
		p.hosts.written.Wrote(h) // no older one is looked at from now on
	}
	if apierrors.IsNotFound(err) || err == nil && !linkedTo(h, p.m) && !free(h) {
		return nil, true, p.withdraw(ctx)
	}
	p.wait = err == nil
	return nil, err == nil, err
}

// withdraw removes the choice from the machine.
func (p *pass) withdraw(ctx context.Context) error {
	p.wait = true
	return p.changeSpec(ctx, func(m *elementalv1.ElementalMachine) { m.Spec.HostRef, m.Spec.ProviderID = nil, nil })
}

// linked returns the hosts of a machine: the one that it has chosen, if it is linked to no other,
// and those that are linked to it. It reads past the cache, which may be late: a host that it
// misses would keep its server in the cluster of a machine that is gone.
func (a *association) linked(ctx context.Context, m *elementalv1.ElementalMachine) (out []*elementalv1.ElementalHost, err error) {
	var list elementalv1.ElementalHostList
	err = a.Reader.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingLabels{elementalv1.ElementalMachineNameLabel: m.Name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if h := &list.Items[i]; linkedTo(h, m) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *elementalv1.ElementalHost) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

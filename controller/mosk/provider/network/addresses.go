package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// machineLabel names the Machine of an IPaddr. The label is in no public text.
const machineLabel = "ipam.mirantis.com/machine"

// objectName returns the name of the IPaddr of an address.
func objectName(a netip.Addr) string {
	return "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.StringExpanded())
}

// allocate returns the addresses that a Machine needs. Those that it has stay, those that it
// needs no more are freed. problem is what the user has to correct.
func (r *machines) allocate(ctx context.Context, m *clusterv1.Machine, needs []layout.Need, all []ipamv1.Subnet) (out map[layout.Need]netip.Addr, problem, err error) {
	// The cache may not have what the last pass has created.
	var mine, known ipamv1.IPaddrList
	in := client.InNamespace(m.Namespace)
	if err := r.Reader.List(ctx, &mine, in, client.MatchingLabels{machineLabel: m.Name}); err != nil {
		return nil, nil, err
	}
	out = map[layout.Need]netip.Addr{}
	for i := range mine.Items {
		a := &mine.Items[i]
		need := layout.Need{Interface: a.Spec.Interface, Subnet: a.Spec.SubnetRef}
		address, err := netip.ParseAddr(a.Spec.WantedAddress)
		if !metav1.IsControlledBy(a, m) {
			continue
		}
		if _, twice := out[need]; err == nil && !twice && slices.Contains(needs, need) && allocatable(all, need.Subnet, address) {
			out[need] = address
			continue
		}
		if err := r.Client.Delete(ctx, a); client.IgnoreNotFound(err) != nil {
			return nil, nil, err
		}
	}
	if err := r.Client.List(ctx, &known, in, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	used := map[string]bool{}
	for i := range known.Items {
		used[known.Items[i].Name] = true
	}
	for _, need := range needs {
		if _, has := out[need]; has {
			continue
		}
		a, problem, err := r.create(ctx, m, need, all, used)
		if err != nil || problem != nil {
			return nil, problem, err
		}
		out[need] = a
	}
	return out, nil, nil
}

// create creates the IPaddr of the first free address of a Subnet. When another Machine has
// got that address meanwhile, create tries the next one.
func (r *machines) create(ctx context.Context, m *clusterv1.Machine, need layout.Need, all []ipamv1.Subnet, used map[string]bool) (a netip.Addr, problem, err error) {
	spans, problem := spansOf(all, need.Subnet)
	if problem != nil {
		return a, problem, nil
	}
	for {
		a, free := layout.Free(spans, func(a netip.Addr) bool { return used[objectName(a)] })
		if !free {
			return a, fmt.Errorf("Subnet %q has no free address for %q: all %d are allocated: extend its ranges, or delete Machines", need.Subnet, need.Interface, layout.Capacity(spans)), nil
		}
		o := &ipamv1.IPaddr{ObjectMeta: owned(m, objectName(a)), Spec: ipamv1.IPaddrSpec{SubnetRef: need.Subnet, WantedAddress: a.String(), Interface: need.Interface}}
		o.Labels = map[string]string{machineLabel: m.Name}
		if err := r.Client.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
			return a, nil, err
		}
		used[o.Name] = true
	}
}

func spansOf(all []ipamv1.Subnet, name string) ([]layout.Span, error) {
	i := slices.IndexFunc(all, func(s ipamv1.Subnet) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no Subnet %q in the namespace", name)
	}
	out, err := layout.Spans(&all[i].Spec)
	if err != nil {
		return nil, fmt.Errorf("Subnet %q: %w", name, err)
	}
	return out, nil
}

// allocatable reports whether a Subnet still has an address.
func allocatable(all []ipamv1.Subnet, name string, a netip.Addr) bool {
	spans, err := spansOf(all, name)
	return err == nil && slices.ContainsFunc(spans, func(s layout.Span) bool { return !a.Less(s.First) && !s.Last.Less(a) })
}

// subnets reconciles Subnets: their status counts addresses.
type subnets struct{ Config }

// Reconcile implements reconcile.Reconciler for a Subnet.
func (r *subnets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var s ipamv1.Subnet
		if err := r.Client.Get(ctx, req.NamespacedName, &s); err != nil {
			return queue.Deleted(err)
		}
		var list ipamv1.IPaddrList
		if err := r.Client.List(ctx, &list, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		before := s.DeepCopy()
		s.Status = statusOf(&s, list.Items)
		p := client.MergeFrom(before)
		if b, err := p.Data(&s); err != nil || string(b) == "{}" {
			return err
		}
		return r.Client.Status().Patch(ctx, &s, p)
	})
}

func statusOf(s *ipamv1.Subnet, all []ipamv1.IPaddr) (out ipamv1.SubnetStatus) {
	spans, err := layout.Spans(&s.Spec)
	if err != nil {
		return ipamv1.SubnetStatus{StatusMessage: failed(err)}
	}
	for _, r := range spans {
		out.Ranges = append(out.Ranges, r.String())
	}
	out.Capacity = layout.Capacity(spans)
	out.Allocatable = out.Capacity
	for i := range all {
		a, err := netip.ParseAddr(all[i].Spec.WantedAddress)
		if err != nil || !allocatable([]ipamv1.Subnet{*s}, s.Name, a) {
			continue
		}
		out.Allocatable-- // also one that another Subnet has allocated
		out.AllocatedIPs = append(out.AllocatedIPs, a.String()+":"+all[i].Labels[machineLabel])
	}
	slices.Sort(out.AllocatedIPs)
	out.StatusMessage = ipamv1.ResultOK
	if out.Allocatable == 0 {
		out.StatusMessage = failed(fmt.Errorf("all %d addresses are allocated", out.Capacity))
	}
	return out
}

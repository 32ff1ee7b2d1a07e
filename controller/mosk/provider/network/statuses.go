package network

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
	"github.com/metalab-dev/metalab/controller/mosk/unapplied"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// setupStatuses adds the controllers that write the statuses of L2Templates, IPaddrs and
// SubnetPools. They do not poll.
func setupStatuses(mgr manager.Manager, c Config) error {
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("provider-l2templates").
		For(&ipamv1.L2Template{}, changed).
		Watches(&ipamv1.Subnet{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return watch.Requests[*ipamv1.L2Template](ctx, c.Client, &ipamv1.L2TemplateList{}, nil, client.InNamespace(o.GetNamespace()))
		}), builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(c.Options()).
		Complete(&templates{c}); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("provider-ipaddrs").
		For(&ipamv1.IPaddr{}, changed).
		Watches(&ipamv1.Subnet{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return watch.Requests(ctx, c.Client, &ipamv1.IPaddrList{}, func(a *ipamv1.IPaddr) bool { return a.Spec.SubnetRef == o.GetName() }, client.InNamespace(o.GetNamespace()))
		}), changed).
		WithOptions(c.Options()).
		Complete(&addresses{c}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-subnetpools").
		For(&ipamv1.SubnetPool{}, changed).
		WithOptions(c.Options()).
		Complete(&pools{c})
}

// writeStatus writes the status of an object, if it differs from that before.
func writeStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	p := client.MergeFrom(before)
	if b, err := p.Data(after); err != nil || string(b) == "{}" {
		return err
	}
	return client.IgnoreNotFound(c.Status().Patch(ctx, after, p))
}

// templates reconciles L2Templates: their status says whether they can be used.
type templates struct{ Config }

// Reconcile implements reconcile.Reconciler for an L2Template.
func (r *templates) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var t ipamv1.L2Template
		if err := r.Client.Get(ctx, req.NamespacedName, &t); err != nil {
			return queue.Deleted(err)
		}
		var subnets ipamv1.SubnetList
		if err := r.Client.List(ctx, &subnets, client.InNamespace(t.Namespace)); err != nil {
			return err
		}
		before := t.DeepCopy()
		t.Status = ipamv1.L2TemplateStatus{Phase: ipamv1.L2TemplateReady, Reason: unapplied.Message(unapplied.Set("L2Template", &t))}
		if err := layout.Check(&t, subnets.Items); err != nil {
			t.Status = ipamv1.L2TemplateStatus{Phase: ipamv1.L2TemplateFailed, Reason: err.Error()}
		}
		b, err := json.Marshal(t.Spec)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		t.Status.SpecHash = hex.EncodeToString(sum[:])
		return writeStatus(ctx, r.Client, before, &t)
	})
}

// addresses reconciles IPaddrs: their status has the network of the address.
type addresses struct{ Config }

// Reconcile implements reconcile.Reconciler for an IPaddr.
func (r *addresses) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var a ipamv1.IPaddr
		if err := r.Client.Get(ctx, req.NamespacedName, &a); err != nil {
			return queue.Deleted(err)
		}
		var s ipamv1.Subnet
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Spec.SubnetRef}, &s)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		before := a.DeepCopy()
		a.Status = addressStatus(&a, &s, apierrors.IsNotFound(err))
		return writeStatus(ctx, r.Client, before, &a)
	})
}

func addressStatus(a *ipamv1.IPaddr, s *ipamv1.Subnet, missing bool) ipamv1.IPaddrStatus {
	failed := func(format string, args ...any) ipamv1.IPaddrStatus {
		return ipamv1.IPaddrStatus{Phase: ipamv1.IPaddrFailed, Reason: fmt.Sprintf(format, args...)}
	}
	if missing {
		return failed("there is no Subnet %q in the namespace", a.Spec.SubnetRef)
	}
	address, err := netip.ParseAddr(a.Spec.WantedAddress)
	if err != nil {
		return failed("spec.wantedAddress: %v", err)
	}
	if !allocatable([]ipamv1.Subnet{*s}, s.Name, address) {
		return failed("Subnet %q does not allocate %s", s.Name, address)
	}
	out := ipamv1.IPaddrStatus{Phase: ipamv1.IPaddrActive, Address: address.String(), CIDR: s.Spec.CIDR, Gateway: s.Spec.Gateway}
	for _, n := range s.Spec.Nameservers {
		out.Nameservers = append(out.Nameservers, string(n))
	}
	return out
}

// pools reconciles SubnetPools: their status says that no Subnet is made.
type pools struct{ Config }

// Reconcile implements reconcile.Reconciler for a SubnetPool.
func (r *pools) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var p ipamv1.SubnetPool
		if err := r.Client.Get(ctx, req.NamespacedName, &p); err != nil {
			return queue.Deleted(err)
		}
		before := p.DeepCopy()
		p.Status = ipamv1.SubnetPoolStatus{StatusMessage: failed(fmt.Errorf("nothing makes Subnets of a SubnetPool: create them, each with its cidr"))}
		return writeStatus(ctx, r.Client, before, &p)
	})
}

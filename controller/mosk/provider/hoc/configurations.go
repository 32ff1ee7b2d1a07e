package hoc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// configurations reconciles HostOSConfigurations: it writes their finalizer, and of their
// status what concerns machines, and the conditions.
type configurations struct {
	Config
	events  *events.Recorder
	written readafterwrite.Reader
}

// setup adds the reconciler to a manager. Each update of an object reconciles it: events of
// machines are compared with the cached status, which may be older than the last write.
func (r *configurations) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hoc-configurations").
		For(&kaasv1.HostOSConfiguration{}).
		Watches(&kaasv1.HostOSConfiguration{}, r.enqueue(func(o *kaasv1.HostOSConfiguration, object client.Object) bool {
			return o.Name != object.GetName() && stageOf(o) == removed // it may have waited for a name
		})).
		Watches(&lcmv1.LCMCluster{}, r.enqueue(func(o *kaasv1.HostOSConfiguration, _ client.Object) bool { return waits(o) })).
		Watches(&lcmv1.LCMMachine{}, r.machineEvents()).
		Watches(&clusterv1.Machine{}, r.machineEvents()).
		WithOptions(r.Options()).
		Complete(r)
}

// enqueue enqueues the objects of a namespace that an event of another object changes.
func (r *configurations) enqueue(changed func(*kaasv1.HostOSConfiguration, client.Object) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		all, err := r.configurations(ctx, object.GetNamespace())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "host OS configurations are not listed")
		}
		var out []reconcile.Request
		for _, o := range all {
			if changed(o, object) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
		}
		return out
	})
}

// waits reports whether an object waits until its removed items are gone.
func waits(o *kaasv1.HostOSConfiguration) bool {
	return stageOf(o) == removed || len(o.Status.StateItems) > len(names(o))
}

// machineEvents enqueues the objects whose entry of the machine in machinesStates is out of
// date, and those that wait for removed items.
func (r *configurations) machineEvents() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		all, err := r.configurations(ctx, object.GetNamespace())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "host OS configurations are not listed")
		}
		m, l := new(clusterv1.Machine), new(lcmv1.LCMMachine)
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), m); err != nil {
			m = nil
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), l); err != nil {
			l = nil
		}
		var out []reconcile.Request
		for _, o := range all {
			if waits(o) || changed(o, all, m, l, client.ObjectKeyFromObject(object)) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
		}
		return out
	})
}

// changed reports whether an object's entry of a machine is out of date. m and l are nil when
// they do not exist.
func changed(o *kaasv1.HostOSConfiguration, all []*kaasv1.HostOSConfiguration, m *clusterv1.Machine, l *lcmv1.LCMMachine, key types.NamespacedName) bool {
	var current, want *kaasv1.ConfigMachineState
	if s, exists := o.Status.MachinesStates[key.String()]; exists {
		current = &s
	}
	if m != nil || l != nil {
		want = newTarget(m, l).state(o, exclusive(o, all))
	}
	return !isState(current, want)
}

// nameOf returns the name of a machine in machinesStates.
func nameOf(o *kaasv1.HostOSConfiguration, key string) (string, bool) {
	return strings.CutPrefix(key, o.Namespace+"/")
}

// exclusive returns the recorded names of an object that no other active one has.
func exclusive(o *kaasv1.HostOSConfiguration, all []*kaasv1.HostOSConfiguration) map[string]bool {
	out := map[string]bool{}
	for _, name := range o.Status.StateItems {
		out[name] = true
	}
	for _, other := range all {
		if other.Name != o.Name && stageOf(other) == active {
			for _, name := range names(other) {
				delete(out, name)
			}
		}
	}
	return out
}

// Reconcile implements reconcile.Reconciler for a HostOSConfiguration.
func (r *configurations) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *configurations) reconcile(ctx context.Context, key types.NamespacedName) error {
	var o kaasv1.HostOSConfiguration
	if err := r.Client.Get(ctx, key, &o); err != nil {
		return queue.Deleted(err)
	}
	if r.written.Stale(&o) { // the event of the write comes: the same is not written twice
		return nil
	}
	f, err := r.observe(ctx, key.Namespace)
	if err != nil {
		return err
	}
	mine := exclusive(&o, f.all)
	there := f.left(mine)
	if stageOf(&o) == removed && len(there) == 0 {
		return r.release(ctx, &o)
	}
	if validated(&o) && stageOf(&o) != removed {
		if err := r.hold(ctx, &o); err != nil {
			return err
		}
	}
	before := o.DeepCopy()
	states := f.states(&o, mine) // by the record that is stored
	if validated(&o) && stageOf(&o) != removed {
		o.Status.StateItems = record(names(&o), there)
	}
	if summarized(&o) {
		summarize(&o, states, metav1.NewTime(r.Clock.Now()).Rfc3339Copy())
	}
	published := notices(&o, before.Status, states)
	o.Status.MachinesStates = nil
	if len(states) > 0 {
		o.Status.MachinesStates = fit(states, maxStates)
	}
	if equality.Semantic.DeepEqual(before.Status, o.Status) {
		return nil
	}
	// A merge patch of these fields: controller/mosk/hostos writes others.
	if err := r.Client.Status().Patch(ctx, &o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("hoc: status of HostOSConfiguration %s: %w", key, err)
	}
	r.written.Wrote(&o)
	for _, n := range published {
		r.events.About(ctx, component, &o, n.kind, n.reason, n.message)
	}
	return nil
}

// record returns the names of an object's items: those of its spec, and recorded ones that an
// LCMCluster or LCMMachine still has.
func record(spec, there []string) []string {
	out := slices.Concat(spec, there)
	slices.Sort(out)
	return slices.Compact(out)
}

// hold adds the finalizer.
func (r *configurations) hold(ctx context.Context, o *kaasv1.HostOSConfiguration) error {
	before := o.DeepCopy()
	if !controllerutil.AddFinalizer(o, Finalizer) {
		return nil
	}
	if err := r.patchFinalizers(ctx, o, before); err != nil {
		return err
	}
	r.written.Wrote(o)
	return nil
}

// release removes the finalizer, so that the API deletes the object.
func (r *configurations) release(ctx context.Context, o *kaasv1.HostOSConfiguration) error {
	before := o.DeepCopy()
	if !controllerutil.RemoveFinalizer(o, Finalizer) {
		return nil
	}
	return r.patchFinalizers(ctx, o, before)
}

func (r *configurations) patchFinalizers(ctx context.Context, o, before *kaasv1.HostOSConfiguration) error {
	// The list is replaced as one: others may have a finalizer.
	if err := r.Client.Patch(ctx, o, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("hoc: finalizer of HostOSConfiguration %s/%s: %w", o.Namespace, o.Name, err)
	}
	return nil
}

// facts are the objects of a namespace. They are the cache's, and are not changed.
type facts struct {
	all      []*kaasv1.HostOSConfiguration
	clusters []lcmv1.LCMCluster
	targets  []target
}

func (r *configurations) observe(ctx context.Context, namespace string) (facts, error) {
	var f facts
	var err error
	if f.all, err = r.configurations(ctx, namespace); err != nil {
		return f, err
	}
	var clusters lcmv1.LCMClusterList
	var lcmMachines lcmv1.LCMMachineList
	var machines clusterv1.MachineList
	for _, list := range []client.ObjectList{&clusters, &lcmMachines, &machines} {
		if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return f, fmt.Errorf("hoc: %w", err)
		}
	}
	f.clusters = clusters.Items
	byName := map[string]*lcmv1.LCMMachine{}
	for i := range lcmMachines.Items {
		byName[lcmMachines.Items[i].Name] = &lcmMachines.Items[i]
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		f.targets = append(f.targets, newTarget(m, byName[m.Name]))
		delete(byName, m.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) { // without a Machine
		f.targets = append(f.targets, newTarget(nil, byName[name]))
	}
	return f, nil
}

// left returns which of the names an LCMCluster or LCMMachine still has.
func (f facts) left(named map[string]bool) []string {
	found := map[string]bool{}
	for _, c := range f.clusters {
		for _, machineType := range machineTypes {
			for _, it := range c.Spec.MachinesTypes[machineType] {
				if named[it.Name] {
					found[it.Name] = true
				}
			}
		}
	}
	for _, t := range f.targets {
		for _, name := range left(t.lcm, named) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// states returns machinesStates with all details.
func (f facts) states(o *kaasv1.HostOSConfiguration, exclusive map[string]bool) map[string]kaasv1.ConfigMachineState {
	out := map[string]kaasv1.ConfigMachineState{}
	for _, t := range f.targets {
		if s := t.state(o, exclusive); s != nil {
			out[t.key()] = *s
		}
	}
	return out
}

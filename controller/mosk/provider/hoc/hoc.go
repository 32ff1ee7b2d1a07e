package hoc

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Finalizer suspends the deletion of a HostOSConfiguration until its items have left
// LCMMachine.status. Its name is in no public text.
const Finalizer = "kaas.mirantis.com/host-os-configuration"

// Config configures the reconcilers.
type Config struct {
	queue.Work
	Client client.Client
}

// Reconcilers are the reconcilers of the three kinds.
type Reconcilers struct {
	clusters       *clusters
	machines       *machines
	configurations *configurations
}

// New returns the reconcilers, or an error when a required field of c is nil.
func New(c Config) (*Reconcilers, error) {
	if c.Client == nil || c.Clock == nil {
		return nil, errors.New("hoc: Config.Client or Config.Clock is nil")
	}
	return &Reconcilers{&clusters{c}, &machines{Config: c}, &configurations{Config: c, events: events.New(c.Client, c.Clock)}}, nil
}

// Setup adds the reconcilers to a manager. They do not poll.
func (r *Reconcilers) Setup(mgr manager.Manager) error {
	return errors.Join(r.clusters.setup(mgr), r.machines.setup(mgr), r.configurations.setup(mgr))
}

// stage is the effect that a HostOSConfiguration has.
type stage int

const (
	// waiting: the present generation is not valid, not validated or not recorded yet. The
	// items of an earlier generation stay (H14).
	waiting stage = iota
	active
	// removed: the object is being deleted; all its items go.
	removed
)

func stageOf(o *kaasv1.HostOSConfiguration) stage {
	switch {
	case !o.DeletionTimestamp.IsZero():
		return removed
	case validated(o) && controllerutil.ContainsFinalizer(o, Finalizer) && recorded(o):
		return active
	}
	return waiting
}

// validated reports whether the present generation of the object is valid.
func validated(o *kaasv1.HostOSConfiguration) bool {
	return ptr.Deref(o.Status.IsValid, false) && o.Status.ObservedGeneration == o.Generation && len(o.Status.Configs) == len(o.Spec.Configs)
}

// recorded reports whether status.stateItems has the names of all items. The names are
// recorded before the items are written, so that a deletion finds all of them.
func recorded(o *kaasv1.HostOSConfiguration) bool {
	for _, name := range names(o) {
		if !slices.Contains(o.Status.StateItems, name) {
			return false
		}
	}
	return true
}

// names returns the names of the items that an object has by its spec, sorted.
func names(o *kaasv1.HostOSConfiguration) []string {
	set := map[string]bool{}
	for _, c := range o.Spec.Configs {
		for _, it := range items(o, c) {
			set[it.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// stays reports whether an existing item may belong to an object that is waiting. An object
// that was never validated may have lost its status, such as after a restore of a backup: then
// its spec counts.
func stays(o *kaasv1.HostOSConfiguration, name string) bool {
	return slices.Contains(o.Status.StateItems, name) || o.Status.IsValid == nil && slices.Contains(names(o), name)
}

// concerns reports whether a change of an object concerns LCMClusters and LCMMachines. Most
// changes are those of machinesStates.
func concerns(a, b *kaasv1.HostOSConfiguration) bool {
	statusOf := func(o *kaasv1.HostOSConfiguration) kaasv1.HostOSConfigurationStatus {
		return kaasv1.HostOSConfigurationStatus{
			IsValid: o.Status.IsValid, ObservedGeneration: o.Status.ObservedGeneration, Configs: o.Status.Configs, StateItems: o.Status.StateItems,
		}
	}
	return a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || a.Generation != b.Generation ||
		a.Annotations[item.TimeoutAnnotation] != b.Annotations[item.TimeoutAnnotation] ||
		controllerutil.ContainsFinalizer(a, Finalizer) != controllerutil.ContainsFinalizer(b, Finalizer) ||
		!equality.Semantic.DeepEqual(statusOf(a), statusOf(b))
}

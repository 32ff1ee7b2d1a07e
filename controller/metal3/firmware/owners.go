package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// ownerDelay is the time for which new owners of a schema are collected before
// they are written. A thousand hosts of one model that are registered at once
// share an object that lists all of them: one write per owner would cost more than
// all other work for them.
const ownerDelay = time.Second

// ownerDelayEach is added to ownerDelay for each owner that the schema has,
// because each write contains all: otherwise a thousand hosts that arrive over
// minutes would write an ever larger object a hundred times.
const ownerDelayEach = 10 * time.Millisecond

// ownerQueue holds new owners of schemas that are not yet written. If they are
// lost with the process, the next reading of the settings adds them again.
type ownerQueue struct {
	mu     sync.Mutex
	owners map[types.NamespacedName][]metav1.OwnerReference // by schema
	wake   chan event.GenericEvent
}

// add adds an owner. It reports whether it is the first in the queue for that
// schema.
func (j *ownerQueue) add(schema types.NamespacedName, owner metav1.OwnerReference) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	waiting := j.owners[schema]
	if !slices.ContainsFunc(waiting, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		j.owners[schema] = append(waiting, owner)
	}
	return len(waiting) == 0
}

// take removes and returns the owners in the queue for a schema.
func (j *ownerQueue) take(schema types.NamespacedName) []metav1.OwnerReference {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.owners[schema]
	delete(j.owners, schema)
	return all
}

// queueOwner adds settings to the owners of a schema, with the next write.
func (r *Reconciler) queueOwner(ctx context.Context, o *metal3.FirmwareSchema, owner metav1.OwnerReference) error {
	key := client.ObjectKeyFromObject(o)
	if !r.joiners.add(key, owner) {
		return nil // the first one has requested the write
	}
	select {
	case r.joiners.wake <- event.GenericEvent{Object: o}:
		return nil
	case <-ctx.Done():
		r.joiners.take(key)
		return ctx.Err()
	}
}

// setupOwners adds the controller that writes the owners of schemas.
func (r *Reconciler) setupOwners(mgr manager.Manager) error {
	later := handler.Funcs{
		GenericFunc: func(_ context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wait := ownerDelay + time.Duration(len(e.Object.GetOwnerReferences()))*ownerDelayEach
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, wait)
		},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("firmwareschema").
		WatchesRawSource(source.Channel(r.joiners.wake, later)).
		WithOptions(queue.Options(queue.Config{Clock: r.Clock, Client: r.ClientClock, Workers: 1, Monitor: r.Queues})).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			if r.Enter != nil {
				defer r.Enter()()
			}
			return ctrl.Result{}, r.addOwners(ctx, req.NamespacedName)
		}))
}

// addOwners writes the queued owners of a schema, with a patch that contains
// nothing else: an object with a thousand settings is large. If the schema was
// deleted meanwhile, its users create it again when they are read.
func (r *Reconciler) addOwners(ctx context.Context, key types.NamespacedName) error {
	owners := r.joiners.take(key)
	var o metal3.FirmwareSchema
	if err := r.Reader.Get(ctx, key, &o); err != nil {
		for _, owner := range owners {
			r.forgetReading(types.NamespacedName{Namespace: key.Namespace, Name: owner.Name})
		}
		return client.IgnoreNotFound(err)
	}
	owners = slices.DeleteFunc(owners, func(owner metav1.OwnerReference) bool {
		return owns(&o, owner.UID) || r.hasOtherSchema(ctx, key, owner.Name)
	})
	if len(owners) == 0 {
		return nil
	}
	var patch []map[string]any
	if len(o.OwnerReferences) == 0 {
		patch = append(patch,
			map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": o.ResourceVersion},
			map[string]any{"op": "add", "path": "/metadata/ownerReferences", "value": []metav1.OwnerReference{}},
		)
	}
	for _, owner := range owners {
		patch = append(patch, map[string]any{"op": "add", "path": "/metadata/ownerReferences/-", "value": owner})
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("firmware: schema %s: %w", o.Name, err)
	}
	if err := r.Client.Patch(ctx, &o, client.RawPatch(types.JSONPatchType, raw)); err != nil {
		for _, owner := range owners {
			r.joiners.add(key, owner)
		}
		return err // try again
	}
	r.read.Wrote(&o)
	return nil
}

func owns(o *metal3.FirmwareSchema, owner types.UID) bool {
	return slices.ContainsFunc(o.OwnerReferences, func(x metav1.OwnerReference) bool { return x.UID == owner })
}

// hasOtherSchema reports whether settings have another schema by now, or were
// deleted.
func (r *Reconciler) hasOtherSchema(ctx context.Context, schema types.NamespacedName, settings string) bool {
	var hfs metal3.HostFirmwareSettings
	err := r.read.Get(ctx, client.ObjectKey{Namespace: schema.Namespace, Name: settings}, &hfs)
	if err != nil {
		return client.IgnoreNotFound(err) == nil
	}
	s := hfs.Status.FirmwareSchema
	return s != nil && s.Name != schema.Name
}

// forgetReading makes the firmware of a host be read again at once.
func (r *Reconciler) forgetReading(host types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next[host] = r.Clock.Now()
}

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

	"github.com/metalab-dev/metalab/controller/queue"
)

// joinAfter is how long the owners of a schema are gathered before they are
// written. A thousand hosts of one model that are registered at once share an
// object that holds all their names: written for each of them, it would cost
// more than all the rest of them.
const joinAfter = time.Second

// joinAfterEach is how much longer they are gathered for each owner that the
// schema has already, since it is written whole: else a thousand hosts that come
// over minutes would write it a hundred times, ever larger.
const joinAfterEach = 10 * time.Millisecond

// joiners are settings that are to be owners of schemas and are not yet. What is
// lost of them with the process, the next reading of the settings brings again.
type joiners struct {
	mu   sync.Mutex
	of   map[types.NamespacedName][]metav1.OwnerReference // by schema
	wake chan event.GenericEvent
}

// add takes an owner in; it says whether it is the first that waits for that
// schema.
func (j *joiners) add(schema types.NamespacedName, owner metav1.OwnerReference) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	waiting := j.of[schema]
	if !slices.ContainsFunc(waiting, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		j.of[schema] = append(waiting, owner)
	}
	return len(waiting) == 0
}

// take hands out those that wait for a schema.
func (j *joiners) take(schema types.NamespacedName) []metav1.OwnerReference {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.of[schema]
	delete(j.of, schema)
	return all
}

// join has settings become an owner of a schema, with others.
func (r *Reconciler) join(ctx context.Context, o *metal3.FirmwareSchema, owner metav1.OwnerReference) error {
	key := client.ObjectKeyFromObject(o)
	if !r.joiners.add(key, owner) {
		return nil // the first one has seen to it
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
			wait := joinAfter + time.Duration(len(e.Object.GetOwnerReferences()))*joinAfterEach
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, wait)
		},
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("firmwareschema").
		WatchesRawSource(source.Channel(r.joiners.wake, later)).
		WithOptions(queue.Options(r.Clock, 1)).
		Complete(reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			if r.Enter != nil {
				defer r.Enter()()
			}
			return ctrl.Result{}, r.addOwners(ctx, req.NamespacedName)
		}))
}

// addOwners adds those that wait to the owners of a schema, with a patch that
// holds nothing else: an object with a thousand settings is large. Those of a
// schema that has gone meanwhile make it anew when they are read again.
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
		return owns(&o, owner.UID) || r.governedByOther(ctx, key, owner.Name)
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
		return err // and once more
	}
	r.read.Wrote(&o)
	return nil
}

func owns(o *metal3.FirmwareSchema, owner types.UID) bool {
	return slices.ContainsFunc(o.OwnerReferences, func(x metav1.OwnerReference) bool { return x.UID == owner })
}

// governedByOther says whether settings that were to join a schema have another
// one by now, or are gone.
func (r *Reconciler) governedByOther(ctx context.Context, schema types.NamespacedName, settings string) bool {
	var hfs metal3.HostFirmwareSettings
	err := r.read.Get(ctx, client.ObjectKey{Namespace: schema.Namespace, Name: settings}, &hfs)
	if err != nil {
		return client.IgnoreNotFound(err) == nil
	}
	s := hfs.Status.FirmwareSchema
	return s != nil && s.Name != schema.Name
}

// forgetReading has the firmware of a host read again at once.
func (r *Reconciler) forgetReading(host types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next[host] = r.Clock.Now()
}

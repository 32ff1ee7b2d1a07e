// Package events publishes Kubernetes events. An event that repeats raises the count of
// the Event that is there already, as client-go's recorders do. The package does not know
// what the events are about.
package events

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How often an Event of the same object, reason and message is written: at once a few
// times, then once a second. The count that a write brings includes the events between.
const (
	burst     = 25
	perSecond = 1
)

// maxMessage limits the message of About, in bytes, as the API limits that of a
// newer Event.
const maxMessage = 1024

// Recorder publishes events of controllers. It is safe for concurrent use.
type Recorder struct {
	client     client.Client
	clock      clock.PassiveClock
	correlator *record.EventCorrelator
}

// New returns a Recorder that limits its writes by the time of c, in which About's events
// happen.
func New(w client.Client, c clock.PassiveClock) *Recorder {
	return &Recorder{client: w, clock: c, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		BurstSize: burst, QPS: perSecond, Clock: c,
		// By default, all events of an object share one limit of one in five minutes: a
		// host that fails often would hide what else happens to it.
		SpamKeyFunc: func(ev *corev1.Event) string {
			kind, message := record.EventAggregatorByReasonFunc(ev)
			return kind + message
		},
	})}
}

// About publishes an event about an object: type is Normal or Warning, reason is one word in
// CamelCase. Events of cluster-scoped objects are in the namespace default.
func (r *Recorder) About(ctx context.Context, component string, object client.Object, kind, reason, message string) {
	gvk, err := r.client.GroupVersionKindFor(object)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("event not published", "reason", reason, "error", err.Error())
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
	}
	now := metav1.NewTime(r.clock.Now())
	r.Publish(ctx, corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: object.GetName() + "-", Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Type: kind, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: component},
	})
}

// Publish creates the event, or raises the count of the Event with the same object,
// reason and message. It logs an event that cannot be written and goes on.
func (r *Recorder) Publish(ctx context.Context, ev corev1.Event) {
	result, err := r.correlator.EventCorrelate(&ev)
	if err == nil && result.Skip {
		return
	}
	if err == nil {
		err = r.write(ctx, result.Event, result.Patch)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("event not published", "reason", ev.Reason, "error", err.Error())
		return
	}
	r.correlator.UpdateState(result.Event)
}

func (r *Recorder) write(ctx context.Context, ev *corev1.Event, patch []byte) error {
	if len(patch) > 0 && ev.Name != "" { // without a name, the first write has failed
		err := r.client.Patch(ctx, ev, client.RawPatch(types.StrategicMergePatchType, patch))
		if !apierrors.IsNotFound(err) {
			return err
		}
		if ev.ResourceVersion = ""; ev.GenerateName != "" { // the Event has expired or was deleted
			ev.Name = ""
		}
	}
	return r.client.Create(ctx, ev)
}

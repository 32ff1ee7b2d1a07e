// Package events publishes Kubernetes events. An event that repeats raises the count of
// the Event that is there already, as client-go's recorders do. The package does not know
// what the events are about.
package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Recorder publishes events of controllers. It is safe for concurrent use.
type Recorder struct {
	client     client.Client
	correlator *record.EventCorrelator
}

// New returns a Recorder that limits its writes by the time of c.
func New(w client.Client, c clock.PassiveClock) *Recorder {
	return &Recorder{client: w, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		BurstSize: burst, QPS: perSecond, Clock: c,
		// By default, all events of an object share one limit of one in five minutes: a
		// host that fails often would hide what else happens to it.
		SpamKeyFunc: func(ev *corev1.Event) string {
			kind, message := record.EventAggregatorByReasonFunc(ev)
			return kind + message
		},
	})}
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

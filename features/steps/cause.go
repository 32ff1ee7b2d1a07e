package steps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v21"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// cause is the state of the lab when the last cause began: the first step of a Given or a
// When. Steps that assert an effect accept only later ones.
type cause struct {
	events   uint64          // resourceVersion of the API
	existing map[string]bool // objects of the server, by kind
	received int             // events that the receiver had
}

// beginStep begins a cause when a step is the first of a Given or a When.
func (s *scenario) beginStep(ctx context.Context, st *godog.Step) error {
	begins := st.Type != s.stepType && st.Type != messages.PickleStepType_OUTCOME
	s.stepType = st.Type
	if !begins || s.testLab == nil {
		return nil
	}
	s.recorder.beginCause()
	var events corev1.EventList
	if err := s.kube.List(ctx, &events, client.InNamespace(lab.Namespace), client.Limit(1)); err != nil {
		return err
	}
	version, err := strconv.ParseUint(events.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("the resourceVersion of events: %w", err)
	}
	s.cause = cause{events: version, existing: map[string]bool{}}
	if s.receiver != nil {
		s.cause.received = s.receiver.count()
	}
	if !s.checksDeletion {
		return nil
	}
	for kind, o := range s.objects() { // in any order: each kind is read alone
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		s.cause.existing[kind] = err == nil
	}
	return nil
}

// objects returns the objects of the server that can be deleted, by kind.
func (s *scenario) objects() map[string]client.Object {
	named := metav1.ObjectMeta{Namespace: lab.Namespace, Name: s.server.Name}
	secret, _ := lab.Objects(s.server)
	return map[string]client.Object{
		"BareMetalHost":        &metal3.BareMetalHost{ObjectMeta: named},
		"HardwareData":         &metal3.HardwareData{ObjectMeta: named},
		"DataImage":            &metal3.DataImage{ObjectMeta: named},
		"PreprovisioningImage": &metal3.PreprovisioningImage{ObjectMeta: named},
		"BMCEventSubscription": s.subscription(),
		"Secret":               secret,
	}
}

// isDeleted waits until an object of the server does not exist. It must have existed when
// the last cause began.
func (s *scenario) isDeleted(ctx context.Context, kind string) error {
	if !s.cause.existing[kind] {
		return fmt.Errorf("there was no %s to delete", kind)
	}
	return s.awaitDeletion(ctx, s.objects()[kind])
}

// awaitDeletion waits until an object does not exist.
func (s *scenario) awaitDeletion(ctx context.Context, o client.Object) error {
	return eventually(ctx, o.GetName()+" is gone", func(ctx context.Context) (bool, string, error) {
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), fmt.Sprint(o.GetFinalizers()), client.IgnoreNotFound(err)
	})
}

// letControllersAct returns when each controller has reconciled every object in a reconcile
// that began after this call, and the recorder has read the host after that. A step that
// asserts that nothing happens calls it before it looks.
func (s *scenario) letControllersAct(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(WithPatience(ctx, patience.Limit()), patience.Limit())
	defer cancel()
	if !s.lab.ControllersRunning() {
		return fmt.Errorf("%w: none runs", ErrNotReconciled)
	}
	if err := errors.Join(s.lab.Pass(ctx, 0), s.recorderCatchesUp(ctx)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReconciled, err)
	}
	return nil
}

// letServerAct returns when the controllers have acted, the server has had undisturbed to do
// what they asked for, and the controllers have acted upon that. A step that asserts that nothing
// happens to the power of a server, or counts its boots, calls it before it looks.
func (s *scenario) letServerAct(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	if err := s.letTimeGo(soon, undisturbed); err != nil {
		return err
	}
	return s.letControllersAct(ctx)
}

// ErrNotReconciled is the error of a step that says that something does not happen when the
// controllers could not act.
var ErrNotReconciled = errors.New("the controllers have not reconciled every object")

// recorderCatchesUp waits until the recorder has seen the host as it is stored.
func (s *scenario) recorderCatchesUp(ctx context.Context) error {
	h, err := s.read(ctx)
	if apierrors.IsNotFound(err) {
		return eventually(ctx, "the watch brings the deletion", func(context.Context) (bool, string, error) {
			return s.recorder.host() == nil, "", nil
		})
	}
	if err != nil {
		return err
	}
	return s.catchUp(ctx, h.ResourceVersion)
}

// undisturbed is how long, of the lab's time, an effect may take that needs several acts of a
// controller and a server, each some time after the one before.
const undisturbed = 2 * time.Minute

// letTimeGo returns when the lab's clock has gone d by itself, from one due time to the next
// whenever nothing is in flight; at once while a step holds the time. A move of the clock would make
// the first of several acts due, and leave no time to the others.
func (s *scenario) letTimeGo(ctx context.Context, d time.Duration) error {
	if s.releaseClock != nil {
		return nil
	}
	if err := s.lab.Clock().Sleep(ctx, d); err != nil {
		return fmt.Errorf("the lab's time has not gone %v by itself: %w", d, err)
	}
	return nil
}

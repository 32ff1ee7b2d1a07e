package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
)

// Context and header of the scenario's subscription.
const (
	eventContext = "rack 1"
	eventHeader  = "X-Metalab-Token"
	eventToken   = "for-the-receiver-alone"
)

func (s *scenario) registerSubscriptions(sc *stepRegistry) {
	sc.Step(`^the operator subscribes to the events of the server's BMC$`, "applies a BMCEventSubscription whose destination is a receiver of the scenario's, with a context and a Secret of headers", s.subscribe)
	sc.Step(`^the operator subscribes to the events of a host that does not exist$`, "applies a BMCEventSubscription for a host that does not exist", s.subscribeToUnknownHost)
	sc.Step(`^the operator subscribes with a Secret of headers that does not exist$`, "applies a BMCEventSubscription whose Secret of headers does not exist", s.subscribeWithoutSecret)
	sc.Step(`^the operator creates the Secret of headers$`, "applies the Secret of headers", s.createHeaders)
	sc.Step(`^the operator deletes the subscription$`, "deletes the BMCEventSubscription without waiting", func(ctx context.Context) error { return s.kube.Delete(ctx, s.subscription()) })
	sc.Step(`^the subscription is active$`, "waits for status.subscriptionID, and asserts that the BMC has this subscription alone", s.subscribed)
	sc.Step(`^the subscription shows the error "([^"]*)"$`, "waits until status.error is this text", s.subscriptionHasError)
	sc.Step(`^the subscription shows that its host does not exist$`, "waits until status.error says that the host does not exist", s.subscriptionHasUnknownHost)
	sc.Step(`^the subscription is deleted$`, "waits until the BMCEventSubscription does not exist, which existed before, and asserts that the BMC has none", s.subscriptionGone)
	sc.Step(`^the receiver gets the event "([^"]*)"$`, "waits for an event with this message key, and the subscription's context and header, since the last Given or When", s.receiverGotEvent)
}

// receiver is a server that BMCs post events to.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // MessageKeys of all events with the subscription's context and header
	last string
}

func newReceiver() *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var e struct {
			Context string
			Events  []struct{ MessageId string }
		}
		err := json.NewDecoder(q.Body).Decode(&e)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = fmt.Sprintf("%+v, %q, %v", e, q.Header.Get(eventHeader), err)
		if err != nil || e.Context != eventContext || q.Header.Get(eventHeader) != eventToken {
			return
		}
		for _, one := range e.Events {
			r.keys = append(r.keys, one.MessageId[strings.LastIndexByte(one.MessageId, '.')+1:])
		}
	}))
	return r
}

// count returns the number of events that the receiver has got.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}

func (s *scenario) subscription() *metal3.BMCEventSubscription {
	return &metal3.BMCEventSubscription{
		ObjectMeta: metav1.ObjectMeta{Name: s.server.Name + "-events", Namespace: lab.Namespace},
		Spec: metal3.BMCEventSubscriptionSpec{
			HostName: s.server.Name, Context: eventContext,
			HTTPHeadersRef: &corev1.SecretReference{Name: s.server.Name + "-headers", Namespace: lab.Namespace},
		},
	}
}

func (s *scenario) createHeaders(ctx context.Context) error {
	return s.create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.server.Name + "-headers", Namespace: lab.Namespace},
		StringData: map[string]string{eventHeader: eventToken},
	})
}

func (s *scenario) subscribeWithoutSecret(ctx context.Context) error {
	s.receiver = newReceiver()
	o := s.subscription()
	o.Spec.Destination = s.receiver.URL + "/events"
	return s.create(ctx, o)
}

func (s *scenario) subscribe(ctx context.Context) error {
	if err := s.createHeaders(ctx); err != nil {
		return err
	}
	return s.subscribeWithoutSecret(ctx)
}

func (s *scenario) subscribeToUnknownHost(ctx context.Context) error {
	o := s.subscription()
	o.Spec.HostName, o.Spec.Destination, o.Spec.HTTPHeadersRef = "nobody", "https://events.example/", nil
	return s.create(ctx, o)
}

// awaitSubscription waits until ok accepts the subscription's status.
func (s *scenario) awaitSubscription(ctx context.Context, what string, ok func(metal3.BMCEventSubscriptionStatus) bool) error {
	return eventually(ctx, "the subscription "+what, func(ctx context.Context) (bool, string, error) {
		o := s.subscription()
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
		return ok(o.Status), fmt.Sprintf("%+v", o.Status), err
	})
}

func (s *scenario) subscribed(ctx context.Context) error {
	var id string
	err := s.awaitSubscription(ctx, "is made", func(st metal3.BMCEventSubscriptionStatus) bool {
		id = st.SubscriptionID
		return st.SubscriptionID != "" && st.Error == ""
	})
	if err != nil {
		return err
	}
	if l := s.host().BMC().Subscribers.List; len(l) != 1 || l[0].ID != id || l[0].Context != eventContext {
		return fmt.Errorf("the BMC has the subscriptions %+v, want %s alone", l, id)
	}
	return nil
}

func (s *scenario) subscriptionHasError(ctx context.Context, text string) error {
	return s.awaitSubscription(ctx, "tells "+text, func(st metal3.BMCEventSubscriptionStatus) bool { return st.Error == text })
}

func (s *scenario) subscriptionHasUnknownHost(ctx context.Context) error {
	o := s.subscription()
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	return s.subscriptionHasError(ctx, fmt.Sprintf("baremetal host %q does not exist", o.Spec.HostName))
}

func (s *scenario) subscriptionGone(ctx context.Context) error {
	err := s.isDeleted(ctx, "BMCEventSubscription")
	if l := s.host().BMC().Subscribers.List; err == nil && len(l) > 0 {
		return fmt.Errorf("the BMC still has the subscriptions %+v", l)
	}
	return err
}

func (s *scenario) receiverGotEvent(ctx context.Context, key string) error {
	if s.receiver == nil {
		return errors.New("nobody has subscribed")
	}
	return eventually(ctx, "the receiver is told", func(context.Context) (bool, string, error) {
		s.receiver.mu.Lock()
		defer s.receiver.mu.Unlock()
		return slices.Contains(s.receiver.keys[min(s.cause.received, len(s.receiver.keys)):], key), fmt.Sprintf("%q, the last: %s", s.receiver.keys, s.receiver.last), nil
	})
}

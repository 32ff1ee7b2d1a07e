package lab

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// held is a transport that keeps each request for an object of that name in flight
// until the request's context ends.
type held struct {
	name    string
	arrived chan struct{} // gets one per request
}

func (h held) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/"+h.name) {
			h.arrived <- struct{}{}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return next.RoundTrip(r)
	})
}

// startWithoutControllers starts a lab with one server and a Kubernetes API, and
// returns it with a client that has all rights.
func startWithoutControllers(t *testing.T, with ...string) (*Lab, client.WithWatch) {
	t.Helper()
	w, err := Start(t.Context(), Config{
		Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max", Kube: true, NoController: true, With: with}, Listen: AnyPort,
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	admin, err := w.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	return w, admin
}

func TestKillCutsTheControllersOffTheKubernetesAPI(t *testing.T) {
	w, admin := startWithoutControllers(t)
	inFlight := held{name: "held", arrived: make(chan struct{}, 1)}
	w.kube.api = rest.CopyConfig(w.kube.api)
	w.kube.api.Wrap(inFlight.wrap)
	mustBeCutOff(t, w, admin, inFlight)
}

// mustBeCutOff kills the controllers of w and checks that none of their requests
// reaches the API any more: neither those after the kill nor those in flight, nor
// the events of a watch that was open.
func mustBeCutOff(t *testing.T, l *Lab, admin client.Client, inFlight held) {
	t.Helper()
	if err := l.StartControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(l.controllers.api, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	written := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "written-" + name}}
	}
	events, err := c.Watch(t.Context(), new(corev1.ConfigMapList), client.InNamespace(Namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	before := written("before")
	if err := c.Create(t.Context(), before); err != nil {
		t.Fatalf("Create() before the kill: error = %v, want none", err)
	}
	pending := make(chan error, 1)
	go func() {
		pending <- c.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: Namespace, Name: inFlight.name}, new(corev1.ConfigMap))
	}()
	<-inFlight.arrived

	l.KillControllers()
	if err := c.Create(t.Context(), written("after")); err == nil {
		t.Error("Create() by a killed controller: error = nil, want that its connection is cut")
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(written("after")), new(corev1.ConfigMap)); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of what a killed controller wrote: error = %v, want NotFound", err)
	}
	before.Data = map[string]string{"changed": "after the kill"}
	if err := admin.Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	soon := patience.Within(t, 30*time.Second)
	select {
	case err := <-pending:
		if err == nil {
			t.Error("the request in flight at the kill was answered, want an error")
		}
	case <-soon.Done():
		t.Error("the request in flight at the kill has not ended")
	}
	for open := true; open; { // the watch may still show what came before the kill
		select {
		case e, more := <-events.ResultChan():
			open = more
			if m, ok := e.Object.(*corev1.ConfigMap); ok && e.Type == watch.Modified && m.Name == before.Name {
				t.Errorf("the watch of a killed controller shows the change that came after the kill")
			}
		case <-soon.Done():
			t.Fatal("the watch of a killed controller is still open")
		}
	}
}

func TestStartOfControllersEndsWithItsContext(t *testing.T) {
	w, _ := startWithoutControllers(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.StartControllers(ctx); !errors.Is(err, context.Canceled) || w.ControllersRunning() {
		t.Errorf("StartControllers() = %v, running %t, want %v", err, w.ControllersRunning(), context.Canceled)
	}
	if err := w.StartControllers(t.Context()); err != nil {
		t.Error(err)
	}
}

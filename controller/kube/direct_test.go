package kube

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watching is a client of c's that can watch.
func watching(t *testing.T, c *rest.Config) client.WithWatch {
	t.Helper()
	w, err := client.NewWithWatch(c, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestADirectClientSeesWhatOthersSee(t *testing.T) {
	api := sharedAPI(t)
	direct, other := watching(t, api.Direct()), watching(t, api.RESTConfig())
	ns := freshNamespace(t, other)
	m := configMap(ns, "first")
	events, err := direct.Watch(t.Context(), new(corev1.ConfigMapList), client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := direct.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(t.Context(), configMap(ns, "first")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("Create() again: error = %v, want AlreadyExists", err)
	}
	stale := m.DeepCopy()
	if err := other.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))); err != nil {
		t.Fatal(err)
	}
	if err := direct.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("Update() of what others changed: error = %v, want Conflict", err)
	}
	list := new(corev1.ConfigMapList)
	if err := direct.List(t.Context(), list, client.InNamespace(ns), client.MatchingFields{"metadata.name": "first"}); err != nil || len(list.Items) != 1 || list.Items[0].Data["a"] != "b" {
		t.Errorf("List() = %v, %v, want the changed one", list.Items, err)
	}
	if err := direct.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := other.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of what a direct client deleted: error = %v, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		for seen := false; !seen; {
			select {
			case e := <-events.ResultChan():
				seen = e.Object.(*corev1.ConfigMap).Name == "first"
				if seen && e.Type != want {
					t.Errorf("watch tells %s, want %s", e.Type, want)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("the watch does not tell what was %s", want)
			}
		}
	}
}

func TestADirectClientHasItsOwnRights(t *testing.T) {
	api := sharedAPI(t)
	nobody := api.Direct()
	nobody.BearerToken = ""
	if err := watching(t, nobody).List(t.Context(), new(corev1.SecretList)); !apierrors.IsForbidden(err) {
		t.Errorf("List() without a token: error = %v, want Forbidden", err)
	}
	wrong := api.Direct()
	wrong.BearerToken = "guessed"
	if err := watching(t, wrong).List(t.Context(), new(corev1.SecretList)); !apierrors.IsUnauthorized(err) {
		t.Errorf("List() with a wrong token: error = %v, want Unauthorized", err)
	}
	as := api.Direct()
	as.Impersonate.UserName = "system:serviceaccount:default:nobody"
	if err := watching(t, as).List(t.Context(), new(corev1.SecretList)); !apierrors.IsForbidden(err) {
		t.Errorf("List() as who may not: error = %v, want Forbidden", err)
	}
}

func TestWhatADirectClientGivesUpEnds(t *testing.T) {
	c := watching(t, sharedAPI(t).Direct())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.List(ctx, new(corev1.ConfigMapList)); !errors.Is(err, context.Canceled) {
		t.Errorf("List() with a context that has ended: error = %v, want that", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	events, err := c.Watch(ctx, new(corev1.ConfigMapList))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	cancel()
	end := time.After(30 * time.Second)
	for {
		select {
		case _, more := <-events.ResultChan():
			if !more {
				return
			}
		case <-end:
			t.Fatal("a watch goes on after its context")
		}
	}
}

func TestStopEndsWithADirectWatch(t *testing.T) {
	t.Parallel()
	api := start(t, Config{Dir: t.TempDir()})
	c := watching(t, api.Direct())
	events, err := c.Watch(t.Context(), new(corev1.ConfigMapList))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	begin := time.Now()
	stop(t, api)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("Stop() with an open watch took %s, want less than the minute of a watch that is not told", took)
	}
	if err := c.List(t.Context(), new(corev1.ConfigMapList)); !errors.Is(err, errEnded) {
		t.Errorf("List() after Stop(): error = %v, want %v", err, errEnded)
	}
}

func TestADirectClientHasNoConnection(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/api/v1/namespaces/default/pods/a/exec", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Upgrade", "SPDY/3.1")
	if _, err := sharedAPI(t).Direct().Transport.RoundTrip(r); err == nil {
		t.Error("RoundTrip() of an upgrade: error = nil, want that it needs a connection")
	}
}

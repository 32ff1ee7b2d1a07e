package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchClient returns a client that can watch.
func watchClient(t *testing.T, c *rest.Config) client.WithWatch {
	t.Helper()
	w, err := client.NewWithWatch(c, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestClientsSeeEachOthersChanges(t *testing.T) {
	api := sharedAPI(t)
	one, other := watchClient(t, api.RESTConfig()), watchClient(t, api.RESTConfig())
	ns := freshNamespace(t, other)
	m := configMap(ns, "first")
	events, err := one.Watch(t.Context(), new(corev1.ConfigMapList), client.InNamespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := one.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := one.Create(t.Context(), configMap(ns, "first")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("Create() again: error = %v, want AlreadyExists", err)
	}
	stale := m.DeepCopy()
	if err := other.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))); err != nil {
		t.Fatal(err)
	}
	if err := one.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("Update() of an object that another client has changed: error = %v, want Conflict", err)
	}
	list := new(corev1.ConfigMapList)
	if err := one.List(t.Context(), list, client.InNamespace(ns), client.MatchingFields{"metadata.name": "first"}); err != nil || len(list.Items) != 1 || list.Items[0].Data["a"] != "b" {
		t.Errorf("List() = %v, %v, want the changed object", list.Items, err)
	}
	if err := one.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := other.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of an object that another client has deleted: error = %v, want NotFound", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		for seen := false; !seen; {
			select {
			case e := <-events.ResultChan():
				seen = e.Object.(*corev1.ConfigMap).Name == "first"
				if seen && e.Type != want {
					t.Errorf("watch event = %s, want %s", e.Type, want)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("no watch event %s", want)
			}
		}
	}
}

func TestRequestsNeedAuthenticationAndRights(t *testing.T) {
	api := sharedAPI(t)
	if err := watchClient(t, rest.AnonymousClientConfig(api.RESTConfig())).List(t.Context(), new(corev1.SecretList)); !apierrors.IsForbidden(err) {
		t.Errorf("List() without authentication: error = %v, want Forbidden", err)
	}
	wrong := rest.AnonymousClientConfig(api.RESTConfig())
	wrong.BearerToken = "guessed"
	if err := watchClient(t, wrong).List(t.Context(), new(corev1.SecretList)); !apierrors.IsUnauthorized(err) {
		t.Errorf("List() with a wrong token: error = %v, want Unauthorized", err)
	}
	as := api.RESTConfig()
	as.Impersonate.UserName = "system:serviceaccount:default:nobody"
	if err := watchClient(t, as).List(t.Context(), new(corev1.SecretList)); !apierrors.IsForbidden(err) {
		t.Errorf("List() as a user without rights: error = %v, want Forbidden", err)
	}
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	c := watchClient(t, sharedAPI(t).RESTConfig())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.List(ctx, new(corev1.ConfigMapList)); !errors.Is(err, context.Canceled) {
		t.Errorf("List() with a canceled context: error = %v, want context.Canceled", err)
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
			t.Fatal("the watch is open after the end of its context")
		}
	}
}

package kube

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Without space the API answers reads and refuses writes with the reason; with space it
// goes on.
func TestWritesAreRefusedWithoutSpace(t *testing.T) {
	var full atomic.Bool
	api := start(t, Config{Dir: t.TempDir(), Space: func() error {
		if full.Load() {
			return errors.New("no space left on the disk of the test")
		}
		return nil
	}})
	c := clientFor(t, api.RESTConfig())
	create(t, c, configMap("default", "before"))
	full.Store(true)
	refused := func(what string, err error) {
		t.Helper()
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "no space left on the disk of the test") {
			t.Errorf("%s without space: error = %v, want 507 with the reason", what, err)
		}
	}
	refused("Create", c.Create(t.Context(), configMap("default", "later")))
	var got corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "before"}, &got); err != nil {
		t.Fatalf("Get without space: error = %v, want none", err)
	}
	got.Data = map[string]string{"a": "b"}
	refused("Update", c.Update(t.Context(), &got))
	refused("Patch", c.Patch(t.Context(), &got, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"c"}}`))))
	refused("Delete", c.Delete(t.Context(), &got))
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Errorf("a review, which is not stored: error = %v, want none", err)
	}
	full.Store(false)
	create(t, c, configMap("default", "later"))
}

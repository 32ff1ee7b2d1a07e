package iam

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
)

// start returns an API, and the writes to it: verb and name.
func start(t *testing.T) (client.Client, *[]string) {
	t.Helper()
	s := runtime.NewScheme()
	if err := iamv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var writes []string
	c := fake.NewClientBuilder().WithScheme(s).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes = append(writes, "create "+o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes = append(writes, "patch "+o.GetName())
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			writes = append(writes, "delete "+o.GetName())
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	return c, &writes
}

// scopes returns the scopes of Keycloak, by the names of the Scopes.
func scopes(t *testing.T, c client.Client) map[string][]string {
	t.Helper()
	var l iamv1.ScopeList
	if err := c.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, s := range l.Items {
		for _, r := range s.Spec.Roles {
			out[s.Name] = append(out[s.Name], r.Scope)
		}
		if !slices.Equal(s.Finalizers, []string{iamv1.ScopeFinalizer}) {
			t.Errorf("Scope %s has the finalizers %q", s.Name, s.Finalizers)
		}
	}
	return out
}

func TestScopesOfClusters(t *testing.T) {
	c, writes := start(t)
	ensure := func(name string) {
		t.Helper()
		if err := Ensure(t.Context(), c, client.ObjectKey{Namespace: "lab", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	ensure("c1")
	ensure("c2")
	want := map[string][]string{
		"global":         {"m:kaas@global-admin"},
		"namespace.lab":  {"m:kaas:lab@user", "m:kaas:lab@operator", "m:kaas:lab@bm-pool-operator"},
		"cluster.lab.c1": {"m:k8s:lab:c1@cluster-admin", "m:sl:lab:c1@stacklight-admin"},
		"cluster.lab.c2": {"m:k8s:lab:c2@cluster-admin", "m:sl:lab:c2@stacklight-admin"},
	}
	if diff := cmp.Diff(want, scopes(t, c)); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	var all iamv1.IAMRoleList
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != len(roles) {
		t.Errorf("%d roles, %v, want %d", len(all.Items), err, len(roles))
	}
	*writes = nil
	ensure("c1")
	if len(*writes) > 0 {
		t.Errorf("a second pass has written %q", *writes)
	}
	// An edit of a scope is corrected.
	s := &iamv1.Scope{ObjectMeta: metav1.ObjectMeta{Name: "cluster.lab.c1"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Roles, s.Finalizers = s.Spec.Roles[:1], nil
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	ensure("c1")
	if diff := cmp.Diff(want, scopes(t, c)); diff != "" {
		t.Errorf("scopes after an edit (-want +got):\n%s", diff)
	}
}

// A cluster's bindings are removed before its scope, and the namespace's scope with the last
// cluster, unless users have roles in the namespace.
func TestRemoval(t *testing.T) {
	c, writes := start(t)
	remove := func(name string, last bool) {
		t.Helper()
		*writes = nil
		if err := Remove(t.Context(), c, client.ObjectKey{Namespace: "lab", Name: name}, last); err != nil {
			t.Fatal(err)
		}
	}
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"c1", "c2"} {
		if err := Ensure(t.Context(), c, client.ObjectKey{Namespace: "lab", Name: name}); err != nil {
			t.Fatal(err)
		}
		create(&iamv1.IAMClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "ann-" + name}, Cluster: iamv1.Name{Name: name}})
	}
	mine := &iamv1.IAMRoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "ann"}}
	create(mine)
	remove("c1", false)
	if want := []string{"delete ann-c1", "delete cluster.lab.c1", "patch cluster.lab.c1"}; !slices.Equal(*writes, want) {
		t.Errorf("writes %q, want %q", *writes, want)
	}
	remove("c2", true)
	if got := scopes(t, c); len(got) != 2 || got["namespace.lab"] == nil {
		t.Errorf("scopes %v, want those of the namespace, where a user has a role, and of all", got)
	}
	if err := c.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	remove("c2", true)
	if got := scopes(t, c); len(got) != 1 || got["global"] == nil {
		t.Errorf("scopes %v, want the global one", got)
	}
	remove("c2", true) // it is gone already
}

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/manager"
)

// withComponent writes the kustomization that a component of controller/config describes,
// and returns its directory.
func withComponent(t *testing.T, component string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS("../controller/config")); err != nil {
		t.Fatal(err)
	}
	text := "resources: [config]\ncomponents: [config/" + component + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// With rights in one namespace, the controllers take a host of that namespace from its
// registration to its deletion, and can neither read the Secrets of another namespace nor
// change its hosts.
func TestControllersWorkWithRightsInOneNamespace(t *testing.T) {
	w, admin := startWithoutControllers(t)
	grant(t, admin, withComponent(t, "namespaced"))
	const elsewhere = "elsewhere"
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "of-others"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "of-others"}}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}}, host, secret} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	c := newClient(t, as)
	key := client.ObjectKeyFromObject(secret)
	for what, err := range map[string]error{
		"read a Secret of another namespace":   c.Get(t.Context(), key, new(corev1.Secret)),
		"list Secrets of all namespaces":       c.List(t.Context(), new(corev1.SecretList)),
		"list Secrets beside it":               c.List(t.Context(), new(corev1.SecretList), client.InNamespace(accountNamespace)),
		"change a host of another namespace":   c.Patch(t.Context(), host.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"online":true}}`))),
		"read a Secret beside it, not its own": c.Get(t.Context(), client.ObjectKey{Namespace: accountNamespace, Name: "other"}, new(corev1.Secret)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the service account may %s: %v, want it forbidden", what, err)
		}
	}
	var refused refusals
	as.Wrap(refused.watch)
	defer func() {
		refused.mu.Lock()
		defer refused.mu.Unlock()
		if refused.list != nil {
			t.Errorf("the service account was refused:\n%s", strings.Join(refused.list, "\n"))
		}
	}()
	end := runController(t, w, as, manager.Config{Agents: endpoint(t, "https"), Media: endpoint(t, "http"), Namespaces: []string{Namespace}})
	defer end()
	live(t, w, admin)

	// The webhook, which the leader has registered, is for the hosts of that namespace alone.
	invalid := func(namespace string) error {
		return admin.Create(t.Context(), &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "invalid", Annotations: map[string]string{metal3.RebootAnnotationPrefix: "now"},
		}})
	}
	if err := invalid(Namespace); err == nil || !strings.Contains(err.Error(), "failed to unmarshal the data") {
		t.Errorf("a host with an invalid annotation in %s = %v, want the webhook's refusal", Namespace, err)
	}
	if err := invalid(elsewhere); err != nil {
		t.Errorf("the same in %s = %v, want no error: nobody works on it", elsewhere, err)
	}
	got := new(metal3.BareMetalHost)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(host), got); err != nil || got.ResourceVersion != host.ResourceVersion {
		t.Errorf("the host of another namespace is now %+v, %v, want it unchanged", got, err)
	}
}

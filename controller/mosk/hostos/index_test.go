package hostos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// indexOf returns an index with modules, NAME VERSION DIGIT [URL] each.
func indexOf(list string, modules ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kaas.mirantis.com/v1alpha1\nkind: HostOSConfigurationModules\nmetadata: {name: %s}\nspec:\n  modules:\n", list)
	for _, m := range modules {
		f := strings.Fields(m)
		fmt.Fprintf(&b, "  - {name: %s, version: %s, sha256sum: %s", f[0], f[1], strings.Repeat(f[2], 64))
		if len(f) > 3 {
			fmt.Fprintf(&b, ", url: %s", f[3])
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

// vendor returns the reconciler of an index.
func (l *lab) vendor(t *testing.T, index string) *VendorIndex {
	t.Helper()
	c := l.modules.Config
	c.Index = index
	r, err := NewVendorIndex(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// read reads the index until the list does not change, and returns its modules.
func (l *lab) read(t *testing.T, r *VendorIndex) (out []string) {
	t.Helper()
	version := "none"
	for range 5 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		o := new(kaasv1.HostOSConfigurationModules)
		err := l.Get(t.Context(), client.ObjectKey{Name: "mcc-modules"}, o)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		out = nil
		for _, m := range o.Spec.Modules {
			out = append(out, fmt.Sprintf("%s %s %s %s", m.Name, m.Version, m.SHA256Sum[:1], m.URL))
		}
		if apierrors.IsNotFound(err) || o.ResourceVersion == version {
			return out
		}
		version = o.ResourceVersion
	}
	t.Fatal("the list changes without end")
	return nil
}

// conflicts is an API in which somebody else is always faster.
type conflicts struct{ client.Client }

func (conflicts) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "hostosconfigurationmodules"}, o.GetName(), errors.New("changed"))
}

// The status of the list changes while the index is read: that event reconciles nothing.
func TestConflictDoesNotWaitForTheNextReadOfTheIndex(t *testing.T) {
	repo := serve(t)
	l := start(t)
	r := l.vendor(t, repo.URL+"/m/index.yaml")
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "a 1.0.0 1")
	l.read(t, r)
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "a 1.0.0 1", "b 1.0.0 2")
	r.Client = conflicts{l}
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != queue.ConflictWait {
		t.Errorf("Reconcile() = %+v, %v; want it again after %s", result, err, queue.ConflictWait)
	}
	r.Client = l
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != indexPeriod {
		t.Errorf("Reconcile() = %+v, %v; want it again after %s", result, err, indexPeriod)
	}
}

// statement H7: the vendor's list is what its index has, sorted by Semantic Versioning.
func TestVendorsListIsThatOfTheIndex(t *testing.T) {
	repo := serve(t)
	l := start(t)
	r := l.vendor(t, repo.URL+"/m/index.yaml")
	if got := l.read(t, r); got != nil {
		t.Errorf("without an index the list has %q", got)
	}
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "b 1.10.0 1", "b 1.9.0 2", "a 1.0.0 3 http://elsewhere/a.tgz")
	want := []string{"a 1.0.0 3 http://elsewhere/a.tgz", "b 1.9.0 2 ", "b 1.10.0 1 "}
	if diff := cmp.Diff(want, l.read(t, r)); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	// Edits: one removed, one added, one with another digest.
	o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: "mcc-modules"}}
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.Spec.Modules = []kaasv1.Module{{Name: "b", Version: "1.9.0", SHA256Sum: strings.Repeat("9", 64)}, {Name: "mine", Version: "1.0.0", SHA256Sum: strings.Repeat("9", 64)}}
	if err := l.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.read(t, r)); diff != "" {
		t.Errorf("modules after an edit (-want +got):\n%s", diff)
	}
	if err := l.Create(t.Context(), userOf("lab", "tuning", "a")); err != nil {
		t.Fatal(err)
	}
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "b 1.10.0 1")
	if diff := cmp.Diff([]string{want[0], want[2]}, l.read(t, r)); diff != "" {
		t.Errorf("modules of a new index, with the one that is used (-want +got):\n%s", diff)
	}
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "a 1.0.0 4", "b 1.10.0 1")
	if diff := cmp.Diff([]string{want[0], want[2]}, l.read(t, r)); diff != "" {
		t.Errorf("modules of an index that changes the one that is used (-want +got):\n%s", diff)
	}
	repo.files["/m/index.yaml"] = indexOf("custom", "b 1.10.0 1")
	if diff := cmp.Diff([]string{want[0], want[2]}, l.read(t, r)); diff != "" {
		t.Errorf("modules after an index of another name (-want +got):\n%s", diff)
	}
}

// A module without url is beside the index.
func TestModuleOfTheVendor(t *testing.T) {
	repo := serve(t)
	b, sum := archive(t, "level", "1.0.0", "")
	repo.files["/m/level-1.0.0.tgz"] = b
	l := start(t, &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: kaasv1.HostOSConfigurationModulesSpec{
		Modules: []kaasv1.Module{{Name: "level", Version: "1.0.0", SHA256Sum: sum}},
	}})
	load := func(index string) kaasv1.ModuleStatus {
		t.Helper()
		l.modules.Index = index
		if _, err := l.modules.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "m"}}); err != nil {
			t.Fatal(err)
		}
		o := new(kaasv1.HostOSConfigurationModules)
		if err := l.Get(t.Context(), client.ObjectKey{Name: "m"}, o); err != nil {
			t.Fatal(err)
		}
		return o.Status.Modules[0]
	}
	file := filepath.Join(t.TempDir(), "index.yaml")
	if err := os.WriteFile(file, indexOf("mcc-modules", "height 1.0.0 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.read(t, l.vendor(t, file)); len(got) != 1 {
		t.Errorf("the list of a file has %q", got)
	}
	if s := load(file); s.State != kaasv1.ModuleError || !strings.Contains(s.Error, "level 1.0.0 has no url, and the vendor's index is not at a URL") {
		t.Errorf("with an index in a file: %+v", s)
	}
	for range 2 {
		if s := load(repo.URL + "/m/index.yaml"); s.State != kaasv1.ModuleAvailable || s.URL != repo.URL+"/m/level-1.0.0.tgz" {
			t.Errorf("with an index at a URL: %+v", s)
		}
	}
	if n := repo.requests.Load(); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

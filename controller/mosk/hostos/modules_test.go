package hostos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/fixtures"
)

const schemaText = `{"type":"object","additionalProperties":false,"required":["level"],
	"properties":{"level":{"type":"integer","maximum":9},"password":{"type":"string","maxLength":6}}}`

// archive returns the archive of a module and its SHA-256. metadata replaces lines of
// metadata.yaml.
func archive(t *testing.T, name, version, metadata string) ([]byte, string) {
	t.Helper()
	files := fstest.MapFS{
		"metadata.yaml": {Data: []byte("name: " + name + "\nversion: " + version + "\ndescription: Sets a level\n" +
			"docURL: https://docs.example.org/" + name + "\nplaybook: main.yaml\nvaluesJsonSchema: schema.json\n" + metadata)},
		"main.yaml":   {Data: []byte("- hosts: all\n")},
		"schema.json": {Data: []byte(schemaText)},
	}
	b, m, err := module.Build(files)
	if err != nil {
		t.Fatal(err)
	}
	return b, m.SHA256
}

// repository serves archives by their paths, and counts its requests.
type repository struct {
	*httptest.Server
	files    map[string][]byte
	requests atomic.Int32
}

func serve(t *testing.T) *repository {
	r := &repository{files: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		b, exists := r.files[req.URL.Path]
		if !exists {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Write(b)
	}))
	t.Cleanup(r.Close)
	return r
}

// now is the time of all statuses.
var now = metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))

// lab is an API with objects, and the reconcilers.
type lab struct {
	client.Client
	modules *Modules
	configs *Configurations
	writes  int // requests that change an object
}

func start(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kaasv1.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&kaasv1.HostOSConfiguration{}, &kaasv1.HostOSConfigurationModules{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				l.writes++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	c := Config{Client: l, Work: queue.Work{Clock: clocktesting.NewFakeClock(now.Time)}}
	var err error
	if l.modules, err = NewModules(c); err != nil {
		t.Fatal(err)
	}
	if l.configs, err = NewConfigurations(c); err != nil {
		t.Fatal(err)
	}
	return l
}

func request(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// load reconciles a list of modules and returns it.
func (l *lab) load(t *testing.T, name string) (*kaasv1.HostOSConfigurationModules, ctrl.Result) {
	t.Helper()
	result, err := l.modules.Reconcile(t.Context(), request("", name))
	if err != nil {
		t.Fatal(err)
	}
	o := new(kaasv1.HostOSConfigurationModules)
	if err := l.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o, result
}

func list(name string, modules ...kaasv1.Module) *kaasv1.HostOSConfigurationModules {
	return &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.HostOSConfigurationModulesSpec{Modules: modules}}
}

// statement H1: the modules of fixtures are loaded, and their statuses have what their
// archives say.
func TestModulesAreLoaded(t *testing.T) {
	repo := serve(t)
	var modules []kaasv1.Module
	for _, name := range []string{"sysctl", "packages"} {
		sub, err := fixtures.Module(name)
		if err != nil {
			t.Fatal(err)
		}
		b, m, err := module.Build(sub)
		if err != nil {
			t.Fatal(err)
		}
		repo.files["/"+m.FileName()] = b
		modules = append(modules, kaasv1.Module{Name: kaasv1.ModuleName(name), Version: kaasv1.SemVer(m.Version), SHA256Sum: m.SHA256, URL: repo.URL + "/" + m.FileName()})
	}
	l := start(t, list("custom-modules", modules...))
	o, result := l.load(t, "custom-modules")
	if result != (ctrl.Result{}) || o.Status.ObservedGeneration != o.Generation || len(o.Status.Modules) != 2 {
		t.Fatalf("status %+v, %+v", o.Status, result)
	}
	schema, err := fixtures.Modules.ReadFile("modules/packages/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	want := kaasv1.ModuleStatus{
		Name: "packages", Version: "1.0.0", URL: modules[1].URL, SHA256Sum: modules[1].SHA256Sum, State: kaasv1.ModuleAvailable,
		DocURL:      "https://github.com/metalab-dev/metalab/tree/main/fixtures/modules/packages",
		Description: "Installs and removes packages of Debian and Ubuntu, from repositories or from the module itself", PlaybookName: "main.yaml",
		ValuesValidationSchema: schema, SupportedDistributions: []string{"debian/bookworm", "debian/trixie", "ubuntu/jammy", "ubuntu/noble"},
	}
	if diff := cmp.Diff(want, o.Status.Modules[1]); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if s := o.Status.Modules[0]; s.State != kaasv1.ModuleAvailable || !cmp.Equal(s.Deprecates, []kaasv1.ModuleReference{{Name: "sysctl", Version: "1.0.0"}}) {
		t.Errorf("sysctl: %+v", s)
	}
	requests, writes := repo.requests.Load(), l.writes
	l.load(t, "custom-modules")
	if repo.requests.Load() != requests || l.writes != writes {
		t.Errorf("a second reconcile fetched %d archives and wrote %d times, want 0", repo.requests.Load()-requests, l.writes-writes)
	}
}

// statements H2, H3, H4 and H5: the errors of modules that cannot be loaded. Each is tried again, and
// the others of the list are available.
func TestModulesThatCannotBeLoaded(t *testing.T) {
	repo := serve(t)
	good, sum := archive(t, "level", "1.0.0", "")
	repo.files["/good.tgz"], repo.files["/text.tgz"] = good, []byte("no archive")
	wrong := strings.Repeat("0", 64)
	text := module.Sum([]byte("no archive"))
	for _, tt := range []struct {
		name   string
		module kaasv1.Module
		sum    string // in the status
		err    string
	}{
		{"other SHA-256", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: wrong, URL: repo.URL + "/good.tgz"}, sum,
			"hashes are not the same: got '" + sum + "' want '" + wrong + "'"},
		{"refused", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/none.tgz"}, "",
			`failed to perform request to fetch the module archive: Get "` + repo.URL + `/none.tgz": Forbidden`},
		{"no archive", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: text, URL: repo.URL + "/text.tgz"}, text, "archive is not compressed by gzip"},
		{"other name", kaasv1.Module{Name: "label", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/good.tgz"}, sum, "the archive has module level 1.0.0, not label 1.0.0"},
		{"other version", kaasv1.Module{Name: "level", Version: "1.0.1", SHA256Sum: sum, URL: repo.URL + "/good.tgz"}, sum, "the archive has module level 1.0.0, not level 1.0.1"},
		{"no URL", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum}, "", "module level 1.0.0 has no url"},
	} {
		beside := kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/good.tgz"}
		l := start(t, list("m", tt.module, beside))
		o, result := l.load(t, "m")
		s := o.Status.Modules[0]
		if s.State != kaasv1.ModuleError || !strings.HasPrefix(s.Error, tt.err) || s.SHA256Sum != tt.sum || s.PlaybookName != "" {
			t.Errorf("%s: %+v, want error %q and SHA-256 %q", tt.name, s, tt.err, tt.sum)
		}
		if o.Status.Modules[1].State != kaasv1.ModuleAvailable || o.Status.Modules[1].Error != "" {
			t.Errorf("%s: the module beside it: %+v", tt.name, o.Status.Modules[1])
		}
		if result.RequeueAfter != retryAfter {
			t.Errorf("%s: %+v, want to be tried again after %v", tt.name, result, retryAfter)
		}
	}
}

func TestModuleIsAvailableOnceItsServerHasIt(t *testing.T) {
	repo := serve(t)
	good, sum := archive(t, "level", "1.0.0", "")
	l := start(t, list("m", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/a.tgz"}))
	if o, _ := l.load(t, "m"); o.Status.Modules[0].State != kaasv1.ModuleError {
		t.Fatalf("status before: %+v", o.Status.Modules[0])
	}
	repo.files["/a.tgz"] = good
	if o, result := l.load(t, "m"); o.Status.Modules[0].State != kaasv1.ModuleAvailable || o.Status.Modules[0].Error != "" || result != (ctrl.Result{}) {
		t.Errorf("status after: %+v, %+v", o.Status.Modules[0], result)
	}
}

// statement H6: a module of another list deprecates one, and its removal ends that.
func TestModuleIsDeprecatedByAnother(t *testing.T) {
	repo := serve(t)
	before, sumBefore := archive(t, "level", "1.0.0", "")
	after, sumAfter := archive(t, "level", "1.1.0", "deprecates: [{version: 1.0.0}]\n")
	renamed, sumRenamed := archive(t, "height", "1.0.0", "deprecates: [{name: level, version: 1.0.0}]\n")
	repo.files["/1"], repo.files["/2"], repo.files["/3"] = before, after, renamed
	l := start(t,
		list("a", kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sumBefore, URL: repo.URL + "/1"}, kaasv1.Module{Name: "level", Version: "1.1.0", SHA256Sum: sumAfter, URL: repo.URL + "/2"}),
		list("b", kaasv1.Module{Name: "height", Version: "1.0.0", SHA256Sum: sumRenamed, URL: repo.URL + "/3"}))
	l.load(t, "b")
	o, _ := l.load(t, "a")
	want := []kaasv1.ModuleReference{{Name: "height", Version: "1.0.0"}, {Name: "level", Version: "1.1.0"}}
	if s := o.Status.Modules[0]; s.State != kaasv1.ModuleDeprecated || !cmp.Equal(s.DeprecatedBy, want) {
		t.Errorf("level 1.0.0: %+v, want deprecated by %v", s, want)
	}
	if s := o.Status.Modules[1]; s.State != kaasv1.ModuleAvailable || !cmp.Equal(s.Deprecates, []kaasv1.ModuleReference{{Name: "level", Version: "1.0.0"}}) {
		t.Errorf("level 1.1.0: %+v", s)
	}
	if err := l.Delete(t.Context(), list("b")); err != nil {
		t.Fatal(err)
	}
	o.Spec.Modules = o.Spec.Modules[:1]
	if err := l.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o, _ = l.load(t, "a"); len(o.Status.Modules) != 1 || o.Status.Modules[0].State != kaasv1.ModuleAvailable || o.Status.Modules[0].DeprecatedBy != nil {
		t.Errorf("after the others were removed: %+v", o.Status.Modules)
	}
}

// What a broken archive would deprecate stays available.
func TestModuleThatCannotBeLoadedDeprecatesNothing(t *testing.T) {
	o := list("a")
	o.Status.Modules = []kaasv1.ModuleStatus{
		{Name: "level", Version: "1.0.0", State: kaasv1.ModuleAvailable},
		{Name: "level", Version: "1.1.0", State: kaasv1.ModuleError, Deprecates: []kaasv1.ModuleReference{{Name: "level", Version: "1.0.0"}}},
	}
	deprecate(o, []kaasv1.HostOSConfigurationModules{*o})
	if o.Status.Modules[0].State != kaasv1.ModuleAvailable {
		t.Errorf("level 1.0.0: %+v", o.Status.Modules[0])
	}
}

func raw(t *testing.T, values any) []byte {
	t.Helper()
	b, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The summary has all modules of a list with their states, not the first one's alone, and has a
// bound.
func TestSummaryHasAllModules(t *testing.T) {
	repo := serve(t)
	b, sum := archive(t, "level", "1.0.0", "")
	newer, sumNewer := archive(t, "level", "1.1.0", "deprecates: [{version: 1.0.0}]\n")
	repo.files["/1"], repo.files["/2"] = b, newer
	l := start(t, list("m",
		kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/1"},
		kaasv1.Module{Name: "level", Version: "1.1.0", SHA256Sum: sumNewer, URL: repo.URL + "/2"},
		kaasv1.Module{Name: "height", Version: "2.0.0", SHA256Sum: sum, URL: repo.URL + "/none"}))
	o, _ := l.load(t, "m")
	if want := "height 2.0.0 error, level 1.0.0 deprecated, level 1.1.0 available"; o.Status.Summary != want {
		t.Errorf("summary %q, want %q", o.Status.Summary, want)
	}
	many := make([]kaasv1.ModuleStatus, 512)
	for i := range many {
		many[i] = kaasv1.ModuleStatus{Name: "module", Version: "1.0.0", State: kaasv1.ModuleAvailable}
	}
	got := summary(many)
	shown := strings.Count(got, "available")
	if len(got) > maxSummary+40 || !strings.HasSuffix(got, fmt.Sprintf("available and %d more", len(many)-shown)) {
		t.Errorf("summary of %d modules, which shows %d, in %d bytes: %q", len(many), shown, len(got), got)
	}
}

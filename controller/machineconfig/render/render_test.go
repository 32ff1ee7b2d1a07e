package render

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/machineconfig/ignition"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

func pool(name string) *mcv1.MachineConfigPool {
	return &mcv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "pool-uid", Generation: 1},
		Spec: mcv1.MachineConfigPoolSpec{MachineConfigSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: mcv1.MachineConfigRoleLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"worker", name}},
		}}},
	}
}

var controllerConfig = &mcv1.ControllerConfig{
	ObjectMeta: metav1.ObjectMeta{Name: machineconfig.ControllerConfigName},
	Spec:       mcv1.ControllerConfigSpec{BaseOSContainerImage: "registry.example.org/os@sha256:base"},
}

// config returns a MachineConfig of a role; change completes it.
func config(role, name string, change func(*mcv1.MachineConfigSpec)) *mcv1.MachineConfig {
	m := &mcv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mcv1.MachineConfigRoleLabelKey: role}}}
	if change != nil {
		change(&m.Spec)
	}
	return m
}

// files returns a change that sets files, as path, source and compression.
func files(entries ...[3]string) func(*mcv1.MachineConfigSpec) {
	var list []string
	for _, f := range entries {
		compression := ""
		if f[2] != "" {
			compression = fmt.Sprintf(`,"compression":%q`, f[2])
		}
		list = append(list, fmt.Sprintf(`{"path":%q,"contents":{"source":%q%s}}`, f[0], f[1], compression))
	}
	return func(s *mcv1.MachineConfigSpec) {
		s.Config.Raw = []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[` + strings.Join(list, ",") + `]}}`)
	}
}

// generatedBy makes a MachineConfig one that a controller has generated.
func generatedBy(version string, m *mcv1.MachineConfig) *mcv1.MachineConfig {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, machineconfig.GeneratedByVersion, version)
	return m
}

func merged(t *testing.T, poolName string, configs ...*mcv1.MachineConfig) *mcv1.MachineConfig {
	t.Helper()
	rand.Shuffle(len(configs), func(i, j int) { configs[i], configs[j] = configs[j], configs[i] }) // the order of a list says nothing
	m, err := Merge(pool(poolName), configs, controllerConfig)
	if err != nil {
		t.Fatalf("Merge: %v", err)
	}
	return m
}

// content returns the content of a file of a rendered configuration.
func content(t *testing.T, m *mcv1.MachineConfig, path string) string {
	t.Helper()
	c, err := ignition.Parse(m.Spec.Config.Raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Storage.Files {
		if f.Path == path {
			b, err := ignition.Content(f.Contents)
			if err != nil {
				t.Fatalf("content of %s: %v", path, err)
			}
			return string(b)
		}
	}
	t.Fatalf("%s has no %s", m.Name, path)
	return ""
}

// TestCustomPoolOverridesWorker shows statement M1: the name of the worker's MachineConfig is the later one.
func TestCustomPoolOverridesWorker(t *testing.T) {
	m := merged(t, "infra", config("worker", "99-zz", files([3]string{"/etc/a", "data:,worker", ""})), config("infra", "00-aa", files([3]string{"/etc/a", "data:,infra", ""})))
	if got := content(t, m, "/etc/a"); got != "infra" {
		t.Errorf("/etc/a = %q, want that of the custom pool", got)
	}
}

// TestLaterNameOverridesFile shows statement M2, also when only one of both contents is compressed.
func TestLaterNameOverridesFile(t *testing.T) {
	zipped := "data:;base64,H4sIAAAAAAAA/8pIzcnJBwAAAP//AQAA//+GphA2BQAAAA==" // hello
	for _, tt := range []struct {
		first, last [2]string
		want        string
	}{
		{[2]string{"data:,one", ""}, [2]string{"data:,two", ""}, "two"},
		{[2]string{zipped, "gzip"}, [2]string{"data:,two", ""}, "two"},
		{[2]string{"data:,one", ""}, [2]string{zipped, "gzip"}, "hello"},
	} {
		m := merged(t, "worker",
			config("worker", "99-b", files([3]string{"/etc/a", tt.last[0], tt.last[1]})),
			config("worker", "10-a", files([3]string{"/etc/a", tt.first[0], tt.first[1]})))
		if got := content(t, m, "/etc/a"); got != tt.want {
			t.Errorf("%q, then %q: /etc/a = %q, want %q", tt.first, tt.last, got, tt.want)
		}
	}
}

// TestKernelFieldsAreMerged shows statement M3.
func TestKernelFieldsAreMerged(t *testing.T) {
	set := func(args, extensions []string, fips bool, kernel string) func(*mcv1.MachineConfigSpec) {
		return func(s *mcv1.MachineConfigSpec) {
			s.KernelArguments, s.Extensions, s.FIPS, s.KernelType = args, extensions, fips, kernel
		}
	}
	m := merged(t, "worker",
		config("worker", "10-a", set([]string{"quiet", "x=1"}, []string{"usbguard"}, true, "realtime")),
		config("worker", "20-b", set([]string{"x=1"}, []string{"usbguard"}, false, "default")))
	if want := []string{"quiet", "x=1", "x=1"}; !cmp.Equal(m.Spec.KernelArguments, want) {
		t.Errorf("kernelArguments = %q, want %q", m.Spec.KernelArguments, want)
	}
	if want := []string{"usbguard", "usbguard"}; !cmp.Equal(m.Spec.Extensions, want) || !m.Spec.FIPS || m.Spec.KernelType != "realtime" {
		t.Errorf("extensions = %q, fips = %v, kernelType = %q, want %q, true, realtime", m.Spec.Extensions, m.Spec.FIPS, m.Spec.KernelType, want)
	}
	if m := merged(t, "worker", config("worker", "10-a", nil)); m.Spec.KernelType != "default" {
		t.Errorf("kernelType of nothing = %q, want default", m.Spec.KernelType)
	}
	for want, configs := range map[string][]*mcv1.MachineConfig{
		"kernel-devel": {config("worker", "10-a", set(nil, []string{"kernel-devel"}, false, "")), config("worker", "20-b", set(nil, nil, false, "realtime"))},
		`"fast"`:       {config("worker", "10-a", set(nil, nil, false, "fast"))},
	} {
		if _, err := Merge(pool("worker"), configs, controllerConfig); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Merge error = %v, want one with %s", err, want)
		}
	}
}

// TestRenderedNameIsAHashOfTheSpec shows statement M4.
func TestRenderedNameIsAHashOfTheSpec(t *testing.T) {
	nameOf := func(change func(*mcv1.MachineConfigSpec)) string {
		return merged(t, "worker", config("worker", "10-a", change)).Name
	}
	one := nameOf(files([3]string{"/etc/a", "data:,1", ""}))
	if again := nameOf(files([3]string{"/etc/a", "data:,1", ""})); again != one || !strings.HasPrefix(one, "rendered-worker-") || len(one) != len("rendered-worker-")+32 {
		t.Errorf("names of equal specs = %s, %s; want one of rendered-worker-HASH", one, again)
	}
	seen := map[string]string{one: "first"}
	for what, change := range map[string]func(*mcv1.MachineConfigSpec){
		"content":    files([3]string{"/etc/a", "data:,2", ""}),
		"path":       files([3]string{"/etc/b", "data:,1", ""}),
		"argument":   func(s *mcv1.MachineConfigSpec) { s.KernelArguments = []string{"a"} },
		"image":      func(s *mcv1.MachineConfigSpec) { s.OSImageURL = "registry.example.org/other@sha256:1" },
		"fips":       func(s *mcv1.MachineConfigSpec) { s.FIPS = true },
		"extension":  func(s *mcv1.MachineConfigSpec) { s.Extensions = []string{"ipsec"} },
		"kernelType": func(s *mcv1.MachineConfigSpec) { s.KernelType = "64k-pages" },
	} {
		name := nameOf(change)
		if other, ok := seen[name]; ok {
			t.Errorf("another %s gives the name of the %s: %s", what, other, name)
		}
		seen[name] = what
	}
}

// TestTooLargeConfigurationIsRefused shows statement M5.
func TestTooLargeConfigurationIsRefused(t *testing.T) {
	big := func(n int) *mcv1.MachineConfig {
		return config("worker", "50-big", files([3]string{"/etc/big", "data:," + strings.Repeat("a", n), ""}))
	}
	if _, err := Merge(pool("worker"), []*mcv1.MachineConfig{big(MaxSize - 2000)}, controllerConfig); err != nil {
		t.Errorf("Merge of a little less than the limit: %v", err)
	}
	w := newWorld(t, big(MaxSize))
	w.reconcile(t)
	w.degraded(t, "at most 1572864 are allowed")
	if n := len(w.rendered(t)); n != 0 {
		t.Errorf("%d rendered MachineConfigs, want none", n)
	}
}

// TestImageOfGeneratedConfigIsIgnored shows statement M6.
func TestImageOfGeneratedConfigIsIgnored(t *testing.T) {
	image := func(url string) func(*mcv1.MachineConfigSpec) {
		return func(s *mcv1.MachineConfigSpec) { s.OSImageURL = url }
	}
	base := controllerConfig.Spec.BaseOSContainerImage
	m := merged(t, "worker", generatedBy(machineconfig.ControllerVersion, config("worker", "00-worker", image("generated"))))
	if m.Spec.OSImageURL != base || m.Annotations[machineconfig.OSImageURLOverridden] != "" {
		t.Errorf("osImageURL = %s, overridden %q; want %s, none", m.Spec.OSImageURL, m.Annotations[machineconfig.OSImageURLOverridden], base)
	}
	m = merged(t, "worker", generatedBy(machineconfig.ControllerVersion, config("worker", "99-worker", image("generated"))), config("worker", "10-user", image("first")), config("worker", "20-user", image("last")))
	if m.Spec.OSImageURL != "last" || m.Annotations[machineconfig.OSImageURLOverridden] != "true" {
		t.Errorf("osImageURL = %s, overridden %q; want that of the last user's", m.Spec.OSImageURL, m.Annotations[machineconfig.OSImageURLOverridden])
	}
}

func TestHostileConfigIsRefused(t *testing.T) {
	for want, change := range map[string]func(*mcv1.MachineConfigSpec){
		"10-a: spec.config":                files([3]string{"/etc/../../x", "data:,", ""}),
		"/dev has files of the kernel":     files([3]string{"/dev/sda", "data:,", ""}),
		`source has the scheme "http"`:     files([3]string{"/etc/x", "http://192.0.2.1/x", ""}),
		"versions 3.0.0 to 3.5.0 are read": func(s *mcv1.MachineConfigSpec) { s.Config.Raw = []byte(`{"ignition":{"version":"2.2.0"}}`) },
	} {
		if m, err := Merge(pool("worker"), []*mcv1.MachineConfig{config("worker", "10-a", change)}, controllerConfig); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Merge = %v, %v; want an error with %q", m, err, want)
		}
	}
}

// world is the API as the controller sees it.
type world struct {
	client.Client
	r *Reconciler
}

func newWorld(t *testing.T, configs ...*mcv1.MachineConfig) world {
	t.Helper()
	s := runtime.NewScheme()
	if err := mcv1.Install(s); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(pool("worker"), controllerConfig.DeepCopy()).WithStatusSubresource(&mcv1.MachineConfigPool{})
	for _, m := range configs {
		b = b.WithObjects(m)
	}
	c := b.Build()
	r, err := New(Config{Client: c, Work: queue.Work{Clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))}})
	if err != nil {
		t.Fatal(err)
	}
	return world{c, r}
}

func (w world) reconcile(t *testing.T) {
	t.Helper()
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "worker"}}); err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
}

func (w world) pool(t *testing.T) *mcv1.MachineConfigPool {
	t.Helper()
	p := new(mcv1.MachineConfigPool)
	if err := w.Get(t.Context(), client.ObjectKey{Name: "worker"}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// degraded checks the condition RenderDegraded: "" means that it is not.
func (w world) degraded(t *testing.T, want string) {
	t.Helper()
	c := machineconfig.Condition(w.pool(t), mcv1.MachineConfigPoolRenderDegraded)
	if c == nil || (c.Status == corev1.ConditionTrue) != (want != "") || !strings.Contains(c.Message, want) {
		t.Errorf("RenderDegraded = %+v, want a message with %q", c, want)
	}
}

func (w world) rendered(t *testing.T) (names []string) {
	t.Helper()
	var list mcv1.MachineConfigList
	if err := w.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if strings.HasPrefix(m.Name, "rendered-") {
			names = append(names, m.Name)
		}
	}
	return names
}

// TestPoolRefersToItsConfiguration shows statement M4: the sources are in the order of the merge.
func TestPoolRefersToItsConfiguration(t *testing.T) {
	w := newWorld(t, config("worker", "99-b", files([3]string{"/etc/a", "data:,b", ""})), config("worker", "10-a", nil), config("infra", "00-other", nil))
	w.reconcile(t)
	p := w.pool(t)
	var sources []string
	for _, s := range p.Spec.Configuration.Source {
		sources = append(sources, s.Kind+" "+s.Name)
	}
	if want := []string{"MachineConfig 10-a", "MachineConfig 99-b"}; !cmp.Equal(sources, want) {
		t.Errorf("source = %q, want %q", sources, want)
	}
	var m mcv1.MachineConfig
	if err := w.Get(t.Context(), client.ObjectKey{Name: p.Spec.Configuration.Name}, &m); err != nil || !metav1.IsControlledBy(&m, p) {
		t.Errorf("MachineConfig %s = %v, want one that the pool owns", p.Spec.Configuration.Name, err)
	}
	w.degraded(t, "")
	version := p.ResourceVersion
	w.reconcile(t)
	if got := w.pool(t).ResourceVersion; got != version {
		t.Errorf("a reconcile without a change has written the pool: %s, then %s", version, got)
	}
}

// TestFailedRenderKeepsTheConfiguration shows statement M3 at the pool: RenderDegraded, and its repair.
func TestFailedRenderKeepsTheConfiguration(t *testing.T) {
	good := config("worker", "10-a", nil)
	w := newWorld(t, good)
	w.reconcile(t)
	name := w.pool(t).Spec.Configuration.Name
	bad := config("worker", "20-b", func(s *mcv1.MachineConfigSpec) { s.Extensions, s.KernelType = []string{"kernel-devel"}, "realtime" })
	if err := w.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.degraded(t, "kernel-devel")
	if got := w.pool(t).Spec.Configuration.Name; got != name {
		t.Errorf("configuration = %s, want %s as before", got, name)
	}
	if err := w.Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.degraded(t, "")
}

func TestOtherControllerVersionIsWaitedFor(t *testing.T) {
	w := newWorld(t, generatedBy("older", config("worker", "00-worker", nil)))
	w.reconcile(t)
	w.degraded(t, "was generated by controller version older")
	if err := w.Delete(t.Context(), controllerConfig.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.degraded(t, "there is no ControllerConfig")
}

func TestUnusedConfigurationsAreDeleted(t *testing.T) {
	w := newWorld(t, config("worker", "10-a", nil))
	var all []string
	for i := range 8 {
		m := new(mcv1.MachineConfig)
		if err := w.Get(t.Context(), client.ObjectKey{Name: "10-a"}, m); err != nil {
			t.Fatal(err)
		}
		m.Spec.KernelArguments = []string{fmt.Sprint(i)}
		if err := w.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.reconcile(t)
		name := w.pool(t).Spec.Configuration.Name
		all = append(all, name)
		switch i { // references that keep a configuration
		case 0:
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-0", Annotations: map[string]string{machineconfig.CurrentConfig: name}}}
			if err := w.Create(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		case 1:
			b := &mcv1.MachineOSBuild{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: mcv1.MachineOSBuildSpec{MachineConfig: mcv1.MachineConfigReference{Name: name}}}
			if err := w.Create(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	exists := map[string]bool{}
	for _, name := range w.rendered(t) {
		exists[name] = true
	}
	if !exists[all[0]] || !exists[all[1]] || !exists[all[7]] {
		t.Errorf("of %q remain %v, want those of the node, the build and the pool", all, exists)
	}
	if len(exists) != 3+spare {
		t.Errorf("%d remain, want the 3 that are used and %d more", len(exists), spare)
	}
}

func TestRenderedConfigurationIsJSONOfTheNewestVersion(t *testing.T) {
	m := merged(t, "worker", config("worker", "10-a", files([3]string{"/etc/a", "data:,1", ""})))
	var c struct {
		Ignition struct{ Version string }
	}
	if err := json.Unmarshal(m.Spec.Config.Raw, &c); err != nil || c.Ignition.Version != "3.5.0" {
		t.Errorf("spec.config has the version %q, %v; want 3.5.0", c.Ignition.Version, err)
	}
}

func TestDeletedPoolIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "none"}}); err != nil {
		t.Errorf("Reconcile of a pool that does not exist: %v", err)
	}
	w.reconcile(t)
	w.degraded(t, "no MachineConfig matches")
	if err := w.Get(t.Context(), client.ObjectKey{Name: "x"}, new(mcv1.MachineConfig)); !apierrors.IsNotFound(err) {
		t.Errorf("a MachineConfig exists: %v", err)
	}
}

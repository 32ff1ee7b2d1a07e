package hostos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// loaded is a list of the modules level 1.0.0, which is deprecated, and level 1.1.0.
func loaded() *kaasv1.HostOSConfigurationModules {
	status := func(version kaasv1.SemVer) kaasv1.ModuleStatus {
		return kaasv1.ModuleStatus{
			Name: "level", Version: version, URL: "http://repo.example/" + string(version), SHA256Sum: "5a" + string(version), PlaybookName: "main.yaml",
			ValuesValidationSchema: []byte(schemaText), State: kaasv1.ModuleAvailable, SupportedDistributions: []string{"ubuntu/jammy"},
		}
	}
	o := list("custom-modules", kaasv1.Module{Name: "level", Version: "1.0.0"}, kaasv1.Module{Name: "level", Version: "1.1.0"}, kaasv1.Module{Name: "broken", Version: "1.0.0"}, kaasv1.Module{Name: "new", Version: "1.0.0"})
	before := status("1.0.0")
	before.State, before.DeprecatedBy = kaasv1.ModuleDeprecated, []kaasv1.ModuleReference{{Name: "level", Version: "1.1.0"}}
	o.Status.Modules = []kaasv1.ModuleStatus{before, status("1.1.0"), {Name: "broken", Version: "1.0.0", State: kaasv1.ModuleError, Error: "archive is damaged"}}
	return o
}

func config(name kaasv1.ModuleName, version kaasv1.SemVer, values string) kaasv1.Config {
	c := kaasv1.Config{Module: name, ModuleVersion: version}
	if values != "" {
		c.Values = &runtime.RawExtension{Raw: []byte(values)}
	}
	return c
}

func configuration(name string, configs ...kaasv1.Config) *kaasv1.HostOSConfiguration {
	return &kaasv1.HostOSConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: types.UID(name), Generation: 1, CreationTimestamp: now},
		Spec:       kaasv1.HostOSConfigurationSpec{Configs: configs},
	}
}

// validated reconciles an object and returns its status.
func (l *lab) validated(t *testing.T, name string) kaasv1.HostOSConfigurationStatus {
	t.Helper()
	if _, err := l.configs.Reconcile(t.Context(), request("lab", name)); err != nil {
		t.Fatal(err)
	}
	var o kaasv1.HostOSConfiguration
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, &o); err != nil {
		t.Fatal(err)
	}
	return o.Status
}

func TestConfigurationIsValid(t *testing.T) { // statement H6: deprecated, and valid
	l := start(t, loaded(), configuration("c", config("level", "1.0.0", `{"level":3}`), config("level", "1.1.0", `{"level":9}`)))
	got := l.validated(t, "c")
	status := kaasv1.ConfigStatus{ModuleName: "level", ModuleVersion: "1.0.0", ModulesReference: "custom-modules", ModulePlaybook: "main.yaml",
		ModuleURL: "http://repo.example/1.0.0", ModuleHashsum: "5a1.0.0", SupportedDistributions: []string{"ubuntu/jammy"}}
	next := status
	next.ModuleVersion, next.ModuleURL, next.ModuleHashsum = "1.1.0", "http://repo.example/1.1.0", "5a1.1.0"
	status.ModuleDeprecatedBy = []kaasv1.ModuleReference{{Name: "level", Version: "1.1.0"}}
	want := kaasv1.HostOSConfigurationStatus{
		IsValid: ptr.To(true), ObservedGeneration: 1, ContainsDeprecatedModules: true, SpecUpdatedAt: &now, UpdatedAt: &now, Configs: []kaasv1.ConfigStatus{status, next},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	writes := l.writes
	if l.validated(t, "c"); l.writes != writes {
		t.Error("a reconcile without a change wrote the status again")
	}
}

// statements H14, H15 and H21: each error is that of its config alone, and the object is not
// valid.
func TestConfigurationIsInvalid(t *testing.T) {
	secret := func(name, namespace string) kaasv1.Config {
		c := config("level", "1.1.0", `{"level":3}`)
		c.SecretValues = &kaasv1.SecretReference{Name: name, Namespace: namespace}
		return c
	}
	for _, tt := range []struct {
		name   string
		config kaasv1.Config
		err    string
	}{
		{"no values", config("level", "1.1.0", ""), `schema validation failed: values: missing required "level"`},
		{"values", config("level", "1.1.0", `{"level":10,"other":1}`), `schema validation failed: values.level: must be at most 9; values: unknown "other"`},
		{"unknown module", config("sysctl", "1.0.0", ""), "no HostOSConfigurationModules has module sysctl 1.0.0"},
		{"unknown version", config("level", "2.0.0", `{"level":1}`), "no HostOSConfigurationModules has module level 2.0.0"},
		{"broken module", config("broken", "1.0.0", ""), "module broken 1.0.0 of HostOSConfigurationModules custom-modules cannot be used: archive is damaged"},
		{"module that is not loaded yet", config("new", "1.0.0", ""), "module new 1.0.0 of HostOSConfigurationModules custom-modules is not loaded yet"},
		{"missing Secret", secret("none", ""), "secretValues: Secret lab/none does not exist"},
		{"Secret of another namespace", secret("known", "default"), `secretValues.namespace: Secret known is in the namespace "default", and agents read those of "lab" alone: copy it there`},
		{"secret values", secret("known", ""), "schema validation failed: values.password: must have at most 6 characters"},
	} {
		l := start(t, loaded(), configuration("c", config("level", "1.0.0", `{"level":3}`), tt.config),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "known"}, Data: map[string][]byte{"password": []byte("hunter2")}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "known"}, Data: map[string][]byte{"level": []byte("4")}})
		got := l.validated(t, "c")
		if valid := got.IsValid; valid == nil || *valid || got.Configs[0].Error != "" || !sameViolations(got.Configs[1].Error, tt.err) {
			t.Errorf("%s: %+v, want error %q in the second config alone", tt.name, got, tt.err)
		}
		if strings.Contains(string(raw(t, got)), "hunter2") {
			t.Errorf("%s: the status has the Secret's value: %+v", tt.name, got)
		}
	}
}

func TestConfigurationWithAnInvalidSelector(t *testing.T) {
	c := configuration("c", config("level", "1.1.0", `{"level":3}`))
	c.Spec.MachineSelector.MatchLabels = map[string]string{"openstack-compute-node=enabled": "true"}
	l := start(t, loaded(), c)
	if got := l.validated(t, "c"); *got.IsValid || !strings.HasPrefix(got.Configs[0].Error, `machineSelector: key: Invalid value: "openstack-compute-node=enabled"`) {
		t.Errorf("status %+v", got)
	}
}

// Labels of a Secret are no new data, also after a start of the controller; other data are, and
// nothing that depends on data alone is in the status.
func TestVersionOfASecretsData(t *testing.T) {
	c := config("level", "1.1.0", "")
	c.SecretValues = &kaasv1.SecretReference{Name: "s"}
	other := config("level", "1.0.0", "")
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"}, Data: map[string][]byte{"level": []byte("5")}}
	l := start(t, loaded(), configuration("c", other, c), s)
	change := func(do func()) {
		t.Helper()
		if err := l.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
		do()
		if err := l.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	versions := func(data string) {
		t.Helper()
		got := l.validated(t, "c").Configs
		if got[1].SecretObjectVersion != s.ResourceVersion || got[1].SecretDataVersion != data || got[0].SecretDataVersion != "" {
			t.Errorf("versions %q and %q, want %q and %q; without a Secret %q", got[1].SecretObjectVersion, got[1].SecretDataVersion, s.ResourceVersion, data, got[0].SecretDataVersion)
		}
	}
	label := func(text string) { change(func() { s.Labels = map[string]string{"a": text} }) }
	restart := func() { l.configs.secrets = secretVersions{} }
	label("1")
	first := s.ResourceVersion
	versions(first)
	label("2")
	versions(first)
	restart()
	versions(first)
	label("3")
	versions(first)
	change(func() { s.Data["level"] = []byte("6") })
	second := s.ResourceVersion
	versions(second)
	label("4")
	versions(second)
	restart()
	label("5") // this controller has not seen the data before
	versions(s.ResourceVersion)
	change(func() { s.Data = map[string][]byte{"leve": []byte("l6")} })
	versions(s.ResourceVersion)
	if err := l.Delete(t.Context(), configuration("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.configs.Reconcile(t.Context(), request("lab", "c")); err != nil || len(l.configs.secrets.seen) != 0 {
		t.Errorf("after the deletion: %v, %d objects are remembered", err, len(l.configs.secrets.seen))
	}
}

// The deadline of playbooks is an annotation: a wrong one is refused by its name, and an edit of it
// is validated although the generation stays.
func TestConfigurationWithADeadline(t *testing.T) {
	c := configuration("c", config("level", "1.1.0", `{"level":3}`))
	c.Annotations = map[string]string{item.TimeoutAnnotation: "soon"}
	l := start(t, loaded(), c)
	if got := l.validated(t, "c"); *got.IsValid || got.Configs[0].Error != `annotation metalab.dev/item-timeout "soon": give a duration above zero, like 90m or 2h30m` {
		t.Errorf("status %+v", got)
	}
	var o kaasv1.HostOSConfiguration
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(c), &o); err != nil {
		t.Fatal(err)
	}
	before := o.DeepCopy()
	o.Annotations[item.TimeoutAnnotation] = "90m"
	if !timeoutChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: &o}) || timeoutChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) {
		t.Error("the event of another deadline is not passed, or that of the same one is")
	}
	if err := l.Update(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if got := l.validated(t, "c"); !*got.IsValid {
		t.Errorf("status with a deadline: %+v", got)
	}
}

// sameViolations reports whether a text begins with another, or has its violations in
// another order.
func sameViolations(got, want string) bool {
	for _, part := range strings.Split(strings.TrimPrefix(want, "schema validation failed: "), "; ") {
		if !strings.Contains(got, part) {
			return false
		}
	}
	return strings.HasPrefix(got, want[:strings.IndexAny(want, ": ")])
}

// statement H15: the object becomes valid without an edit, once a list has its module.
func TestConfigurationBecomesValidWithItsModule(t *testing.T) {
	l := start(t, configuration("c", config("level", "1.1.0", `{"level":3}`)))
	if got := l.validated(t, "c"); *got.IsValid {
		t.Fatalf("status without modules: %+v", got)
	}
	if err := l.Create(t.Context(), loaded()); err != nil {
		t.Fatal(err)
	}
	if got := l.validated(t, "c"); !*got.IsValid || got.Configs[0].Error != "" {
		t.Errorf("status with the module: %+v", got)
	}
}

// statement H19: secret values win, and the version of the Secret is in the status.
func TestSecretValuesWin(t *testing.T) {
	c := config("level", "1.1.0", `{"level":10,"password":"too long"}`)
	c.SecretValues = &kaasv1.SecretReference{Name: "s", Namespace: "lab"}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"}, Data: map[string][]byte{"level": []byte("5"), "password": []byte("short")}}
	l := start(t, loaded(), configuration("c", c), s)
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
		t.Fatal(err)
	}
	got := l.validated(t, "c")
	if !*got.IsValid || got.Configs[0].SecretObjectVersion != s.ResourceVersion || s.ResourceVersion == "" {
		t.Errorf("status %+v, want valid with Secret version %q", got, s.ResourceVersion)
	}
	s.Data["level"] = []byte("11")
	if err := l.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := l.validated(t, "c"); *got.IsValid || got.Configs[0].SecretObjectVersion != s.ResourceVersion {
		t.Errorf("status after the Secret changed to values that are refused: %+v", got)
	}
}

// statement H35: of two objects, or two configs of one, that would have the same items, the
// later one is invalid.
func TestConfigurationsWithNamesThatCollide(t *testing.T) {
	modules := list("m")
	for _, name := range []kaasv1.ModuleName{"b-c", "c"} {
		modules.Spec.Modules = append(modules.Spec.Modules, kaasv1.Module{Name: name, Version: "1.0.0"})
		modules.Status.Modules = append(modules.Status.Modules, kaasv1.ModuleStatus{Name: name, Version: "1.0.0", State: kaasv1.ModuleAvailable})
	}
	later := metav1.NewTime(now.Add(time.Second))
	for _, tt := range []struct {
		name          string
		first, second *kaasv1.HostOSConfiguration
		late          bool // created a second after the first
	}{
		{"one after the other", configuration("x-b", config("c", "1.0.0", "")), configuration("x", config("b-c", "1.0.0", "")), true},
		{"in the same second", configuration("x-b", config("c", "1.0.0", "")), configuration("x", config("b-c", "1.0.0", "")), false},
		{"download and playbook", configuration("x", config("c", "1.0.0", "")), configuration("download-x", config("c", "1.0.0", "")), true},
	} {
		l := start(t, modules, tt.first)
		if got := l.validated(t, tt.first.Name); !*got.IsValid {
			t.Fatalf("%s: the first: %+v", tt.name, got)
		}
		if tt.late {
			tt.second.CreationTimestamp = later
		}
		if err := l.Create(t.Context(), tt.second); err != nil {
			t.Fatal(err)
		}
		if got := l.validated(t, tt.second.Name); *got.IsValid || !strings.Contains(got.Configs[0].Error, "HostOSConfiguration "+tt.first.Name+" has it: give this object another name") {
			t.Errorf("%s: the second: %+v", tt.name, got)
		}
		if got := l.validated(t, tt.first.Name); !*got.IsValid {
			t.Errorf("%s: the first with the second: %+v", tt.name, got)
		}
		if err := l.Delete(t.Context(), tt.first); err != nil {
			t.Fatal(err)
		}
		if got := l.validated(t, tt.second.Name); !*got.IsValid {
			t.Errorf("%s: the second without the first: %+v", tt.name, got)
		}
	}
	l := start(t, modules, configuration("x", config("c", "1.0.0", ""), config("c", "1.0.0", "")))
	if got := l.validated(t, "x"); got.Configs[0].Error != "" || !strings.Contains(got.Configs[1].Error, "host-os-download-x-c-1.0.0-reconfigure: remove this config") {
		t.Errorf("two configs with one module: %+v", got.Configs)
	}
}

// The provider's part of the status stays, and an object that is being deleted is left
// alone.
func TestValidationWritesItsFieldsAlone(t *testing.T) {
	o := configuration("c", config("level", "1.1.0", `{"level":3}`))
	o.Status.MachinesStates = map[string]kaasv1.ConfigMachineState{"lab/w-0": {Selected: true}}
	o.Finalizers = []string{"example.org/waits"}
	l := start(t, loaded(), o)
	if got := l.validated(t, "c"); !*got.IsValid || !got.MachinesStates["lab/w-0"].Selected {
		t.Errorf("status %+v", got)
	}
	if err := l.Delete(t.Context(), configuration("c")); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteAllOf(t.Context(), &kaasv1.HostOSConfigurationModules{}); err != nil {
		t.Fatal(err)
	}
	if got := l.validated(t, "c"); !*got.IsValid {
		t.Errorf("status of an object that is being deleted: %+v", got)
	}
}

// Which objects an event of another concerns.
func TestEventsReachTheConfigurationsThatTheyConcern(t *testing.T) {
	c := config("level", "1.1.0", "")
	c.SecretValues = &kaasv1.SecretReference{Name: "s"}
	far := configuration("far", c)
	far.Namespace = "other"
	l := start(t, configuration("a", c), configuration("b", config("level", "1.1.0", "")), far)
	for _, tt := range []struct {
		name     string
		object   client.Object
		concerns func(client.Object, *kaasv1.HostOSConfiguration) bool
		want     []string
	}{
		{"its Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"}}, refersTo, []string{"lab/a"}},
		{"another Secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "t"}}, refersTo, nil},
		{"an object of the namespace", configuration("b"), sameNamespace, []string{"lab/a"}},
	} {
		if diff := cmp.Diff(tt.want, l.requested(t.Context(), tt.object, tt.concerns)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	after := configuration("a")
	after.Status.IsValid = ptr.To(true)
	if !validChanged.Update(event.UpdateEvent{ObjectOld: configuration("a"), ObjectNew: after}) || validChanged.Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after}) {
		t.Error("validChanged does not pass changes of isValid alone")
	}
}

func (l *lab) requested(ctx context.Context, object client.Object, concerns func(client.Object, *kaasv1.HostOSConfiguration) bool) (out []string) {
	for _, r := range l.configs.requests(ctx, object, concerns) {
		out = append(out, r.String())
	}
	return out
}

func TestConfigNeedsItsFields(t *testing.T) {
	if _, err := NewModules(Config{Work: queue.Work{Clock: clock.RealClock{}}}); err == nil {
		t.Error("NewModules without a client: no error")
	}
	if _, err := NewConfigurations(Config{}); err == nil {
		t.Error("NewConfigurations without a client: no error")
	}
}

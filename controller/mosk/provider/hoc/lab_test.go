package hoc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// lab is an API with objects, the reconcilers of this package and of controller/mosk/lcm, and
// agents.
type lab struct {
	t testing.TB
	client.Client
	actor  string         // who writes
	writes map[string]int // by actor, kind and name, with the subresource
}

// started is when everything was created; an object is a second older than the next.
var started = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func start(t testing.TB, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kaasv1.AddToScheme, lcmv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{t: t, writes: map[string]int{}}
	for i, o := range objects {
		o.SetCreationTimestamp(metav1.NewTime(started.Add(time.Duration(i) * time.Second)))
		o.SetUID(types.UID(fmt.Sprint(i)))
	}
	count := func(o client.Object, sub string) {
		l.writes[strings.TrimSpace(fmt.Sprintf("%s: %T %s %s", l.actor, o, o.GetName(), sub))]++
	}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&kaasv1.HostOSConfiguration{}, &lcmv1.LCMMachine{}, &lcmv1.LCMCluster{}, &clusterv1.Machine{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				count(o, "")
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				count(o, sub)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	return l
}

// settle runs all controllers, as after a restart, until none of them writes. It returns what
// they have written.
func (l *lab) settle() map[string]int {
	l.t.Helper()
	l.writes = map[string]int{}
	r, err := New(Config{Client: l, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		l.t.Fatal(err)
	}
	items, err := lcm.NewMachines(lcm.Config{Client: l, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		l.t.Fatal(err)
	}
	for round, before := 0, -1; before != total(l.writes); round++ {
		if before = total(l.writes); round > 20 {
			l.t.Fatalf("the controllers write without end: %v", l.writes)
		}
		l.each("provider", r.configurations, &kaasv1.HostOSConfigurationList{})
		l.each("provider", r.clusters, &lcmv1.LCMClusterList{})
		l.each("provider", r.machines, &lcmv1.LCMMachineList{})
		l.each("lcm", items, &lcmv1.LCMMachineList{})
	}
	return l.writes
}

func total(writes map[string]int) (n int) {
	for _, count := range writes {
		n += count
	}
	return n
}

// each reconciles every object of a kind.
func (l *lab) each(actor string, r reconcile.Reconciler, list client.ObjectList) {
	l.t.Helper()
	l.actor = actor
	if err := l.List(l.t.Context(), list); err != nil {
		l.t.Fatal(err)
	}
	var keys []types.NamespacedName
	switch list := list.(type) {
	case *kaasv1.HostOSConfigurationList:
		for _, o := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&o))
		}
	case *lcmv1.LCMClusterList:
		for _, o := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&o))
		}
	case *lcmv1.LCMMachineList:
		for _, o := range list.Items {
			keys = append(keys, client.ObjectKeyFromObject(&o))
		}
	}
	for _, key := range keys {
		if result, err := r.Reconcile(l.t.Context(), reconcile.Request{NamespacedName: key}); err != nil || result != (reconcile.Result{}) {
			l.t.Fatalf("%s: Reconcile(%s) = %+v, %v", actor, key, result, err)
		}
	}
	l.actor = "test"
}

const ns = "lab"

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: ns, Name: name} }

// lcmCluster is an LCMCluster with one item of a release for workers.
func lcmCluster() *lcmv1.LCMCluster {
	return &lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c1"}, Spec: lcmv1.LCMClusterSpec{
		LCMType:       lcmv1.LCMTypeK0s,
		MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {releaseItem}},
	}}
}

var releaseItem = lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "host-os-tuning", Version: "v2", Phase: lcmv1.PhaseDeploy, Params: map[string]string{"args": "-v"}}

// worker returns a Machine that is Ready and has the label day2=true, and its LCMMachine.
func worker(name string) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"day2": "true"}}}
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: "Ready", Ready: true}
	l := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: lcmv1.LCMMachineSpec{ClusterName: "c1", Type: lcmv1.MachineWorker}}
	l.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}}
	return []client.Object{m, l}
}

func config(module, version, values string) kaasv1.Config {
	c := kaasv1.Config{Module: kaasv1.ModuleName(module), ModuleVersion: kaasv1.SemVer(version)}
	if values != "" {
		c.Values = &runtime.RawExtension{Raw: []byte(values)}
	}
	return c
}

// hoc returns a HostOSConfiguration that controller/mosk/hostos has found valid, and that
// selects machines with the label day2=true.
func hoc(name string, configs ...kaasv1.Config) *kaasv1.HostOSConfiguration {
	o := &kaasv1.HostOSConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Generation: 1}}
	o.Spec.MachineSelector = metav1.LabelSelector{MatchLabels: map[string]string{"day2": "true"}}
	o.Spec.Configs = configs
	validate(o)
	return o
}

// validate writes the status as controller/mosk/hostos does.
func validate(o *kaasv1.HostOSConfiguration) {
	o.Status.IsValid, o.Status.ObservedGeneration, o.Status.Configs = ptr.To(true), o.Generation, nil
	for _, c := range o.Spec.Configs {
		s := kaasv1.ConfigStatus{
			ModuleName: c.Module, ModuleVersion: c.ModuleVersion, ModulePlaybook: "main.yaml",
			ModuleURL: fmt.Sprintf("http://repo.example/%s-%s.tgz", c.Module, c.ModuleVersion), ModuleHashsum: "5a" + string(c.Module),
		}
		if c.SecretValues != nil {
			s.SecretObjectVersion, s.SecretDataVersion = "9", "7" // it has got a label since
		}
		o.Status.Configs = append(o.Status.Configs, s)
	}
}

// change changes the spec of a HostOSConfiguration, and validates it.
func (l *lab) change(name string, f func(*kaasv1.HostOSConfiguration)) {
	l.t.Helper()
	l.edit(name, func(o *kaasv1.HostOSConfiguration) { f(o); o.Generation++ })
	l.status(name, validate)
}

func (l *lab) edit(name string, f func(*kaasv1.HostOSConfiguration)) {
	l.t.Helper()
	o := l.hoc(name)
	f(o)
	if err := l.Update(l.t.Context(), o); err != nil {
		l.t.Fatal(err)
	}
}

// status changes the status of a HostOSConfiguration.
func (l *lab) status(name string, f func(*kaasv1.HostOSConfiguration)) {
	l.t.Helper()
	o := l.hoc(name)
	f(o)
	if err := l.Status().Update(l.t.Context(), o); err != nil {
		l.t.Fatal(err)
	}
}

func get[T client.Object](l *lab, name string, o T) T {
	l.t.Helper()
	if err := l.Get(l.t.Context(), key(name), o); err != nil {
		l.t.Fatal(err)
	}
	return o
}

func (l *lab) hoc(name string) *kaasv1.HostOSConfiguration {
	l.t.Helper()
	return get(l, name, new(kaasv1.HostOSConfiguration))
}

func (l *lab) lcmMachine(name string) *lcmv1.LCMMachine {
	l.t.Helper()
	return get(l, name, new(lcmv1.LCMMachine))
}

// machine changes a Machine.
func (l *lab) machine(name string, f func(*clusterv1.Machine)) {
	l.t.Helper()
	m := get(l, name, new(clusterv1.Machine))
	f(m)
	if err := l.Update(l.t.Context(), m.DeepCopy()); err != nil {
		l.t.Fatal(err)
	}
	now := get(l, name, new(clusterv1.Machine))
	now.Status = m.Status
	if err := l.Status().Update(l.t.Context(), now); err != nil {
		l.t.Fatal(err)
	}
}

// agent is what the agent of a machine does: it removes the results of items that the
// machine no longer has, and executes those that are not done, until one fails. It returns
// the names of the items that it has executed.
func (l *lab) agent(name string, exitCode func(lcmv1.LCMStateItem) int) (executed []string) {
	l.t.Helper()
	m := l.lcmMachine(name)
	statuses := map[string]lcmv1.StateItemStatus{}
	for _, it := range m.Spec.StateItems {
		if s, exists := m.Status.StateItemStatuses[it.Name]; exists {
			statuses[it.Name] = s
		}
	}
	m.Status.StateItemStatuses = statuses
	for _, it := range m.Spec.StateItems {
		if item.Ready(it, statuses, "") {
			continue
		}
		code := exitCode(it)
		statuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), ExitCode: code, Attempt: statuses[it.Name].Attempt + 1, FinishedAt: &metav1.Time{Time: started}}
		if executed = append(executed, it.Name); code != 0 {
			break
		}
	}
	if err := l.Status().Update(l.t.Context(), m); err != nil {
		l.t.Fatal(err)
	}
	return executed
}

func succeed(lcmv1.LCMStateItem) int { return 0 }

// run lets the controllers and the agents of machines run until nothing changes, and
// returns the items that each machine has executed.
func (l *lab) run(machines ...string) map[string][]string {
	l.t.Helper()
	out := map[string][]string{}
	for range 4 {
		l.settle()
		for _, name := range machines {
			out[name] = append(out[name], l.agent(name, succeed)...)
		}
	}
	l.settle()
	return out
}

// items returns the names of the items of a machine.
func (l *lab) items(name string) (out []string) {
	for _, it := range l.lcmMachine(name).Spec.StateItems {
		out = append(out, it.Name)
	}
	return out
}

func objects(lists ...[]client.Object) []client.Object { return slices.Concat(lists...) }

package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const ns = "lab"

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: ns, Name: name} }

// lab is an API with objects, the provider, the LCM controller, agents, and a controller of
// hosts that needs one pass for each state.
type lab struct {
	t testing.TB
	client.Client
	wall *clocktesting.FakePassiveClock

	mu     sync.Mutex
	writes []string // verb, kind and name of each, by the provider
	// failAt is the write that fails, from 1; 0 means none. failAfter makes it fail after
	// it was done.
	failAt    int
	failAfter bool

	// workload finds the API of a cluster; nil means that all share one.
	workload func(ctx context.Context, namespace, cluster string) (workload.API, error)
}

var errKilled = errors.New("the process was killed")

// write performs and counts a write of the provider.
func (l *lab) write(verb string, o client.Object, do func() error) error {
	if _, event := o.(*corev1.Event); event { // nothing depends on them
		return do()
	}
	l.mu.Lock()
	l.writes = append(l.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	n, at, after := len(l.writes), l.failAt, l.failAfter
	l.mu.Unlock()
	if n == at && !after {
		return errKilled
	}
	if err := do(); err != nil {
		return err
	}
	if n == at {
		return errKilled
	}
	return nil
}

func start(t testing.TB, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kaasv1.AddToScheme, lcmv1.AddToScheme, clusterv1.AddToScheme, ipamv1.AddToScheme, hostprofilev1.AddToScheme, metal3.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		o.SetUID(types.UID("uid-of-" + o.GetName()))
	}
	l := &lab{t: t, wall: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&lcmv1.LCMMachine{}, &lcmv1.LCMCluster{}, &clusterv1.Machine{}, &clusterv1.Cluster{}, &metal3.BareMetalHost{}).Build()
	return l
}

// provider returns a client of the provider, whose writes are counted. Its reads are those
// of cached, when that is not nil: of an older state.
func (l *lab) provider(cached client.Reader) *Reconciler {
	l.t.Helper()
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return l.write("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return l.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return l.write("patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return l.write("patch "+sub+" of", o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object, opts ...client.SubResourceCreateOption) error {
			return l.write("create "+sub+" of", o, func() error { return c.SubResource(sub).Create(ctx, o, s, opts...) })
		},
	}
	if cached != nil {
		funcs.Get = func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cached.Get(ctx, key, o, opts...)
		}
		funcs.List = func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return cached.List(ctx, list, opts...)
		}
	}
	r, err := New(Config{
		Client: interceptor.NewClient(l.Client.(client.WithWatch), funcs), Reader: l, Work: queue.Work{Clock: clock.RealClock{}}, Wall: l.wall,
		Server: "https://192.0.2.1:6443", CA: []byte("-----BEGIN CERTIFICATE-----\n"),
		Workload: l.workload,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// settle runs the provider, as after a restart, until it writes nothing.
func (l *lab) settle() {
	l.t.Helper()
	for range 60 {
		before := len(l.writes)
		r := l.provider(nil)
		for _, m := range l.machines() {
			if err := pass(l.t.Context(), r, m.Name); err != nil && !errors.Is(err, errKilled) {
				l.t.Fatalf("Reconcile(%s) = %v", m.Name, err)
			}
		}
		if len(l.writes) == before {
			return
		}
	}
	l.t.Fatalf("the provider writes without end: %q", l.writes[len(l.writes)-20:])
}

func pass(ctx context.Context, r *Reconciler, name string) error {
	_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key(name)})
	return err
}

// run runs the provider, the hosts' controller, the LCM controller and the agents until
// nothing changes.
func (l *lab) run() {
	l.t.Helper()
	for range 12 {
		before := len(l.writes)
		l.settle()
		if hosts, agents := l.hosts(), l.agents(); !hosts && !agents && len(l.writes) == before {
			return
		}
	}
	l.t.Fatal("hosts, agents and the provider change without end")
}

// hosts does one step of each host. It returns whether a host has changed.
func (l *lab) hosts() (changed bool) {
	l.t.Helper()
	var list metal3.BareMetalHostList
	l.must(l.List(l.t.Context(), &list))
	for i := range list.Items {
		h := &list.Items[i]
		s := &h.Status.Provisioning
		before := s.State
		switch {
		case s.State == metal3.StateAvailable && h.Spec.RootDeviceHints != nil && !equality.Semantic.DeepEqual(s.RootDeviceHints, h.Spec.RootDeviceHints):
			s.State = metal3.StatePreparing
		case s.State == metal3.StatePreparing:
			s.State, s.RootDeviceHints = metal3.StateAvailable, h.Spec.RootDeviceHints.DeepCopy()
		case s.State == metal3.StateAvailable && h.Spec.Image != nil:
			s.State = metal3.StateProvisioning
		case s.State == metal3.StateProvisioning:
			s.State, h.Status.PoweredOn = metal3.StateProvisioned, true
		case s.State == metal3.StateProvisioned && h.Spec.Image == nil:
			s.State, h.Status.PoweredOn = metal3.StateDeprovisioning, false
		case s.State == metal3.StateDeprovisioning:
			s.State = metal3.StateAvailable
		}
		if s.State != before {
			l.must(l.Status().Update(l.t.Context(), h))
			changed = true
		}
	}
	return changed
}

// agents runs the LCM controller, and the agents of servers whose host is provisioned:
// they report an address and execute all items. It returns whether an LCMMachine has
// changed.
func (l *lab) agents() (changed bool) {
	l.t.Helper()
	controller, err := lcm.NewMachines(lcm.Config{Client: l, Work: queue.Work{Clock: clock.RealClock{}}})
	l.must(err)
	for _, m := range l.machines() {
		var x lcmv1.LCMMachine
		if err := l.Get(l.t.Context(), key(m.Name), &x); apierrors.IsNotFound(err) {
			continue
		}
		version := x.ResourceVersion
		h := l.hostOf(m.Name)
		if h != nil && h.Status.Provisioning.State == metal3.StateProvisioned {
			was := x.DeepCopy()
			x.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}, {Type: lcmv1.AddressHostname, Address: m.Name}}
			x.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
			for _, it := range x.Spec.StateItems {
				x.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
			}
			if !equality.Semantic.DeepEqual(was.Status, x.Status) {
				l.must(l.Status().Update(l.t.Context(), &x))
			}
		}
		_, err := controller.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key(m.Name)})
		l.must(err)
		changed = changed || l.lcm(m.Name).ResourceVersion != version
	}
	return changed
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) machines() []clusterv1.Machine {
	l.t.Helper()
	var list clusterv1.MachineList
	l.must(l.List(l.t.Context(), &list))
	return list.Items
}

func (l *lab) machine(name string) *clusterv1.Machine { return get(l, name, new(clusterv1.Machine)) }

func (l *lab) host(name string) *metal3.BareMetalHost { return get(l, name, new(metal3.BareMetalHost)) }

func (l *lab) lcm(name string) *lcmv1.LCMMachine { return get(l, name, new(lcmv1.LCMMachine)) }

// hostOf returns the host whose consumerRef names a Machine. More than one are an error.
func (l *lab) hostOf(machine string) (out *metal3.BareMetalHost) {
	l.t.Helper()
	var list metal3.BareMetalHostList
	l.must(l.List(l.t.Context(), &list))
	for i, h := range list.Items {
		if c := h.Spec.ConsumerRef; c != nil && c.Name == machine {
			if out != nil {
				l.t.Fatalf("%s has claimed %s and %s", machine, out.Name, h.Name)
			}
			out = &list.Items[i]
		}
	}
	return out
}

func get[T client.Object](l *lab, name string, o T) T {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), key(name), o))
	return o
}

// edit changes an object.
func edit[T client.Object](l *lab, o T, change func(T)) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	change(o)
	l.must(l.Update(l.t.Context(), o))
}

// instance returns the condition ProviderInstance of a Machine.
func (l *lab) instance(name string) baremetalv1.Condition {
	l.t.Helper()
	s := l.machine(name).Status.ProviderStatus
	i := slices.IndexFunc(s.Conditions, func(c baremetalv1.Condition) bool { return c.Type == baremetalv1.ConditionProviderInstance })
	if i < 0 {
		l.t.Fatalf("%s has no condition ProviderInstance: %+v", name, s.Conditions)
	}
	return s.Conditions[i]
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

// objects are a cluster with its release, one key and an LCMCluster.
func objects(more ...client.Object) []client.Object {
	r := &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}, Spec: kaasv1.ClusterReleaseSpec{
		Version: "1.0.0", Agent: &lcmv1.AgentConfig{Version: "v1", DownloadURL: "http://192.0.2.2/agent", SHA256: "5a", Args: []string{"--verbose"}},
		AllowedDistributions: []kaasv1.Distribution{
			{ID: "debian/bookworm", Image: kaasv1.DistributionImage{URL: "http://192.0.2.2/bookworm.raw"}},
			{ID: "ubuntu/jammy", Default: true, Image: kaasv1.DistributionImage{URL: "http://192.0.2.2/jammy.raw", Checksum: "0a"}},
		},
	}}
	c := &clusterv1.Cluster{ObjectMeta: meta("c1")}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: r.Name, PublicKeys: []baremetalv1.KeyName{{Name: "ann"}}}
	c.Status.ProviderStatus = &baremetalv1.ClusterProviderStatus{ReleaseRefs: baremetalv1.ReleaseRefs{Current: &baremetalv1.ReleaseRef{Name: r.Name}}}
	k := &kaasv1.PublicKey{ObjectMeta: meta("ann"), Spec: kaasv1.PublicKeySpec{PublicKey: "ssh-ed25519 A ann\n"}}
	lc := &lcmv1.LCMCluster{ObjectMeta: meta("c1"), Spec: lcmv1.LCMClusterSpec{LCMType: lcmv1.LCMTypeK0s, MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{
		lcmv1.MachineControl: {}, lcmv1.MachineWorker: {{Runner: lcmv1.RunnerBash, Name: "swap", Version: "v1", Phase: lcmv1.PhaseDeploy}},
	}}}
	return append([]client.Object{r, c, k, lc}, more...)
}

// host returns a host that is available and has the label rack=a.
func host(name string) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{ObjectMeta: meta(name)}
	h.Labels = map[string]string{"rack": "a"}
	h.Status.Provisioning.State = metal3.StateAvailable
	h.Status.HardwareDetails = &metal3.HardwareDetails{CPU: metal3.CPU{Count: 8}, RAMMebibytes: 16384, Storage: []metal3.Storage{{Name: "/dev/sda", SizeBytes: 100 << 30}}}
	return h
}

// machine returns a worker that selects hosts with the label rack=a, with open gates.
func machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: meta(name)}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c1", clusterv1.ProviderLabel: "baremetal"}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{
		HostSelector:     baremetalv1.HostSelector{MatchLabels: map[string]string{"rack": "a"}},
		Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto,
	}
	return m
}

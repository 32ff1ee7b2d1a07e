package clusters

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

var key = client.ObjectKey{Namespace: "lab", Name: "c1"}

// labTime is the time of the lab, which is not that of the wall.
var labTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// lab is an API with a reconciler, whose writes it counts.
type lab struct {
	t testing.TB
	client.Client
	r      *Reconciler
	writes int
	fail   error // error of the next write of a status
}

func start(t testing.TB, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kaasv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), iamv1.AddToScheme(scheme), ipamv1.AddToScheme(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		o.SetUID(types.UID(o.GetNamespace() + o.GetName()))
	}
	l := &lab{t: t}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1.Cluster{}, &lcmv1.HelmBundle{}, &lcmv1.LCMCluster{}, &clusterv1.Machine{}).Build()
	counted := interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			l.writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			l.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			l.writes++
			if err := l.fail; err != nil {
				l.fail = nil
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	var err error
	l.r, err = New(Config{Client: counted, Reader: l, Work: queue.Work{Clock: clocktesting.NewFakeClock(labTime)}, Server: "https://192.0.2.1:6443"})
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// pass reconciles the Cluster twice, and fails when the second time writes.
func (l *lab) pass() *clusterv1.Cluster {
	l.t.Helper()
	for range 2 {
		l.writes = 0
		_, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key})
		l.must(err)
	}
	c := new(clusterv1.Cluster)
	if err := l.Get(l.t.Context(), key, c); apierrors.IsNotFound(err) {
		return nil
	} else if l.must(err); l.writes > 0 && c.DeletionTimestamp.IsZero() {
		l.t.Errorf("the second reconcile has written %d times", l.writes)
	}
	return c
}

func (l *lab) lcm() *lcmv1.LCMCluster {
	l.t.Helper()
	out := new(lcmv1.LCMCluster)
	l.must(l.Get(l.t.Context(), key, out))
	return out
}

// ask changes the release of the Cluster.
func (l *lab) ask(release string, k *baremetalv1.KaaS) *clusterv1.Cluster {
	l.t.Helper()
	c := new(clusterv1.Cluster)
	l.must(l.Get(l.t.Context(), key, c))
	c.Spec.ProviderSpec.Value.Release, c.Spec.ProviderSpec.Value.KaaS = release, k
	l.must(l.Update(l.t.Context(), c))
	return l.pass()
}

func script(version string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "swap", Version: version, Phase: lcmv1.PhaseDeploy}
}

func clusterRelease(name, version string) *kaasv1.ClusterRelease {
	return &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.ClusterReleaseSpec{
		Version: version, LCMType: lcmv1.LCMTypeK0s, Agent: &lcmv1.AgentConfig{Version: "agent-" + version},
		MachineTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: {script(version)}},
	}}
}

func kaasRelease(name, version, clusterRelease string) *kaasv1.KaaSRelease {
	to := func(name, version string, upgrades ...string) kaasv1.SupportedClusterRelease {
		out := kaasv1.SupportedClusterRelease{Name: name, Version: version}
		for _, v := range upgrades {
			out.AvailableUpgrades = append(out.AvailableUpgrades, kaasv1.AvailableUpgrade{Version: v})
		}
		return out
	}
	return &kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kaasv1.KaaSReleaseSpec{
		Version: version, ClusterRelease: clusterRelease,
		SupportedClusterReleases: []kaasv1.SupportedClusterRelease{to("mosk-1", "1.0.0", "1.1.0"), to("mosk-2", "1.1.0", "1.10.0"), to("mosk-3", "1.10.0")},
	}}
}

// objects are a Cluster of the release mosk-1, and releases.
func objects(more ...client.Object) []client.Object {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{clusterv1.ProviderLabel: "baremetal"}}}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: "mosk-1", MaxWorkerUpgradeCount: 3}
	return append([]client.Object{
		c, clusterRelease("mosk-1", "1.0.0"), clusterRelease("mosk-2", "1.1.0"), clusterRelease("mosk-3", "1.10.0"), clusterRelease("other", "9.0.0"),
		kaasRelease("kaas-2", "2.9.0", "mosk-2"), kaasRelease("kaas-3", "2.10.0", "mosk-3"),
	}, more...)
}

func condition(t *testing.T, c *clusterv1.Cluster, conditionType string) baremetalv1.Condition {
	t.Helper()
	for _, found := range c.Status.ProviderStatus.Conditions {
		if found.Type == conditionType {
			return found
		}
	}
	t.Fatalf("no condition %s: %+v", conditionType, c.Status.ProviderStatus.Conditions)
	return baremetalv1.Condition{}
}

func TestLCMClusterIsMadeFromTheRelease(t *testing.T) {
	l := start(t, objects()...)
	c := l.pass()
	want := lcmv1.LCMClusterSpec{
		MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {script("1.0.0")}},
		LCMType:       lcmv1.LCMTypeK0s, Release: "mosk-1", AgentVersion: "agent-1.0.0", MaxWorkerUpgradeCount: 3,
		ManagementClusterEndpoint: lcmv1.Endpoint{Host: "192.0.2.1", Port: 6443}, HelmControllerServiceAccountName: "c1-helm-controller",
	}
	if diff := cmp.Diff(want, l.lcm().Spec); diff != "" {
		t.Errorf("LCMCluster (-want +got):\n%s", diff)
	}
	refs := baremetalv1.ReleaseRefs{Current: &baremetalv1.ReleaseRef{Name: "mosk-1", Version: "1.0.0"}, Available: []baremetalv1.ReleaseRef{{Name: "mosk-2", Version: "1.1.0"}}}
	if diff := cmp.Diff(refs, c.Status.ProviderStatus.ReleaseRefs); diff != "" || !condition(t, c, ConditionRelease).Ready {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
}

// An upgrade replaces the release's items, and host OS items stay.
func TestUpgradeAlongTheSupportedPath(t *testing.T) {
	l := start(t, objects()...)
	l.pass()
	its := item.HostOS("test", "sample", "1.0.0", lcmv1.PhaseReconfigure)
	x := l.lcm()
	for machineType := range x.Spec.MachinesTypes {
		x.Spec.MachinesTypes[machineType] = append(x.Spec.MachinesTypes[machineType], its[:]...)
	}
	l.must(l.Update(t.Context(), x))
	for _, tt := range []struct{ to, deployed, message string }{
		{"mosk-3", "mosk-1", `spec.providerSpec.value.release: "mosk-1" (1.0.0) cannot be upgraded to "mosk-3": give one of mosk-2 (1.1.0)`},
		{"other", "mosk-1", `spec.providerSpec.value.release: KaaSRelease "kaas-3" does not support "other": give one of mosk-1, mosk-2, mosk-3`},
		{"", "mosk-1", "spec.providerSpec.value.release: give the name of a ClusterRelease"},
		{"mosk-2", "mosk-2", ""},
		{"mosk-1", "mosk-2", `spec.providerSpec.value.release: "mosk-2" (1.1.0) cannot be upgraded to "mosk-1": give one of mosk-3 (1.10.0)`},
		{"mosk-3", "mosk-3", ""},
	} {
		c := l.ask(tt.to, nil)
		if got := condition(t, c, ConditionRelease); got.Ready != (tt.message == "") || got.Message != tt.message {
			t.Errorf("%s: condition %+v, want %q", tt.to, got, tt.message)
		}
		if got := l.lcm().Spec; got.Release != tt.deployed || c.Status.ProviderStatus.ReleaseRefs.Current.Name != tt.deployed {
			t.Errorf("%s: release %q, status %+v, want %s", tt.to, got.Release, c.Status.ProviderStatus.ReleaseRefs, tt.deployed)
		}
	}
	c := l.pass()
	want := map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {its[0], its[1]}, lcmv1.MachineWorker: {script("1.10.0"), its[0], its[1]}}
	if diff := cmp.Diff(want, l.lcm().Spec.MachinesTypes); diff != "" || c.Status.ProviderStatus.ReleaseRefs.Previous.Name != "mosk-2" {
		t.Errorf("previous %+v, machinesTypes (-want +got):\n%s", c.Status.ProviderStatus.ReleaseRefs.Previous, diff)
	}
}

// A process that ends between LCMCluster and status loses no release.
func TestUpgradeWhoseStatusWasNotWritten(t *testing.T) {
	l := start(t, objects()...)
	l.pass()
	c := new(clusterv1.Cluster)
	l.must(l.Get(t.Context(), key, c))
	c.Spec.ProviderSpec.Value.Release = "mosk-2"
	l.must(l.Update(t.Context(), c))
	l.fail = errors.New("killed")
	if _, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil || l.lcm().Spec.Release != "mosk-2" {
		t.Fatalf("Reconcile = %v, release %s", err, l.lcm().Spec.Release)
	}
	if refs := l.pass().Status.ProviderStatus.ReleaseRefs; refs.Previous == nil || refs.Previous.Name != "mosk-1" || refs.Current.Name != "mosk-2" {
		t.Errorf("releases %+v", refs)
	}
}

// The release of a management cluster is that of its KaaSRelease, which decides on all
// other clusters, and which never goes back.
func TestManagementCluster(t *testing.T) {
	mgmt := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "mgmt", Name: "mgmt"}}
	mgmt.Spec.ProviderSpec.Value.KaaS = &baremetalv1.KaaS{Release: "kaas-1"}
	old := kaasRelease("kaas-1", "2.8.0", "mosk-1")
	old.Spec.SupportedClusterReleases = old.Spec.SupportedClusterReleases[1:]
	l := start(t, objects(mgmt, old)...)
	if got := condition(t, l.pass(), ConditionRelease); got.Message != `spec.providerSpec.value.release: KaaSRelease "kaas-1" does not support "mosk-1": give one of mosk-2, mosk-3` {
		t.Errorf("condition %+v", got)
	}
	for _, tt := range []struct{ release, kaas, deployed, message string }{
		{"", "none", "", `spec.providerSpec.value.kaas.release: there is no KaaSRelease "none"`},
		{"mosk-1", "kaas-2", "", `spec.providerSpec.value.release: "mosk-1" is not the ClusterRelease of KaaSRelease "kaas-2": remove it, or give "mosk-2"`},
		{"", "kaas-2", "mosk-2", ""},
		{"", "kaas-1", "mosk-2", `spec.providerSpec.value.kaas.release: ClusterRelease "mosk-1" has version 1.0.0, and the cluster 1.1.0: a release never goes back`},
		{"", "kaas-3", "mosk-3", ""},
	} {
		c := l.ask(tt.release, &baremetalv1.KaaS{Release: tt.kaas})
		if got := condition(t, c, ConditionRelease); got.Message != tt.message {
			t.Errorf("%s: condition %+v, want %q", tt.kaas, got, tt.message)
		}
		var x lcmv1.LCMCluster
		if err := client.IgnoreNotFound(l.Get(t.Context(), key, &x)); err != nil || x.Spec.Release != tt.deployed {
			t.Errorf("%s: release %q, %v, want %q", tt.kaas, x.Spec.Release, err, tt.deployed)
		}
	}
}

func TestNodesAreCountedAndDeletedFirst(t *testing.T) {
	m := func(name string, ready bool) *clusterv1.Machine {
		out := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name}, Finalizers: []string{"a/b"}}}
		out.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Ready: ready}
		if !ready {
			out.Status.ProviderStatus.Conditions = []baremetalv1.Condition{{Type: "ProviderInstance", Ready: true}, {Type: "LCM", Message: "the LCMMachine is Deploy"}}
		}
		return out
	}
	other := m("other", true)
	other.Labels = map[string]string{clusterv1.ClusterNameLabel: "c2"}
	l := start(t, objects(m("a", true), m("b", false), other)...)
	c := l.pass()
	if p := c.Status.ProviderStatus; p.Nodes != (baremetalv1.Nodes{Requested: 2, Ready: 1}) || p.Ready || condition(t, c, ConditionMachines).Message != "1 of 2 Machines are ready; b is not: LCM: the LCMMachine is Deploy" || p.NotReadyObjects.Machines[0].Name != "b" {
		t.Errorf("status %+v", p)
	}
	b := m("b", true)
	var current clusterv1.Machine
	l.must(l.Get(t.Context(), client.ObjectKeyFromObject(b), &current))
	current.Status = b.Status
	l.must(l.Status().Update(t.Context(), &current))
	if p := l.pass().Status.ProviderStatus; !p.Ready {
		t.Errorf("status %+v", p)
	}
	l.must(l.Delete(t.Context(), c))
	if c = l.pass(); c == nil || c.Status.ProviderStatus.Ready || l.lcm().Spec.Release != "mosk-1" {
		t.Fatalf("the Cluster goes before its Machines: %+v", c)
	}
	var list clusterv1.MachineList
	l.must(l.List(t.Context(), &list))
	for i := range list.Items {
		if deleted := !list.Items[i].DeletionTimestamp.IsZero(); deleted != (list.Items[i].Name != "other") {
			t.Errorf("Machine %s: deleted %t", list.Items[i].Name, deleted)
		} else if deleted {
			list.Items[i].Finalizers = nil
			l.must(l.Update(t.Context(), &list.Items[i]))
		}
	}
	if c = l.pass(); c != nil || !apierrors.IsNotFound(l.Get(t.Context(), key, new(lcmv1.LCMCluster))) {
		t.Error("the Cluster or its LCMCluster exists")
	}
}

func TestLCMClusterOfAUserStays(t *testing.T) {
	l := start(t, objects(&lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})...)
	if got := condition(t, l.pass(), ConditionRelease); got.Message != `LCMCluster "c1" exists, and is not the Cluster's: remove it` || l.lcm().Spec.Release != "" {
		t.Errorf("condition %+v, LCMCluster %+v", got, l.lcm().Spec)
	}
}

func TestNewWithoutAServerReturnsAnError(t *testing.T) {
	l := start(t)
	if _, err := New(Config{Client: l, Reader: l, Work: queue.Work{Clock: clock.RealClock{}}, Server: "x"}); err == nil || !strings.Contains(err.Error(), `Config.Server "x"`) {
		t.Errorf("New = %v", err)
	}
}

// A Cluster of another provider stays as it is: its status alone says which label it needs, until
// it has it.
func TestClusterOfAnotherProviderStays(t *testing.T) {
	all := objects()
	all[0].SetLabels(map[string]string{clusterv1.ProviderLabel: "openstack"})
	l := start(t, all...)
	c := l.pass()
	if len(c.Finalizers) > 0 || !apierrors.IsNotFound(l.Get(t.Context(), key, new(lcmv1.LCMCluster))) {
		t.Errorf("the Cluster is %+v", c)
	}
	want := `the bare metal provider does not act on an object of the provider "openstack": the label kaas.mirantis.com/provider that it acts on is "baremetal"`
	if got := condition(t, c, "Provider"); !got.Ready || got.Message != want {
		t.Errorf("condition %+v, want %q", got, want)
	}
	c.Labels = map[string]string{clusterv1.ProviderLabel: "baremetal"}
	l.must(l.Update(t.Context(), c))
	for _, got := range l.pass().Status.ProviderStatus.Conditions {
		if got.Type == "Provider" {
			t.Errorf("condition %+v with the label", got)
		}
	}
}

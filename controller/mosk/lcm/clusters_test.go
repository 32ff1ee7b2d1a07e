package lcm

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The status of an LCMCluster counts its machines, including those that labels assign to it,
// and is written only when it changes.
func TestMachinesOfAClusterAreCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := lcmv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(name string, change func(*lcmv1.LCMMachine)) client.Object {
		return machine(func(m *lcmv1.LCMMachine) {
			m.Name = name
			change(m)
		})
	}
	writes := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lcmv1.LCMCluster{}).WithObjects(
		lcmCluster(),
		named("ready", func(m *lcmv1.LCMMachine) { m.Status.State = lcmv1.StateReady }),
		named("deploys", func(m *lcmv1.LCMMachine) { m.Status.State = lcmv1.StateDeploy }),
		named("labeled", func(m *lcmv1.LCMMachine) {
			m.Spec.ClusterName, m.Labels = "", map[string]string{"cluster.sigs.k8s.io/cluster-name": "c1"}
		}),
		named("of-another", func(m *lcmv1.LCMMachine) { m.Spec.ClusterName, m.Status.State = "c2", lcmv1.StateReady }),
		named("elsewhere", func(m *lcmv1.LCMMachine) { m.Namespace, m.Status.State = "other", lcmv1.StateReady }),
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	r, err := NewClusters(Config{Client: api, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	c := lcmCluster()
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	if c.Status.RequestedNodes != 3 || c.Status.ReadyNodes != 1 || writes != 1 {
		t.Errorf("%d of %d machines are ready after %d writes, want 1 of 3 after one", c.Status.ReadyNodes, c.Status.RequestedNodes, writes)
	}
}

// The items of machineTypes, as the older public types spell it, are moved to machinesTypes.
func TestMachineTypesAreMoved(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := lcmv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(names ...string) (out []lcmv1.LCMStateItem) {
		for _, name := range names {
			out = append(out, lcmv1.LCMStateItem{Name: name, Runner: lcmv1.RunnerBash, Version: "v1"})
		}
		return out
	}
	newer := of("b", "c")
	newer[0].Version = "v2"
	c := lcmCluster()
	c.Spec.MachineTypes = map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: of("a"), lcmv1.MachineWorker: of("a", "b")}
	c.Spec.MachinesTypes = map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: newer}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lcmv1.LCMCluster{}).WithObjects(c).Build()
	r, err := NewClusters(Config{Client: api, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		t.Fatal(err)
	}
	got := new(lcmv1.LCMCluster)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), got); err != nil {
		t.Fatal(err)
	}
	want := map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: of("a"), lcmv1.MachineWorker: append(of("a"), newer...)}
	if diff := cmp.Diff(want, got.Spec.MachinesTypes); diff != "" || got.Spec.MachineTypes != nil {
		t.Errorf("machineTypes %v, machinesTypes (-want +got):\n%s", got.Spec.MachineTypes, diff)
	}
}

// status.release of an LCMCluster is the release that all its machines have; until the last one has
// it, it is the one before. A machine in maintenance is one of the cluster.
func TestReleaseAndMaintenanceOfACluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := lcmv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := lcmCluster()
	c.Spec.Release = "r-1"
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&lcmv1.LCMCluster{}).WithObjects(c,
		machine(func(m *lcmv1.LCMMachine) { m.Name, m.Status.Release = "a", "r-1" }),
		machine(func(m *lcmv1.LCMMachine) { m.Name, m.Status.Release = "b", "r-0" })).Build()
	r, err := NewClusters(Config{Client: api, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	look := func(when, release string, maintenance bool) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		if c.Status.Release != release || c.Status.Maintenance != maintenance {
			t.Errorf("%s: release %q, maintenance %t, want %q, %t", when, c.Status.Release, c.Status.Maintenance, release, maintenance)
		}
	}
	set := func(name, release string, maintenance bool) {
		m := machine(func(m *lcmv1.LCMMachine) { m.Name = name })
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		m.Status.Release, m.Status.Maintenance = release, maintenance
		if err := api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	look("one is behind", "", false)
	set("b", "r-1", true)
	look("all have it, and one is in maintenance", "r-1", true)
	set("b", "r-1", false)
	look("none is in maintenance", "r-1", false)
	set("a", "r-1", true)
	look("the other one is in maintenance", "r-1", true)
	set("a", "r-1", false)
	c.Spec.Release = "r-2"
	if err := api.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	look("an upgrade has begun", "r-1", false)
	c.Spec.Maintenance = true
	if err := api.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	look("the cluster is in maintenance", "r-1", true)
}

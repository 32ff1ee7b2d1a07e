package plans

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

var key = client.ObjectKey{Namespace: "lab", Name: "c1"}

// lab is an API with a reconciler.
type lab struct {
	t *testing.T
	client.Client
	clock *clocktesting.FakeClock
	r     *Reconciler
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: name, UID: types.UID(name), Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name, clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}}
}

// start returns a lab with a Cluster of the release r-1, which r-2 follows, and then r-3,
// with a machine of the control plane and a worker in the group "late".
func start(t *testing.T) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kaasv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := &clusterv1.Cluster{ObjectMeta: meta("c1")}
	c.Spec.ProviderSpec.Value.Release = "r-1"
	k := &kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: "k"}, Spec: kaasv1.KaaSReleaseSpec{Version: "1.0.0", ClusterRelease: "r-1"}}
	objects := []client.Object{
		c, k, &lcmv1.LCMCluster{ObjectMeta: meta("c1"), Spec: lcmv1.LCMClusterSpec{Release: "r-1"}}, &lcmv1.HelmBundle{ObjectMeta: meta("c1"), Spec: lcmv1.HelmBundleSpec{Release: "r-1"}},
		&kaasv1.UpdateGroup{ObjectMeta: meta("late"), Spec: kaasv1.UpdateGroupSpec{Index: 7}},
	}
	for i := 1; i < 4; i++ {
		s := kaasv1.SupportedClusterRelease{Name: fmt.Sprint("r-", i), Version: fmt.Sprintf("1.%d.0", i), AvailableUpgrades: []kaasv1.AvailableUpgrade{{Version: fmt.Sprintf("1.%d.0", i+1)}}}
		k.Spec.SupportedClusterReleases = append(k.Spec.SupportedClusterReleases, s)
		objects = append(objects, &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Spec: kaasv1.ClusterReleaseSpec{Version: s.Version}})
	}
	for name, label := range map[string]string{"c-0": clusterv1.ControlPlaneLabel, "w-0": kaasv1.UpdateGroupLabel} {
		m := &clusterv1.Machine{ObjectMeta: meta(name)}
		m.Labels[label] = "late"
		x := &lcmv1.LCMMachine{ObjectMeta: meta(name)}
		x.Status.Release, x.Status.State = "r-1", lcmv1.StateReady
		objects = append(objects, m, x)
	}
	l := &lab{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&kaasv1.ClusterUpdatePlan{}).Build()
	var err error
	if l.r, err = New(Config{Client: l.Client, Work: queue.Work{Clock: l.clock}}); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// pass reconciles once, a second later.
func (l *lab) pass() {
	l.t.Helper()
	l.clock.Step(time.Second)
	_, err := l.r.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key})
	l.must(err)
}

func (l *lab) plan(name string) *kaasv1.ClusterUpdatePlan {
	l.t.Helper()
	p := new(kaasv1.ClusterUpdatePlan)
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, p))
	return p
}

// commence commences steps of the plan to r-2.
func (l *lab) commence(ids ...string) {
	l.t.Helper()
	p := l.plan("c1-1.2.0")
	for i := range p.Spec.Steps {
		for _, id := range ids {
			p.Spec.Steps[i].Commence = p.Spec.Steps[i].Commence || p.Spec.Steps[i].ID == id
		}
	}
	l.must(l.Update(l.t.Context(), p))
}

// is compares the statuses of the plan to r-2 and of its steps: control plane, default group, late group, charts.
func (l *lab) is(want string) {
	l.t.Helper()
	p := l.plan("c1-1.2.0")
	got := []string{string(p.Status.Status) + ":"}
	for _, s := range p.Status.Steps {
		got = append(got, string(s.Status))
	}
	if text := strings.Join(got, " "); text != want {
		l.t.Errorf("%s, want %s: %+v", text, want, p.Status)
	}
}

// deploy gives the LCMCluster, or machines, or the HelmBundle, the release of the Cluster.
func (l *lab) deploy(o client.Object, name string, change func()) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, o))
	change()
	l.must(l.Update(l.t.Context(), o))
}

func (l *lab) release() string {
	l.t.Helper()
	var c clusterv1.Cluster
	l.must(l.Get(l.t.Context(), key, &c))
	return c.Spec.ProviderSpec.Value.Release
}

// statement H44: steps begin in order, each when it is commenced.
func TestStepsOfAPlan(t *testing.T) {
	const late = kaasv1.StepWorkers + "late"
	l := start(t)
	l.pass()
	var ids []string
	for _, s := range l.plan("c1-1.2.0").Spec.Steps {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "k8s-controllers k8s-workers-c1-default k8s-workers-late mcc-components" {
		t.Fatalf("steps %s", got)
	}
	l.is("NotStarted: NotStarted NotStarted NotStarted NotStarted")
	l.commence(late) // not before those before it
	l.pass()
	l.pass()
	l.is("NotStarted: NotStarted NotStarted NotStarted NotStarted")
	if got := l.plan("c1-1.2.0").Status.Steps[2].Message; got != "waits for the step k8s-controllers" || l.release() != "r-1" {
		t.Errorf("message %q, release %s", got, l.release())
	}
	l.commence(kaasv1.StepControllers)
	l.pass()
	if l.release() != "r-2" {
		t.Fatalf("release %s", l.release())
	}
	l.is("NotStarted: NotStarted NotStarted NotStarted NotStarted") // the LCMCluster has it not yet
	c := new(lcmv1.LCMCluster)
	l.deploy(c, "c1", func() { c.Spec.Release = "r-2" })
	l.pass()
	l.is("InProgress: InProgress NotStarted NotStarted NotStarted")
	l.pass()
	l.is("InProgress: InProgress NotStarted NotStarted NotStarted")
	if got := l.plan("c1-1.2.0").Status.Steps[0].Message; got != "waits for the machines c-0" {
		t.Errorf("message %q", got)
	}
	m := new(lcmv1.LCMMachine)
	l.deploy(m, "c-0", func() { m.Status.Release = "r-2" })
	for range 3 {
		l.pass()
	}
	l.is("InProgress: Completed NotStarted NotStarted NotStarted") // the default group is not commenced
	l.commence(kaasv1.StepWorkers + "c1-default")
	l.pass()
	l.is("InProgress: Completed InProgress NotStarted NotStarted")
	l.pass() // it has no machine
	l.is("InProgress: Completed Completed InProgress NotStarted")
	m = new(lcmv1.LCMMachine)
	l.deploy(m, "w-0", func() { m.Status.Release = "r-2" })
	for range 3 {
		l.pass()
	}
	l.is("InProgress: Completed Completed Completed NotStarted")
	l.commence(kaasv1.StepComponents)
	l.pass()
	l.is("InProgress: Completed Completed Completed InProgress")
	b := new(lcmv1.HelmBundle)
	l.deploy(b, "c1", func() { b.Spec.Release, b.Status.Release = "r-2", "r-2" })
	l.pass()
	l.is("Completed: Completed Completed Completed Completed")
	if s := l.plan("c1-1.2.0").Status; s.CompletedAt == nil || !s.StartedAt.Before(s.CompletedAt) || s.Steps[0].Duration == nil || s.Steps[0].Duration.Duration <= 0 {
		t.Errorf("times %+v", s)
	}
	if p := l.plan("c1-1.3.0"); p.Spec.Source != "r-2" || p.Spec.Target != "r-3" {
		t.Errorf("the next plan: %+v", p.Spec)
	}
}

// A release that is written to the Cluster commences all steps.
func TestUpdateOfTheClusterCommencesAllSteps(t *testing.T) {
	l := start(t)
	l.pass()
	c := new(clusterv1.Cluster)
	l.deploy(c, "c1", func() { c.Spec.ProviderSpec.Value.Release = "r-2" })
	l.pass()
	l.is("NotStarted: NotStarted NotStarted NotStarted NotStarted")
	x := new(lcmv1.LCMCluster)
	l.deploy(x, "c1", func() { x.Spec.Release = "r-2" })
	l.pass()
	l.is("InProgress: InProgress NotStarted NotStarted NotStarted")
	for _, s := range l.plan("c1-1.2.0").Spec.Steps {
		if !s.Commence {
			t.Errorf("step %s is not commenced", s.ID)
		}
	}
}

// The message of the first step is the reason for which the webhook would refuse the release.
func TestStepThatCannotBegin(t *testing.T) {
	l := start(t)
	m := new(lcmv1.LCMMachine)
	l.deploy(m, "w-0", func() { m.Status.Release = "r-0" })
	l.pass()
	l.commence(kaasv1.StepControllers)
	l.pass()
	if got := l.plan("c1-1.2.0").Status.Steps[0].Message; !strings.Contains(got, `machine w-0 has "r-0"`) || l.release() != "r-1" {
		t.Errorf("message %q, release %s", got, l.release())
	}
}

// A plan is deleted when its target can no longer follow, and with its Cluster.
func TestPlansAreDeleted(t *testing.T) {
	l := start(t)
	l.pass()
	l.deploy(new(kaasv1.UpdateGroup), "late", func() {})
	k := new(kaasv1.KaaSRelease)
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "k"}, k))
	k.Spec.SupportedClusterReleases[0].AvailableUpgrades[0].Version = "1.3.0"
	l.must(l.Update(t.Context(), k))
	l.pass()
	if err := l.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "c1-1.2.0"}, new(kaasv1.ClusterUpdatePlan)); !apierrors.IsNotFound(err) {
		t.Errorf("the plan to r-2: %v", err)
	}
	if p := l.plan("c1-1.3.0"); p.Spec.Target != "r-3" {
		t.Errorf("the plan to r-3: %+v", p.Spec)
	}
	l.must(l.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	l.pass()
	var left kaasv1.ClusterUpdatePlanList
	if err := l.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("plans of a Cluster that is gone: %+v, %v", left.Items, err)
	}
}

func TestNewWithoutAClientReturnsAnError(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no error")
	}
}

// The steps of machines say that the upgrade reboots them, while the path does.
func TestPlanSaysThatMachinesAreRebooted(t *testing.T) {
	const text = "Each machine is rebooted while its node is out of service."
	l := start(t)
	for _, reboot := range []bool{true, false} {
		k := new(kaasv1.KaaSRelease)
		l.must(l.Get(t.Context(), client.ObjectKey{Name: "k"}, k))
		k.Spec.SupportedClusterReleases[0].AvailableUpgrades[0].RebootRequired = reboot
		l.must(l.Update(t.Context(), k))
		l.pass()
		for _, s := range l.plan("c1-1.2.0").Spec.Steps {
			if got, want := slices.Contains(s.Description, text), reboot && s.ID != kaasv1.StepComponents; got != want {
				t.Errorf("rebootRequired %t: the step %s is described by %q", reboot, s.ID, s.Description)
			}
		}
	}
}

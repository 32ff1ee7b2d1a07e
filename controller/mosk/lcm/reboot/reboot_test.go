package reboot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// lab is an API with the reconcilers. It maintains the nodes and, in reboots, is the agents.
type lab struct {
	t *testing.T
	client.Client
	machines *Machines
	requests *Requests
	blocked  string // why the maintenance waits
	left     int    // calls of LeaveCluster
	cordoned map[string]bool
	most     int      // cordoned at a time
	log      []string // drains that were done, demanded reboots, boots and uncordons
	boots    int
}

func (l *lab) node(ctx context.Context, r maintenance.Request) string {
	l.t.Helper()
	if r.Reason != lcmv1.ReasonMaintenance {
		l.t.Errorf("the reason is %q", r.Reason)
	}
	var m lcmv1.LCMMachine
	l.must(l.Get(ctx, r.Machine, &m))
	return item.Node(&m)
}

func (l *lab) Enter(ctx context.Context, r maintenance.Request) (maintenance.Progress, error) {
	l.cordoned[l.node(ctx, r)] = true
	l.most = max(l.most, len(l.cordoned))
	if l.blocked != "" {
		return maintenance.Progress{Stage: maintenance.StageDrained, Message: l.blocked, After: time.Second}, nil
	}
	return maintenance.Progress{Done: true}, nil
}

func (l *lab) Leave(ctx context.Context, r maintenance.Request) (maintenance.Progress, error) {
	node := l.node(ctx, r)
	delete(l.cordoned, node)
	l.log = append(l.log, "uncordon "+node)
	return maintenance.Progress{Done: true}, nil
}

func (l *lab) LeaveCluster(_ context.Context, cluster client.ObjectKey, _ string) (maintenance.Progress, error) {
	if cluster.String() != "lab/c1" {
		l.t.Errorf("the maintenance of the cluster %s ends", cluster)
	}
	l.left++
	return maintenance.Progress{Message: "another machine is Drained"}, nil // it ends that of the cluster
}

var booted = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"}}
}

// pair returns a Machine that is Ready and its LCMMachine, whose node has another name.
func pair(name string, index *int32) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: meta(name)}
	m.Spec.ProviderSpec.Value.UpgradeIndex = index
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: "Ready", Ready: true}
	l := &lcmv1.LCMMachine{ObjectMeta: meta(name), Spec: lcmv1.LCMMachineSpec{LCMType: lcmv1.LCMTypeK0s, ClusterName: "c1"}}
	l.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.1"}, {Type: lcmv1.AddressHostname, Address: "node-" + name}}
	l.Status.HostInfo = &lcmv1.HostInfo{BootTime: booted.DeepCopy()}
	return []client.Object{m, l}
}

func request(name string, machines ...string) *kaasv1.GracefulRebootRequest {
	return &kaasv1.GracefulRebootRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Spec: kaasv1.GracefulRebootRequestSpec{Machines: machines}}
}

func start(t *testing.T, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), kaasv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &clusterv1.Cluster{ObjectMeta: meta("c1"), Status: clusterv1.ClusterStatus{ProviderStatus: &baremetalv1.ClusterProviderStatus{Ready: true}}})
	l := &lab{t: t, cordoned: map[string]bool{}}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1.Machine{}, &lcmv1.LCMMachine{}, &kaasv1.GracefulRebootRequest{}).Build()
	c := Config{Client: l.Client, Maintenance: l, Work: queue.Work{Clock: clock.RealClock{}}}
	var err error
	if l.machines, err = NewMachines(c); err == nil {
		l.requests, err = NewRequests(c)
	}
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) all() []lcmv1.LCMMachine {
	l.t.Helper()
	var list lcmv1.LCMMachineList
	l.must(l.List(l.t.Context(), &list))
	return list.Items
}

// reboot is what an agent does: it reboots the server whose reboot is demanded, and removes
// the status of an earlier reboot.
func (l *lab) reboot(m lcmv1.LCMMachine) {
	l.t.Helper()
	switch {
	case m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed):
		if !l.cordoned[item.Node(&m)] {
			l.t.Errorf("the reboot of %s is demanded, and its node is not cordoned", m.Name)
		}
		l.boots++
		l.log = append(l.log, "reboot "+m.Name)
		m.Status.Reboot = &lcmv1.RebootStatus{Completed: true}
		m.Status.HostInfo.BootTime = ptr.To(metav1.NewTime(booted.Add(time.Duration(l.boots) * time.Hour)))
	case !m.Spec.RebootRequired && m.Annotations[item.GracefulRebootAnnotation] == "" && m.Status.Reboot != nil:
		m.Status.Reboot = nil
	}
	l.must(l.Status().Update(l.t.Context(), &m))
}

// pass reconciles every object, and lets the agents act. A new pair of reconcilers shows
// that nothing is remembered.
func (l *lab) pass(agents bool) {
	l.t.Helper()
	var list kaasv1.GracefulRebootRequestList
	l.must(l.List(l.t.Context(), &list))
	for _, o := range list.Items {
		_, err := l.requests.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&o)})
		l.must(err)
	}
	for _, m := range l.all() {
		_, err := l.machines.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
		l.must(err)
	}
	for _, m := range l.all() {
		if agents {
			l.reboot(m)
		}
	}
}

func (l *lab) status(name string) kaasv1.GracefulRebootRequestStatus {
	l.t.Helper()
	o := request(name)
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	return o.Status
}

// statement H34: machines are rebooted one after another, in the order of updates: cordon
// and drain, reboot, uncordon. The flags are clear after that, and nothing is done twice.
func TestMachinesAreRebootedOneAfterAnother(t *testing.T) {
	for _, tt := range []struct {
		name     string
		machines []string
		want     []string
	}{
		{"all", nil, []string{"w-2", "w-0", "w-1"}},
		{"some", []string{"w-1", "w-2"}, []string{"w-2", "w-1"}},
	} {
		objects := slices.Concat(pair("w-0", ptr.To[int32](7)), pair("w-1", nil), pair("w-2", ptr.To[int32](0)))
		l := start(t, append(objects, request("c1", tt.machines...))...)
		for range 30 {
			l.pass(true)
		}
		var want []string
		for _, name := range tt.want {
			want = append(want, "reboot "+name, "uncordon node-"+name)
		}
		if diff := cmp.Diff(want, l.log); diff != "" || l.most != 1 {
			t.Errorf("%s: %d nodes were cordoned at a time, want one; (-want +got):\n%s", tt.name, l.most, diff)
		}
		if l.left != len(tt.want) {
			t.Errorf("%s: the maintenance of the cluster ended %d times, want %d", tt.name, l.left, len(tt.want))
		}
		if s := l.status("c1"); s.State != kaasv1.RebootCompleted || s.Message != "" || len(s.Machines) != len(tt.want) {
			t.Errorf("%s: status %+v", tt.name, s)
		}
		for _, m := range l.all() {
			if m.Spec.RebootRequired || m.Annotations[item.GracefulRebootAnnotation] != "" || m.Status.Reboot != nil || l.cordoned[item.Node(&m)] {
				t.Errorf("%s: %s has %v, %+v after its reboot", tt.name, m.Name, m.Annotations, m.Status.Reboot)
			}
		}
	}
}

// statement H34: nothing is rebooted, and the message says why.
func TestRequestThatWaits(t *testing.T) {
	unready := func(name string) func(*lab) {
		return func(l *lab) {
			m := &clusterv1.Machine{ObjectMeta: meta(name)}
			l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(m), m))
			m.Status.ProviderStatus.Ready = false
			l.must(l.Status().Update(l.t.Context(), m))
		}
	}
	for _, tt := range []struct {
		name    string
		request *kaasv1.GracefulRebootRequest
		change  func(*lab)
		want    string
	}{
		{"another name", request("c2"), func(*lab) {}, `metadata.name: there is no Cluster "c2" in the namespace`},
		{"no such machine", request("c1", "w-0", "w-7"), func(*lab) {}, "spec.machines: the cluster has no Machine w-7"},
		{"not Ready", request("c1"), unready("w-1"), "Machine w-1 is not Ready"},
		{"the only one that is not Ready is not chosen", request("c1", "w-0"), unready("w-1"), ""},
		{"the cluster is not Ready", request("c1", "w-0"), func(l *lab) {
			c := &clusterv1.Cluster{ObjectMeta: meta("c1")}
			l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(c), c))
			c.Status.ProviderStatus.Ready = false
			c.Status.ProviderStatus.Conditions = []baremetalv1.Condition{{Type: "IAM", Ready: true}, {Type: "Helm", Message: "app is not ready"}}
			l.must(l.Update(l.t.Context(), c))
		}, "Cluster c1 is not Ready: Helm: app is not ready"},
		{"another reboot", request("c1", "w-0"), func(l *lab) {
			m := l.all()[1]
			m.Spec.RebootRequired = true
			l.must(l.Update(l.t.Context(), &m))
		}, "Machine w-1 is being rebooted"},
	} {
		l := start(t, append(slices.Concat(pair("w-0", nil), pair("w-1", nil)), tt.request)...)
		tt.change(l)
		for range 3 {
			l.pass(false)
		}
		s := l.status(tt.request.Name)
		waits := s.State == kaasv1.RebootNotStarted && strings.Contains(s.Message, tt.want) && len(l.cordoned) == 0
		if tt.want == "" {
			waits = s.State == kaasv1.RebootInProgress && len(l.cordoned) == 1
		}
		if !waits {
			t.Errorf("%s: status %+v, cordoned %v; want %q", tt.name, s, l.cordoned, tt.want)
		}
	}
}

// statement H34: no reboot is demanded before the drain is done, and what it waits for is in
// the status.
func TestRebootWaitsForTheDrain(t *testing.T) {
	l := start(t, append(pair("w-0", nil), request("c1"))...)
	l.blocked = "pod a/b cannot be evicted"
	for range 3 {
		l.pass(true)
	}
	if m := l.all()[0]; m.Spec.RebootRequired || len(l.log) > 0 {
		t.Fatalf("the drain is not done: rebootRequired %t, %v", m.Spec.RebootRequired, l.log)
	}
	l.blocked = ""
	l.pass(false)
	if m := l.all()[0]; !m.Spec.RebootRequired {
		t.Fatal("the drain is done, and the reboot is not demanded")
	}
	for range 10 {
		l.pass(true)
	}
	if want := []string{"reboot w-0", "uncordon node-w-0"}; !slices.Equal(l.log, want) {
		t.Errorf("done %v, want %v", l.log, want)
	}
}

// A machine whose deletion has its node is left to it, and rebooted when that is withdrawn.
func TestDeletionTakesTheNodeOver(t *testing.T) {
	l := start(t, append(pair("w-0", nil), request("c1"))...)
	l.blocked = "pod a/b cannot be evicted"
	l.passes(3, true)
	prepare := func(wanted bool) {
		m := l.all()[0]
		m.Spec.PrepareDeletion = wanted
		l.must(l.Update(t.Context(), &m))
	}
	prepare(true)
	l.passes(3, true)
	if m := l.all()[0]; len(l.log) > 0 || m.Annotations[item.HeldForRebootAnnotation] != "" {
		t.Errorf("done %v, annotations %v, while the deletion has the node", l.log, m.Annotations)
	}
	l.blocked = ""
	prepare(false)
	l.passes(10, true)
	if want := []string{"reboot w-0", "uncordon node-w-0"}; !slices.Equal(l.log, want) {
		t.Errorf("done %v, want %v", l.log, want)
	}
}

// The message of a request says why the maintenance of its machine waits.
func TestRequestSaysWhatItWaitsFor(t *testing.T) {
	l := start(t, append(pair("w-0", nil), request("c1"))...)
	l.blocked = "pod a/b cannot be evicted"
	l.passes(2, false)
	m := l.all()[0]
	m.Status.KubernetesCordonDrainError = l.blocked
	l.must(l.Status().Update(t.Context(), &m))
	l.passes(1, false)
	if s := l.status("c1"); s.Message != "Machine w-0 is being rebooted: "+l.blocked {
		t.Errorf("the message is %q", s.Message)
	}
}

// statement H34: a request that was interrupted after its status was written, or whose
// annotation somebody has removed, reboots the machine all the same, and once.
func TestInterruptedRequest(t *testing.T) {
	o := request("c1")
	o.Status = kaasv1.GracefulRebootRequestStatus{
		State: kaasv1.RebootInProgress, Machines: []kaasv1.MachineReboot{{Name: "w-0", State: kaasv1.RebootInProgress, BootTime: booted.DeepCopy()}},
	}
	l := start(t, append(pair("w-0", nil), o)...)
	for range 10 {
		l.pass(true)
	}
	if l.boots != 1 || l.status("c1").State != kaasv1.RebootCompleted {
		t.Errorf("%d boots, status %+v", l.boots, l.status("c1"))
	}
}

func TestNewNeedsItsFields(t *testing.T) {
	l := start(t)
	for i, c := range []Config{{}, {Client: l.Client, Maintenance: l}, {Maintenance: l, Work: queue.Work{Clock: clock.RealClock{}}}, {Client: l.Client, Work: queue.Work{Clock: clock.RealClock{}}}} {
		if _, err := NewMachines(c); err == nil {
			t.Error(fmt.Sprint(i), "NewMachines takes it")
		}
	}
}

// statement H34: a request that is withdrawn before the agent has begun gives the node back
// without a reboot. A reboot that the agent has begun ends first.
func TestWithdrawnRebootGivesTheNodeBack(t *testing.T) {
	withdraw := func(l *lab) {
		m := l.all()[0]
		delete(m.Annotations, item.GracefulRebootAnnotation)
		l.must(l.Update(l.t.Context(), &m))
	}
	for _, tt := range []struct {
		name   string
		before func(*lab) // the state when the annotation is removed
		after  func(*lab)
		want   []string
	}{
		{"while it drains", func(l *lab) { l.blocked = "pod a/b cannot be evicted"; l.passes(3, false) }, nil, []string{"uncordon node-w-0"}},
		{"before the agent begins", func(l *lab) { l.passes(3, false) }, nil, []string{"uncordon node-w-0"}},
		{"while the server reboots", func(l *lab) {
			l.passes(3, false)
			m := l.all()[0]
			m.Status.Reboot = &lcmv1.RebootStatus{}
			l.must(l.Status().Update(l.t.Context(), &m))
		}, func(l *lab) {
			l.passes(3, false)
			if len(l.log) > 0 || len(l.cordoned) == 0 {
				l.t.Errorf("done %v, cordoned %v while the server reboots", l.log, l.cordoned)
			}
			l.passes(3, true)
		}, []string{"reboot w-0", "uncordon node-w-0"}},
		{"and the machine is deleted", func(l *lab) {
			l.passes(3, false)
			m := l.all()[0]
			m.Finalizers = []string{"lab.test/hold"}
			l.must(l.Update(l.t.Context(), &m))
			l.must(l.Delete(l.t.Context(), &m))
		}, nil, []string{"uncordon node-w-0"}},
	} {
		objects := pair("w-0", nil)
		metav1.SetMetaDataAnnotation(&objects[1].(*lcmv1.LCMMachine).ObjectMeta, item.GracefulRebootAnnotation, "true")
		l := start(t, objects...)
		tt.before(l)
		if len(l.cordoned) != 1 {
			t.Fatalf("%s: cordoned %v before the request is withdrawn", tt.name, l.cordoned)
		}
		withdraw(l)
		if tt.after != nil {
			tt.after(l)
		}
		l.passes(3, true)
		m := l.all()[0]
		if !slices.Equal(l.log, tt.want) || len(l.cordoned) > 0 || m.Spec.RebootRequired || item.GracefulRebootBegun(&m) {
			t.Errorf("%s: done %v, want %v; cordoned %v, rebootRequired %t, annotations %v", tt.name, l.log, tt.want, l.cordoned, m.Spec.RebootRequired, m.Annotations)
		}
	}
}

// statement H34: a request that is deleted while a node drains gives the node back. A machine
// that a user has annotated is rebooted all the same.
func TestDeletedRequestGivesTheNodeBack(t *testing.T) {
	l := start(t, append(slices.Concat(pair("w-0", nil), pair("w-1", nil)), request("c1"))...)
	l.blocked = "pod a/b cannot be evicted"
	l.passes(4, true)
	if len(l.cordoned) != 1 || l.status("c1").State != kaasv1.RebootInProgress {
		t.Fatalf("cordoned %v, status %+v before the request is deleted", l.cordoned, l.status("c1"))
	}
	l.must(l.Delete(t.Context(), request("c1")))
	m := l.all()[1]
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, item.GracefulRebootAnnotation, "true")
	l.must(l.Update(t.Context(), &m))
	// The deletion, and after a restart every LCMMachine, reconciles the request.
	_, err := l.requests.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(request("c1"))})
	l.must(err)
	l.blocked = ""
	l.passes(6, true)
	if want := []string{"uncordon node-w-0", "reboot w-1", "uncordon node-w-1"}; !slices.Equal(l.log, want) || len(l.cordoned) > 0 {
		t.Errorf("done %v, want %v; cordoned %v", l.log, want, l.cordoned)
	}
	for _, m := range l.all() {
		if item.GracefulRebootBegun(&m) || m.Annotations[item.RebootRequestAnnotation] != "" {
			t.Errorf("%s has %v", m.Name, m.Annotations)
		}
	}
}

func (l *lab) passes(n int, agents bool) {
	l.t.Helper()
	for range n {
		l.pass(agents)
	}
}

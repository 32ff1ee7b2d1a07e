package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/lab"
)

// machineWithItems has items in each state.
func machineWithItems() *lcmv1.LCMMachine {
	m := &lcmv1.LCMMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "worker-0"}}
	at := func(seconds int64) *metav1.Time { t := metav1.Unix(seconds, 0); return &t }
	m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	add := func(name string, runner lcmv1.Runner, s *lcmv1.StateItemStatus) {
		it := lcmv1.LCMStateItem{Runner: runner, Name: name, Version: "v1", Phase: lcmv1.PhaseReconfigure}
		m.Spec.StateItems = append(m.Spec.StateItems, it)
		if s == nil {
			return
		}
		if s.Hash == "" && s.StartedAt != nil {
			s.Hash = item.Hash(it, "")
		}
		m.Status.StateItemStatuses[name] = *s
	}
	add("archive", lcmv1.RunnerDownloader, &lcmv1.StateItemStatus{Attempt: 1, StartedAt: at(10), FinishedAt: at(12), Message: "3 files are in /root/m"})
	add("play", lcmv1.RunnerAnsible, &lcmv1.StateItemStatus{Attempt: 3, ExitCode: 2, StartedAt: at(20), FinishedAt: at(85), Message: "Copy it: no such file\nsecond line"})
	add("script", lcmv1.RunnerBash, &lcmv1.StateItemStatus{Attempt: 1, ExitCode: item.NotExited, StartedAt: at(90)})
	add("edited", lcmv1.RunnerAnsible, &lcmv1.StateItemStatus{Attempt: 7, Hash: "of other params", StartedAt: at(1), FinishedAt: at(2), Message: "old"})
	add("blocked", lcmv1.RunnerAnsible, &lcmv1.StateItemStatus{ExitCode: item.NotExited, Message: "blocked by elemental: reset"})
	add("new", lcmv1.RunnerBash, nil)
	return m
}

func TestItemsOfAHost(t *testing.T) {
	rows := itemRows(itemsOf(machineWithItems(), time.Unix(100, 0)))
	want := [][]string{
		{"=NAME", "RUNNER", "STATE", "ATTEMPTS", "DURATION", "MESSAGE"},
		{"archive", "downloader", "Success", "1", "2s", "3 files are in /root/m"},
		{"play", "ansible", "Failed", "3", "1m5s", "Copy it: no such file"},
		{"script", "bash", "Running", "1", "10s", ""},
		{"edited", "ansible", "Not Started", "0", "", ""},
		{"blocked", "ansible", "Not Started", "0", "", "blocked by elemental: reset"},
		{"new", "bash", "Not Started", "0", "", ""},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestItemsThatHaveNoLog(t *testing.T) {
	for name, want := range map[string]string{
		"play": "", "script": "", "edited": "",
		"archive": "the item archive has no output: it downloads a file",
		"new":     "the item new has no output: it has not been executed yet",
		"blocked": "the item blocked has no output: it has not been executed yet: blocked by elemental: reset",
		"none":    "there is no item none: the LCMMachine default/worker-0 has archive, play, script, edited, blocked, new",
	} {
		if err := hasLog(machineWithItems(), name); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("hasLog(%s) = %v, want %q", name, err, want)
		}
	}
}

// The LCMMachine of a server is that of the Machine which has claimed its BareMetalHost.
func TestLCMMachineOfAHost(t *testing.T) {
	scheme, err := lab.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	host := func(name, address string, consumer *corev1.ObjectReference) *metal3.BareMetalHost {
		h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		h.Spec.BMC.Address, h.Spec.ConsumerRef = address, consumer
		return h
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		machineWithItems(),
		host("a", "redfish://192.0.2.1/redfish/v1/Systems/1", &corev1.ObjectReference{Kind: "Machine", Namespace: "default", Name: "worker-0"}),
		host("b", "redfish://192.0.2.2/redfish/v1/Systems/1", nil),
		host("c", "redfish://192.0.2.3/redfish/v1/Systems/1", &corev1.ObjectReference{Kind: "Machine", Namespace: "default", Name: "worker-1"}),
		host("d", "redfish://192.0.2.4/redfish/v1/Systems/1", &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "default", Name: "worker-0"}),
	).Build()
	for address, want := range map[string]string{
		"redfish://192.0.2.1/redfish/v1/Systems/1": "",
		"redfish://192.0.2.2/redfish/v1/Systems/1": "no Machine has claimed the BareMetalHost default/b",
		"redfish://192.0.2.3/redfish/v1/Systems/1": "that of the Machine default/worker-1, which has claimed it, does not exist yet",
		"redfish://192.0.2.4/redfish/v1/Systems/1": "no Machine has claimed the BareMetalHost default/d",
		"redfish://192.0.2.5/redfish/v1/Systems/1": "node-0 has no BareMetalHost",
	} {
		m, err := lcmMachineAt(t.Context(), kube, "node-0", address)
		if want == "" && (err != nil || m.Name != "worker-0") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("LCMMachine of the host at %s = %v, %v, want %q", address, m, err, want)
		}
	}
}

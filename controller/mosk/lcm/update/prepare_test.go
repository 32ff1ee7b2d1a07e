package update

import (
	"fmt"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// download is the item of the phase prepare.
func download(version string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerDownloader, Name: "download", Version: version, Phase: lcmv1.PhasePrepare}
}

// preparation counts the workers that have the phase prepare before them, at each of n passes. Their
// agents execute one item a pass, in the order of the phases. Machines that were not deployed are
// never cordoned.
func (l *lab) preparation(n int, deployed bool) (most int) {
	l.Helper()
	for range n {
		_, err := l.updates.Reconcile(l.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "c1"}})
		l.must(err)
		now := 0
		for _, m := range l.all() {
			_, err := l.items.Reconcile(l.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			l.must(err)
			l.must(l.Get(l.Context(), client.ObjectKeyFromObject(&m), &m))
			if !deployed && l.cordoned[m.Name] {
				l.Errorf("%s is cordoned, and was not deployed", m.Name)
			}
			if item.Prepares(&m) && m.Spec.Type == lcmv1.MachineWorker {
				now++
			}
			i := slices.IndexFunc(m.Spec.StateItems, func(it lcmv1.LCMStateItem) bool { return !item.Ready(it, m.Status.StateItemStatuses, "") })
			if i < 0 || l.failing[m.Name] {
				continue
			}
			it := m.Spec.StateItems[i]
			if m.Status.StateItemStatuses == nil {
				m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
			}
			m.Status.StateItemStatuses[it.Name] = lcmv1.StateItemStatus{Hash: item.Hash(it, ""), Attempt: 1}
			l.must(l.Status().Update(l.Context(), &m))
			l.log = append(l.log, it.Name+" "+it.Version+" "+m.Name)
		}
		most = max(most, now)
	}
	return most
}

// prepared returns a lab of a cluster with a bound of preparations, whose machines are new ones or
// have v1, and get a release with an item of the phase prepare.
func prepared(t *testing.T, bound int, deployed bool) *lab {
	t.Helper()
	var objects []client.Object
	for _, name := range []string{"w-0", "w-1", "w-2", "w-3", "control-0"} {
		p := pair(name, "", nil)
		if m := p[1].(*lcmv1.LCMMachine); !deployed {
			m.Spec.StateItems, m.Status.StateItemStatuses = nil, nil
		}
		objects = append(objects, p...)
	}
	l := start(t, 4, objects...)
	c := l.cluster()
	c.Spec.MaxWorkerPrepareCount = bound
	for _, kind := range []lcmv1.MachineType{lcmv1.MachineWorker, lcmv1.MachineControl} {
		c.Spec.MachinesTypes[kind] = []lcmv1.LCMStateItem{download("v2"), script("v2")}
	}
	l.must(l.Update(t.Context(), c))
	return l
}

func (l *lab) allDone() bool {
	l.Helper()
	return !slices.ContainsFunc(l.all(), func(m lcmv1.LCMMachine) bool {
		return len(m.Spec.StateItems) != 2 || !item.ReleaseDone(&m) || m.Annotations[item.PreparingAnnotation] != "" || m.Annotations[item.UpdatingAnnotation] != ""
	})
}

// maxWorkerPrepareCount bounds how many workers are in the phase prepare, when they are deployed and
// when they are updated, whatever maxWorkerUpgradeCount is; the control plane does not count.
func TestNeverMorePreparedThanTheBound(t *testing.T) {
	for _, deployed := range []bool{false, true} {
		for bound := range 6 {
			t.Run(fmt.Sprintf("deployed %t, bound %d", deployed, bound), func(t *testing.T) {
				l := prepared(t, bound, deployed)
				want := min(bound, 4)
				if bound == 0 {
					want = 4
				}
				if got := l.preparation(60, deployed); got != want || !l.allDone() {
					t.Errorf("%d workers were prepared at a time, want %d; done %t: %v", got, want, l.allDone(), l.log)
				}
			})
		}
	}
}

// A worker whose preparation fails keeps its place, and the others say that they wait. A higher bound
// lets them go on, and the removal of the bound takes its marks off.
func TestFailedPreparationKeepsItsPlace(t *testing.T) {
	l := prepared(t, 1, false)
	l.failing["w-0"] = true
	l.preparation(10, false)
	for _, m := range l.all() {
		want := map[string]string{"w-0": item.Preparing, "control-0": ""}
		value, ok := want[m.Name]
		if !ok {
			value = item.AwaitsPreparation
		}
		if got := m.Annotations[item.PreparingAnnotation]; got != value || value == item.AwaitsPreparation && (len(m.Spec.StateItems) > 0 || m.Status.State != lcmv1.StatePending) {
			t.Errorf("%s: annotation %q, want %q; items %v, %s", m.Name, got, value, m.Spec.StateItems, m.Status.State)
		}
	}
	c := l.cluster()
	c.Spec.MaxWorkerPrepareCount = 2
	l.must(l.Update(t.Context(), c))
	if got := l.preparation(30, false); got != 2 || len(l.log) != 8 {
		t.Errorf("with a higher bound: %d at a time, executed %v", got, l.log)
	}
	c = l.cluster()
	c.Spec.MaxWorkerPrepareCount = 0
	l.must(l.Update(t.Context(), c))
	l.failing["w-0"] = false
	if l.preparation(10, false); !l.allDone() {
		t.Errorf("without a bound: executed %v", l.log)
	}
}

// A machine that is being prepared when the bound is set stays so, and counts.
func TestBoundThatIsSetLater(t *testing.T) {
	l := prepared(t, 0, false)
	for _, name := range []string{"w-0", "w-1"} {
		m := l.all()[slices.IndexFunc(l.all(), func(m lcmv1.LCMMachine) bool { return m.Name == name })]
		m.Spec.StateItems = []lcmv1.LCMStateItem{download("v2"), script("v2")}
		l.must(l.Update(t.Context(), &m))
		l.failing[name] = true
	}
	c := l.cluster()
	c.Spec.MaxWorkerPrepareCount = 2
	l.must(l.Update(t.Context(), c))
	if got := l.preparation(10, false); got != 2 {
		t.Errorf("%d at a time, want the two that have begun: %v", got, l.log)
	}
	clear(l.failing)
	if got := l.preparation(40, false); got != 2 || !l.allDone() {
		t.Errorf("%d at a time, want 2; done %t: %v", got, l.allDone(), l.log)
	}
}

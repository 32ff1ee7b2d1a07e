package update

import (
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// places are those of the workers that maxWorkerPrepareCount lets execute items of the phase prepare
// at a time.
type places struct {
	cluster *lcmv1.LCMCluster
	free    int
	taken   map[string]bool // by the machines that begin now
}

func newPlaces(f facts) *places {
	p := &places{cluster: &f.cluster, free: f.cluster.Spec.MaxWorkerPrepareCount, taken: map[string]bool{}}
	for _, t := range f.machines {
		if p.has(t) {
			p.free--
		}
	}
	return p
}

func (p *places) unbounded() bool { return p.cluster.Spec.MaxWorkerPrepareCount <= 0 }

// has reports whether a machine has a place. One that has begun before there was a bound has one, too.
func (p *places) has(t target) bool {
	return item.MustPrepare(p.cluster, t.LCMMachine) && (t.Annotations[item.PreparingAnnotation] == item.Preparing || item.Prepares(t.LCMMachine))
}

// take reports whether a machine can begin its update, and takes a place if it needs one.
func (p *places) take(t target) bool {
	if p.unbounded() || p.has(t) || !item.MustPrepare(p.cluster, t.LCMMachine) {
		return true
	}
	if p.free <= 0 {
		return false
	}
	p.free--
	p.taken[t.Name] = true
	return true
}

// steps returns the steps that give machines their places and take them back. A machine that is in
// service gets one with the begin of its update.
func (p *places) steps(machines []target) (out []step) {
	for _, t := range machines {
		value := t.Annotations[item.PreparingAnnotation]
		want := value
		switch {
		case p.unbounded() || !item.MustPrepare(p.cluster, t.LCMMachine):
			want = ""
		case p.taken[t.Name]: // with stepBegin
		case p.has(t):
			want = item.Preparing
		case !item.MayUpdate(t.LCMMachine):
			want = ""
		case p.free > 0:
			p.free--
			want = item.Preparing
		default:
			want = item.AwaitsPreparation
		}
		if want != value {
			out = append(out, step{do: stepPlace, machine: t.LCMMachine, place: want})
		}
	}
	return out
}

package update

import (
	"cmp"
	"slices"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// facts hold the objects that a reconcile has read.
type facts struct {
	cluster  lcmv1.LCMCluster
	machines []target
	groups   []kaasv1.UpdateGroup
}

// target is a machine of the cluster.
type target struct {
	*lcmv1.LCMMachine
	machine *clusterv1.Machine // nil: it was not made by the provider
}

func (t target) updating() bool { return t.Annotations[item.UpdatingAnnotation] != "" }

// out reports whether the node is out of service, for whatever reason.
func (t target) out() bool {
	return t.updating() || t.Status.KubernetesCordonDrain != "" || t.Annotations[item.GracefulRebootAnnotation] != "" || t.Annotations[item.HeldForRebootAnnotation] != ""
}

// action is the next action for a machine.
type action string

const (
	stepBegin    action = "begin"    // mark it, and enter
	stepEnter    action = "enter"    // maintenance, and stay there until the items are done
	stepReboot   action = "reboot"   // demand it
	stepRebooted action = "rebooted" // take the demand back, and note for which release it was
	stepLeave    action = "leave"    // maintenance, and remove the mark
	stepPlace    action = "place"    // write whether it may be prepared
)

type step struct {
	do      action
	machine *lcmv1.LCMMachine
	release string // that the machine gets
	place   string // value of item.PreparingAnnotation, which stepBegin and stepPlace write
	last    bool   // the step is the cluster's last: the cluster's maintenance ends, too
}

// group is an UpdateGroup with its machines.
type group struct {
	index    int // stages: the lowest is updated first
	limit    int
	reboot   bool
	machines []target
}

// beforeWorkers is the index of the control plane.
const beforeWorkers = -1

// grouped returns the groups that have machines, by their index and name.
func grouped(f facts) []*group {
	objects := map[string]kaasv1.UpdateGroupSpec{
		f.cluster.Name + kaasv1.ControlUpdateGroup: {ConcurrentUpdates: 1},
		f.cluster.Name + kaasv1.DefaultUpdateGroup: {Index: 1, ConcurrentUpdates: max(f.cluster.Spec.MaxWorkerUpgradeCount, 1)},
	}
	for _, g := range f.groups {
		objects[g.Name] = g.Spec
	}
	byName := map[string]*group{}
	var names []string
	for _, t := range f.machines {
		name := f.cluster.Name + kaasv1.DefaultUpdateGroup
		if t.machine != nil {
			if label := t.machine.Labels[kaasv1.UpdateGroupLabel]; label != "" {
				if _, exists := objects[label]; exists {
					name = label
				}
			}
		}
		if t.Spec.Type == lcmv1.MachineControl {
			name = f.cluster.Name + kaasv1.ControlUpdateGroup
		}
		g := byName[name]
		if g == nil {
			o := objects[name]
			g = &group{index: o.Index, limit: max(o.ConcurrentUpdates, 1), reboot: o.RebootIfUpdateRequires}
			if t.Spec.Type == lcmv1.MachineControl {
				g.index = beforeWorkers
			}
			byName[name], names = g, append(names, name)
		}
		g.machines = append(g.machines, t)
	}
	slices.Sort(names)
	var out []*group
	for _, name := range names {
		g := byName[name]
		slices.SortStableFunc(g.machines, func(a, b target) int {
			return cmp.Or(cmp.Compare(item.UpgradeIndex(a.machine), item.UpgradeIndex(b.machine)), cmp.Compare(a.Name, b.Name))
		})
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b *group) int { return cmp.Compare(a.index, b.index) })
	return out
}

// decide returns the next steps of the machines whose update has begun, and of those that may
// begin.
func decide(f facts) (steps []step) {
	groups, prepares := grouped(f), newPlaces(f)
	for i := 0; i < len(groups); {
		stage := groups[i].index
		busy := false
		for ; i < len(groups) && groups[i].index == stage; i++ {
			more, unfinished := groups[i].next(&f.cluster, prepares)
			steps, busy = append(steps, more...), busy || unfinished
		}
		if busy { // later groups wait; what was begun there earlier goes on
			for ; i < len(groups); i++ {
				for _, t := range groups[i].machines {
					if t.updating() {
						steps = append(steps, groups[i].stepOf(&f.cluster, t))
					}
				}
			}
		}
	}
	behind := slices.ContainsFunc(f.machines, func(t target) bool { return item.Behind(&f.cluster, t.LCMMachine) })
	stays := slices.ContainsFunc(steps, func(s step) bool { return s.do != stepLeave })
	if len(steps) > 0 && !behind && !stays {
		steps[len(steps)-1].last = true
	}
	for _, g := range groups { // in the order of updates
		steps = append(steps, prepares.steps(g.machines)...)
	}
	return steps
}

// next returns the steps of a group, and whether it has machines that are not updated.
func (g *group) next(c *lcmv1.LCMCluster, prepares *places) (steps []step, unfinished bool) {
	out := 0
	for _, t := range g.machines {
		if t.out() {
			out++
		}
	}
	for _, t := range g.machines {
		behind := item.Behind(c, t.LCMMachine)
		unfinished = unfinished || behind || t.updating()
		switch {
		case t.updating():
			steps = append(steps, g.stepOf(c, t))
		case behind && item.MayUpdate(t.LCMMachine): // it is not in service: it gets the items without an update
		case behind && !t.out() && out < g.limit && prepares.take(t):
			out++
			begin := step{do: stepBegin, machine: t.LCMMachine}
			if prepares.taken[t.Name] {
				begin.place = item.Preparing
			}
			steps = append(steps, begin)
		}
	}
	return steps, unfinished
}

// stepOf returns the step of a machine that is updated.
func (g *group) stepOf(c *lcmv1.LCMCluster, t target) step {
	m := t.LCMMachine
	host := m.Status.HostInfo
	due := item.RebootDue(c, m)
	switch {
	case item.OtherItems(c, m) || !item.ReleaseDone(m):
		return step{do: stepEnter, machine: m}
	case due && m.Status.KubernetesCordonDrain != lcmv1.CordonDrained: // of a release that changes no item of the machine
		return step{do: stepEnter, machine: m}
	case m.Spec.RebootRequired && (m.Status.Reboot == nil || !m.Status.Reboot.Completed):
		return step{do: stepEnter, machine: m} // the agent reboots the server
	case m.Spec.RebootRequired:
		return step{do: stepRebooted, machine: m, release: c.Spec.Release}
	case due && m.Status.Reboot != nil: // of an earlier reboot: the agent removes it
		return step{do: stepEnter, machine: m}
	case due:
		return step{do: stepReboot, machine: m}
	case g.reboot && host != nil && host.RebootRequired && m.Status.Reboot == nil:
		return step{do: stepReboot, machine: m}
	}
	return step{do: stepLeave, machine: m}
}

package machines

import (
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
	"github.com/metalab-dev/metalab/controller/mosk/unapplied"
)

// The statuses of a Machine before LCM deploys to it, and when it is deleted. Those between are
// the states of its LCMMachine.
const (
	StatusProvision          = "Provision"
	StatusAwaitsProvisioning = "AwaitsProvisioning"
	StatusAwaitsDeployment   = "AwaitsDeployment"
	StatusDeleting           = "Deleting"
)

// statusOf returns the status of a Machine.
func statusOf(f *facts, d decision) clusterv1.MachineStatus {
	out := *f.machine.Status.DeepCopy()
	if out.ProviderStatus == nil {
		out.ProviderStatus = &baremetalv1.MachineProviderStatus{}
	}
	p := out.ProviderStatus
	p.TypeMeta = metav1.TypeMeta{APIVersion: "baremetal.k8s.io/v1alpha1", Kind: "BareMetalMachineProviderStatus"}
	p.Status = ladder(f)
	spec := f.machine.Spec.ProviderSpec.Value
	p.Maintenance, p.UpgradeIndex = inMaintenance(spec, f.lcm), spec.UpgradeIndex
	p.Delete = !f.machine.DeletionTimestamp.IsZero()
	instance := instanceCondition(f, d, nil)
	p.ProviderInstanceState = nil
	if f.host != nil && claimedBy(f.host, f.machine) {
		p.ProviderInstanceState = &baremetalv1.InstanceState{ID: f.named, State: string(f.host.Status.Provisioning.State), Ready: instance.Ready}
		p.Hardware = hardwareOf(f.host)
	}
	out.ProviderID, out.InstanceName = ptr.Deref(f.machine.Spec.ProviderID, ""), ""
	if n := f.node; n != nil { // the reference stays when the Node is gone: a drain misses it then
		out.NodeRef = &clusterv1.NodeReference{Kind: "Node", Name: n.Name, UID: string(n.UID)}
	}
	out.Addresses, p.PrivateIP, p.Reboot, p.PrepareDeletionPhase = nil, "", nil, ""
	if l := f.lcm; l != nil {
		for _, a := range l.Status.Addresses {
			out.Addresses = append(out.Addresses, clusterv1.NodeAddress{Type: string(a.Type), Address: a.Address})
			switch {
			case a.Type == lcmv1.AddressInternalIP && p.PrivateIP == "":
				p.PrivateIP = a.Address
			case a.Type == lcmv1.AddressHostname && out.InstanceName == "":
				out.InstanceName = a.Address
			}
		}
		if h := l.Status.HostInfo; h != nil && h.RebootRequired {
			p.Reboot = &baremetalv1.RebootRequest{Required: true, Reason: h.RebootReason}
		}
		p.PrepareDeletionPhase = l.Status.PrepareDeletionPhase
	}
	p.Conditions = conditionsOf(f, d, p.Conditions)
	p.Ready = p.Status == string(lcmv1.StateReady) && !slices.ContainsFunc(p.Conditions, func(c baremetalv1.Condition) bool { return !c.Ready })
	return out
}

// written are the types of the conditions that the provider writes, in their order. of
// returns the condition of a Machine, nil when it has none; was are those before.
var written = []struct {
	kind string
	of   func(f *facts, d decision, was []baremetalv1.Condition) *baremetalv1.Condition
}{
	{baremetalv1.ConditionProviderInstance, instanceCondition},
	{conditionProfile, profileCondition},
	{baremetalv1.ConditionLCM, lcmCondition},
	{baremetalv1.ConditionKubelet, kubeletCondition},
	{conditionNodeLabels, nodeLabelsCondition},
	{baremetalv1.ConditionMaintenance, maintenanceCondition},
	{baremetalv1.ConditionGracefulReboot, gracefulRebootCondition},
	{baremetalv1.ConditionReboot, rebootCondition},
	{baremetalv1.ConditionPrepareDeletion, deletionCondition},
	{baremetalv1.ConditionNotApplied, func(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
		return unapplied.Condition("Machine", f.machine)
	}},
}

// conditionsOf returns the conditions of a Machine. Those of other types stay.
func conditionsOf(f *facts, d decision, was []baremetalv1.Condition) (out []baremetalv1.Condition) {
	others := unmanaged.Without(was)
	for _, w := range written {
		others = slices.DeleteFunc(others, func(c baremetalv1.Condition) bool { return c.Type == w.kind })
		if c := w.of(f, d, was); c != nil {
			c.Type = w.kind
			out = append(out, *c)
		}
	}
	return append(out, others...)
}

// deploying reports whether LCM deploys to the machine, or has.
func deploying(f *facts) bool {
	return f.lcm != nil && f.host != nil && claimedBy(f.host, f.machine) && provisioned(f.host) && assigned(f)
}

// ladder returns the step that a Machine is on.
func ladder(f *facts) string {
	h, spec := f.host, f.machine.Spec.ProviderSpec.Value
	switch {
	case !f.machine.DeletionTimestamp.IsZero():
		return StatusDeleting
	case h == nil || !claimedBy(h, f.machine):
		return StatusProvision
	case h.Spec.Image == nil && idle[h.Status.Provisioning.State] && manual(spec.Day1Provisioning):
		return StatusAwaitsProvisioning
	case !provisioned(h):
		return StatusProvision
	case !deploying(f) && manual(spec.Day1Deployment):
		return StatusAwaitsDeployment
	case !deploying(f):
		return StatusProvision
	case f.lcm.Status.State == "" || f.lcm.Spec.ClusterName == "": // controller/mosk/lcm has not seen it
		return string(lcmv1.StateUninitialized)
	}
	return string(f.lcm.Status.State)
}

func instanceCondition(f *facts, d decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	c := &baremetalv1.Condition{Message: d.message}
	c.Ready = c.Message == "" && f.machine.DeletionTimestamp.IsZero() && f.host != nil && claimedBy(f.host, f.machine) && provisioned(f.host)
	return c
}

// deletionCondition is there while the deletion of a Machine is prepared or was.
func deletionCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	l := f.lcm
	if l == nil || !l.Spec.PrepareDeletion && l.Status.PrepareDeletionPhase == "" {
		return nil
	}
	c := &baremetalv1.Condition{Ready: l.Status.PrepareDeletionPhase == lcmv1.DeletionCompleted}
	if !c.Ready {
		c.Message = phaseText(l)
	}
	return c
}

func hardwareOf(h *metal3.BareMetalHost) *baremetalv1.MachineHardware {
	d := h.Status.HardwareDetails
	if d == nil {
		return nil
	}
	out := &baremetalv1.MachineHardware{CPU: d.CPU.Count, RAM: baremetalv1.GiB(d.RAMMebibytes >> 10)}
	for _, disk := range d.Storage {
		one := baremetalv1.MachineDisk{Name: disk.Name, Size: baremetalv1.GiB(disk.SizeBytes >> 30), Type: strings.ToLower(string(disk.Type))}
		for _, name := range append([]string{disk.Name}, disk.AlternateNames...) {
			switch {
			case one.ByID == "" && strings.HasPrefix(name, "/dev/disk/by-id/"):
				one.ByID = name
			case one.ByPath == "" && strings.HasPrefix(name, "/dev/disk/by-path/"):
				one.ByPath = name
			}
		}
		out.Storage = append(out.Storage, one)
	}
	return out
}

package machines

import (
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// The statuses of a Machine before LCM deploys to it. Those after are the states of its
// LCMMachine.
const (
	StatusProvision          = "Provision"
	StatusAwaitsProvisioning = "AwaitsProvisioning"
	StatusAwaitsDeployment   = "AwaitsDeployment"
)

// statusOf returns the status of a Machine. Conditions of other types stay.
func statusOf(f *facts, d decision) clusterv1.MachineStatus {
	out := *f.machine.Status.DeepCopy()
	if out.ProviderStatus == nil {
		out.ProviderStatus = &baremetalv1.MachineProviderStatus{}
	}
	p := out.ProviderStatus
	p.TypeMeta = metav1.TypeMeta{APIVersion: "baremetal.k8s.io/v1alpha1", Kind: "BareMetalMachineProviderStatus"}
	p.Status = ladder(f)
	spec := f.machine.Spec.ProviderSpec.Value
	p.Maintenance, p.UpgradeIndex = spec.Maintenance, spec.UpgradeIndex
	p.Delete = !f.machine.DeletionTimestamp.IsZero()
	instance := instanceOf(f, d)
	p.ProviderInstanceState = nil
	if f.host != nil && claimedBy(f.host, f.machine) {
		p.ProviderInstanceState = &baremetalv1.InstanceState{ID: f.named, State: string(f.host.Status.Provisioning.State), Ready: instance.Ready}
		p.Hardware = hardwareOf(f.host)
	}
	conditions := []baremetalv1.Condition{instance}
	if f.profile.ref.Name != "" && f.machine.DeletionTimestamp.IsZero() {
		conditions = append(conditions, profileCondition(f, p.Conditions))
	}
	out.Addresses, p.PrivateIP, p.Reboot, p.PrepareDeletionPhase = nil, "", nil, ""
	if l := f.lcm; l != nil {
		for _, a := range l.Status.Addresses {
			out.Addresses = append(out.Addresses, clusterv1.NodeAddress{Type: string(a.Type), Address: a.Address})
			if a.Type == lcmv1.AddressInternalIP && p.PrivateIP == "" {
				p.PrivateIP = a.Address
			}
		}
		if h := l.Status.HostInfo; h != nil && h.RebootRequired {
			p.Reboot = &baremetalv1.RebootRequest{Required: true, Reason: h.RebootReason}
		}
		p.PrepareDeletionPhase = l.Status.PrepareDeletionPhase
		if deploying(f) {
			conditions = append(conditions, lcmCondition(l))
		}
		if l.Spec.PrepareDeletion || l.Status.PrepareDeletionPhase != "" {
			conditions = append(conditions, deletionCondition(l))
		}
	}
	for _, c := range p.Conditions {
		if !slices.Contains(writtenConditions, c.Type) {
			conditions = append(conditions, c)
		}
	}
	p.Conditions = conditions
	p.Ready = p.Status == string(lcmv1.StateReady) && !slices.ContainsFunc(conditions, func(c baremetalv1.Condition) bool { return !c.Ready })
	return out
}

// deploying reports whether LCM deploys to the machine, or has.
func deploying(f *facts) bool {
	return f.lcm != nil && f.host != nil && claimedBy(f.host, f.machine) && provisioned(f.host) && assigned(f)
}

// ladder returns the step that a Machine is on.
func ladder(f *facts) string {
	h, spec := f.host, f.machine.Spec.ProviderSpec.Value
	if h == nil || !claimedBy(h, f.machine) || !f.machine.DeletionTimestamp.IsZero() {
		return StatusProvision
	}
	switch {
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

func instanceOf(f *facts, d decision) baremetalv1.Condition {
	c := baremetalv1.Condition{Type: baremetalv1.ConditionProviderInstance, Message: d.message}
	c.Ready = c.Message == "" && f.machine.DeletionTimestamp.IsZero() && f.host != nil && claimedBy(f.host, f.machine) && provisioned(f.host)
	return c
}

func lcmCondition(l *lcmv1.LCMMachine) baremetalv1.Condition {
	c := baremetalv1.Condition{Type: baremetalv1.ConditionLCM, Ready: l.Status.State == lcmv1.StateReady}
	if !c.Ready {
		c.Message = fmt.Sprintf("the LCMMachine is %s", l.Status.State)
	}
	return c
}

// writtenConditions are the types of the conditions that the provider writes.
var writtenConditions = []string{baremetalv1.ConditionProviderInstance, baremetalv1.ConditionLCM, baremetalv1.ConditionPrepareDeletion, conditionProfile}

// deletionCondition is there while the deletion of a Machine is prepared or was.
func deletionCondition(l *lcmv1.LCMMachine) baremetalv1.Condition {
	c := baremetalv1.Condition{Type: baremetalv1.ConditionPrepareDeletion, Ready: l.Status.PrepareDeletionPhase == lcmv1.DeletionCompleted}
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
	out := &baremetalv1.MachineHardware{CPU: d.CPU.Count, RAM: fmt.Sprintf("%dMi", d.RAMMebibytes)}
	for _, disk := range d.Storage {
		out.Storage = append(out.Storage, baremetalv1.MachineDisk{Name: disk.Name, Size: fmt.Sprintf("%dGi", int64(disk.SizeBytes)>>30)})
	}
	return out
}

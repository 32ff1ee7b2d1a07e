package machines

import (
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// The statuses of a Machine before LCM deploys to it. Those after are the states of its
// LCMMachine.
const (
	StatusProvision          = "Provision"
	StatusAwaitsProvisioning = "AwaitsProvisioning"
	StatusAwaitsDeployment   = "AwaitsDeployment"
)

// statusOf returns the status of a Machine. Conditions of other types stay.
func statusOf(f *facts, d decision) cluster.MachineStatus {
	out := *f.machine.Status.DeepCopy()
	if out.ProviderStatus == nil {
		out.ProviderStatus = &baremetal.MachineProviderStatus{}
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
		p.ProviderInstanceState = &baremetal.InstanceState{ID: f.named, State: string(f.host.Status.Provisioning.State), Ready: instance.Ready}
		p.Hardware = hardwareOf(f.host)
	}
	conditions := []baremetal.Condition{instance}
	if f.profile.ref.Name != "" && f.machine.DeletionTimestamp.IsZero() {
		conditions = append(conditions, profileCondition(f, p.Conditions))
	}
	out.Addresses, p.PrivateIP, p.Reboot, p.PrepareDeletionPhase = nil, "", nil, ""
	if l := f.lcm; l != nil {
		for _, a := range l.Status.Addresses {
			out.Addresses = append(out.Addresses, cluster.NodeAddress{Type: string(a.Type), Address: a.Address})
			if a.Type == lcm.AddressInternalIP && p.PrivateIP == "" {
				p.PrivateIP = a.Address
			}
		}
		if h := l.Status.HostInfo; h != nil && h.RebootRequired {
			p.Reboot = &baremetal.RebootRequest{Required: true, Reason: h.RebootReason}
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
	p.Ready = p.Status == string(lcm.StateReady) && !slices.ContainsFunc(conditions, func(c baremetal.Condition) bool { return !c.Ready })
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
		return string(lcm.StateUninitialized)
	}
	return string(f.lcm.Status.State)
}

func instanceOf(f *facts, d decision) baremetal.Condition {
	c := baremetal.Condition{Type: baremetal.ConditionProviderInstance, Message: d.message}
	c.Ready = c.Message == "" && f.machine.DeletionTimestamp.IsZero() && f.host != nil && claimedBy(f.host, f.machine) && provisioned(f.host)
	return c
}

func lcmCondition(l *lcm.LCMMachine) baremetal.Condition {
	c := baremetal.Condition{Type: baremetal.ConditionLCM, Ready: l.Status.State == lcm.StateReady}
	if !c.Ready {
		c.Message = fmt.Sprintf("the LCMMachine is %s", l.Status.State)
	}
	return c
}

// writtenConditions are the types of the conditions that the provider writes.
var writtenConditions = []string{baremetal.ConditionProviderInstance, baremetal.ConditionLCM, baremetal.ConditionPrepareDeletion, conditionProfile}

// deletionCondition is there while the deletion of a Machine is prepared or was.
func deletionCondition(l *lcm.LCMMachine) baremetal.Condition {
	c := baremetal.Condition{Type: baremetal.ConditionPrepareDeletion, Ready: l.Status.PrepareDeletionPhase == lcm.DeletionCompleted}
	if !c.Ready {
		c.Message = phaseText(l)
	}
	return c
}

func hardwareOf(h *metal3.BareMetalHost) *baremetal.MachineHardware {
	d := h.Status.HardwareDetails
	if d == nil {
		return nil
	}
	out := &baremetal.MachineHardware{CPU: d.CPU.Count, RAM: fmt.Sprintf("%dMi", d.RAMMebibytes)}
	for _, disk := range d.Storage {
		out.Storage = append(out.Storage, baremetal.MachineDisk{Name: disk.Name, Size: fmt.Sprintf("%dGi", int64(disk.SizeBytes)>>30)})
	}
	return out
}

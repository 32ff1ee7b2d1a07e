package machines

import (
	"cmp"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// maintenanceCondition is not ready while the node is out of service, or on its way there or back.
func maintenanceCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	if !deploying(f) {
		return nil
	}
	c := &baremetalv1.Condition{Ready: true}
	switch s := f.lcm.Status; {
	case s.KubernetesCordonDrain != "":
		c.Ready, c.Message = false, "the node is "+string(s.KubernetesCordonDrain)
		if why := s.KubernetesCordonDrainError; why != "" {
			c.Message += ": " + item.Line(why)
		}
	case f.machine.Spec.ProviderSpec.Value.Maintenance:
		c.Ready, c.Message = false, "spec.providerSpec.value.maintenance is true"
	}
	return c
}

// gracefulRebootCondition is not ready from the demand of a graceful reboot until the node is back.
func gracefulRebootCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	if !deploying(f) {
		return nil
	}
	c := &baremetalv1.Condition{Ready: !item.GracefulRebootBegun(f.lcm)}
	if !c.Ready {
		c.Message = "a graceful reboot is demanded"
		if name := f.lcm.Annotations[item.RebootRequestAnnotation]; name != "" {
			c.Message += " by GracefulRebootRequest " + name
		}
	}
	return c
}

// rebootCondition is not ready while a demanded reboot is not done. What the operating system asks
// for is a message of a machine that is ready: a GracefulRebootRequest reboots ready ones alone.
func rebootCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	if !deploying(f) {
		return nil
	}
	c, l := &baremetalv1.Condition{Ready: true}, f.lcm
	switch {
	case l.Spec.RebootRequired && (l.Status.Reboot == nil || !l.Status.Reboot.Completed):
		c.Ready, c.Message = false, "the agent reboots the server"
		if l.Status.Reboot != nil && l.Status.Reboot.ErrorMessage != "" {
			c.Message += ": " + item.Line(l.Status.Reboot.ErrorMessage)
		}
	case l.Status.HostInfo != nil && l.Status.HostInfo.RebootRequired:
		c.Message = "the operating system asks for a reboot: " + cmp.Or(item.Line(strings.TrimSpace(l.Status.HostInfo.RebootReason)), "it gives no reason")
	}
	return c
}

// inMaintenance reports whether a machine is out of service, or shall be.
func inMaintenance(spec baremetalv1.MachineProviderSpec, l *lcmv1.LCMMachine) bool {
	return spec.Maintenance || l != nil && l.Status.KubernetesCordonDrain != ""
}

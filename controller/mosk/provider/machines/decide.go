package machines

import (
	"cmp"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// action is a step of a Machine's life.
type action string

// The steps, in their order.
const (
	actWait       action = "wait"
	actHold       action = "add the finalizer"
	actCreate     action = "create the LCMMachine"
	actName       action = "name a host"
	actForget     action = "remove the name of a host"
	actClaim      action = "claim the host"
	actIdentify   action = "write the provider's ID"
	actSelectRoot action = "select the root device"
	actProvision  action = "provision the host"
	actWriteLCM   action = "write the parameters of the LCMMachine"
	actDeploy     action = "assign the LCMMachine to the cluster"
	actMark       action = "write the labels of the Node"
	actMaintain   action = "maintain the agent's account"

	actPrepareDeletion action = "prepare the deletion"
	actAbortDeletion   action = "abort the preparation of the deletion"
	actDelete          action = "delete the Machine"
	actDeprovision     action = "deprovision the host"
	actRemoveLCM       action = "remove the LCMMachine"
	actRemoveAccount   action = "remove the agent's account"
	actRelease         action = "release the host"
	actFinish          action = "remove the finalizer"
)

// decision is the next step, and why the host is not ready.
type decision struct {
	do      action
	message string
}

func wait(format string, args ...any) decision {
	return decision{actWait, fmt.Sprintf(format, args...)}
}

// decide returns the next step of a Machine.
func decide(f *facts) decision {
	m := f.machine
	switch {
	case !m.DeletionTimestamp.IsZero():
		return decideDeletion(f)
	case !controllerutil.ContainsFinalizer(m, Finalizer):
		return decision{do: actHold}
	case m.Spec.ProviderSpec.Value.Delete:
		return decideRequestedDeletion(f)
	case f.lcm != nil && f.lcm.Spec.PrepareDeletion:
		return decision{do: actAbortDeletion}
	case f.named == "":
		return decideHost(f)
	case f.host == nil && m.Spec.ProviderID == nil:
		return decision{do: actForget}
	case f.host == nil:
		return wait("BareMetalHost %s does not exist any more: delete the Machine", f.named)
	case claimedBy(f.host, m):
		return decideClaimed(f)
	case m.Spec.ProviderID != nil && f.host.Spec.ConsumerRef != nil:
		c := f.host.Spec.ConsumerRef
		return wait("spec.consumerRef of BareMetalHost %s names %s %s/%s: delete the Machine", f.named, c.Kind, c.Namespace, c.Name)
	case m.Spec.ProviderID == nil && unclaimable(f.host) != "":
		return decision{do: actForget, message: fmt.Sprintf("BareMetalHost %s is not free: %s", f.named, unclaimable(f.host))}
	}
	return decision{do: actClaim}
}

// decideHost decides on a Machine that names no host.
func decideHost(f *facts) decision {
	switch {
	case f.claimed != nil: // the annotation was removed
		return decision{do: actName}
	case f.problem != "":
		return decision{actWait, f.problem}
	case f.lcm == nil:
		return decision{do: actCreate}
	case len(f.free) > 0:
		return decision{do: actName}
	case f.selected:
		return wait("none of the hosts that spec.providerSpec.value.hostSelector selects is free: the Machine waits for one that is available and not claimed")
	}
	return wait("spec.providerSpec.value.hostSelector selects no BareMetalHost of the namespace")
}

// decideClaimed decides on a Machine whose host names it as the consumer.
func decideClaimed(f *facts) decision {
	m, h, spec := f.machine, f.host, f.machine.Spec.ProviderSpec.Value
	begun := h.Spec.Image != nil
	switch {
	case m.Spec.ProviderID == nil:
		return decision{do: actIdentify}
	case !h.DeletionTimestamp.IsZero():
		return wait("BareMetalHost %s is being deleted: delete the Machine", f.named)
	case f.problem != "" && (f.release == nil || !begun):
		return decision{actWait, f.problem}
	case f.lcm == nil:
		return decision{do: actCreate}
	case !begun && h.Status.ErrorMessage != "":
		return wait("BareMetalHost %s: %s", f.named, h.Status.ErrorMessage)
	case !begun && !idle[h.Status.Provisioning.State]:
		return wait("BareMetalHost %s is %s", f.named, h.Status.Provisioning.State)
	case !begun && f.profile.problem != "":
		return decision{actWait, f.profile.problem}
	case !begun && f.userDataProblem != "":
		return decision{actWait, f.userDataProblem}
	case !begun && f.unconnected != "":
		return decision{actWait, f.unconnected}
	case !begun && manual(spec.Day1Provisioning):
		return wait("spec.providerSpec.value.day1Provisioning is manual: set it to auto to write the image to BareMetalHost %s", f.named)
	case !begun && f.profile.changeHints:
		return decision{actSelectRoot, "BareMetalHost " + f.named + " gets its root device of " + f.profile.String()}
	case !begun && unprepared(f):
		return wait("BareMetalHost %s is being prepared with its root device", f.named)
	case !begun:
		return decision{do: actProvision, message: "BareMetalHost " + f.named + " is being provisioned"}
	case f.problem == "" && !equality.Semantic.DeepEqual(parameters(f), f.lcm.Spec):
		return decision{actWriteLCM, unready(f)}
	case !provisioned(h):
		return wait("%s", unready(f))
	case f.agentChanged:
		return decision{actDeprovision, "BareMetalHost " + f.named + " is installed again: its agent has not reported, and the release has another one"}
	case !assigned(f) && manual(spec.Day1Deployment):
		return decision{actMaintain, unready(f)}
	case !assigned(f):
		return decision{actDeploy, unready(f)}
	case unmarked(f):
		return decision{actMark, unready(f)}
	}
	return decision{actMaintain, unready(f)}
}

// manual reports whether a gate is closed. Its default is.
func manual(g baremetalv1.Gate) bool { return g != baremetalv1.GateAuto }

// provisioned reports whether a host has its image.
func provisioned(h *metal3.BareMetalHost) bool {
	return h.Spec.Image != nil && h.Status.Provisioning.State == metal3.StateProvisioned
}

// unready returns why the host of a Machine that is provisioned, or is about to be, is not
// ready; "" when it is.
func unready(f *facts) string {
	switch h := f.host; {
	case h.Status.ErrorMessage != "":
		return fmt.Sprintf("BareMetalHost %s: %s", f.named, h.Status.ErrorMessage)
	case !provisioned(h):
		return fmt.Sprintf("BareMetalHost %s is %s", f.named, h.Status.Provisioning.State)
	case !h.Status.PoweredOn:
		return fmt.Sprintf("BareMetalHost %s is switched off: its agent reports nothing", f.named)
	}
	return f.problem
}

// assigned reports whether the LCMMachine has the labels of its cluster and role.
func assigned(f *facts) bool {
	for name, value := range roleLabels(f.machine) {
		if f.lcm.Labels[name] != value {
			return false
		}
	}
	return true
}

// roleLabels returns the labels by which controller/mosk/lcm finds cluster and role.
func roleLabels(m *clusterv1.Machine) map[string]string {
	out := map[string]string{clusterv1.ClusterNameLabel: m.Labels[clusterv1.ClusterNameLabel]}
	if v, control := m.Labels[clusterv1.ControlPlaneLabel]; control {
		out[clusterv1.ControlPlaneLabel] = v
	}
	return out
}

// parameters returns the spec of the LCMMachine with the provider's fields.
func parameters(f *facts) lcmv1.LCMMachineSpec {
	out, spec := f.lcm.Spec, f.machine.Spec.ProviderSpec.Value
	out.SSHAuthorizedKeys = slices.Clone(f.keys)
	out.Release, out.AgentConfig = f.release.Name, f.release.Spec.Agent
	out.ServiceAccount = accountName(f.machine)
	out.ProxySecretName = ""
	if f.proxy != nil {
		out.ProxySecretName = item.ProxySecret(f.machine.Labels[clusterv1.ClusterNameLabel])
	}
	out.Maintenance = spec.Maintenance
	out.Distribution = spec.Distribution
	return out
}

// decideDeletion decides on a Machine that is being deleted: its node leaves the cluster,
// its host is deprovisioned, the agent's objects go, then the host is free.
func decideDeletion(f *facts) decision {
	m := f.machine
	policy := m.Spec.ProviderSpec.Value.DeletionPolicy
	mine := f.host != nil && claimedBy(f.host, m)
	d, prepared := decidePreparation(f)
	switch {
	case !controllerutil.ContainsFinalizer(m, Finalizer):
		return decision{do: actWait}
	case !prepared:
		return d
	case mine && f.host.Spec.Image != nil:
		return decision{actDeprovision, "BareMetalHost " + f.named + " is being deprovisioned"}
	case mine && occupied[f.host.Status.Provisioning.State] && policy != baremetalv1.DeletionForced && f.host.DeletionTimestamp.IsZero():
		message := fmt.Sprintf("BareMetalHost %s is being deprovisioned: it is %s", f.named, f.host.Status.Provisioning.State)
		if why := f.host.Status.ErrorMessage; why != "" {
			message += ": " + why
		}
		return decision{actWait, message}
	case f.lcm != nil && f.lcm.DeletionTimestamp.IsZero():
		return decision{do: actRemoveLCM}
	case f.lcm != nil:
		return wait("the LCMMachine is being deleted: it has the finalizers %q", f.lcm.Finalizers)
	case m.Spec.ProviderID != nil:
		return decision{do: actRemoveAccount}
	case mine:
		return decision{do: actRelease}
	}
	return decision{do: actFinish}
}

// decideRequestedDeletion decides on a Machine whose spec demands its deletion. Until the
// Machine is deleted the demand can be withdrawn.
func decideRequestedDeletion(f *facts) decision {
	if d, prepared := decidePreparation(f); !prepared {
		return d
	}
	return decision{do: actDelete}
}

// decidePreparation returns the next action before the deletion of a Machine, or that all of it
// is done. Only the policy graceful takes the node out of its cluster, and only a machine
// that LCM deploys to has one.
func decidePreparation(f *facts) (d decision, prepared bool) {
	switch {
	case f.machine.Spec.ProviderSpec.Value.DeletionPolicy != baremetalv1.DeletionGraceful:
		return decision{}, true
	case f.lcm == nil || !f.lcm.DeletionTimestamp.IsZero() || !assigned(f) || f.host == nil || !claimedBy(f.host, f.machine):
		return decision{}, true
	case !f.lcm.Spec.PrepareDeletion:
		return decision{do: actPrepareDeletion}, false
	case f.lcm.Status.PrepareDeletionPhase != lcmv1.DeletionCompleted:
		return wait("the LCMMachine prepares the deletion: %s", phaseText(f.lcm)), false
	}
	return decision{}, true
}

// phaseText describes the phase of the preparation, and why it waits.
func phaseText(l *lcmv1.LCMMachine) string {
	out := cmp.Or(l.Status.PrepareDeletionPhase, "not started")
	switch {
	case l.Status.KubernetesCordonDrainError != "":
		out += ": " + l.Status.KubernetesCordonDrainError
	case l.Status.KubernetesCordonDrain == lcmv1.CordonDraining: // an active lock has no message
		out += ": a workload lock that is active blocks without a message (kubectl get clusterworkloadlocks,nodeworkloadlocks)"
	}
	return out
}

// occupied are the states of a host that has, or may have, its image.
var occupied = map[metal3.ProvisioningState]bool{metal3.StateProvisioning: true, metal3.StateProvisioned: true, metal3.StateDeprovisioning: true}

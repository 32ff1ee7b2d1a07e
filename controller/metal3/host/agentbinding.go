package host

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// AgentBoundCondition says which agent the host's current boot is bound to: package
// inband gives jobs, and with them the user data, to no other. A host without a running
// agent does not have it. It is the one condition that is read again: another process
// learns the binding from it.
const (
	AgentBoundCondition = "AgentBound"
	agentBoundReason    = "FirstAgent"
)

// boundMessage is the message of the condition. boundKey parses it.
func boundMessage(b inband.Boot, key string) string {
	return "boot " + b.ID + " is bound to the agent with the key " + key
}

// boundKey returns the fingerprint of the key that a boot is bound to, by the status; "" if
// it is not bound.
func boundKey(h *metal3.BareMetalHost, b inband.Boot) string {
	c := meta.FindStatusCondition(h.Status.Conditions, AgentBoundCondition)
	if c == nil || b.ID == "" {
		return ""
	}
	key, ok := strings.CutPrefix(c.Message, boundMessage(b, ""))
	if !ok {
		return ""
	}
	return key
}

// bootsServer lists the actions that boot the server. They end an agent that runs there,
// and the agent of the next boot makes another key.
var bootsServer = map[phase.Action]bool{phase.PowerOn: true, phase.RestartBoot: true}

// setAgentCondition records which agent the boot that the status names is bound to, or
// removes the condition if it is bound to none.
func setAgentCondition(h *metal3.BareMetalHost, o *observation, d phase.Decision) {
	b, _ := currentBoot(h)
	key := boundKey(h, b)
	if b == o.boot && o.agent.Key != "" {
		key = o.agent.Key
	}
	if bootsServer[d.Do] && !o.facts.AgentUp {
		key = ""
	}
	if b.ID == "" || key == "" {
		meta.RemoveStatusCondition(&h.Status.Conditions, AgentBoundCondition)
		return
	}
	meta.SetStatusCondition(&h.Status.Conditions, metav1.Condition{
		Type: AgentBoundCondition, Status: metav1.ConditionTrue, Reason: agentBoundReason,
		Message: boundMessage(b, key), ObservedGeneration: h.Generation,
	})
}

// confirmAgent passes the agent's key that the status has for the boot of this pass to the
// agents' server.
func (r *Reconciler) confirmAgent(h *metal3.BareMetalHost, o *observation) {
	switch now, _ := currentBoot(h); {
	case o.boot.ID == "" || now == o.boot && o.agent.Key == "":
	case now != o.boot: // its token is worth nothing from now on, not only from the next pass on
		r.Inband.Forget(string(h.UID))
	case boundKey(h, o.boot) == "":
		r.Inband.Release(o.boot)
	default:
		r.Inband.Confirm(o.boot, o.agent.Key)
	}
}

// openBoot serves the files that the server boots its agent from while it needs an agent and
// none is up, and no longer: they contain the token of the boot.
func (r *Reconciler) openBoot(h *metal3.BareMetalHost, o *observation) {
	switch f := &o.facts; {
	case f.RegistrationError != "": // nothing is known now
	case o.boot.ID != "" && phase.WantsAgent(*f) && !f.AgentBound:
		r.Boot.Open(o.boot)
	default:
		r.Boot.Close(string(h.UID))
	}
}

// reportRefusals publishes an event for each agent that was refused because the boot is
// bound to another one. Which of the two runs on the server, nobody here knows.
func (r *Reconciler) reportRefusals(ctx context.Context, h *metal3.BareMetalHost) {
	var events eventList
	for _, x := range r.Inband.Refusals(string(h.UID)) {
		ctrl.LoggerFrom(ctx).Info("second agent refused", "boot", x.Boot, "key", x.Key, "from", x.From, "bound", x.Bound)
		events.add("AgentRefused", fmt.Sprintf("A second agent, with the key %s at %s, has the token of boot %s and was refused: the first one has the key %s. "+
			"An agent prints its key on the server's console. If the console shows the second one, a stranger has read the boot medium and got this host's jobs: "+
			"restart the operation, and change the passwords of the BMC", x.Key, x.From, x.Boot, x.Bound))
	}
	r.publish(ctx, h, events)
}

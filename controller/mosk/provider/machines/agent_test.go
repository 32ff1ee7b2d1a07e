package machines

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// A server whose agent has never reported is installed again when the release names another agent:
// nothing else reaches it. Once an agent has reported, it stays.
func TestServerWithoutAnAgentIsInstalledAgain(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	var states []metal3.ProvisioningState // of the host
	install := func() (states []metal3.ProvisioningState) {
		t.Helper()
		for range 12 {
			l.settle()
			l.hosts()
			if s := l.host("a").Status.Provisioning.State; len(states) == 0 || states[len(states)-1] != s {
				states = append(states, s)
			}
		}
		return states
	}
	change := func(sum string) {
		t.Helper()
		edit(l, &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}}, func(r *kaasv1.ClusterRelease) { r.Spec.Agent.SHA256 = sum })
	}
	data := func() string { return string(get(l, "m-user-data", new(corev1.Secret)).Data["userData"]) }
	if states = install(); states[len(states)-1] != metal3.StateProvisioned || !assigned(&facts{machine: l.machine("m"), lcm: l.lcm("m")}) {
		t.Fatalf("the host is %s", states)
	}
	first := data()
	if states = install(); len(states) != 1 {
		t.Errorf("the host becomes %s without a change", states)
	}
	change("5b")
	l.settle()
	if c := l.instance("m"); c.Ready || c.Message != "BareMetalHost lab/a is provisioned" {
		t.Errorf("ProviderInstance %+v", c)
	}
	if states = install(); len(states) != 4 || states[0] != metal3.StateDeprovisioning || states[3] != metal3.StateProvisioned {
		t.Errorf("after another agent of the release the host becomes %s", states)
	}
	second := data()
	if second == first {
		t.Error("the user data are those of the old agent")
	}
	l.run() // agents report
	change("5c")
	if states = install(); len(states) != 1 || data() != second {
		t.Errorf("after the agent has reported the host becomes %s", states)
	}
	if got := l.lcm("m").Spec.AgentConfig.SHA256; got != "5c" {
		t.Errorf("agentConfig names %s", got)
	}
}

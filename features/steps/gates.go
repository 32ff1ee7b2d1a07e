package steps

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// keyName is the name of a scenario's PublicKey.
const keyName = "operator"

// registerGates binds the steps on the gates of day 1, SSH keys, and what Machines report of
// their hosts.
func (s *scenario) registerGates(sc *stepRegistry) {
	sc.Step(`^the operator adds the machine "([^"]*)" with manual gates to the cluster$`, "creates the BareMetalHost of the next server, and a Machine whose day1Provisioning and day1Deployment are manual", func(ctx context.Context, name string) error {
		return s.addMachineWith(ctx, name, func(m *clusterv1.Machine) {
			v := &m.Spec.ProviderSpec.Value
			v.Day1Provisioning, v.Day1Deployment = baremetalv1.GateManual, baremetalv1.GateManual
		})
	})
	sc.Step(`^the machine "([^"]*)" stops at "([^"]*)"$`, "waits for this status of the Machine", func(ctx context.Context, name, status string) error {
		return s.awaitMachine(ctx, name, "is "+status, func(p *baremetalv1.MachineProviderStatus) bool { return p.Status == status })
	})
	sc.NegativeStep(`^the machine "([^"]*)" stays at "([^"]*)"$`, "asserts, once each controller has reconciled every object, that the Machine has this status", s.staysAt)
	sc.Step(`^the operator opens the gate (day1Provisioning|day1Deployment) of "([^"]*)"$`, "sets the gate to auto", func(ctx context.Context, gate, name string) error {
		return s.merge(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(name)}, `{"spec":{"providerSpec":{"value":{%q:"auto"}}}}`, gate)
	})
	sc.Step(`^the operator gives the cluster the key "([^"]*)"$`, "creates a PublicKey, and names it in publicKeys of the Cluster", func(ctx context.Context, key string) error {
		if err := s.create(ctx, &kaasv1.PublicKey{ObjectMeta: day2Meta(keyName), Spec: kaasv1.PublicKeySpec{PublicKey: key}}); err != nil {
			return err
		}
		return s.changeCluster(ctx, func(v *baremetalv1.ClusterProviderSpec) { v.PublicKeys = []baremetalv1.KeyName{{Name: keyName}} })
	})
	sc.Step(`^the operator changes the key of the cluster to "([^"]*)"$`, "changes spec.publicKey of its PublicKey", func(ctx context.Context, key string) error {
		return s.merge(ctx, &kaasv1.PublicKey{ObjectMeta: day2Meta(keyName)}, `{"spec":{"publicKey":%q}}`, key)
	})
	sc.Step(`^the keys of the superuser of "([^"]*)" are "([^"]*)"$`, "waits until authorized_keys of root has this line alone", s.keysAre)
	sc.Step(`^the operator halts the agent of "([^"]*)"$`, "sets haltAgent of the LCMMachine", func(ctx context.Context, name string) error { return s.halt(ctx, name, true) })
	sc.Step(`^the operator lets the agent of "([^"]*)" go on$`, "clears haltAgent of the LCMMachine", func(ctx context.Context, name string) error { return s.halt(ctx, name, false) })
	sc.Step(`^the operator overwrites the script of the item "([^"]*)" of "([^"]*)"$`, "writes stateItemsOverwrites of the LCMMachine, and waits until its item has them", s.overwriteScript)
	sc.Step(`^the machine "([^"]*)" reports the error of its host$`, "waits until the BareMetalHost has an error, and the condition ProviderInstance its message", func(ctx context.Context, name string) error { return s.reportsHost(ctx, name, true) })
	sc.Step(`^the machine "([^"]*)" reports no error of its host$`, "waits until the BareMetalHost has no error, and the condition ProviderInstance is ready", func(ctx context.Context, name string) error { return s.reportsHost(ctx, name, false) })
}

// merge writes a merge patch (RFC 7386).
func (s *scenario) merge(ctx context.Context, o client.Object, patch string, args ...any) error {
	return s.kube.Patch(ctx, o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, patch, args...)))
}

func (s *scenario) staysAt(ctx context.Context, name, status string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m)
	if p := m.Status.ProviderStatus; err == nil && (p == nil || p.Status != status) {
		err = fmt.Errorf("it is %+v", p)
	}
	return err
}

func (s *scenario) keysAre(ctx context.Context, name, want string) error {
	h, err := s.serverOf(name)
	if err != nil {
		return err
	}
	return eventually(ctx, "the keys of root", func(ctx context.Context) (bool, string, error) {
		f, err := s.lab.Control().Files(ctx, h.Name, "/root/.ssh/authorized_keys")
		if err != nil {
			return false, err.Error(), nil
		}
		return strings.TrimSpace(string(f.Content)) == want, string(f.Content), nil
	})
}

func (s *scenario) halt(ctx context.Context, name string, on bool) error {
	return s.merge(ctx, &lcmv1.LCMMachine{ObjectMeta: day2Meta(name)}, `{"spec":{"haltAgent":%t}}`, on)
}

func (s *scenario) overwriteScript(ctx context.Context, itemName, name string) error {
	const script = "date > /etc/overwritten"
	if err := s.merge(ctx, &lcmv1.LCMMachine{ObjectMeta: day2Meta(name)}, `{"spec":{"stateItemsOverwrites":{%q:{%q:%q}}}}`, itemName, item.ParamScript, script); err != nil {
		return err
	}
	return s.awaitLCMMachine(ctx, name, "has the overwritten item", func(m *lcmv1.LCMMachine) string {
		for _, it := range m.Spec.StateItems {
			if it.Name == itemName && it.Params[item.ParamScript] == script {
				return ""
			}
		}
		return fmt.Sprintf("%+v", m.Spec.StateItems)
	})
}

func (s *scenario) reportsHost(ctx context.Context, name string, broken bool) error {
	h, err := s.serverOf(name)
	if err != nil {
		return err
	}
	return s.awaitMachine(ctx, name, "reports its host", func(p *baremetalv1.MachineProviderStatus) bool {
		host, err := s.readNamed(ctx, h.Name)
		if err != nil || (host.Status.ErrorMessage != "") != broken {
			return false
		}
		for _, c := range p.Conditions {
			if c.Type == baremetalv1.ConditionProviderInstance {
				return c.Ready != broken && strings.Contains(c.Message, host.Status.ErrorMessage)
			}
		}
		return false
	})
}

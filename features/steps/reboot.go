package steps

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/guest/node"
	"github.com/metalab-dev/metalab/lab"
)

// registerReboots binds the steps on GracefulRebootRequests and on the nodes that they
// cordon.
func (s *scenario) registerReboots(sc *stepRegistry) {
	sc.Step(`^the cluster has the nodes "([^"]*)"$`, "creates Nodes, as the node agents of the Machines of these names do", func(ctx context.Context, names string) error {
		for _, name := range fields(names) {
			agent := map[string]string{node.AgentAnnotation: fmt.Sprintf("system:serviceaccount:%s:%s-lcm-agent", lab.Namespace, name)}
			if err := s.kube.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: agent}}); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the operator requests the graceful reboot of the cluster "([^"]*)"$`, "creates a GracefulRebootRequest of this name, of all machines", func(ctx context.Context, name string) error {
		return s.kube.Create(ctx, &kaasv1.GracefulRebootRequest{ObjectMeta: day2Meta(name)})
	})
	sc.Step(`^the operator requests the graceful reboot of the machines "([^"]*)" of the cluster "([^"]*)"$`, "creates a GracefulRebootRequest of this name, of these machines", func(ctx context.Context, machines, name string) error {
		return s.kube.Create(ctx, &kaasv1.GracefulRebootRequest{ObjectMeta: day2Meta(name), Spec: kaasv1.GracefulRebootRequestSpec{Machines: fields(machines)}})
	})
	sc.Step(`^the graceful reboot of "([^"]*)" waits: "([^"]*)"$`, "waits until the message of a GracefulRebootRequest contains this text", func(ctx context.Context, name, text string) error {
		return s.awaitRequest(ctx, name, "waits", func(r *kaasv1.GracefulRebootRequest) bool {
			return strings.Contains(strings.ReplaceAll(r.Status.Message, `"`, "'"), text)
		})
	})
	sc.Step(`^the machines "([^"]*)" were rebooted for the request "([^"]*)"$`, "waits until a GracefulRebootRequest is completed and has these machines, in this order; the server of each has booted once since the cluster was deployed", s.wereRebooted)
	sc.Step(`^the server of "([^"]*)" has booted once more$`, "waits until the server runs in the boot after the one that it was in when the cluster was deployed, or in the last such step", s.bootedOnceMore)
	sc.Step(`^the node "([^"]*)" is (cordoned|schedulable)$`, "waits until a Node is unschedulable, or schedulable", func(ctx context.Context, name, what string) error {
		return eventually(ctx, "the node "+name+" is "+what, func(ctx context.Context) (bool, string, error) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			err := s.kube.Get(ctx, client.ObjectKeyFromObject(n), n)
			return n.Spec.Unschedulable == (what == "cordoned"), fmt.Sprintf("%+v", n.Spec), err
		})
	})
	sc.Step(`^the machine "([^"]*)" reports no reboot request$`, "waits until providerStatus.reboot of the Machine is empty", func(ctx context.Context, name string) error {
		return s.awaitMachine(ctx, name, "requests no reboot", func(p *baremetalv1.MachineProviderStatus) bool { return p.Reboot == nil })
	})
}

func (s *scenario) awaitRequest(ctx context.Context, name, what string, ok func(*kaasv1.GracefulRebootRequest) bool) error {
	return eventually(ctx, "the graceful reboot of "+name+" "+what, func(ctx context.Context) (bool, string, error) {
		r := &kaasv1.GracefulRebootRequest{ObjectMeta: day2Meta(name)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(r), r)
		return ok(r), fmt.Sprintf("%+v", r.Status), err
	})
}

func (s *scenario) bootedOnceMore(ctx context.Context, name string) error {
	return eventually(ctx, "the server of "+name+" has booted once more", func(context.Context) (bool, string, error) {
		v, err := s.machineOf(name)
		if err != nil {
			return false, "", err
		}
		if v.Boots > s.deployedBoots[name]+1 {
			return false, "", fmt.Errorf("the server of %s is in its boot %d, want %d", name, v.Boots, s.deployedBoots[name]+1)
		}
		done := v.Boots == s.deployedBoots[name]+1 && v.Phase == machine.Running
		if done {
			s.deployedBoots[name]++
		}
		return done, fmt.Sprintf("it is %s in its boot %d", v.Phase, v.Boots), nil
	})
}

func (s *scenario) wereRebooted(ctx context.Context, machines, request string) error {
	err := s.awaitRequest(ctx, request, "is completed", func(r *kaasv1.GracefulRebootRequest) bool {
		var names []string
		for _, m := range r.Status.Machines {
			names = append(names, m.Name)
		}
		return r.Status.State == kaasv1.RebootCompleted && strings.Join(names, ", ") == machines
	})
	if err != nil {
		return err
	}
	for _, name := range fields(machines) {
		v, err := s.machineOf(name)
		if err != nil {
			return err
		}
		if v.Boots != s.deployedBoots[name]+1 {
			return fmt.Errorf("the server of %s is in its boot %d, want %d", name, v.Boots, s.deployedBoots[name]+1)
		}
	}
	return nil
}

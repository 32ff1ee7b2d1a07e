package steps

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/lab"
)

// registerNodes binds the steps on the nodes that servers are, and on their pods.
func (s *scenario) registerNodes(sc *stepRegistry) {
	sc.Step(`^the operator sets the user data of a server that (runs|lacks) the node agent of "([^"]*)"$`, "creates a service account of the namespace lab-nodes, and user data with its token, configuration and unit, which is enabled or not", s.setNodeData)
	sc.Step(`^kubectl shows the node "([^"]*)" as "([^"]*)"$`, "waits until the column Status that kubectl prints of a Node has this text", s.nodeShows)
	sc.Step(`^the node "([^"]*)" has an InternalIP of "([^"]*)"$`, "waits until a Node has an address of the network, in CIDR notation", func(ctx context.Context, name, network string) error {
		in, err := netip.ParsePrefix(network)
		if err != nil {
			return fmt.Errorf("the step's network: %w", err)
		}
		return s.awaitNode(ctx, name, func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
				address, err := netip.ParseAddr(a.Address)
				return a.Type == corev1.NodeInternalIP && err == nil && in.Contains(address)
			})
		})
	})
	sc.NegativeStep(`^the cluster has no node "([^"]*)"$`, "asserts, once each controller has reconciled every object, that there is no such Node", s.noNode)
	sc.Step(`^the server of "([^"]*)" runs the node agent$`, "writes the files that user data of a node write to the running system of a machine's server, and enables the unit", s.startNodeAgent)
	sc.Step(`^the pods "([^"]*)" are bound to the node "([^"]*)"$`, "creates pods with spec.nodeName, as a scheduler binds them", s.bindPods)
	sc.Step(`^the pod "([^"]*)" is (Running|gone)$`, "waits until a pod is Running and Ready, or does not exist", s.podIs)
	sc.Step(`^(?:the node "([^"]*)"|the server's node) runs the pod "([^"]*)", which may not be evicted$`, "creates a pod with spec.nodeName, as a scheduler binds it, waits until it is Running, and creates a PodDisruptionBudget that demands it", s.runGuardedPod)
	sc.Step(`^the PodDisruptionBudget of "([^"]*)" is deleted$`, "deletes it", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: day2Meta(name)})
	})
	sc.Step(`^the drain of the node "([^"]*)" waits: "([^"]*)"$`, "drains a Node as a controller does, until what it waits for contains this text", func(ctx context.Context, name, text string) error {
		return s.drain(ctx, name, func(p drain.Progress) bool { return strings.Contains(p.String(), text) })
	})
	sc.Step(`^the drain of the node "([^"]*)" is done$`, "drains a Node as a controller does, until no pod is left", func(ctx context.Context, name string) error {
		return s.drain(ctx, name, func(p drain.Progress) bool { return p.Done })
	})
}

// deleteNodes deletes the accounts of node agents and the objects of the steps above, with the leases
// of the nodes that they have drained: nodes of other scenarios have the same names.
func (b *testLab) deleteNodes(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	errs := []error{b.kube.List(ctx, &leases, client.InNamespace(drain.Namespace))}
	for i := range leases.Items {
		if strings.HasPrefix(leases.Items[i].Name, "drain-") {
			errs = append(errs, client.IgnoreNotFound(b.kube.Delete(ctx, &leases.Items[i])))
		}
	}
	for _, o := range []client.Object{&policyv1.PodDisruptionBudget{}, &corev1.Pod{}} {
		errs = append(errs, b.kube.DeleteAllOf(ctx, o, client.InNamespace(lab.Namespace), client.GracePeriodSeconds(0)))
	}
	account := client.MatchingLabels{"metalab.dev/account-of": "node-agent"}
	return errors.Join(append(errs, b.kube.DeleteAllOf(ctx, &corev1.ServiceAccount{}, client.InNamespace(lab.NodeAccounts), account))...)
}

// deleteRegisteredAgain deletes the Nodes that agents have registered between their deletion and that of
// the accounts: no machine has such a Node, and so nothing removes it.
func (b *testLab) deleteRegisteredAgain(ctx context.Context) error {
	return b.kube.DeleteAllOf(ctx, &corev1.Node{})
}

func (s *scenario) setNodeData(ctx context.Context, what, name string) error {
	if what == "runs" {
		return s.setUnits(ctx, name, "lab-agent-node")
	}
	return s.setUnits(ctx, name)
}

// setUnits sets the user data of a node whose first boot enables units.
func (s *scenario) setUnits(ctx context.Context, name string, units ...string) error {
	text, err := s.nodeData(ctx, name, units...)
	if err != nil {
		return err
	}
	return s.createConfigSecrets(ctx, text, name)
}

// nodeData creates the service account of a node, and returns the user data that setUnits sets.
func (s *scenario) nodeData(ctx context.Context, name string, units ...string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: lab.NodeAccounts, Name: name, Labels: map[string]string{"metalab.dev/account-of": "node-agent"}}}
	if err := s.create(ctx, account); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.kube.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	status, err := s.lab.Control().Status(ctx)
	if err != nil {
		return "", err
	}
	kubeconfig, err := clientcmd.BuildConfigFromFlags("", status.Kubeconfig)
	if err != nil {
		return "", err
	}
	return lab.NodeData{Name: name, API: kubeconfig, Token: request.Status.Token, Units: units}.CloudConfig()
}

// startNodeAgent makes the server of a machine a node.
func (s *scenario) startNodeAgent(ctx context.Context, machine string) error {
	h, err := s.serverOf(machine)
	if err != nil {
		return err
	}
	text, err := s.nodeData(ctx, machine, "lab-agent-node")
	if err != nil {
		return err
	}
	files := cloudinit.Root{}
	cloudinit.Configure(cloudinit.Instance{ID: machine, UserData: []byte(text)}, files)
	for name, f := range files {
		if !strings.HasPrefix(name, "etc/lab-agent/") && !strings.HasPrefix(name, "etc/systemd/") {
			continue
		}
		const token, own = "etc/lab-agent/token", "etc/lab-agent/node-token" // the LCM agent has the first
		name, content := strings.Replace(name, token, own, 1), strings.ReplaceAll(string(f.Content), token, own)
		if err := s.lab.Control().PutFile(ctx, h.Name, control.File{Path: "/" + name, Mode: f.Mode, Content: []byte(content)}); err != nil {
			return err
		}
	}
	code, out, err := s.shellOn(ctx, h.Name, "systemctl enable --now lab-agent-node")
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d: %s", code, out)
	}
	return err
}

// nodeShows reads the condition that kubectl prints as the status of a node.
func (s *scenario) nodeShows(ctx context.Context, name, text string) error {
	return s.awaitNode(ctx, name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady { // as printNode of kubectl has it
				return map[bool]string{true: "Ready", false: "NotReady"}[c.Status == corev1.ConditionTrue] == text
			}
		}
		return false
	})
}

func (s *scenario) awaitNode(ctx context.Context, name string, ok func(*corev1.Node) bool) error {
	return eventually(ctx, "the node "+name, func(ctx context.Context) (bool, string, error) {
		var n corev1.Node
		if err := s.kube.Get(ctx, client.ObjectKey{Name: name}, &n); apierrors.IsNotFound(err) {
			return false, "it does not exist", nil
		} else if err != nil {
			return false, "", err
		}
		return ok(&n), fmt.Sprintf("%+v", n.Status), nil
	})
}

func (s *scenario) noNode(ctx context.Context, name string) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	var n corev1.Node
	err := s.kube.Get(ctx, client.ObjectKey{Name: name}, &n)
	if err == nil {
		return fmt.Errorf("there is a Node %s: %+v", name, n.Status.Conditions)
	}
	return client.IgnoreNotFound(err)
}

func (s *scenario) bindPods(ctx context.Context, names, to string) error {
	for _, name := range fields(names) {
		p := &corev1.Pod{ObjectMeta: day2Meta(name), Spec: corev1.PodSpec{NodeName: to, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}}}
		p.Labels = map[string]string{"app": name}
		if err := s.create(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) podIs(ctx context.Context, name, what string) error {
	return eventually(ctx, "the pod "+name+" is "+what, func(ctx context.Context) (bool, string, error) {
		p := &corev1.Pod{ObjectMeta: day2Meta(name)}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(p), p); apierrors.IsNotFound(err) {
			return what == "gone", "it does not exist", nil
		} else if err != nil {
			return false, "", err
		}
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		return what == "Running" && p.Status.Phase == corev1.PodRunning && ready && p.DeletionTimestamp == nil, fmt.Sprintf("%+v", p.Status), nil
	})
}

// runGuardedPod takes the server's node without the name of one.
func (s *scenario) runGuardedPod(ctx context.Context, node, name string) error {
	if node == "" {
		node = s.server.Name
	}
	if err := s.bindPods(ctx, name, node); err != nil {
		return err
	}
	if err := s.podIs(ctx, name, "Running"); err != nil {
		return err
	}
	all := intstr.FromString("100%")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: day2Meta(name), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}
	return s.create(ctx, budget)
}

func (s *scenario) drain(ctx context.Context, name string, ok func(drain.Progress) bool) error {
	d := drain.Service{Client: s.kube, Clock: clock.RealClock{}}
	return eventually(ctx, "the drain of "+name, func(ctx context.Context) (bool, string, error) {
		p, err := d.Drain(ctx, name, "a step")
		return err == nil && ok(p), p.String(), err
	})
}

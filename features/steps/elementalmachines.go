package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/lab"
)

// registrationName is the name of a scenario's ElementalRegistration.
const registrationName = "fire"

// registerElementalMachines binds the steps on the Elemental kinds whose servers are played by
// the steps: agents that speak to the API, and run on no server.
func (s *scenario) registerElementalMachines(sc *stepRegistry) {
	sc.Step(`^a lab with the Elemental API$`, "starts a lab of the family elemental, with the stand-in for Cluster API", func(ctx context.Context) error {
		return s.startKind(ctx, 1, labKind{with: config.Elemental})
	})
	sc.Step(`^a registration$`, "creates an ElementalRegistration, and waits until it is ready and has a token", func(ctx context.Context) error {
		return s.createRegistration(ctx, 0)
	})
	sc.Step(`^a registration that is frozen$`, "creates an ElementalRegistration with tokenDuration -1, and waits until it is ready and has a token", func(ctx context.Context) error {
		return s.createRegistration(ctx, -1)
	})
	sc.Step(`^the agents of "([^"]*)" register and install$`, "sends the requests of register --install for each of these hosts, at the same time, with the token that the registration has", s.registerAgents)
	sc.Step(`^the registration of the agent of "([^"]*)" gets (\d+)$`, "waits until a GET of the registration by a new agent, or by one that a step has made, has this status", s.registrationGets)
	sc.Step(`^a report of the agent of "([^"]*)" gets (\d+)$`, "waits until a PATCH of the host that changes nothing has this status", func(ctx context.Context, name string, status int) error {
		return s.awaitReply(ctx, name, status, http.MethodPatch, "/hosts/"+name, map[string]any{})
	})
	sc.Step(`^the operator deletes the Secret of the registration$`, "deletes the Secret with the signing key", func(ctx context.Context) error {
		return s.kube.Delete(ctx, &corev1.Secret{ObjectMeta: inDefault(registrationName)})
	})
	sc.Step(`^the operator has the registration's key replaced$`, "sets privateKeyRef to null and the token to empty, and waits until there is another", s.replaceKey)
	sc.Step(`^the operator creates the Elemental cluster "([^"]*)" with the machines "([^"]*)"$`, "creates a Cluster with an ElementalCluster, and Machines with ElementalMachines of their names, without bootstrap data", s.createElementalCluster)
	sc.Step(`^the Elemental machine "([^"]*)" has the host "([^"]*)"$`, "waits until both name each other", s.machineHasHost)
	sc.Step(`^(\d+) Elemental machines have a host each, and (\d+) wait for one$`, "waits until so many ElementalMachines and hosts name each other, one to one, and the others have the reason MissingAvailableHosts", s.machinesHaveHosts)
	sc.Step(`^the condition (\w+) of the Elemental machine "([^"]*)" is "([^"]*)"$`, "waits until the status of the condition, with reason and severity if it is False, is this", func(ctx context.Context, kind, name, want string) error {
		return s.awaitElementalCondition(ctx, &elementalv1.ElementalMachine{ObjectMeta: inDefault(name)}, kind, want)
	})
	sc.Step(`^the condition (\w+) of the Elemental host "([^"]*)" is "([^"]*)"$`, "waits until the status of the condition, with reason and severity if it is False, is this", func(ctx context.Context, kind, name, want string) error {
		return s.awaitElementalCondition(ctx, &elementalv1.ElementalHost{ObjectMeta: inDefault(name)}, kind, want)
	})
	sc.Step(`^the agent of "([^"]*)" bootstraps as the node "([^"]*)"$`, "gets the bootstrap data, creates a Node with the taint uninitialized, as a kubelet does, and reports that the host has bootstrapped", s.bootstrapAgent)
	sc.Step(`^the agent of "([^"]*)" bootstraps without joining$`, "gets the bootstrap data and reports that the host has bootstrapped; there is no Node", func(ctx context.Context, name string) error { return s.reportBootstrapped(ctx, name) })
	sc.Step(`^the node "([^"]*)" has the provider ID "([^"]*)" and no taint$`, "waits until the Node has both", s.nodeIsProvided)
	sc.Step(`^the Elemental machine "([^"]*)" is ready$`, "waits until status.ready is true, and its Machine has the Node", s.elementalMachineReady)
	sc.Step(`^the operator deletes the (Machine|host) "([^"]*)"$`, "deletes the Machine of Cluster API, or the ElementalHost", func(ctx context.Context, kind, name string) error {
		if kind == "Machine" {
			return s.kube.Delete(ctx, &capi.Machine{ObjectMeta: inDefault(name)})
		}
		return s.kube.Delete(ctx, &elementalv1.ElementalHost{ObjectMeta: inDefault(name)})
	})
	sc.Step(`^the operator removes the host "([^"]*)" and its finalizer$`, "deletes the ElementalHost without a reset, as for a server that is broken", s.forceHost)
	sc.Step(`^the agent of "([^"]*)" learns that it needs a reset$`, "waits until the answer to a PATCH has needsReset", s.needsReset)
	sc.Step(`^the agent of "([^"]*)" resets the server$`, "sends the requests of reset: DELETE, then a PATCH with reset", s.resetAgent)
	sc.Step(`^the (Machine|Elemental machine|host) "([^"]*)" goes$`, "waits until the object does not exist", s.elementalGoes)
	sc.Step(`^the controller is killed once a machine has chosen a host$`, "waits until an ElementalMachine has a hostRef, and kills the controller", s.killAtChoice)
	sc.NegativeStep(`^the host "([^"]*)" stays$`, "asserts, once each controller has reconciled every object, that the ElementalHost exists", func(ctx context.Context, name string) error {
		if err := s.letControllersAct(ctx); err != nil {
			return err
		}
		return s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, new(elementalv1.ElementalHost))
	})
}

func inDefault(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: lab.Namespace, Name: name}
}

// registration returns the scenario's registration once it is complete.
func (s *scenario) registration(ctx context.Context, ok func(elementalv1.Registration) bool) (found elementalv1.Registration, err error) {
	err = eventually(ctx, "the registration is complete", func(ctx context.Context) (bool, string, error) {
		g := &elementalv1.ElementalRegistration{ObjectMeta: inDefault(registrationName)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(g), g)
		found = g.Spec.Config.Elemental.Registration
		return found.URI != "" && found.Token != "" && len(g.Status.Conditions) > 0 && ok(found), fmt.Sprintf("uri %s, %d conditions", found.URI, len(g.Status.Conditions)), err
	})
	return found, err
}

func (s *scenario) createRegistration(ctx context.Context, lifetime time.Duration) error {
	g := &elementalv1.ElementalRegistration{ObjectMeta: inDefault(registrationName)}
	g.Spec.HostLabels = map[string]string{"rack": "a"}
	g.Spec.Config.Elemental.Registration.TokenDuration = lifetime
	if err := s.create(ctx, g); err != nil {
		return err
	}
	_, err := s.registration(ctx, func(elementalv1.Registration) bool { return true })
	return err
}

// agentOf returns the agent of a host, a new one if there is none.
func (s *scenario) agentOf(ctx context.Context, name string) (*registrant, error) {
	if g := s.registrants[name]; g != nil {
		return g, nil
	}
	registration, err := s.registration(ctx, func(elementalv1.Registration) bool { return true })
	if err != nil {
		return nil, err
	}
	g, err := newRegistrant(name, registration)
	if err != nil {
		return nil, err
	}
	if s.registrants == nil {
		s.registrants = map[string]*registrant{}
	}
	s.registrants[name] = g
	return g, nil
}

func (s *scenario) registerAgents(ctx context.Context, names string) error {
	errs := make(chan error)
	all := fields(names)
	for _, name := range all {
		delete(s.registrants, name) // a server that registers again has a new key
		g, err := s.agentOf(ctx, name)
		if err != nil {
			return err
		}
		go func() { errs <- g.register(ctx) }()
	}
	var failed []error
	for range all {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

func (s *scenario) awaitReply(ctx context.Context, name string, status int, method, path string, body any) error {
	g, err := s.agentOf(ctx, name)
	if err != nil {
		return err
	}
	return eventually(ctx, fmt.Sprintf("%s %s gets %d", method, path, status), func(ctx context.Context) (bool, string, error) {
		got, err := g.do(ctx, method, path, body)
		if err != nil {
			return false, err.Error(), nil // the API may be away
		}
		return got.status == status, got.String(), nil
	})
}

func (s *scenario) registrationGets(ctx context.Context, name string, status int) error {
	return s.awaitReply(ctx, name, status, http.MethodGet, "", nil)
}

func (s *scenario) replaceKey(ctx context.Context) error {
	old, err := s.registration(ctx, func(elementalv1.Registration) bool { return true })
	if err != nil {
		return err
	}
	g := &elementalv1.ElementalRegistration{ObjectMeta: inDefault(registrationName)}
	if err := s.merge(ctx, g, `{"spec":{"privateKeyRef":null,"config":{"elemental":{"registration":{"token":""}}}}}`); err != nil {
		return err
	}
	_, err = s.registration(ctx, func(registration elementalv1.Registration) bool { return registration.Token != old.Token })
	return err
}

func (s *scenario) createElementalCluster(ctx context.Context, name, machines string) error {
	c := &capi.Cluster{ObjectMeta: inDefault(name)}
	infra := func(kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: elementalv1.GroupVersion.String(), Kind: kind, Namespace: lab.Namespace, Name: name}
	}
	ref := infra("ElementalCluster", name)
	c.Spec.InfrastructureRef = &ref
	e := &elementalv1.ElementalCluster{ObjectMeta: inDefault(name), Spec: elementalv1.ElementalClusterSpec{ControlPlaneEndpoint: capi.APIEndpoint{Host: "192.0.2.1", Port: 6443}}}
	if err := errors.Join(s.create(ctx, c), s.create(ctx, e)); err != nil {
		return err
	}
	for _, m := range fields(machines) {
		owner := &capi.Machine{ObjectMeta: inDefault(m), Spec: capi.MachineSpec{ClusterName: name, InfrastructureRef: infra("ElementalMachine", m)}}
		if err := errors.Join(s.create(ctx, &elementalv1.ElementalMachine{ObjectMeta: inDefault(m)}), s.create(ctx, owner)); err != nil {
			return err
		}
	}
	return nil
}

// links returns the hosts of machines that are linked both ways, by the machine, and an error
// where a host or a machine is in two links.
func (s *scenario) links(ctx context.Context) (map[string]string, []elementalv1.ElementalMachine, error) {
	var machines elementalv1.ElementalMachineList
	var hosts elementalv1.ElementalHostList
	if err := errors.Join(s.kube.List(ctx, &machines, client.InNamespace(lab.Namespace)), s.kube.List(ctx, &hosts, client.InNamespace(lab.Namespace))); err != nil {
		return nil, nil, err
	}
	machineOf, out := map[string]string{}, map[string]string{}
	for _, h := range hosts.Items {
		if ref := h.Spec.MachineRef; ref != nil && h.DeletionTimestamp.IsZero() {
			for other, m := range machineOf {
				if m == ref.Name {
					return nil, nil, fmt.Errorf("the hosts %s and %s have the machine %s", other, h.Name, m)
				}
			}
			machineOf[h.Name] = ref.Name
		}
	}
	for _, m := range machines.Items {
		if ref := m.Spec.HostRef; ref != nil && machineOf[ref.Name] == m.Name {
			out[m.Name] = ref.Name
		}
	}
	return out, machines.Items, nil
}

func (s *scenario) machineHasHost(ctx context.Context, machine, host string) error {
	return eventually(ctx, machine+" has the host "+host, func(ctx context.Context) (bool, string, error) {
		links, _, err := s.links(ctx)
		return links[machine] == host, fmt.Sprint(links), err
	})
}

func (s *scenario) machinesHaveHosts(ctx context.Context, with, without int) error {
	return eventually(ctx, fmt.Sprintf("%d machines have a host, and %d have none", with, without), func(ctx context.Context) (bool, string, error) {
		links, machines, err := s.links(ctx)
		waits := 0
		for i := range machines {
			if m := &machines[i]; m.Spec.HostRef == nil && conditionText(m.Status.Conditions, "AssociationReady") == "False MissingAvailableHosts Warning" {
				waits++
			}
		}
		return len(links) == with && waits == without, fmt.Sprint(links, ", ", waits, " wait"), err
	})
}

// conditionText returns a condition as "True" or "False Reason Severity".
func conditionText(list capi.Conditions, kind string) string {
	i := slices.IndexFunc(list, func(c capi.Condition) bool { return string(c.Type) == kind })
	if i < 0 {
		return ""
	}
	if list[i].Status != corev1.ConditionFalse {
		return string(list[i].Status)
	}
	return strings.Join([]string{string(list[i].Status), list[i].Reason, string(list[i].Severity)}, " ")
}

// conditioned is an object with conditions of Cluster API.
type conditioned interface {
	client.Object
	GetConditions() capi.Conditions
}

func (s *scenario) awaitElementalCondition(ctx context.Context, o conditioned, kind, want string) error {
	return eventually(ctx, fmt.Sprintf("%s of %s is %s", kind, o.GetName(), want), func(ctx context.Context) (bool, string, error) {
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)
		got := conditionText(o.GetConditions(), kind)
		return got == want, got, err
	})
}

// reportBootstrapped sends an agent's reports before and after its reboot.
func (s *scenario) reportBootstrapped(ctx context.Context, name string) error {
	if err := s.awaitReply(ctx, name, http.StatusOK, http.MethodGet, "/hosts/"+name+"/bootstrap", nil); err != nil {
		return err
	}
	body := conditionReport("BootstrapReady", "True", "", "Info")
	body["bootstrapped"] = true
	return s.registrants[name].report(ctx, body)
}

func (s *scenario) bootstrapAgent(ctx context.Context, name, node string) error {
	if err := s.awaitReply(ctx, name, http.StatusOK, http.MethodGet, "/hosts/"+name+"/bootstrap", nil); err != nil {
		return err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	if err := s.kube.Create(ctx, n); err != nil {
		return err
	}
	return s.reportBootstrapped(ctx, name)
}

func (s *scenario) nodeIsProvided(ctx context.Context, name, id string) error {
	return s.awaitNode(ctx, name, func(n *corev1.Node) bool {
		return n.Spec.ProviderID == id && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return strings.HasSuffix(t.Key, "/uninitialized") })
	})
}

func (s *scenario) elementalMachineReady(ctx context.Context, name string) error {
	return eventually(ctx, name+" is ready", func(ctx context.Context) (bool, string, error) {
		m, owner := &elementalv1.ElementalMachine{ObjectMeta: inDefault(name)}, &capi.Machine{ObjectMeta: inDefault(name)}
		err := errors.Join(s.kube.Get(ctx, client.ObjectKeyFromObject(m), m), s.kube.Get(ctx, client.ObjectKeyFromObject(owner), owner))
		return m.Status.Ready && owner.Status.NodeRef != nil, fmt.Sprintf("%+v, node %v", m.Status, owner.Status.NodeRef), err
	})
}

func (s *scenario) forceHost(ctx context.Context, name string) error {
	h := &elementalv1.ElementalHost{ObjectMeta: inDefault(name)}
	return eventually(ctx, name+" is removed", func(ctx context.Context) (bool, string, error) {
		if err := s.kube.Delete(ctx, h); apierrors.IsNotFound(err) {
			return true, "", nil
		} else if err != nil {
			return false, "", err
		}
		err := s.merge(ctx, h, `{"metadata":{"finalizers":null}}`)
		return false, fmt.Sprint(err), client.IgnoreNotFound(err)
	})
}

func (s *scenario) needsReset(ctx context.Context, name string) error {
	g, err := s.agentOf(ctx, name)
	if err != nil {
		return err
	}
	return eventually(ctx, name+" needs a reset", func(ctx context.Context) (bool, string, error) {
		got, err := g.do(ctx, http.MethodPatch, "/hosts/"+name, map[string]any{"phase": elementalv1.PhaseRunning})
		return strings.Contains(got.body, `"needsReset":true`), got.String(), err
	})
}

func (s *scenario) resetAgent(ctx context.Context, name string) error {
	g, err := s.agentOf(ctx, name)
	if err != nil {
		return err
	}
	if err := g.report(ctx, map[string]any{"phase": elementalv1.PhaseResetting}); err != nil {
		return err
	}
	if _, err := g.expect(ctx, http.StatusAccepted, http.MethodDelete, "/hosts/"+name, nil); err != nil {
		return err
	}
	body := conditionReport("ResetReady", "True", "", "Info")
	body["reset"] = true
	return g.report(ctx, body)
}

func (s *scenario) elementalGoes(ctx context.Context, kind, name string) error {
	o := map[string]client.Object{"Machine": &capi.Machine{}, "Elemental machine": &elementalv1.ElementalMachine{}, "host": &elementalv1.ElementalHost{}}[kind]
	return eventually(ctx, kind+" "+name+" is gone", func(ctx context.Context) (bool, string, error) {
		err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, o)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v %v", o.GetFinalizers(), err), client.IgnoreNotFound(err)
	})
}

func (s *scenario) killAtChoice(ctx context.Context) error {
	err := eventually(ctx, "a machine has a hostRef", func(ctx context.Context) (bool, string, error) {
		var list elementalv1.ElementalMachineList
		err := s.kube.List(ctx, &list, client.InNamespace(lab.Namespace))
		return slices.ContainsFunc(list.Items, func(m elementalv1.ElementalMachine) bool { return m.Spec.HostRef != nil }), "", err
	})
	s.lab.KillControllers()
	return err
}

// deleteElemental deletes the objects of a scenario. Their servers reset nothing.
func (b *testLab) deleteElemental(ctx context.Context) error {
	lists := []client.ObjectList{&capi.MachineList{}, &capi.ClusterList{}, &elementalv1.ElementalMachineList{}, &elementalv1.ElementalClusterList{}, &elementalv1.ElementalHostList{}, &elementalv1.ElementalRegistrationList{}}
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left := 0
		for _, list := range lists {
			if err := b.kube.List(ctx, list, client.InNamespace(lab.Namespace)); err != nil {
				return false, err
			}
			for _, o := range elementalObjects(list) {
				left++
				err := b.kube.Delete(ctx, o)
				if err == nil {
					err = b.kube.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
				}
				if client.IgnoreNotFound(err) != nil {
					return false, err
				}
			}
		}
		return left == 0, nil
	})
	return errors.Join(err, b.kube.DeleteAllOf(ctx, &corev1.Node{}))
}

// elementalObjects returns the objects of a list.
func elementalObjects(list client.ObjectList) (out []client.Object) {
	switch list := list.(type) {
	case *capi.MachineList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *capi.ClusterList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalMachineList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalClusterList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalHostList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalRegistrationList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

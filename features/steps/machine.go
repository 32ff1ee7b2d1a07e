package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// The cluster of a scenario, and the label that its Machines have.
const (
	clusterName = "c1"
	day2Label   = "day2"
)

// registerMachines binds the steps on Machines and LCMMachines. Those that "a cluster with
// the workers" creates are synthetic: they have no server and no agent, their Machines are
// of no provider, and steps write the status that both would report. No step writes the
// result of an item. registerClusters has the steps on Machines that are servers.
func (s *scenario) registerMachines(sc *stepRegistry) {
	sc.Step(`^a cluster with the workers "([^"]*)"$`, "creates an LCMCluster and, for each name, a Machine that is Ready, with the label day2=true, and its LCMMachine", s.createCluster)
	sc.Step(`^the machine "([^"]*)" joins the cluster$`, "creates a Machine that is not Ready yet, with the label day2=true, and its LCMMachine", func(ctx context.Context, name string) error {
		return s.createMachine(ctx, name, "Deploy")
	})
	sc.Step(`^the operator (adds|removes) the label of the machine "([^"]*)"$`, "sets or removes the label day2=true of a Machine", func(ctx context.Context, what, name string) error {
		return s.changeMachine(ctx, name, func(m *clusterv1.Machine) {
			delete(m.Labels, day2Label)
			if what == "adds" {
				metav1.SetMetaDataLabel(&m.ObjectMeta, day2Label, "true")
			}
		})
	})
	sc.Step(`^the operator (begins|ends) the maintenance of the machine "([^"]*)"$`, "sets maintenance of a Machine", func(ctx context.Context, what, name string) error {
		return s.changeMachine(ctx, name, func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.Maintenance = what == "begins" })
	})
	sc.Step(`^the machine "([^"]*)" gets the status "([^"]*)"$`, "sets the status of a Machine, as the provider does", func(ctx context.Context, name, status string) error {
		return s.setMachineStatus(ctx, name, status)
	})
	sc.Step(`^the machine "([^"]*)" runs "([^"]*)"$`, "reports the distribution of a machine, as its agent does", func(ctx context.Context, name, distribution string) error {
		return s.report(ctx, name, func(m *lcmv1.LCMMachine) { m.Status.Distribution = []string{distribution} })
	})
	sc.Step(`^the machine "([^"]*)" is "([^"]*)" for LCM$`, "waits until the LCMMachine has this state", func(ctx context.Context, name, state string) error {
		return s.awaitLCMMachine(ctx, name, "is "+state, func(m *lcmv1.LCMMachine) string { return cmp.Diff(state, string(m.Status.State)) })
	})
	sc.Step(`^the (control|worker) machines of the cluster have the items:$`, "waits until the LCMCluster has these items of a type, in this order, each with its runner, and without params", s.clusterHas)
	sc.Step(`^the machine "([^"]*)" has the items:$`, "waits until the LCMMachine has these items, in this order, with the params of its overwrites", s.machineHas)
	sc.NegativeStep(`^the machine "([^"]*)" has no items$`, "asserts, once each controller has reconciled every object, that the LCMMachine has neither items nor overwrites", s.machineHasNone)
	sc.NegativeStep(`^the items of the machine "([^"]*)" stay as they were$`, "asserts, once each controller has reconciled every object, that the LCMMachine has the items and params of when a step last waited for them", s.itemsStay)
}

// lines returns the lines of a text that are not empty.
func lines(text *godog.DocString) []string { return strings.Fields(text.Content) }

func (s *scenario) createCluster(ctx context.Context, workers string) error {
	c := &lcmv1.LCMCluster{ObjectMeta: day2Meta(clusterName), Spec: lcmv1.LCMClusterSpec{
		MachinesTypes:             map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {}},
		ManagementClusterEndpoint: lcmv1.Endpoint{Host: "127.0.0.1", Port: 6443}, HelmControllerServiceAccountName: "helm", LCMType: lcmv1.LCMTypeK0s,
	}}
	err := s.kube.Create(ctx, c)
	for _, name := range fields(workers) {
		err = errors.Join(err, s.createMachine(ctx, name, "Ready"))
	}
	return err
}

func (s *scenario) createMachine(ctx context.Context, name, status string) error {
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	m.Labels = map[string]string{day2Label: "true"}
	l := &lcmv1.LCMMachine{ObjectMeta: day2Meta(name), Spec: lcmv1.LCMMachineSpec{ClusterName: clusterName, Type: lcmv1.MachineWorker}}
	if err := errors.Join(s.kube.Create(ctx, m), s.kube.Create(ctx, l)); err != nil {
		return err
	}
	address := func(m *lcmv1.LCMMachine) {
		m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.5"}}
	}
	return errors.Join(s.setMachineStatus(ctx, name, status), s.report(ctx, name, address))
}

func (s *scenario) changeMachine(ctx context.Context, name string, change func(*clusterv1.Machine)) error {
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	return retry.RetryOnConflict(conflictBackoff, func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		change(m)
		return s.kube.Update(ctx, m)
	})
}

func (s *scenario) setMachineStatus(ctx context.Context, name, status string) error {
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	return retry.RetryOnConflict(conflictBackoff, func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Status: status, Ready: status == "Ready"}
		return s.kube.Status().Update(ctx, m)
	})
}

func (s *scenario) readLCMMachine(ctx context.Context, name string) (*lcmv1.LCMMachine, error) {
	m := &lcmv1.LCMMachine{ObjectMeta: day2Meta(name)}
	return m, s.kube.Get(ctx, client.ObjectKeyFromObject(m), m)
}

// report changes the status of an LCMMachine.
func (s *scenario) report(ctx context.Context, name string, change func(*lcmv1.LCMMachine)) error {
	m, err := s.readLCMMachine(ctx, name)
	if err != nil {
		return err
	}
	before := m.DeepCopy()
	change(m)
	return s.kube.Status().Patch(ctx, m, client.MergeFrom(before))
}

// awaitLCMMachine waits until diff finds no difference in an LCMMachine.
func (s *scenario) awaitLCMMachine(ctx context.Context, name, what string, diff func(*lcmv1.LCMMachine) string) error {
	return eventually(ctx, "the machine "+name+" "+what, func(ctx context.Context) (bool, string, error) {
		m, err := s.readLCMMachine(ctx, name)
		if err != nil {
			return false, "", err
		}
		last := diff(m)
		return last == "", last, nil
	})
}

func (s *scenario) clusterHas(ctx context.Context, machineType string, text *godog.DocString) error {
	var want []lcmv1.LCMStateItem
	for _, name := range lines(text) {
		it := lcmv1.LCMStateItem{Runner: lcmv1.RunnerAnsible, Name: name, Version: "v1", Phase: lcmv1.PhaseReconfigure}
		if strings.HasPrefix(name, "host-os-download-") {
			it.Runner = lcmv1.RunnerDownloader
		}
		want = append(want, it)
	}
	return eventually(ctx, "the cluster has the items", func(ctx context.Context) (bool, string, error) {
		c := &lcmv1.LCMCluster{ObjectMeta: day2Meta(clusterName)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c)
		diff := cmp.Diff(want, c.Spec.MachinesTypes[lcmv1.MachineType(machineType)])
		return diff == "", diff, err
	})
}

func (s *scenario) machineHas(ctx context.Context, name string, text *godog.DocString) error {
	if s.items == nil {
		s.items = map[string][]lcmv1.LCMStateItem{}
	}
	return s.awaitLCMMachine(ctx, name, "has the items", func(m *lcmv1.LCMMachine) string {
		s.items[name] = m.Spec.StateItems
		var names []string
		for _, it := range m.Spec.StateItems {
			names = append(names, it.Name)
			if diff := cmp.Diff(m.Spec.StateItemsOverwrites[it.Name], it.Params); diff != "" || len(it.Params) == 0 {
				return "params of " + it.Name + ": " + diff
			}
		}
		return cmp.Diff(lines(text), names)
	})
}

func (s *scenario) machineHasNone(ctx context.Context, name string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	m, err := s.readLCMMachine(ctx, name)
	if err == nil && len(m.Spec.StateItems)+len(m.Spec.StateItemsOverwrites) > 0 {
		err = fmt.Errorf("the machine has items %v, overwrites %v", m.Spec.StateItems, m.Spec.StateItemsOverwrites)
	}
	return err
}

func (s *scenario) itemsStay(ctx context.Context, name string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	m, err := s.readLCMMachine(ctx, name)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(s.items[name], m.Spec.StateItems); diff != "" {
		return fmt.Errorf("the items have changed: %s", diff)
	}
	return nil
}

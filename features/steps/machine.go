package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cucumber/godog"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	capi "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/lcm/item"
)

// The cluster of a scenario, and the label that its Machines have.
const (
	clusterName = "c1"
	day2Label   = "day2"
)

// registerMachines binds the steps on Machines and LCMMachines. No provider makes them yet,
// and no agent runs on their servers: the steps do what both would do through the API.
func (s *scenario) registerMachines(sc *stepRegistry) {
	sc.Step(`^a cluster with the workers "([^"]*)"$`, "creates an LCMCluster and, for each name, a Machine that is Ready, with the label day2=true, and its LCMMachine", s.createCluster)
	sc.Step(`^the machine "([^"]*)" joins the cluster$`, "creates a Machine that is not Ready yet, with the label day2=true, and its LCMMachine", func(ctx context.Context, name string) error {
		return s.createMachine(ctx, name, "Deploy")
	})
	sc.Step(`^the operator (adds|removes) the label of the machine "([^"]*)"$`, "sets or removes the label day2=true of a Machine", func(ctx context.Context, what, name string) error {
		return s.changeMachine(ctx, name, func(m *capi.Machine) {
			m.Labels = nil
			if what == "adds" {
				m.Labels = map[string]string{day2Label: "true"}
			}
		})
	})
	sc.Step(`^the operator (begins|ends) the maintenance of the machine "([^"]*)"$`, "sets maintenance of a Machine", func(ctx context.Context, what, name string) error {
		return s.changeMachine(ctx, name, func(m *capi.Machine) { m.Spec.ProviderSpec.Value.Maintenance = what == "begins" })
	})
	sc.Step(`^the machine "([^"]*)" gets the status "([^"]*)"$`, "sets the status of a Machine, as the provider does", func(ctx context.Context, name, status string) error {
		return s.setMachineStatus(ctx, name, status)
	})
	sc.Step(`^the machine "([^"]*)" runs "([^"]*)"$`, "reports the distribution of a machine, as its agent does", func(ctx context.Context, name, distribution string) error {
		return s.report(ctx, name, func(m *lcm.LCMMachine) { m.Status.Distribution = []string{distribution} })
	})
	sc.Step(`^the machine "([^"]*)" is "([^"]*)" for LCM$`, "waits until the LCMMachine has this state", func(ctx context.Context, name, state string) error {
		return s.awaitLCMMachine(ctx, name, "is "+state, func(m *lcm.LCMMachine) string { return cmp.Diff(state, string(m.Status.State)) })
	})
	sc.Step(`^the (control|worker) machines of the cluster have the items:$`, "waits until the LCMCluster has these items of a type, in this order, each with its runner, and without params", s.clusterHas)
	sc.Step(`^the machine "([^"]*)" has the items:$`, "waits until the LCMMachine has these items, in this order, with the params of its overwrites", s.machineHas)
	sc.NegativeStep(`^the machine "([^"]*)" has no items$`, "asserts, once each controller has reconciled every object, that the LCMMachine has neither items nor overwrites", s.machineHasNone)
	sc.Step(`^the agent of "([^"]*)" executes:$`, "executes the items that are not done, as the agent does, and asserts that they are these; removes the results of items that are gone", func(ctx context.Context, name string, text *godog.DocString) error {
		return s.execute(ctx, name, lines(text), 0)
	})
	sc.Step(`^the agent of "([^"]*)" executes these, of which the last ends with (\d+):$`, "the same, with an item that fails", func(ctx context.Context, name string, code int, text *godog.DocString) error {
		return s.execute(ctx, name, lines(text), code)
	})
	sc.Step(`^the agent of "([^"]*)" begins the first item$`, "reports that the first item that is not done is executed", s.begin)
	sc.NegativeStep(`^the agent of "([^"]*)" has nothing to execute$`, "asserts, once each controller has reconciled every object, that all items of the LCMMachine are done; removes the results of items that are gone", s.nothingToExecute)
}

// lines returns the lines of a text that are not empty.
func lines(text *godog.DocString) []string { return strings.Fields(text.Content) }

func (s *scenario) createCluster(ctx context.Context, workers string) error {
	c := &lcm.LCMCluster{ObjectMeta: day2Meta(clusterName), Spec: lcm.LCMClusterSpec{
		MachinesTypes:             map[lcm.MachineType][]lcm.LCMStateItem{lcm.MachineControl: {}, lcm.MachineWorker: {}},
		ManagementClusterEndpoint: lcm.Endpoint{Host: "127.0.0.1", Port: 6443}, HelmControllerServiceAccountName: "helm", LCMType: lcm.LCMTypeK0s,
	}}
	err := s.kube.Create(ctx, c)
	for _, name := range fields(workers) {
		err = errors.Join(err, s.createMachine(ctx, name, "Ready"))
	}
	return err
}

func (s *scenario) createMachine(ctx context.Context, name, status string) error {
	m := &capi.Machine{ObjectMeta: day2Meta(name)}
	m.Labels = map[string]string{day2Label: "true"}
	l := &lcm.LCMMachine{ObjectMeta: day2Meta(name), Spec: lcm.LCMMachineSpec{ClusterName: clusterName, Type: lcm.MachineWorker}}
	if err := errors.Join(s.kube.Create(ctx, m), s.kube.Create(ctx, l)); err != nil {
		return err
	}
	address := func(m *lcm.LCMMachine) {
		m.Status.Addresses = []lcm.NodeAddress{{Type: lcm.AddressInternalIP, Address: "192.0.2.5"}}
	}
	return errors.Join(s.setMachineStatus(ctx, name, status), s.report(ctx, name, address))
}

func (s *scenario) changeMachine(ctx context.Context, name string, change func(*capi.Machine)) error {
	m := &capi.Machine{ObjectMeta: day2Meta(name)}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		change(m)
		return s.kube.Update(ctx, m)
	})
}

func (s *scenario) setMachineStatus(ctx context.Context, name, status string) error {
	m := &capi.Machine{ObjectMeta: day2Meta(name)}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		m.Status.ProviderStatus = &baremetal.MachineProviderStatus{Status: status, Ready: status == "Ready"}
		return s.kube.Status().Update(ctx, m)
	})
}

func (s *scenario) readLCMMachine(ctx context.Context, name string) (*lcm.LCMMachine, error) {
	m := &lcm.LCMMachine{ObjectMeta: day2Meta(name)}
	return m, s.kube.Get(ctx, client.ObjectKeyFromObject(m), m)
}

// report changes the status of an LCMMachine.
func (s *scenario) report(ctx context.Context, name string, change func(*lcm.LCMMachine)) error {
	m, err := s.readLCMMachine(ctx, name)
	if err != nil {
		return err
	}
	before := m.DeepCopy()
	change(m)
	return s.kube.Status().Patch(ctx, m, client.MergeFrom(before))
}

// awaitLCMMachine waits until diff finds no difference in an LCMMachine.
func (s *scenario) awaitLCMMachine(ctx context.Context, name, what string, diff func(*lcm.LCMMachine) string) error {
	return eventually(ctx, "the machine "+name+" "+what, func(ctx context.Context) (bool, string, error) {
		m, err := s.readLCMMachine(ctx, name)
		if err != nil {
			return false, "", err
		}
		last := diff(m)
		return last == "", last, nil
	})
}

func (s *scenario) clusterHas(ctx context.Context, of string, text *godog.DocString) error {
	var want []lcm.LCMStateItem
	for _, name := range lines(text) {
		it := lcm.LCMStateItem{Runner: lcm.RunnerAnsible, Name: name, Version: "v1", Phase: lcm.PhaseReconfigure}
		if strings.HasPrefix(name, "host-os-download-") {
			it.Runner = lcm.RunnerDownloader
		}
		want = append(want, it)
	}
	return eventually(ctx, "the cluster has the items", func(ctx context.Context) (bool, string, error) {
		c := &lcm.LCMCluster{ObjectMeta: day2Meta(clusterName)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c)
		diff := cmp.Diff(want, c.Spec.MachinesTypes[lcm.MachineType(of)])
		return diff == "", diff, err
	})
}

func (s *scenario) machineHas(ctx context.Context, name string, text *godog.DocString) error {
	return s.awaitLCMMachine(ctx, name, "has the items", func(m *lcm.LCMMachine) string {
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

// prune removes the results of items that a machine no longer has, and returns its items
// that are not done.
func prune(m *lcm.LCMMachine) (open []lcm.LCMStateItem) {
	for name := range m.Status.StateItemStatuses {
		if !slices.ContainsFunc(m.Spec.StateItems, func(it lcm.LCMStateItem) bool { return it.Name == name }) {
			delete(m.Status.StateItemStatuses, name)
		}
	}
	for _, it := range m.Spec.StateItems {
		if !item.Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion) {
			open = append(open, it)
		}
	}
	return open
}

func setResult(m *lcm.LCMMachine, it lcm.LCMStateItem, code int, finished *metav1.Time) {
	if m.Status.StateItemStatuses == nil {
		m.Status.StateItemStatuses = map[string]lcm.StateItemStatus{}
	}
	m.Status.StateItemStatuses[it.Name] = lcm.StateItemStatus{
		Hash: item.Hash(it, m.Status.AgentVersion), ExitCode: code, Attempt: m.Status.StateItemStatuses[it.Name].Attempt + 1,
		StartedAt: ptr.To(metav1.Now()), FinishedAt: finished,
	}
}

// execute executes items, of which the last ends with a code.
func (s *scenario) execute(ctx context.Context, name string, want []string, code int) error {
	err := s.awaitLCMMachine(ctx, name, "has something to execute", func(m *lcm.LCMMachine) string {
		var names []string
		for _, it := range prune(m) {
			names = append(names, it.Name)
		}
		if code != 0 && len(names) > len(want) { // later items wait for the one that fails
			names = names[:len(want)]
		}
		return cmp.Diff(want, names)
	})
	if err != nil {
		return err
	}
	return s.report(ctx, name, func(m *lcm.LCMMachine) {
		for i, it := range prune(m)[:len(want)] {
			exit := 0
			if i == len(want)-1 {
				exit = code
			}
			setResult(m, it, exit, ptr.To(metav1.Now()))
		}
	})
}

func (s *scenario) begin(ctx context.Context, name string) error {
	err := s.awaitLCMMachine(ctx, name, "has something to execute", func(m *lcm.LCMMachine) string {
		if len(prune(m)) == 0 {
			return "nothing"
		}
		return ""
	})
	if err != nil {
		return err
	}
	return s.report(ctx, name, func(m *lcm.LCMMachine) { setResult(m, prune(m)[0], item.NotExited, nil) })
}

func (s *scenario) nothingToExecute(ctx context.Context, name string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	var open []lcm.LCMStateItem
	if err := s.report(ctx, name, func(m *lcm.LCMMachine) { open = prune(m) }); err != nil {
		return err
	}
	if len(open) > 0 {
		return fmt.Errorf("the agent executes %v", open)
	}
	return nil
}

package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// machineLabel is the label by which the Machines of a scenario's cluster select hosts.
const machineLabel = "machine"

// registerClusters binds the steps on a Cluster whose Machines are servers of the lab. The
// provider claims and provisions them, and the LCM agent in the system of each server
// executes its items: no step writes a status.
func (s *scenario) registerClusters(sc *stepRegistry) {
	sc.Step(`^a lab with host OS configuration and (\d+) servers?$`, "gives the scenario unused servers in a lab of the family hoc", func(ctx context.Context, servers int) error {
		return s.startKind(ctx, servers, labKind{with: config.HOC})
	})
	sc.Step(`^the provider has deployed a cluster with the workers "([^"]*)"$`, "creates releases, a Cluster and, for each name, the BareMetalHost of a server and a Machine with the label day2=true; waits until the Machines are Ready", s.deployCluster)
	sc.Step(`^the operator adds the machine "([^"]*)" to the cluster$`, "creates the BareMetalHost of the next server, and a Machine with the label day2=true", s.addMachine)
	sc.Step(`^the machine "([^"]*)" becomes Ready$`, "waits until the provider's status of the Machine is Ready", s.becomesReady)
	sc.Step(`^the machine "([^"]*)" reports a reboot request: "([^"]*)"$`, "waits until providerStatus.reboot of the Machine is required with this reason", s.rebootRequested)
	sc.Step(`^the agent of "([^"]*)" has executed:$`, "waits until the agent has executed these items since the last such step, in this order, and no others; each has ended with 0", func(ctx context.Context, name string, text *godog.DocString) error {
		return s.hasExecuted(ctx, name, lines(text), 0)
	})
	sc.Step(`^the agent of "([^"]*)" has executed these, of which the last has ended with (\d+):$`, "the same, with an item that has failed, once or more often; it is the first of the next list", func(ctx context.Context, name string, code int, text *godog.DocString) error {
		return s.hasExecuted(ctx, name, lines(text), code)
	})
	sc.NegativeStep(`^the agent of "([^"]*)" executes nothing more$`, "asserts, once each controller has reconciled every object and the agent has looked at its LCMMachine after that, that it has executed nothing since the last such step", s.executesNothing)
	sc.Step(`^the item "([^"]*)" of "([^"]*)" has failed (\d+) times with (\d+): "([^"]*)"$`, "waits until the LCMMachine has this attempt of the item, or a later one, with this exit code and text", s.itemFails)
	sc.Step(`^the file "([^"]*)" of "([^"]*)" contains "([^"]*)"$`, "reads a file in the running system of a machine's server, and waits until it contains the text", func(ctx context.Context, path, name, text string) error {
		h, err := s.serverOf(name)
		if err != nil {
			return err
		}
		return s.fileOfContains(ctx, h.Name, path, text)
	})
	sc.Step(`^the file "([^"]*)" of "([^"]*)" fills its root$`, "makes a file in the running system of a machine's server as large as its limit of files allows, to 1 KiB", s.fillRoot)
	sc.Step(`^the command "([^"]*)" runs on "([^"]*)"$`, "runs a line of a shell in the running system of a machine's server; it ends with code 0", func(ctx context.Context, line, name string) error {
		h, err := s.serverOf(name)
		if err != nil {
			return err
		}
		code, out, err := s.shellOn(ctx, h.Name, line)
		if err == nil && code != 0 {
			err = fmt.Errorf("code %d: %s", code, out)
		}
		return err
	})
	sc.Step(`^the operator switches (on|off) the server of "([^"]*)"$`, "sets spec.online of a machine's BareMetalHost, and waits for the power", s.switchServer)
	sc.Step(`^the machine "([^"]*)" has lost its host OS items and their results$`, "waits until the LCMMachine has neither host OS items nor overwrites, and its agent has removed their results", s.hasLostItems)
	sc.NegativeStep(`^the server of "([^"]*)" has not booted again$`, "asserts, once each controller has reconciled every object and the agent has looked at its LCMMachine after that, that the server runs, and has not booted since the provider had deployed the cluster, or since the last step that counts its boots", s.notBootedAgain)
}

// serverOf returns the server of a Machine.
func (s *scenario) serverOf(machine string) (control.Host, error) {
	i := slices.Index(s.machines, machine)
	if i < 0 {
		return control.Host{}, fmt.Errorf("the machine %q has no server: it is one of %s", machine, strings.Join(s.machines, ", "))
	}
	return s.servers[i], nil
}

// createDeployedCluster creates the releases of a Cluster, and the Cluster.
func (s *scenario) createDeployedCluster(ctx context.Context) error {
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: releases[0].name}
	if err := s.createReleases(ctx); err != nil {
		return err
	}
	if err := s.kube.Create(ctx, c); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// createReleases creates the releases of Clusters. Those of the lab's earlier scenarios are equal.
func (s *scenario) createReleases(ctx context.Context) error {
	for _, o := range s.releases() {
		if err := s.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (s *scenario) deployCluster(ctx context.Context, workers string) error {
	err := s.createDeployedCluster(ctx)
	if err != nil {
		return err
	}
	if s.executions, err = watchExecutions(s.kube); err != nil {
		return err
	}
	s.deployedBoots = map[string]uint64{}
	for _, name := range fields(workers) {
		if err := s.addMachine(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range fields(workers) {
		if err := s.becomesReady(ctx, name); err != nil {
			return err
		}
		if err := s.hasExecuted(ctx, name, []string{deployItem}, 0); err != nil {
			return err
		}
		v, err := s.machineOf(name)
		if err != nil {
			return err
		}
		s.deployedBoots[name] = v.Boots
	}
	return nil
}

func (s *scenario) addMachine(ctx context.Context, name string) error {
	return s.addMachineWith(ctx, name, func(*clusterv1.Machine) {})
}

// addMachineWith creates a Machine, which change completes, and the host of its server.
func (s *scenario) addMachineWith(ctx context.Context, name string, change func(*clusterv1.Machine)) error {
	if len(s.machines) == len(s.servers) {
		return fmt.Errorf("the scenario has %d servers: give the lab more", len(s.servers))
	}
	secret, host := lab.Objects(s.servers[len(s.machines)])
	s.machines = append(s.machines, name)
	host.Labels = map[string]string{machineLabel: name}
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	m.Labels = map[string]string{day2Label: "true", clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, clusterv1.ClusterNameLabel: clusterName}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{
		HostSelector:     baremetalv1.HostSelector{MatchLabels: host.Labels},
		Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto,
	}
	change(m)
	return s.create(ctx, secret, host, m)
}

// awaitMachine waits until ok accepts the provider's status of a Machine.
func (s *scenario) awaitMachine(ctx context.Context, name, what string, ok func(*baremetalv1.MachineProviderStatus) bool) error {
	return eventually(ctx, "the machine "+name+" "+what, func(ctx context.Context) (bool, string, error) {
		m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return false, "", err
		}
		p := m.Status.ProviderStatus
		if p == nil {
			return false, "no status", nil
		}
		return ok(p), fmt.Sprintf("%+v", *p), nil
	})
}

func (s *scenario) becomesReady(ctx context.Context, name string) error {
	return s.awaitMachine(ctx, name, "is Ready", func(p *baremetalv1.MachineProviderStatus) bool { return p.Ready })
}

func (s *scenario) rebootRequested(ctx context.Context, name, reason string) error {
	return s.awaitMachine(ctx, name, "requests a reboot", func(p *baremetalv1.MachineProviderStatus) bool {
		return p.Reboot != nil && p.Reboot.Required && p.Reboot.Reason == reason
	})
}

func (s *scenario) hasExecuted(ctx context.Context, name string, want []string, code int) error {
	err := eventually(ctx, "the agent of "+name+" has executed the items", func(context.Context) (bool, string, error) {
		begun, last := s.executions.since(name)
		if len(begun) > len(want) || !slices.Equal(begun, want[:len(begun)]) {
			return false, "", fmt.Errorf("it has executed %s", strings.Join(begun, ", "))
		}
		done := len(begun) == len(want) && last.FinishedAt != nil && last.ExitCode == code
		return done, fmt.Sprintf("%s; the last: %+v", strings.Join(begun, ", "), last), nil
	})
	if err == nil {
		s.executions.confirm(name, code != 0)
	}
	return err
}

// agentLooks returns when the agent of a machine has looked at its LCMMachine, in a look
// that began now or later, and done what follows.
func (s *scenario) agentLooks(ctx context.Context, name string) error {
	h, err := s.serverOf(name)
	if err != nil {
		return err
	}
	before := s.lab.AgentSteps(h.Name)
	s.looks++
	// The watch of the object makes the agent look.
	m := &lcmv1.LCMMachine{ObjectMeta: day2Meta(name)}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"metalab.dev/look":"%d"}}}`, s.looks)
	if err := s.kube.Patch(ctx, m, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return err
	}
	err = eventually(WithPatience(ctx, patience.Limit()), "the agent of "+name+" looks at its LCMMachine", func(context.Context) (bool, string, error) {
		after := s.lab.AgentSteps(h.Name)
		return after.Ended > before.Begun, fmt.Sprintf("%+v, then %+v", before, after), nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReconciled, err)
	}
	return s.executions.catchUp(ctx, s.kube, name)
}

func (s *scenario) executesNothing(ctx context.Context, name string) error {
	if err := s.letDay2ControllersAct(ctx); err != nil {
		return err
	}
	if err := s.agentLooks(ctx, name); err != nil {
		return err
	}
	if begun, _ := s.executions.since(name); len(begun) > 0 {
		return fmt.Errorf("it has executed %s", strings.Join(begun, ", "))
	}
	return nil
}

func (s *scenario) itemFails(ctx context.Context, item, name string, times, code int, text string) error {
	return s.awaitLCMMachine(ctx, name, "has the failed item "+item, func(m *lcmv1.LCMMachine) string {
		status := m.Status.StateItemStatuses[item]
		if status.FinishedAt != nil && status.Attempt >= times && status.ExitCode == code && strings.Contains(status.Message, text) {
			return ""
		}
		return fmt.Sprintf("%+v", status)
	})
}

// switchServer sets spec.online of a machine's BareMetalHost.
func (s *scenario) switchServer(ctx context.Context, what, name string) error {
	h, err := s.serverOf(name)
	if err != nil {
		return err
	}
	on := what == "on"
	o := &metal3.BareMetalHost{ObjectMeta: day2Meta(h.Name)}
	if err := s.kube.Patch(ctx, o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"online":%t}}`, on))); err != nil {
		return err
	}
	return eventually(ctx, "the server of "+name+" is "+what, func(context.Context) (bool, string, error) {
		v, err := s.machineOf(name)
		if err != nil {
			return false, "", err
		}
		return (v.Power == machine.PowerOn) == on, string(v.Power), nil
	})
}

// machineOf returns the hardware of a Machine's server.
func (s *scenario) machineOf(name string) (*machine.View, error) {
	h, err := s.serverOf(name)
	if err != nil {
		return nil, err
	}
	server, exists := s.lab.Rack().Host(h.Name)
	if !exists {
		return nil, fmt.Errorf("the lab has lost %s", h.Name)
	}
	return server.Machine(), nil
}

func (s *scenario) notBootedAgain(ctx context.Context, name string) error {
	inSame := func() error {
		v, err := s.machineOf(name)
		if err == nil && (v.Boots != s.deployedBoots[name] || v.Phase != machine.Running) {
			err = fmt.Errorf("it is %s in its boot %d", v.Phase, v.Boots)
		}
		return err
	}
	if err := errors.Join(s.letDay2ControllersAct(ctx), inSame()); err != nil { // an agent without power looks at nothing
		return err
	}
	return errors.Join(s.agentLooks(ctx, name), inSame())
}

func (s *scenario) hasLostItems(ctx context.Context, name string) error {
	return s.awaitLCMMachine(ctx, name, "has lost its host OS items", func(m *lcmv1.LCMMachine) string {
		var left []string
		for _, it := range m.Spec.StateItems {
			left = append(left, "item "+it.Name)
		}
		for n := range m.Spec.StateItemsOverwrites {
			left = append(left, "overwrites of "+n)
		}
		for n := range m.Status.StateItemStatuses {
			left = append(left, "result of "+n)
		}
		return strings.Join(slices.DeleteFunc(left, func(text string) bool { return !strings.Contains(text, " host-os-") }), ", ")
	})
}

// fillRoot looks for the size by halves: what exceeds the limit is undone.
func (s *scenario) fillRoot(ctx context.Context, file, machine string) error {
	h, err := s.serverOf(machine)
	if err != nil {
		return err
	}
	const limit = 256 << 20 // sandbox.Limits
	fits, exceeds := int64(limit-1<<20), int64(limit)
	for exceeds-fits > 1<<10 {
		size := (fits + exceeds) / 2
		code, out, err := s.shellOn(ctx, h.Name, fmt.Sprintf("truncate -s %d %s", size, file))
		switch {
		case err == nil && code == 0:
			fits = size
		case strings.Contains(fmt.Sprint(out, err), "no space left on device"):
			exceeds = size
		default:
			return errors.Join(err, fmt.Errorf("truncate ended with %d, %s", code, out))
		}
	}
	code, out, err := s.shellOn(ctx, h.Name, fmt.Sprintf("[ $(stat -c %%s %s) = %d ] || ls -la /var %s", file, fits, file))
	if err == nil && (code != 0 || out != "") {
		err = fmt.Errorf("code %d, want %d bytes: %s", code, fits, out)
	}
	return err
}

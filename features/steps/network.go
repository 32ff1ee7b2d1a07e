package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
)

// The Subnet and the L2Template of a scenario.
const (
	subnetName   = "lcm"
	templateName = "servers"
)

// registerNetworks binds the steps on Subnets, L2Templates and the addresses of Machines.
func (s *scenario) registerNetworks(sc *stepRegistry) {
	sc.Step(`^a cluster whose servers get addresses of "([^"]*)"$`, "creates releases, a Cluster, the Subnet lcm, 10.77.0.0/24, with these addresses, and an L2Template that gives the first interface one of them", s.clusterWithNetwork)
	sc.Step(`^the operator changes the L2Template to:$`, "replaces npTemplate", func(ctx context.Context, text *godog.DocString) error {
		return s.changeTemplate(ctx, text.Content)
	})
	sc.Step(`^the operator corrects the L2Template$`, "replaces npTemplate by the one that the scenario began with", func(ctx context.Context) error { return s.changeTemplate(ctx, serversTemplate) })
	sc.Step(`^the operator adds the machine "([^"]*)" and its server's inventory$`, "creates a BareMetalHostCredential, the BareMetalHostInventory of the next server, and a Machine that selects it", s.addMachineOfInventory)
	sc.Step(`^the machine "([^"]*)" waits: '([^']*)'$`, "waits until the Machine is not ready and the message of its condition ProviderInstance contains this text", s.machineWaits)
	sc.Step(`^the machine "([^"]*)" has the address "([^"]*)"$`, "waits until privateIp of the Machine and the InternalIP of its LCMMachine are this address", s.hasAddress)
	sc.Step(`^the Subnet has (\d+) of (\d+) addresses left$`, "waits for allocatable and capacity of the Subnet's status", s.subnetHas)
	sc.Step(`^the operator deletes the machine "([^"]*)"$`, "deletes the Machine without waiting", func(ctx context.Context, name string) error {
		return s.kube.Delete(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(name)})
	})
	sc.Step(`^the operator deletes the cluster$`, "deletes the Cluster without waiting", func(ctx context.Context) error {
		return s.kube.Delete(ctx, &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)})
	})
	sc.Step(`^the cluster and the machine "([^"]*)" no longer exist$`, "waits until both are gone", func(ctx context.Context, name string) error {
		return errors.Join(s.awaitDeletion(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(name)}), s.awaitDeletion(ctx, &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}))
	})
	sc.NegativeStep(`^the host of "([^"]*)" has no image$`, "asserts, once each controller has reconciled every object, that the BareMetalHost has no image", func(ctx context.Context, name string) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		server, err := s.serverOf(name)
		if err != nil {
			return err
		}
		h, err := s.readNamed(ctx, server.Name)
		if err == nil && h.Spec.Image != nil {
			err = fmt.Errorf("it has %s", h.Spec.Image.URL)
		}
		return err
	})
}

// serversTemplate gives the first interface an address of the Subnet.
const serversTemplate = `version: 2
ethernets:
  {{nic 0}}:
    match: {macaddress: "{{mac 0}}"}
    set-name: {{nic 0}}
    addresses: [{{ip "0:lcm"}}]
    routes: [{to: default, via: {{gateway_from_subnet "lcm"}}}]
    nameservers: {addresses: {{nameservers_from_subnet "lcm"}}}
`

func (s *scenario) clusterWithNetwork(ctx context.Context, addresses string) error {
	n := &ipamv1.Subnet{ObjectMeta: day2Meta(subnetName), Spec: ipamv1.SubnetSpec{
		CIDR: "10.77.0.0/24", Gateway: "10.77.0.1", Nameservers: []ipamv1.Address{"10.77.0.2"}, IncludeRanges: []ipamv1.AddressRange{ipamv1.AddressRange(addresses)},
	}}
	t := &ipamv1.L2Template{ObjectMeta: day2Meta(templateName), Spec: ipamv1.L2TemplateSpec{
		ClusterRef: clusterName, NPTemplate: serversTemplate, L3Layout: []ipamv1.L3Layout{{SubnetName: subnetName}},
	}}
	t.Labels = map[string]string{ipamv1.DefaultForClusterLabel: "1"}
	return errors.Join(s.createDeployedCluster(ctx), s.create(ctx, n, t))
}

func (s *scenario) changeTemplate(ctx context.Context, text string) error {
	t := &ipamv1.L2Template{ObjectMeta: day2Meta(templateName)}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(t), t); err != nil {
		return err
	}
	before := t.DeepCopy()
	t.Spec.NPTemplate = text
	return s.kube.Patch(ctx, t, client.MergeFrom(before))
}

func (s *scenario) addMachineOfInventory(ctx context.Context, name string) error {
	if len(s.machines) == len(s.servers) {
		return fmt.Errorf("the scenario has %d servers: give the lab more", len(s.servers))
	}
	server := s.servers[len(s.machines)]
	s.machines = append(s.machines, name)
	c := s.credential(server.Password)
	c.Name, c.Spec.Username = server.Name, server.Username
	i := s.serverInventory()
	i.Name, i.Spec.BootMACAddress, i.Spec.BMC.Address, i.Spec.BMC.CredentialsName = server.Name, server.BootMACAddress, server.BMCAddress, c.Name
	i.Labels[machineLabel] = name
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	m.Labels = map[string]string{day2Label: "true", clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, clusterv1.ClusterNameLabel: clusterName}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{
		HostSelector:     baremetalv1.HostSelector{MatchLabels: map[string]string{machineLabel: name}},
		Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto,
	}
	return s.create(ctx, c, i, m)
}

func (s *scenario) machineWaits(ctx context.Context, name, text string) error {
	return s.awaitMachine(ctx, name, "waits", func(p *baremetalv1.MachineProviderStatus) bool {
		for _, c := range p.Conditions {
			if c.Type == baremetalv1.ConditionProviderInstance && !c.Ready && strings.Contains(c.Message, text) {
				return true
			}
		}
		return false
	})
}

func (s *scenario) hasAddress(ctx context.Context, name, address string) error {
	return s.awaitMachine(ctx, name, "has the address "+address, func(p *baremetalv1.MachineProviderStatus) bool { return p.PrivateIP == address })
}

func (s *scenario) subnetHas(ctx context.Context, left, capacity int) error {
	return eventually(ctx, "the Subnet has addresses left", func(ctx context.Context) (bool, string, error) {
		n := &ipamv1.Subnet{ObjectMeta: day2Meta(subnetName)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(n), n)
		return n.Status.Allocatable == int64(left) && n.Status.Capacity == int64(capacity), fmt.Sprintf("%+v", n.Status), err
	})
}

// deleteNetworks deletes all networks. Their Machines are gone.
func (b *testLab) deleteNetworks(ctx context.Context) error {
	for _, o := range []client.Object{&ipamv1.IpamHost{}, &ipamv1.IPaddr{}, &ipamv1.L2Template{}, &ipamv1.Subnet{}} {
		if err := b.kube.DeleteAllOf(ctx, o, client.InNamespace(lab.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

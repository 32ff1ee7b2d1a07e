package steps

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/lab"
)

// apiPort is the port of load balancers.
const apiPort = "6443"

// registerProvider binds the steps on the parts of a Cluster: its load balancer, its
// credential and its stages.
func (s *scenario) registerProvider(sc *stepRegistry) {
	sc.Step(`^a cluster without machines$`, "creates releases and a Cluster", s.createDeployedCluster)
	sc.Step(`^the cluster has a load balancer$`, "sets loadBalancerHost to an address of 127.0.0.0/8 that nothing uses", s.askForBalancer)
	sc.Step(`^the cluster names the credential "([^"]*)"$`, "sets credentials of the Cluster", func(ctx context.Context, name string) error {
		return s.changeCluster(ctx, func(v *baremetalv1.ClusterProviderSpec) { v.Credentials = name })
	})
	sc.Step(`^the operator adds the control machine "([^"]*)" to the cluster$`, "creates the BareMetalHost of the next server, and a Machine of the control plane", func(ctx context.Context, name string) error {
		return s.addMachineWith(ctx, name, func(m *clusterv1.Machine) { m.Labels[clusterv1.ControlPlaneLabel] = "true" })
	})
	sc.Step(`^the operator adds the machine "([^"]*)" for the server$`, "creates a Machine that selects the server of the inventory", s.addMachineForServer)
	sc.Step(`^the cluster reports (\w+): '([^']*)'$`, "waits until this condition of the Cluster is not ready, and its message contains this text", func(ctx context.Context, kind, text string) error {
		return s.awaitCluster(ctx, kind, func(c baremetalv1.Condition) bool { return !c.Ready && strings.Contains(c.Message, text) })
	})
	sc.Step(`^the condition (\w+) of the cluster is ready$`, "waits until it is", func(ctx context.Context, kind string) error {
		return s.awaitCluster(ctx, kind, func(c baremetalv1.Condition) bool { return c.Ready })
	})
	sc.Step(`^the Kubernetes API answers at the load balancer$`, "waits until GET /version has the lab's answer there", func(ctx context.Context) error {
		return eventually(ctx, "the API answers at the load balancer", func(ctx context.Context) (bool, string, error) {
			text, err := s.versionAtBalancer(ctx)
			return err == nil && strings.Contains(text, "gitVersion"), fmt.Sprint(text, err), nil
		})
	})
	sc.NegativeStep(`^nothing answers at the load balancer$`, "asserts, once each controller has reconciled every object, that GET /version has no answer there", func(ctx context.Context) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		if text, err := s.versionAtBalancer(ctx); err == nil {
			return fmt.Errorf("it answers %s", text)
		}
		return nil
	})
	sc.NegativeStep(`^no address is allocated$`, "asserts, once each controller has reconciled every object, that there is no IPaddr", func(ctx context.Context) error {
		if err := s.letDay2ControllersAct(ctx); err != nil {
			return err
		}
		var list ipamv1.IPaddrList
		err := s.kube.List(ctx, &list, client.InNamespace(lab.Namespace))
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there is %s", list.Items[0].Name)
		}
		return err
	})
	sc.Step(`^the stages of the cluster are:$`, "waits until its ClusterDeploymentStatus has these stages in this order, each as NAME: STATUS", func(ctx context.Context, text *godog.DocString) error { return s.stagesAre(ctx, text.Content) })
}

// changeCluster changes the provider's part of the Cluster's spec.
func (s *scenario) changeCluster(ctx context.Context, change func(*baremetalv1.ClusterProviderSpec)) error {
	c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
	if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
		return err
	}
	before := c.DeepCopy()
	change(&c.Spec.ProviderSpec.Value)
	return s.kube.Patch(ctx, c, client.MergeFrom(before))
}

// askForBalancer gives the Cluster an address, which no other scenario has until this one ends.
func (s *scenario) askForBalancer(ctx context.Context) error {
	host, release, err := holdBalancer(ctx)
	if err != nil {
		return err
	}
	s.balancer, s.releaseBalancer = host, release
	return s.changeCluster(ctx, func(v *baremetalv1.ClusterProviderSpec) { v.LoadBalancerHost = host })
}

// holdBalancer returns an address of which no other test on this machine gets the port of load
// balancers until release is called: the lab binds it later, when the Cluster is reconciled.
func holdBalancer(ctx context.Context) (host string, release func(), err error) {
	const addresses = 250
	first := rand.IntN(addresses)
	for i := range addresses {
		host := fmt.Sprintf("127.130.0.%d", 1+(first+i)%addresses)
		address := net.JoinHostPort(host, apiPort)
		release, err := racktest.TryHold(address)
		if err != nil {
			return "", nil, err
		}
		if release == nil {
			continue
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address)
		if err != nil { // another program has it
			release()
			continue
		}
		return host, release, l.Close()
	}
	return "", nil, fmt.Errorf("port %s is free at none of %d addresses of 127.130.0.0/24", apiPort, addresses)
}

// versionAtBalancer returns the response of GET /version at the load balancer. The API's certificate
// is not of that address.
func (s *scenario) versionAtBalancer(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	api, err := s.lab.APIConfig()
	if err != nil {
		return "", err
	}
	api.Host = "https://" + net.JoinHostPort(s.balancer, apiPort)
	api.Insecure, api.CAData, api.CAFile = true, nil, ""
	h, err := rest.HTTPClientFor(api)
	if err != nil {
		return "", err
	}
	defer h.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.Host+"/version", nil)
	if err != nil {
		return "", err
	}
	resp, err := h.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// addMachineForServer creates a Machine for the server that the scenario has in its inventory.
func (s *scenario) addMachineForServer(ctx context.Context, name string) error {
	s.machines = append(s.machines, name)
	m := &clusterv1.Machine{ObjectMeta: day2Meta(name)}
	m.Labels = map[string]string{day2Label: "true", clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, clusterv1.ClusterNameLabel: clusterName}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{
		HostSelector:     baremetalv1.HostSelector{MatchLabels: s.serverInventory().Labels},
		Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto,
	}
	return s.create(ctx, m)
}

// awaitCluster waits until ok accepts a condition of the Cluster.
func (s *scenario) awaitCluster(ctx context.Context, kind string, ok func(baremetalv1.Condition) bool) error {
	return eventually(ctx, "the cluster's condition "+kind, func(ctx context.Context) (bool, string, error) {
		c := &clusterv1.Cluster{ObjectMeta: day2Meta(clusterName)}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil || c.Status.ProviderStatus == nil {
			return false, "no status", err
		}
		for _, x := range c.Status.ProviderStatus.Conditions {
			if x.Type == kind && ok(x) {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%+v", c.Status.ProviderStatus.Conditions), nil
	})
}

func (s *scenario) stagesAre(ctx context.Context, want string) error {
	return eventually(ctx, "the stages of the cluster", func(ctx context.Context) (bool, string, error) {
		d := &kaasv1.ClusterDeploymentStatus{ObjectMeta: day2Meta(clusterName)}
		err := client.IgnoreNotFound(s.kube.Get(ctx, client.ObjectKeyFromObject(d), d))
		var all []string
		for _, x := range d.Stages {
			all = append(all, x.Name+": "+string(x.Status))
		}
		text := strings.Join(all, "\n")
		return text == strings.TrimSpace(want), text, err
	})
}

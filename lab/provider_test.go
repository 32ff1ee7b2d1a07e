package lab

import (
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/guest/node"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestProviderWorksWithTheRightsOfTheManifests takes a Cluster and a Machine from their
// releases to Ready and back, as the service account that the controllers have in a cluster.
// The test is the hosts' controller and the agent, with the token that the server gets.
func TestProviderWorksWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var refused refusals
	as := rest.CopyConfig(w.kube.api)
	as.Impersonate.UserName = account
	as.Wrap(refused.watch)
	end := runController(t, w, as, manager.Config{Controllers: []string{"provider", "lcm"}})
	defer end()
	p := providerLab{hocLab{t, admin}}
	p.create()
	host, machine := new(metal3.BareMetalHost), new(clusterv1.Machine)
	await := func(what string, ok func() bool) {
		t.Helper()
		patience.Await(t, what, func() bool {
			return admin.Get(t.Context(), p.key("node"), host) == nil && admin.Get(t.Context(), p.key("w-0"), machine) == nil && ok()
		}, host, machine)
	}
	status := func(want string) func() bool {
		return func() bool { s := machine.Status.ProviderStatus; return s != nil && s.Status == want }
	}
	await("the Machine writes its image", func() bool { return host.Spec.Image != nil && host.Spec.NetworkData != nil })
	subnet := new(ipamv1.Subnet)
	await("the Subnet counts its addresses", func() bool {
		return admin.Get(t.Context(), p.key("lcm"), subnet) == nil && subnet.Status.Capacity == 254 && subnet.Status.Allocatable == 253
	})
	p.state(host, metal3.StateProvisioned)
	await("the Machine is handed to LCM", status("Uninitialized"))
	p.agent(w.kube.api)
	await("the Machine is Ready", status("Ready"))
	c := new(lcmv1.LCMCluster)
	patience.Await(t, "the machines of the LCMCluster are counted", func() bool {
		return admin.Get(t.Context(), p.key("c1"), c) == nil && c.Status.RequestedNodes == 1 && c.Status.ReadyNodes == 1
	}, c)
	p.reboot()
	await("the Machine is Ready again", status("Ready"))
	if err := admin.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: p.meta("c1")}); err != nil {
		t.Fatal(err)
	}
	await("the host loses its image", func() bool { return host.Spec.Image == nil && host.Spec.ConsumerRef != nil })
	p.state(host, metal3.StateAvailable)
	patience.Await(t, "the Cluster is deleted", func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), p.key("c1"), new(clusterv1.Cluster))) && apierrors.IsNotFound(admin.Get(t.Context(), p.key("w-0"), new(clusterv1.Machine)))
	})
	if err := admin.Get(t.Context(), p.key("node"), host); err != nil || host.Spec.ConsumerRef != nil {
		t.Errorf("the host is claimed by %+v, %v", host.Spec.ConsumerRef, err)
	}
	p.inventory()
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// inventory creates a server of the inventory with its credential, and deletes both.
func (p providerLab) inventory() {
	p.t.Helper()
	account, server := &kaasv1.BareMetalHostCredential{ObjectMeta: p.meta("account")}, &kaasv1.BareMetalHostInventory{ObjectMeta: p.meta("spare")}
	account.Spec = kaasv1.BareMetalHostCredentialSpec{Username: "admin", Password: kaasv1.CredentialPassword{Value: "the-password"}}
	server.Spec.BMC = kaasv1.InventoryBMC{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: account.Name}
	server.Spec.BootMACAddress = "52:54:00:00:00:01"
	all := []client.Object{account, server}
	for _, o := range all {
		o.SetLabels(map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal})
		if err := p.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	host := new(metal3.BareMetalHost)
	patience.Await(p.t, "the inventory has a host", func() bool {
		return p.Get(p.t.Context(), p.key("spare"), host) == nil && host.Spec.BMC.CredentialsName == "account-bmc-account"
	}, host)
	p.state(host, metal3.StateAvailable)
	patience.Await(p.t, "the inventory shows its host", func() bool {
		return p.Get(p.t.Context(), p.key("spare"), server) == nil && server.Status.ProvisioningState == "available"
	}, server)
	for _, o := range all {
		if err := p.Delete(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, o := range append(all, host) {
		patience.Await(p.t, o.GetName()+" is deleted", func() bool { return apierrors.IsNotFound(p.Get(p.t.Context(), client.ObjectKeyFromObject(o), o)) }, o)
	}
}

// nodeOfMachine returns the Node that the agent of a Machine registers.
func nodeOfMachine(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{node.AgentAnnotation: "system:serviceaccount:" + Namespace + ":" + name + "-lcm-agent"}}}
}

// reboot asks for the reboot of all machines, and reports that of the one as its agent does:
// statement H34 with the rights to nodes, their pods and leases.
func (p providerLab) reboot() {
	p.t.Helper()
	for _, o := range []client.Object{nodeOfMachine("w-0"), &kaasv1.GracefulRebootRequest{ObjectMeta: p.meta("c1")}} {
		if err := p.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	m, node, request := new(lcmv1.LCMMachine), new(corev1.Node), new(kaasv1.GracefulRebootRequest)
	patience.Await(p.t, "the reboot is demanded", func() bool { return p.Get(p.t.Context(), p.key("w-0"), m) == nil && m.Spec.RebootRequired }, m)
	if err := p.Get(p.t.Context(), client.ObjectKey{Name: "w-0"}, node); err != nil || !node.Spec.Unschedulable {
		p.t.Errorf("the node is %+v, %v; want it cordoned", node.Spec, err)
	}
	before := m.DeepCopy()
	m.Status.Reboot = &lcmv1.RebootStatus{Completed: true}
	m.Status.HostInfo = &lcmv1.HostInfo{BootTime: ptr.To(metav1.Now())}
	if err := p.Status().Patch(p.t.Context(), m, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
	patience.Await(p.t, "the reboot is no longer demanded", func() bool {
		return p.Get(p.t.Context(), p.key("w-0"), m) == nil && !m.Spec.RebootRequired && p.Get(p.t.Context(), client.ObjectKey{Name: "w-0"}, node) == nil && !node.Spec.Unschedulable
	}, m, node)
	before = m.DeepCopy()
	m.Status.Reboot = nil
	if err := p.Status().Patch(p.t.Context(), m, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
	patience.Await(p.t, "the request is completed", func() bool {
		return p.Get(p.t.Context(), p.key("c1"), request) == nil && request.Status.State == kaasv1.RebootCompleted
	}, request)
}

// providerLab makes objects of the provider.
type providerLab struct{ hocLab }

// create creates a release, a Cluster and a Machine, and a host that is available.
func (p providerLab) create() {
	p.t.Helper()
	c, m, h := &clusterv1.Cluster{ObjectMeta: p.meta("c1")}, &clusterv1.Machine{ObjectMeta: p.meta("w-0")}, &metal3.BareMetalHost{ObjectMeta: p.meta("node")}
	c.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
	c.Spec.ProviderSpec.Value = baremetalv1.ClusterProviderSpec{Release: "mosk-1", PublicKeys: []baremetalv1.KeyName{{Name: "ann"}}}
	m.Labels = map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal, clusterv1.ClusterNameLabel: "c1"}
	m.Spec.ProviderSpec.Value = baremetalv1.MachineProviderSpec{
		HostSelector:     baremetalv1.HostSelector{MatchLabels: map[string]string{"day2": "true"}},
		Day1Provisioning: baremetalv1.GateAuto, Day1Deployment: baremetalv1.GateAuto, DeletionPolicy: baremetalv1.DeletionGraceful,
		BareMetalHostProfile: &baremetalv1.ObjectReference{Name: "kernel"}, UserData: &baremetalv1.ObjectReference{Name: "user-data"},
	}
	l2 := &ipamv1.L2Template{ObjectMeta: p.meta("default"), Spec: ipamv1.L2TemplateSpec{
		ClusterRef: "c1", L3Layout: []ipamv1.L3Layout{{SubnetName: "lcm"}}, NPTemplate: "version: 2\nethernets: {eth0: {match: {macaddress: '52:54:00:00:00:01'}, set-name: eth0}}\nvlans: {v: {id: 5, link: eth0, addresses: ['{{ip \"v:lcm\"}}']}}",
	}}
	l2.Labels = map[string]string{ipamv1.DefaultForClusterLabel: "1"}
	for _, o := range []client.Object{
		&kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}, Spec: kaasv1.ClusterReleaseSpec{
			Version: "1.0.0", LCMType: lcmv1.LCMTypeK0s, AllowedDistributions: []kaasv1.Distribution{{ID: "debian", Default: true, Image: kaasv1.DistributionImage{URL: "http://192.0.2.1/d.raw", Checksum: strings.Repeat("5a", 32)}}},
			MachineTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineWorker: {{Runner: lcmv1.RunnerBash, Name: "swap", Version: "v1", Phase: lcmv1.PhaseDeploy}}},
		}},
		&kaasv1.KaaSRelease{ObjectMeta: metav1.ObjectMeta{Name: "kaas-1"}, Spec: kaasv1.KaaSReleaseSpec{
			Version: "2.30.0", ClusterRelease: "mosk-1", SupportedClusterReleases: []kaasv1.SupportedClusterRelease{{Name: "mosk-1", Version: "1.0.0"}},
		}},
		&hostprofilev1.BareMetalHostProfile{ObjectMeta: p.meta("kernel"), Spec: hostprofilev1.BareMetalHostProfileSpec{
			KernelParameters: &hostprofilev1.KernelParameters{Sysctl: map[string]hostprofilev1.SysctlValue{"kernel.panic": "30"}},
		}},
		&corev1.Secret{ObjectMeta: p.meta("user-data"), StringData: map[string]string{"userData": "#cloud-config\n"}},
		&ipamv1.Subnet{ObjectMeta: p.meta("lcm"), Spec: ipamv1.SubnetSpec{CIDR: "10.77.0.0/24"}}, l2,
		&kaasv1.PublicKey{ObjectMeta: p.meta("ann"), Spec: kaasv1.PublicKeySpec{PublicKey: "ssh-ed25519 A ann"}}, c, m, h,
	} {
		if err := p.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
	p.state(h, metal3.StateAvailable)
}

// state writes the state of a host, as its controller does.
func (p providerLab) state(h *metal3.BareMetalHost, state metal3.ProvisioningState) {
	p.t.Helper()
	h.Status.Provisioning.State, h.Status.OperationalStatus = state, metal3.OperationalStatusOK
	h.Status.PoweredOn = state == metal3.StateProvisioned
	if err := p.Status().Update(p.t.Context(), h); err != nil {
		p.t.Fatal(err)
	}
}

// agent reports an address with the token of the server, and executes its items. The token
// reads no other LCMMachine and no other Secret.
func (p providerLab) agent(api *rest.Config) {
	p.t.Helper()
	var token corev1.Secret
	if err := p.Get(p.t.Context(), p.key("w-0-lcm-agent-token"), &token); err != nil {
		p.t.Fatal(err)
	}
	as := rest.AnonymousClientConfig(api)
	as.BearerToken = string(token.Data["token"])
	c := newClient(p.t, as)
	m := new(lcmv1.LCMMachine)
	patience.Await(p.t, "the agent has items", func() bool {
		if err := c.Get(p.t.Context(), p.key("w-0"), m); err != nil {
			p.t.Logf("the agent: %v", err)
			return false
		}
		return len(m.Spec.StateItems) == 1
	}, m)
	for _, o := range []client.Object{new(lcmv1.LCMMachine), new(corev1.Secret)} {
		if err := c.Get(p.t.Context(), p.key("w-0-user-data"), o); !apierrors.IsForbidden(err) {
			p.t.Errorf("the agent reads another %T: %v", o, err)
		}
	}
	before := m.DeepCopy()
	m.Status.Addresses = []lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "10.0.0.5"}}
	m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{"swap": {Hash: item.Hash(m.Spec.StateItems[0], ""), Attempt: 1}}
	if err := c.Status().Patch(p.t.Context(), m, client.MergeFrom(before)); err != nil {
		p.t.Fatal(err)
	}
}

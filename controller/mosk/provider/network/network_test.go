package network

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const ns = "lab"

type lab struct {
	t testing.TB
	client.Client
	mu     sync.Mutex
	writes []string
}

// start starts an API with a Subnet of a number of addresses, the cluster's L2Template, and
// Machines that have claimed a host each.
func start(t testing.TB, addresses, machines int) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{ipamv1.AddToScheme, clusterv1.AddToScheme, metal3.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &ipamv1.Subnet{ObjectMeta: meta("lcm"), Spec: ipamv1.SubnetSpec{CIDR: "10.0.0.0/16", Gateway: "10.0.0.1"}}
	s.Spec.IncludeRanges = []ipamv1.AddressRange{ipamv1.AddressRange(fmt.Sprintf("10.0.1.1-10.0.1.%d", addresses))}
	l2 := &ipamv1.L2Template{ObjectMeta: meta("default"), Spec: ipamv1.L2TemplateSpec{ClusterRef: "c1", L3Layout: []ipamv1.L3Layout{{SubnetName: "lcm"}}}}
	l2.Labels = map[string]string{ipamv1.DefaultForClusterLabel: "1"}
	l2.Spec.NPTemplate = "version: 2\nethernets: {eth0: {match: {macaddress: '{{mac 0}}'}, addresses: ['{{ip \"0:lcm\"}}'], gateway4: '{{gateway_from_subnet \"lcm\"}}'}}"
	objects := []client.Object{s, l2, &clusterv1.Cluster{ObjectMeta: meta("c1")}}
	for i := range machines {
		name := fmt.Sprintf("w-%d", i)
		m, h := &clusterv1.Machine{ObjectMeta: meta(name)}, &metal3.BareMetalHost{ObjectMeta: meta("node-" + name)}
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c1", clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}
		m.Annotations = map[string]string{clusterv1.BareMetalHostAnnotation: ns + "/" + h.Name}
		m.Spec.ProviderID = ptr.To("metal3://" + h.Name)
		mac := fmt.Sprintf("02:00:00:00:00:%02x", i)
		h.Spec.BootMACAddress = mac
		h.Status.HardwareDetails = &metal3.HardwareDetails{NIC: []metal3.NIC{{Name: "eth0", MAC: mac, IP: "192.0.2.1"}, {Name: "eth0", MAC: mac, IP: "fd00::1"}}}
		objects = append(objects, m, h)
	}
	l := &lab{t: t}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&ipamv1.SubnetPool{}, &ipamv1.L2Template{}, &ipamv1.IPaddr{}, &ipamv1.Subnet{}, &ipamv1.IpamHost{}, &metal3.BareMetalHost{}).Build()
	return l
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-of-" + name)}
}

// provider returns controllers, whose writes are counted. cached, if set, answers their
// lists: it may be older than the API.
func (l *lab) provider(cached client.Reader) *Reconciler {
	l.t.Helper()
	count := func(verb string, o client.Object) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writes = append(l.writes, verb+" "+o.GetName())
	}
	funcs := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			count("create", o)
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			count("delete", o)
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			count("status of", o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
	if cached != nil {
		funcs.List = func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return cached.List(ctx, list, opts...)
		}
	}
	r, err := New(Config{Client: interceptor.NewClient(l.Client.(client.WithWatch), funcs), Reader: l, Work: queue.Work{Clock: clock.RealClock{}}})
	l.must(err)
	return r
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) pass(r *Reconciler, machine string) {
	_, err := r.machines.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: machine}})
	if err != nil {
		l.t.Errorf("Reconcile(%s) = %v", machine, err)
	}
}

func get[T client.Object](l *lab, name string, o T) T {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o))
	return o
}

func (l *lab) subnet() ipamv1.SubnetStatus {
	l.t.Helper()
	_, err := l.provider(nil).subnets.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "lcm"}})
	l.must(err)
	return get(l, "lcm", new(ipamv1.Subnet)).Status
}

// addresses returns the address of each Machine that has one. Two Machines with one
// address, and a Machine with two, are errors.
func (l *lab) addresses() map[string]string {
	l.t.Helper()
	var list ipamv1.IPaddrList
	l.must(l.List(l.t.Context(), &list))
	out, owners := map[string]string{}, map[string]string{}
	for _, a := range list.Items {
		m, address := a.Labels[machineLabel], a.Spec.WantedAddress
		if out[m] != "" || owners[address] != "" {
			l.t.Errorf("%s has %s and %s; %s is of %s, too", m, address, out[m], address, owners[address])
		}
		out[m], owners[address] = address, m
	}
	return out
}

// Many Machines race for the addresses of a Subnet, by controllers that see none of each
// other's, that end and begin again.
func TestAddressesAreAllocatedOnce(t *testing.T) {
	const machines, addresses = 60, 40
	l := start(t, addresses, machines)
	empty := start(t, addresses, machines) // the cache of a moment when nothing was allocated
	var all sync.WaitGroup
	for range 3 {
		r := l.provider(empty)
		for i := range machines {
			all.Go(func() { l.pass(r, fmt.Sprintf("w-%d", i)) })
		}
		all.Wait()
	}
	got := l.addresses()
	if len(got) != addresses {
		t.Errorf("%d Machines have an address, want %d", len(got), addresses)
	}
	ready := 0
	waiting := ""
	for i := range machines {
		h := get(l, fmt.Sprintf("w-%d", i), new(ipamv1.IpamHost))
		if h.Status.NetconfigV2State == ipamv1.ResultOK {
			ready++
			if a := got[h.Name]; a == "" || !strings.Contains(string(h.Status.NetconfigV2.Raw), a+"/16") {
				t.Errorf("%s has %s and the configuration %s", h.Name, a, h.Status.NetconfigV2.Raw)
			}
			continue
		}
		waiting = h.Name
		if want := `ERR: Subnet "lcm" has no free address`; !strings.HasPrefix(h.Status.IPAllocationResult, want) || len(h.Status.Messages) != 1 {
			t.Errorf("%s: %+v, want %s", h.Name, h.Status, want)
		}
	}
	if ready != addresses {
		t.Errorf("%d Machines have their network, want %d", ready, addresses)
	}
	if s := l.subnet(); s.Capacity != addresses || s.Allocatable != 0 || !strings.HasPrefix(s.StatusMessage, "ERR: all 40 addresses") || len(s.AllocatedIPs) != addresses {
		t.Errorf("the Subnet's status is %+v", s)
	}
	freed := get(l, "ip-10-0-1-7", new(ipamv1.IPaddr))
	l.must(l.Delete(t.Context(), freed))
	if s := l.subnet(); s.Allocatable != 1 || s.StatusMessage != ipamv1.ResultOK {
		t.Errorf("the Subnet's status is %+v after an address was freed", s)
	}
	l.pass(l.provider(nil), waiting)
	if a := l.addresses()[waiting]; a != "10.0.1.7" {
		t.Errorf("%s has %q, want the address that was freed", waiting, a)
	}
}

func TestNetworkOfAMachine(t *testing.T) {
	l := start(t, 5, 1)
	for range 2 {
		l.pass(l.provider(nil), "w-0")
	}
	h, m := get(l, "w-0", new(ipamv1.IpamHost)), get(l, "w-0", new(clusterv1.Machine))
	if len(h.Spec.NICMACMap) != 1 || !h.Spec.NICMACMap[0].Primary || !metav1.IsControlledBy(h, m) {
		t.Errorf("the IpamHost is %+v", h)
	}
	secret := get(l, "w-0-network-data", new(corev1.Secret))
	for _, want := range []string{`"ip_address":"10.0.1.1"`, `"netmask":"255.255.0.0"`, `"ethernet_mac_address":"02:00:00:00:00:00"`, `"gateway":"10.0.0.1"`} {
		if !strings.Contains(string(secret.Data["networkData"]), want) || !metav1.IsControlledBy(secret, m) {
			t.Errorf("the Secret is %s, want %s", secret.Data["networkData"], want)
		}
	}
	if want := []string{"create w-0", "create ip-10-0-1-1", "create w-0-network-data", "status of w-0"}; fmt.Sprint(l.writes) != fmt.Sprint(want) {
		t.Errorf("writes %q, want %q", l.writes, want)
	}
	// The template changes: another address stays, the old one is freed.
	l2 := get(l, "default", new(ipamv1.L2Template))
	text := l2.Spec.NPTemplate
	l2.Spec.NPTemplate = strings.ReplaceAll(text, "0:lcm", "eth0:lcm")
	l.must(l.Update(t.Context(), l2))
	l.pass(l.provider(nil), "w-0")
	if a := l.addresses()["w-0"]; a == "" {
		t.Error("the address is lost")
	}
	// With its image the host keeps what it has.
	host := get(l, "node-w-0", new(metal3.BareMetalHost))
	host.Spec.Image = &metal3.Image{URL: "http://192.0.2.1/i.raw"}
	l.must(l.Update(t.Context(), host))
	l2.Spec.NPTemplate = "version: 1"
	l.must(l.Update(t.Context(), l2))
	l.pass(l.provider(nil), "w-0")
	if h = get(l, "w-0", new(ipamv1.IpamHost)); h.Status.NetconfigV2State != ipamv1.ResultOK {
		t.Errorf("the network of a host with an image changes: %+v", h.Status)
	}
}

func TestTemplateWithAMistakeIsReported(t *testing.T) {
	l := start(t, 5, 1)
	l2 := get(l, "default", new(ipamv1.L2Template))
	l2.Spec.NPTemplate = "{{nic 4}}"
	l.must(l.Update(t.Context(), l2))
	l.pass(l.provider(nil), "w-0")
	h := get(l, "w-0", new(ipamv1.IpamHost))
	if !strings.HasPrefix(h.Status.L2RenderResult, `ERR: L2Template "default": spec.npTemplate`) || len(h.Status.Messages) != 1 || len(l.addresses()) != 0 {
		t.Errorf("the status is %+v", h.Status)
	}
}

// Secrets of users are not watched: a Machine that waits for the removal of one looks again.
func TestSecretOfAUserIsWaitedFor(t *testing.T) {
	l := start(t, 1, 1)
	r := l.provider(nil)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: layout.SecretName("w-0")}}
	l.must(l.Create(t.Context(), s))
	pass := func(after time.Duration) *ipamv1.IpamHost {
		t.Helper()
		got, err := r.machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "w-0"}})
		if err != nil || got.RequeueAfter != after {
			t.Errorf("Reconcile() = %+v, %v, want it again after %s", got, err, after)
		}
		return get(l, "w-0", new(ipamv1.IpamHost))
	}
	want := fmt.Sprintf("ERR: Secret %q exists, and is not the Machine's: remove it", s.Name)
	if h := pass(queue.SecretWait); h.Status.NetconfigV2State != want {
		t.Errorf("state %q, want %q", h.Status.NetconfigV2State, want)
	}
	l.must(l.Delete(t.Context(), s))
	if h := pass(0); h.Status.NetconfigV2State != ipamv1.ResultOK {
		t.Errorf("state %q after the Secret is removed", h.Status.NetconfigV2State)
	}
}

// The status of an L2Template says whether it can be used, and follows its Subnets.
func TestStatusOfATemplate(t *testing.T) {
	l := start(t, 5, 0)
	r := &templates{l.provider(nil).machines.Config}
	pass := func() ipamv1.L2TemplateStatus {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "default"}})
		l.must(err)
		return get(l, "default", new(ipamv1.L2Template)).Status
	}
	ready := pass()
	if ready.Phase != ipamv1.L2TemplateReady || ready.Reason != "" || len(ready.SpecHash) != 64 {
		t.Errorf("status %+v of a template without mistakes", ready)
	}
	l2 := get(l, "default", new(ipamv1.L2Template))
	text := l2.Spec.NPTemplate
	for bad, want := range map[string]string{"{{nic": "spec.npTemplate", "{{cpu 0}}": `function "cpu" not defined`} {
		l2.Spec.NPTemplate = bad
		l.must(l.Update(t.Context(), l2))
		if s := pass(); s.Phase != ipamv1.L2TemplateFailed || !strings.Contains(s.Reason, want) || s.SpecHash == ready.SpecHash {
			t.Errorf("status %+v of the template %q, want %q", s, bad, want)
		}
		l2 = get(l, "default", new(ipamv1.L2Template))
	}
	l2.Spec.NPTemplate, l2.Spec.IfMapping = text, []string{"eth9"} // of some servers
	l2.Spec.L3Layout[0].SubnetPool = "pool"
	l.must(l.Update(t.Context(), l2))
	if s := pass(); s.Phase != ipamv1.L2TemplateReady || s.Reason != "nothing acts on spec.l3Layout[].subnetPool" {
		t.Errorf("status %+v of a template with a subnetPool", s)
	}
	l.must(l.Delete(t.Context(), get(l, "lcm", new(ipamv1.Subnet))))
	if s := pass(); s.Phase != ipamv1.L2TemplateFailed || !strings.Contains(s.Reason, `0 Subnets of the namespace fit, want one for "lcm"`) {
		t.Errorf("status %+v without the Subnet", s)
	}
}

// The status of an IPaddr has the network of its Subnet.
func TestStatusOfAnAddress(t *testing.T) {
	l := start(t, 5, 1)
	l.pass(l.provider(nil), "w-0")
	r := &addresses{l.provider(nil).machines.Config}
	pass := func() ipamv1.IPaddrStatus {
		t.Helper()
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "ip-10-0-1-1"}})
		l.must(err)
		return get(l, "ip-10-0-1-1", new(ipamv1.IPaddr)).Status
	}
	s := get(l, "lcm", new(ipamv1.Subnet))
	s.Spec.Nameservers = []ipamv1.Address{"10.0.0.2"}
	l.must(l.Update(t.Context(), s))
	want := ipamv1.IPaddrStatus{Phase: ipamv1.IPaddrActive, Address: "10.0.1.1", CIDR: "10.0.0.0/16", Gateway: "10.0.0.1", Nameservers: []string{"10.0.0.2"}}
	if diff := cmp.Diff(want, pass()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	s.Spec.IncludeRanges = []ipamv1.AddressRange{"10.0.2.1-10.0.2.9"}
	l.must(l.Update(t.Context(), s))
	if got := pass(); got.Phase != ipamv1.IPaddrFailed || got.Reason != `Subnet "lcm" does not allocate 10.0.1.1` || got.Address != "" {
		t.Errorf("status %+v of an address that the Subnet has no more", got)
	}
	l.must(l.Delete(t.Context(), s))
	if got := pass(); got.Phase != ipamv1.IPaddrFailed || got.Reason != `there is no Subnet "lcm" in the namespace` {
		t.Errorf("status %+v without the Subnet", got)
	}
}

// The status of an IpamHost has the file for netplan, and the addresses of each service that a
// Subnet's labels name.
func TestFilesAndServicesOfAServer(t *testing.T) {
	l := start(t, 5, 1)
	s := get(l, "lcm", new(ipamv1.Subnet))
	s.Labels = map[string]string{"ipam/SVC-k8s-lcm": "1", "ipam/SVC-pxe": "1", "rack": "a"}
	l.must(l.Update(t.Context(), s))
	l.pass(l.provider(nil), "w-0")
	h := get(l, "w-0", new(ipamv1.IpamHost)).Status
	address := []ipamv1.ServiceAddress{{IfName: "eth0", IPAddress: "10.0.1.1"}}
	if diff := cmp.Diff(map[string][]ipamv1.ServiceAddress{"k8s-lcm": address, "pxe": address}, h.ServiceMap); diff != "" {
		t.Errorf("serviceMap (-want +got):\n%s", diff)
	}
	if h.NetconfigFilesState != ipamv1.ResultOK || len(h.NetconfigFiles) != 1 || h.NetconfigFiles[0].Path != "/etc/netplan/60-kaas-lcm-netplan.yaml" {
		t.Fatalf("files %+v, %s", h.NetconfigFiles, h.NetconfigFilesState)
	}
	text, err := base64.StdEncoding.DecodeString(h.NetconfigFiles[0].Content)
	if err != nil || !strings.HasPrefix(string(text), "network:\n") || !strings.Contains(string(text), "10.0.1.1/16") || !strings.Contains(string(text), "version: 2") {
		t.Errorf("the file is %s, %v", text, err)
	}
}

// A SubnetPool says that nothing makes Subnets of it.
func TestStatusOfAPool(t *testing.T) {
	l := start(t, 1, 0)
	l.must(l.Create(t.Context(), &ipamv1.SubnetPool{ObjectMeta: meta("pool"), Spec: ipamv1.SubnetPoolSpec{CIDR: "10.0.0.0/8", BlockSize: "/24"}}))
	r := &pools{l.provider(nil).machines.Config}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "pool"}})
	l.must(err)
	if got := get(l, "pool", new(ipamv1.SubnetPool)).Status.StatusMessage; got != "ERR: nothing makes Subnets of a SubnetPool: create them, each with its cidr" {
		t.Errorf("message %q", got)
	}
}

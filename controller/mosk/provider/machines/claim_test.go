package machines

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// cache answers reads with an old state of the API, like a cache that receives no events.
type cache struct {
	client.Reader
	hosts    []metal3.BareMetalHost
	machines []clusterv1.Machine
	lcm      []lcmv1.LCMMachine
}

func (l *lab) cache() *cache {
	l.t.Helper()
	var hosts metal3.BareMetalHostList
	var machines clusterv1.MachineList
	var lcmMachines lcmv1.LCMMachineList
	for _, list := range []client.ObjectList{&hosts, &machines, &lcmMachines} {
		l.must(l.List(l.t.Context(), list))
	}
	return &cache{l, hosts.Items, machines.Items, lcmMachines.Items}
}

func (c *cache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o := o.(type) {
	case *metal3.BareMetalHost:
		return find(c.hosts, key, (*metal3.BareMetalHost).DeepCopyInto, o)
	case *clusterv1.Machine:
		return find(c.machines, key, (*clusterv1.Machine).DeepCopyInto, o)
	case *lcmv1.LCMMachine:
		return find(c.lcm, key, (*lcmv1.LCMMachine).DeepCopyInto, o)
	}
	return c.Reader.Get(ctx, key, o, opts...)
}

func find[T any, O interface {
	*T
	client.Object
}](items []T, key client.ObjectKey, copyInto func(from, to O), to O) error {
	for i := range items {
		if from := O(&items[i]); client.ObjectKeyFromObject(from) == key {
			copyInto(from, to)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *cache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list := list.(type) {
	case *metal3.BareMetalHostList:
		list.Items = c.hosts // not copied, as the provider asks
	case *clusterv1.MachineList:
		list.Items = c.machines
	default:
		return c.Reader.List(ctx, list, opts...)
	}
	return nil
}

// claims returns the Machines that have a host, and fails when one has two, or when
// annotation and consumerRef disagree.
func (l *lab) claims() map[string]bool {
	l.t.Helper()
	out, c := map[string]bool{}, l.cache()
	for _, h := range c.hosts {
		if h.Spec.ConsumerRef == nil {
			continue
		}
		name := h.Spec.ConsumerRef.Name
		if out[name] {
			l.t.Fatalf("%s has claimed two hosts", name)
		}
		out[name] = true
		if got := l.machine(name).Annotations[clusterv1.BareMetalHostAnnotation]; got != ns+"/"+h.Name {
			l.t.Errorf("Machine %s names %q, but has claimed %s", name, got, h.Name)
		}
	}
	return out
}

// A process whose cache is old takes no host from a Machine that has claimed it since.
func TestClaimByAnOldCacheLosesTheRace(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"), machine("n"))...)
	var old *cache
	for _, name := range []string{"m", "n"} {
		edit(l, l.machine(name), func(m *clusterv1.Machine) {
			m.Finalizers, m.Annotations = []string{Finalizer}, map[string]string{clusterv1.BareMetalHostAnnotation: "lab/a"}
		})
	}
	old = l.cache() // both name the host, and none has it
	for range 3 {
		l.must(pass(t.Context(), l.provider(nil), "m"))
	}
	l.must(pass(t.Context(), l.provider(old), "n"))
	if h := l.hostOf("m"); h == nil || l.machine("m").Spec.ProviderID == nil {
		t.Fatalf("the host is %+v", l.host("a").Spec.ConsumerRef)
	}
	l.run()
	if l.machine("m").Status.ProviderStatus.Status != "Ready" || l.instance("n").Ready || l.machine("n").Annotations[clusterv1.BareMetalHostAnnotation] != "" {
		t.Errorf("m is %+v, n is %+v", l.machine("m").Status.ProviderStatus, l.machine("n").Status.ProviderStatus)
	}
}

// 100 Machines and 60 hosts, eight workers, and caches that are a round old: 60 Machines
// get one host each, 40 wait. When hosts come, the others get them.
func TestMachinesThatRaceForHosts(t *testing.T) {
	const hosts, machines = 60, 100
	var all []client.Object
	for i := range hosts {
		all = append(all, host(fmt.Sprintf("host-%d", i)))
	}
	for i := range machines {
		m := machine(fmt.Sprintf("m-%d", i))
		m.Spec.ProviderSpec.Value.Day1Provisioning = baremetalv1.GateManual // the claims matter
		all = append(all, m)
	}
	l := start(t, objects(all...)...)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	race := func(want int) {
		t.Helper()
		for round := 0; ; round++ {
			before := len(l.writes)
			r := l.provider(l.cache())
			names := make(chan string, machines)
			for _, i := range chance.Perm(machines) {
				names <- fmt.Sprintf("m-%d", i)
			}
			close(names)
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for name := range names {
						if err := pass(t.Context(), r, name); err != nil {
							t.Errorf("Reconcile(%s) = %v", name, err)
						}
					}
				})
			}
			group.Wait()
			if n := len(l.claims()); n > want {
				t.Fatalf("%d Machines have a host, there are %d", n, want)
			}
			if len(l.writes) == before || t.Failed() {
				break
			}
			if round > 100 {
				t.Fatal("the Machines write without end")
			}
		}
		if n := len(l.claims()); n != want {
			t.Fatalf("%d Machines have a host, want %d", n, want)
		}
	}
	race(hosts)
	waiting, claims := 0, l.claims()
	for _, m := range l.machines() {
		if !claims[m.Name] {
			waiting++
			if c := l.instance(m.Name); c.Ready || c.Message != "none of the hosts that spec.providerSpec.value.hostSelector selects is free: the Machine waits for one that is available and not claimed" {
				t.Errorf("%s: condition %+v", m.Name, c)
			}
		}
	}
	if waiting != machines-hosts {
		t.Errorf("%d Machines wait, want %d", waiting, machines-hosts)
	}
	for i := range machines - hosts {
		l.must(l.Create(t.Context(), host(fmt.Sprintf("late-%d", i))))
	}
	race(machines)
}

// A process that ends at any write, before or after it, leaves a claim that the next one
// finishes: the Machine gets to Ready with one host, and its deletion frees it.
func TestProviderThatIsKilledAtAnyWrite(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			l := start(t, objects(host("a"), host("b"), machine("m"))...)
			l.failAt, l.failAfter = n, after
			l.run()
			if h := l.hostOf("m"); h == nil || l.machine("m").Status.ProviderStatus.Status != "Ready" {
				t.Fatalf("killed at write %d (%s): host %v, status %+v", n, l.writes[n-1], h, l.machine("m").Status.ProviderStatus)
			}
			l.must(l.Delete(t.Context(), machine("m")))
			l.run()
			if len(l.machines()) != 0 {
				t.Fatalf("killed at write %d (%s): the Machine exists", n, l.writes[n-1])
			}
			for _, name := range []string{"a", "b"} {
				if h := l.host(name); h.Spec.ConsumerRef != nil || h.Spec.Image != nil || h.Status.Provisioning.State != metal3.StateAvailable {
					t.Fatalf("killed at write %d (%s): host %s is not free: %+v", n, l.writes[n-1], name, h.Spec)
				}
			}
			if n > len(l.writes) {
				break
			}
			if n > 200 {
				t.Fatal("more than 200 writes")
			}
		}
	}
}

// A Machine keeps its host when its annotation is lost, and gets no other when the host
// goes.
func TestMachineWithALostHost(t *testing.T) {
	l := start(t, objects(host("a"), host("b"), machine("m"))...)
	l.run()
	first := l.hostOf("m").Name
	edit(l, l.machine("m"), func(m *clusterv1.Machine) { m.Annotations = nil })
	l.run()
	if got := l.hostOf("m").Name; got != first || len(l.claims()) != 1 {
		t.Errorf("host %s, want %s", got, first)
	}
	edit(l, l.host(first), func(h *metal3.BareMetalHost) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Other", Namespace: ns, Name: "x"}
	})
	l.run()
	if c := l.instance("m"); l.hostOf("m") != nil || c.Ready || c.Message != "spec.consumerRef of BareMetalHost lab/"+first+" names Other lab/x: delete the Machine" {
		t.Errorf("of another consumer: condition %+v", c)
	}
	l.must(l.Delete(t.Context(), l.host(first)))
	l.run()
	if c := l.instance("m"); l.hostOf("m") != nil || c.Ready || c.Message != "BareMetalHost lab/"+first+" does not exist any more: delete the Machine" {
		t.Errorf("without the host: condition %+v", c)
	}
	l.must(l.Delete(t.Context(), machine("m")))
	l.run()
	if len(l.machines()) != 0 {
		t.Error("the Machine exists")
	}
}

// A Machine is deleted whose annotation was lost, or was of an older state of its host.
func TestDeletionWithALostAnnotationFreesTheHost(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	edit(l, l.machine("m"), func(m *clusterv1.Machine) { m.Annotations = nil })
	l.must(l.Delete(t.Context(), machine("m")))
	l.run()
	if h := l.host("a"); len(l.machines()) != 0 || h.Spec.ConsumerRef != nil {
		t.Errorf("%d Machines, host %+v", len(l.machines()), h.Spec)
	}

	l = start(t, objects(host("a"), machine("m"))...)
	for range 3 { // finalizer, LCMMachine, annotation
		l.must(pass(t.Context(), l.provider(nil), "m"))
	}
	old := l.cache() // the host is not claimed in it
	l.must(pass(t.Context(), l.provider(nil), "m"))
	if l.hostOf("m") == nil {
		t.Fatal("the host is not claimed")
	}
	l.must(l.Delete(t.Context(), machine("m")))
	c := l.cache()
	c.hosts = old.hosts
	r := l.provider(c)
	for range 5 {
		l.must(pass(t.Context(), r, "m"))
	}
	if len(l.machines()) != 1 {
		t.Error("the Machine was deleted while its host is claimed")
	}
	l.run()
	if h := l.host("a"); len(l.machines()) != 0 || h.Spec.ConsumerRef != nil {
		t.Errorf("%d Machines, host %+v", len(l.machines()), h.Spec)
	}
}

// The deletion of a Machine enqueues no other: one that waits takes the host as soon as it is
// nobody's, while the deleted Machine still names it.
func TestHostThatADeletedMachineNamesIsFree(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"), machine("waits"))...)
	for range 3 { // finalizer, LCMMachine, annotation
		l.must(pass(t.Context(), l.provider(nil), "m"))
	}
	l.must(l.Delete(t.Context(), machine("m")))
	if a := l.machine("m").Annotations[clusterv1.BareMetalHostAnnotation]; a == "" || l.hostOf("m") != nil {
		t.Fatalf("the deleted Machine names %q and has claimed %v", a, l.hostOf("m"))
	}
	for range 4 {
		l.must(pass(t.Context(), l.provider(nil), "waits"))
	}
	if l.hostOf("waits") == nil {
		t.Error("the other Machine has claimed no host")
	}
	l.run()
	if h := l.host("a"); len(l.machines()) != 1 || !claimedBy(h, l.machine("waits")) {
		t.Errorf("%d Machines, host %+v", len(l.machines()), h.Spec)
	}
}

func TestHostsThatAreNotClaimed(t *testing.T) {
	for name, change := range map[string]func(*metal3.BareMetalHost){
		"claimed": func(h *metal3.BareMetalHost) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Other", Name: "m"} },
		"of another group": func(h *metal3.BareMetalHost) {
			h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Machine", Namespace: ns, Name: "m"}
		},
		"of another label":    func(h *metal3.BareMetalHost) { h.Labels["rack"] = "b" },
		"of a namespace":      func(h *metal3.BareMetalHost) { h.Namespace = "other" },
		"inspecting":          func(h *metal3.BareMetalHost) { h.Status.Provisioning.State = metal3.StateInspecting },
		"provisioned by hand": func(h *metal3.BareMetalHost) { h.Spec.Image = &metal3.Image{URL: "http://192.0.2.2/x"} },
		"with an error":       func(h *metal3.BareMetalHost) { h.Status.ErrorMessage = "no power" },
		"ext. provisioned":    func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true },
	} {
		h := host("a")
		change(h)
		l := start(t, objects(h, machine("m"))...)
		l.settle()
		m := l.machine("m")
		if m.Annotations[clusterv1.BareMetalHostAnnotation] != "" || l.instance("m").Message == "" || m.Status.ProviderStatus.Status != StatusProvision {
			t.Errorf("%s: the Machine names %q, status %+v", name, m.Annotations[clusterv1.BareMetalHostAnnotation], m.Status.ProviderStatus)
		}
	}
}

// An annotation of a user reaches no host of another namespace, and none that is not free.
func TestAnnotationOfAUserClaimsOnlyFreeHosts(t *testing.T) {
	far, busy := host("far"), host("busy")
	far.Namespace = "other"
	busy.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Other", Name: "x"}
	for _, named := range []string{"other/far", "lab/busy", "lab/none", "none"} {
		m := machine("m")
		m.Annotations = map[string]string{clusterv1.BareMetalHostAnnotation: named}
		l := start(t, objects(far.DeepCopy(), busy.DeepCopy(), host("a"), m)...)
		l.run()
		if h := l.hostOf("m"); h == nil || h.Name != "a" {
			t.Errorf("%s: host %v, want a", named, h)
		}
	}
}

// A Machine whose cluster has a default L2Template waits for its network, shows what is
// wrong with it, and gives its host the network data.
func TestMachineWaitsForItsNetwork(t *testing.T) {
	l2 := &ipamv1.L2Template{ObjectMeta: meta("default"), Spec: ipamv1.L2TemplateSpec{ClusterRef: "c1"}}
	l2.Labels = map[string]string{ipamv1.DefaultForClusterLabel: "1"}
	l := start(t, objects(host("node"), machine("w-0"), l2)...)
	l.run()
	if h := l.host("node"); h.Spec.ConsumerRef == nil || h.Spec.Image != nil {
		t.Errorf("the host is %+v, want it claimed, without an image", h.Spec)
	}
	if c := l.instance("w-0"); c.Message != `the network is being prepared from L2Template "default"` {
		t.Errorf("the condition is %+v", c)
	}
	network := &ipamv1.IpamHost{ObjectMeta: meta("w-0")}
	network.Status.Messages = []string{`Subnet "lcm" has no free address`}
	l.must(l.Create(t.Context(), network))
	l.run()
	if c := l.instance("w-0"); c.Ready || c.Message != `Subnet "lcm" has no free address` {
		t.Errorf("the condition is %+v", c)
	}
	edit(l, network, func(h *ipamv1.IpamHost) { h.Status = ipamv1.IpamHostStatus{NetconfigV2State: ipamv1.ResultOK} })
	l.run()
	if s := l.host("node").Spec; s.Image == nil || s.NetworkData == nil || s.NetworkData.Name != "w-0-network-data" {
		t.Errorf("the host is %+v, want image and network data", s)
	}
	edit(l, l.machine("w-0"), func(m *clusterv1.Machine) {
		m.Spec.ProviderSpec.Value.L2TemplateSelector = &baremetalv1.L2TemplateSelector{Name: "gone"}
	})
	l.run() // a host that has its image keeps its network
	if c := l.instance("w-0"); !c.Ready {
		t.Errorf("the condition is %+v", c)
	}
}

func TestMachineWithoutTheL2TemplateThatItNamesWaits(t *testing.T) {
	m := machine("w-0")
	m.Spec.ProviderSpec.Value.L2TemplateSelector = &baremetalv1.L2TemplateSelector{Name: "storage"}
	l := start(t, objects(host("node"), m)...)
	l.run()
	if c := l.instance("w-0"); !strings.Contains(c.Message, `l2TemplateSelector.name: Cluster "c1" has no L2Template "storage"`) || l.host("node").Spec.Image != nil {
		t.Errorf("the condition is %+v", c)
	}
}

// A network with bridges reaches the server by its user data, as a file for netplan; all others by
// network data alone.
func TestMachineGetsTheFileOfItsNetwork(t *testing.T) {
	for config, want := range map[string]bool{`{"version":2,"bridges":{"br0":{}}}`: true, `{"version":2}`: false} {
		l2 := &ipamv1.L2Template{ObjectMeta: meta("default"), Spec: ipamv1.L2TemplateSpec{ClusterRef: "c1"}}
		l2.Labels = map[string]string{ipamv1.DefaultForClusterLabel: "1"}
		network := &ipamv1.IpamHost{ObjectMeta: meta("w-0"), Status: ipamv1.IpamHostStatus{
			NetconfigV2State: ipamv1.ResultOK, NetconfigV2: &runtime.RawExtension{Raw: []byte(config)}, NetconfigFiles: []ipamv1.NetconfigFile{{Path: ipamv1.NetplanFile}},
		}}
		l := start(t, objects(host("node"), machine("w-0"), l2, network)...)
		l.run()
		if s := l.host("node").Spec; s.Image == nil || s.NetworkData == nil {
			t.Fatalf("the host is %+v, want image and network data", s)
		}
		text := string(get(l, "w-0-user-data", new(corev1.Secret)).Data["userData"])
		if got := strings.Contains(text, ipamv1.NetplanFile) && strings.Contains(text, "netplan apply"); got != want {
			t.Errorf("%s: the user data have netplan's file: %t, want %t\n%s", config, got, want, text)
		}
	}
}

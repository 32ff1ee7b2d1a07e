package elemental

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/reconcile/breaker"
)

// links returns which host has which machine, as both sides say.
func (l *lab) links() string {
	l.t.Helper()
	var hosts elementalv1.ElementalHostList
	var machines elementalv1.ElementalMachineList
	l.must(errors.Join(l.List(l.t.Context(), &hosts), l.List(l.t.Context(), &machines)))
	var out []string
	for _, h := range hosts.Items {
		if ref := h.Spec.MachineRef; ref != nil {
			out = append(out, h.Name+"->"+ref.Name)
		}
	}
	for _, m := range machines.Items {
		if ref := m.Spec.HostRef; ref != nil {
			out = append(out, m.Name+"->"+ref.Name)
		}
	}
	return strings.Join(out, " ")
}

// The conditions that a machine waits for, in the order in which they are checked.
func TestMachineWaitsForItsCluster(t *testing.T) {
	l := start(t, &elementalv1.ElementalMachine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, installed("h"))
	step := func(want string, change func(*elementalv1.ElementalMachine)) {
		t.Helper()
		l.settle()
		is(t, l.machine("m"), elementalv1.AssociationReady, want)
		is(t, l.machine("m"), capi.ReadyCondition, want)
		if got := l.links(); got != "" {
			t.Errorf("links %s while the machine waits", got)
		}
		if change != nil {
			edit(l, l.machine("m"), change)
		}
	}
	create := func(o client.Object) {
		o.SetNamespace(ns)
		l.must(l.Create(t.Context(), o))
	}
	step("False MissingMachineOwner Error", func(m *elementalv1.ElementalMachine) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: capi.GroupVersion.String(), Kind: "Machine", Name: "of-m", UID: "u"}}
	})
	step("False MissingMachineOwner Error", nil)
	owner := ownedMachine("m")[1].(*capi.Machine)
	owner.Spec.Bootstrap.DataSecretName = nil
	create(owner)
	step("False MissingAssociatedCluster Error", func(m *elementalv1.ElementalMachine) { m.Labels = map[string]string{capi.ClusterNameLabel: "c"} })
	step("False MissingAssociatedCluster Error", nil)
	c := readyCluster()
	c.Spec.Paused, c.Status.InfrastructureReady = true, false
	create(c)
	step("False MissingAssociatedCluster Error", nil) // paused: nothing is done
	if m := l.machine("m"); len(m.Finalizers) > 0 {
		t.Errorf("a machine of a paused cluster gets finalizers %v", m.Finalizers)
	}
	edit(l, get(l, "c", new(capi.Cluster)), func(c *capi.Cluster) { c.Spec.Paused = false })
	step("False MissingClusterInfrastructureReady Error", nil)
	c = get(l, "c", new(capi.Cluster))
	c.Status.InfrastructureReady = true
	l.must(l.Status().Update(t.Context(), c))
	step("False MissingBootstrapSecret Error", nil)
	if diff := cmp.Diff([]string{elementalv1.Finalizer}, l.machine("m").Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	name := "data"
	edit(l, get(l, "of-m", new(capi.Machine)), func(m *capi.Machine) { m.Spec.Bootstrap.DataSecretName = &name })
	l.settle()
	is(t, l.machine("m"), elementalv1.AssociationReady, "True")
	is(t, l.machine("m"), elementalv1.HostReady, "False HostWaitingForBootstrap Info")
	h := l.host("h")
	want := map[string]string{
		"rack": "a", elementalv1.InstalledLabel: "true", capi.ClusterNameLabel: "c",
		elementalv1.MachineNameLabel: "of-m", elementalv1.ElementalMachineNameLabel: "m",
	}
	if diff := cmp.Diff(want, h.Labels); diff != "" {
		t.Errorf("labels of the host (-want +got):\n%s", diff)
	}
	if s := h.Spec.BootstrapSecret; s == nil || s.Name != "data" || s.Namespace != ns {
		t.Errorf("bootstrapSecret %+v, want data", s)
	}
	if got := l.links(); got != "h->m m->h" {
		t.Errorf("links %q, want both ways", got)
	}
}

// E-17: only a host that is installed, free, selected and of the namespace is taken.
func TestHostThatMachinesGet(t *testing.T) {
	change := func(f func(*elementalv1.ElementalHost)) *elementalv1.ElementalHost {
		h := installed("h")
		f(h)
		return h
	}
	for _, tt := range []struct {
		name string
		host *elementalv1.ElementalHost
		want string
	}{
		{"installed", installed("h"), "h->m m->h"},
		{"not installed", change(func(h *elementalv1.ElementalHost) { delete(h.Labels, elementalv1.InstalledLabel) }), ""},
		{"installed is false", change(func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.InstalledLabel] = "false" }), ""},
		{"needs a reset", change(func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.NeedsResetLabel] = "true" }), ""},
		{"of another machine", change(func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.MachineNameLabel] = "of-x" }), ""},
		{"linked to another machine", change(func(h *elementalv1.ElementalHost) { h.Spec.MachineRef = &corev1.ObjectReference{Name: "x"} }), "h->x"},
		{"not selected", change(func(h *elementalv1.ElementalHost) { h.Labels["rack"] = "b" }), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			machine := ownedMachine("m")
			machine[0].(*elementalv1.ElementalMachine).Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
			l := start(t, append(machine, readyCluster(), tt.host)...)
			l.settle()
			if got := l.links(); got != tt.want {
				t.Errorf("links %q, want %q", got, tt.want)
			}
			if tt.want != "h->m m->h" {
				is(t, l.machine("m"), elementalv1.AssociationReady, "False MissingAvailableHosts Warning")
				r, err := l.controllers().machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
				if err != nil || r.RequeueAfter != retryAfter {
					t.Errorf("Reconcile = %v, %v, want another after %s", r, err, retryAfter)
				}
			}
		})
	}
	foreign := installed("h")
	l := start(t, append(ownedMachine("m"), readyCluster())...)
	foreign.Namespace = "elsewhere"
	l.must(l.Create(t.Context(), foreign))
	l.settle()
	if got := l.links(); got != "" {
		t.Errorf("links %q to a host of another namespace", got)
	}
}

// A host whose link upstream's controllers left half done is taken first.
func TestHalfLinkedHostIsPreferred(t *testing.T) {
	half := installed("z")
	half.Labels[elementalv1.ElementalMachineNameLabel], half.Labels[elementalv1.MachineNameLabel] = "m", "of-m"
	l := start(t, append(ownedMachine("m"), readyCluster(), installed("a"), half)...)
	l.settle()
	if got := l.links(); got != "z->m m->z" {
		t.Errorf("links %q, want those of the host that has the machine's label", got)
	}
}

// E-18: whichever write of the association is the last before a crash, the next process
// completes it with the same host.
func TestCrashDuringAssociation(t *testing.T) {
	crash := errors.New("killed")
	for after := range 5 {
		t.Run(fmt.Sprint(after, " writes"), func(t *testing.T) {
			l := start(t, append(ownedMachine("m"), readyCluster(), installed("h-1"), installed("h-2"), installed("h-3"))...)
			written, chosen := 0, ""
			l.refuse = func(string, client.Object) error {
				if written++; written > after {
					return crash
				}
				return nil
			}
			_, err := l.controllers().machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
			if written > after && !errors.Is(err, crash) {
				t.Errorf("Reconcile = %v, want the crash", err)
			}
			if m := l.machine("m"); m.Spec.HostRef != nil {
				chosen = m.Spec.HostRef.Name
			}
			l.refuse = nil
			l.settle()
			if got := l.links(); got != "h-1->m m->h-1" || chosen != "" && chosen != "h-1" {
				t.Errorf("links %q after a crash that left the choice %q, want one host", got, chosen)
			}
		})
	}
}

// E-19: machines that race for hosts, by controllers that know nothing of one another, have
// one host each, and each host has one machine.
func TestMachinesRaceForHosts(t *testing.T) {
	const machines, hosts, processes = 6, 4, 3
	var all []client.Object
	for i := range machines {
		all = append(all, ownedMachine(fmt.Sprint("m-", i))...)
	}
	for i := range hosts {
		all = append(all, installed(fmt.Sprint("h-", i)))
	}
	l := start(t, append(all, readyCluster())...)
	var wg sync.WaitGroup
	var lock sync.Mutex
	// The recorder of writes is not for several at a time.
	l.WithWatch = interceptor.NewClient(l.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			lock.Lock()
			defer lock.Unlock()
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			lock.Lock()
			defer lock.Unlock()
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	for range processes {
		c := l.controllers()
		for i := range machines {
			wg.Go(func() {
				for range 6 {
					_, err := c.machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: fmt.Sprint("m-", i)}})
					if err != nil {
						t.Errorf("Reconcile: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	l.settle()
	var list elementalv1.ElementalMachineList
	l.must(l.List(t.Context(), &list))
	hostOf := map[string]string{}
	for _, m := range list.Items {
		if m.Spec.HostRef == nil {
			is(t, &m, elementalv1.AssociationReady, "False MissingAvailableHosts Warning")
			continue
		}
		if other := hostOf[m.Spec.HostRef.Name]; other != "" {
			t.Errorf("machines %s and %s have the host %s", other, m.Name, m.Spec.HostRef.Name)
		}
		hostOf[m.Spec.HostRef.Name] = m.Name
	}
	if len(hostOf) != hosts {
		t.Errorf("%d of %d hosts have a machine: %v", len(hostOf), hosts, hostOf)
	}
	for i := range hosts {
		h := l.host(fmt.Sprint("h-", i))
		if h.Spec.MachineRef == nil || h.Spec.MachineRef.Name != hostOf[h.Name] || h.Labels[elementalv1.NeedsResetLabel] != "" {
			t.Errorf("host %s is linked to %v, and machine %q has chosen it; labels %v", h.Name, h.Spec.MachineRef, hostOf[h.Name], h.Labels)
		}
	}
}

// A machine whose choice another machine has linked meanwhile chooses another host.
func TestLostChoiceIsWithdrawn(t *testing.T) {
	l := start(t, append(ownedMachine("m"), readyCluster(), installed("h-1"), installed("h-2"))...)
	taken := false
	l.refuse = func(verb string, o client.Object) error {
		if o, ok := o.(*elementalv1.ElementalHost); ok && !taken && o.Name == "h-1" && verb == "patch" {
			taken = true
			h := l.host("h-1")
			h.Spec.MachineRef = &corev1.ObjectReference{Name: "x"}
			h.Labels[elementalv1.MachineNameLabel] = "of-x"
			return l.Update(context.Background(), h)
		}
		return nil
	}
	l.pass(l.controllers())
	if got := l.links(); got != "h-1->x h-2->m m->h-2" {
		t.Errorf("links %q, want the second host", got)
	}
}

// bootstrapped is a lab with a machine whose host has bootstrapped.
func bootstrapped(t *testing.T, more ...client.Object) *lab {
	t.Helper()
	l := start(t, append(append(ownedMachine("m"), readyCluster(), installed("h")), more...)...)
	l.settle()
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.BootstrappedLabel] = elementalv1.True })
	l.settle()
	return l
}

func (l *lab) initialize() {
	l.t.Helper()
	c := get(l, "c", new(capi.Cluster))
	condition.Set(c, condition.True(capi.ControlPlaneInitializedCondition), now)
	l.must(l.Status().Update(l.t.Context(), c))
	l.settle()
}

// E-25: without a control plane the Node is left alone; with it the Node gets the provider ID and
// loses the taint, and the machine is ready.
func TestNodeGetsProviderID(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}, {Key: "x", Effect: corev1.TaintEffectNoExecute}}
	l := bootstrapped(t, n)
	m := l.machine("m")
	is(t, m, elementalv1.HostReady, "True")
	is(t, m, elementalv1.ProviderIDReady, "False WaitingForControlPlaneInitialized Info")
	if n := get(l, "h", new(corev1.Node)); n.Spec.ProviderID != "" || len(n.Spec.Taints) != 2 || m.Status.Ready {
		t.Errorf("before the control plane: node %+v, ready %v", n.Spec, m.Status.Ready)
	}
	l.initialize()
	m = l.machine("m")
	is(t, m, elementalv1.ProviderIDReady, "True")
	is(t, m, capi.ReadyCondition, "True")
	n = get(l, "h", new(corev1.Node))
	if n.Spec.ProviderID != "elemental://vms/h" || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "x" {
		t.Errorf("node %+v, want the provider ID and the taint x", n.Spec)
	}
	if !m.Status.Ready || m.Spec.ProviderID == nil || *m.Spec.ProviderID != "elemental://vms/h" {
		t.Errorf("machine %+v %v", m.Status, m.Spec.ProviderID)
	}
}

// E-26: without a Node of the host's name the condition says so, and the machine looks again.
func TestNodeIsMissing(t *testing.T) {
	l := bootstrapped(t)
	l.initialize()
	is(t, l.machine("m"), elementalv1.ProviderIDReady, "False NodeNotFound Error")
	if l.machine("m").Status.Ready {
		t.Errorf("the machine is ready without a Node")
	}
	r, err := l.controllers().machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
	if err != nil || r.RequeueAfter != retryAfter {
		t.Errorf("Reconcile = %v, %v, want another after %s", r, err, retryAfter)
	}
	l.must(l.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}}))
	l.settle()
	is(t, l.machine("m"), elementalv1.ProviderIDReady, "True")
}

// A Node that has the host's name, and is another machine's, is none: hosts of two namespaces may have one
// name.
func TestNodeOfAnotherMachineIsLeftAlone(t *testing.T) {
	for account, want := range map[string]string{
		"": "True", "system:serviceaccount:lab-machines:" + ns + ".of-m": "True",
		"system:serviceaccount:lab-machines:other.of-m": "False NodeNotFound Error", "system:serviceaccount:other:of-m-lcm-agent": "False NodeNotFound Error",
	} {
		l := bootstrapped(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h", Annotations: map[string]string{nodeaccount.Annotation: account}}})
		l.initialize()
		is(t, l.machine("m"), elementalv1.ProviderIDReady, want)
		if n := get(l, "h", new(corev1.Node)); (n.Spec.ProviderID == "") != (want != "True") {
			t.Errorf("registered by %q: provider ID %q, want %s", account, n.Spec.ProviderID, want)
		}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	n.Spec.ProviderID = "elemental://other/h"
	l := bootstrapped(t, n)
	l.initialize()
	is(t, l.machine("m"), elementalv1.ProviderIDReady, "False NodeNotFound Error")
}

// The Node of a kubelet tells no account. In an API that Clusters share its name is not enough: a host of any
// namespace may have it. It is the host's by the UUID of its firmware.
func TestNodeOfAnotherServerIsLeftAlone(t *testing.T) {
	const own, other = "30c5e6a2-2b1e-5d3a-9d0a-7c1f6d2f0b11", "7b3c2f1e-0000-5000-8000-000000000001"
	for _, tt := range []struct{ host, node, want string }{
		{own, strings.ToUpper(own), "True"},
		{own, other, "False NodeNotFound Error"},
		{"", other, "False NodeNotFound Error"}, // an agent that tells none, or a host that a user has made
		{own, "", "True"},                       // a Node that was made by hand
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
		n.Status.NodeInfo.SystemUUID = tt.node
		l := bootstrapped(t, n)
		h := get(l, "h", new(elementalv1.ElementalHost))
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, nodeaccount.SystemUUID, tt.host)
		l.must(l.Update(t.Context(), h))
		l.initialize()
		is(t, l.machine("m"), elementalv1.ProviderIDReady, tt.want)
		if n := get(l, "h", new(corev1.Node)); (n.Spec.ProviderID == "") != (tt.want != "True") {
			t.Errorf("host %q, Node %q: provider ID %q, want %s", tt.host, tt.node, n.Spec.ProviderID, tt.want)
		}
		const why = "Downstream cluster node 'h' is not found: the Node of this name is another server"
		if got := condition.Get(l.machine("m"), elementalv1.ProviderIDReady).Message; strings.HasPrefix(got, why) != (tt.want != "True") {
			t.Errorf("host %q, Node %q: message %q", tt.host, tt.node, got)
		}
	}
}

func TestKubeconfigOfAWorkloadCluster(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	for _, tt := range []struct{ name, text, want string }{
		{"data", head + "clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}]\nusers: [{name: u, user: {token: t}}]", ""},
		{"a program", head + "clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}]\nusers: [{name: u, user: {exec: {command: touch, apiVersion: client.authentication.k8s.io/v1}}}]", "names a program"},
		{"a token's file", head + "clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}]\nusers: [{name: u, user: {tokenFile: /etc/passwd}}]", "names a file"},
		{"a certificate's file", head + "clusters: [{name: c, cluster: {server: 'https://192.0.2.1', certificate-authority: /etc/passwd}}]\nusers: [{name: u, user: {token: t}}]", "names a file"},
		{"no YAML", "\t", "yaml"},
		{"empty", "", "no configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := connect([]byte(tt.text), new(breaker.Breakers), client.ObjectKey{Namespace: ns, Name: "c"})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("connect = %v, want %q", err, tt.want)
			}
		})
	}
	l := bootstrapped(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c-kubeconfig"}, Data: map[string][]byte{"value": []byte("\t")}})
	c := get(l, "c", new(capi.Cluster))
	condition.Set(c, condition.True(capi.ControlPlaneInitializedCondition), now)
	l.must(l.Status().Update(t.Context(), c))
	_, err := l.controllers().machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
	if err == nil || !strings.Contains(err.Error(), "kubeconfig of Secret c-kubeconfig") || get(l, "h", new(corev1.Node)).Spec.ProviderID != "" {
		t.Errorf("Reconcile = %v, want the Secret's name and no Node of the local cluster", err)
	}
}

// E-29: the host of a deleted machine is marked for the reset, and the machine goes.
func TestDeletedMachineHasItsHostReset(t *testing.T) {
	l := bootstrapped(t)
	l.must(l.Delete(t.Context(), l.machine("m")))
	l.settle()
	l.gone("m", new(elementalv1.ElementalMachine))
	if got := l.host("h").Labels[elementalv1.NeedsResetLabel]; got != elementalv1.True {
		t.Errorf("label needs-reset %q, want true", got)
	}
	// The host is no other machine's until it has reset itself.
	for _, o := range ownedMachine("m-2") {
		o.SetNamespace(ns)
		l.must(l.Create(t.Context(), o))
	}
	l.settle()
	is(t, l.machine("m-2"), elementalv1.AssociationReady, "False MissingAvailableHosts Warning")
}

// A machine that is deleted without owner and cluster goes, too.
func TestMachineIsDeletedWithoutItsCluster(t *testing.T) {
	l := bootstrapped(t)
	l.must(l.Delete(t.Context(), get(l, "c", new(capi.Cluster))))
	l.must(l.Delete(t.Context(), get(l, "of-m", new(capi.Machine))))
	l.must(l.Delete(t.Context(), l.machine("m")))
	l.settle()
	l.gone("m", new(elementalv1.ElementalMachine))
}

// E-33: a machine whose host is gone is deleted.
func TestMachineWithoutHostIsDeleted(t *testing.T) {
	l := bootstrapped(t)
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Finalizers = nil })
	l.must(l.Delete(t.Context(), l.host("h")))
	l.must(l.Delete(t.Context(), l.machine("m")))
	l.settle()
	l.gone("m", new(elementalv1.ElementalMachine))
}

// E-31: when its host is gone, a machine is associated with another.
func TestMachineGetsAnotherHost(t *testing.T) {
	l := bootstrapped(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h"}})
	l.initialize()
	l.must(l.Delete(t.Context(), l.host("h")))
	l.settle()
	if got := l.links(); got != "h->m m->h" {
		t.Errorf("links %q while the host resets itself, want them to stay", got)
	}
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Labels[elementalv1.ResetLabel] = elementalv1.True })
	l.settle()
	l.gone("h", new(elementalv1.ElementalHost))
	l.settle()
	m := l.machine("m")
	if m.Spec.HostRef != nil || m.Spec.ProviderID != nil || m.Status.Ready {
		t.Errorf("machine without a host: %+v %+v", m.Spec, m.Status)
	}
	another := installed("h-2")
	another.Namespace = ns
	l.must(l.Create(t.Context(), another))
	l.settle()
	if got := l.links(); got != "h-2->m m->h-2" {
		t.Errorf("links %q, want the other host", got)
	}
}

// A server that registers again under its name is another host.
func TestHostOfTheSameNameIsAnother(t *testing.T) {
	l := bootstrapped(t)
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) { h.Finalizers = nil })
	l.must(l.Delete(t.Context(), l.host("h")))
	again := installed("h")
	again.Namespace, again.UID = ns, "another"
	delete(again.Labels, elementalv1.InstalledLabel)
	l.must(l.Create(t.Context(), again))
	l.pass(l.controllers())
	is(t, l.machine("m"), elementalv1.AssociationReady, "False AssociatedHostNotFound Warning")
	if got := l.links(); got != "" {
		t.Errorf("links %q, want none", got)
	}
}

// A host that a user has chosen before it is installed is linked when it is.
func TestChosenHostIsNotInstalledYet(t *testing.T) {
	h := installed("h")
	delete(h.Labels, elementalv1.InstalledLabel)
	machine := ownedMachine("m")
	machine[0].(*elementalv1.ElementalMachine).Spec.HostRef = &corev1.ObjectReference{Name: "h"}
	l := start(t, append(machine, readyCluster(), h)...)
	l.settle()
	is(t, l.machine("m"), elementalv1.HostReady, "False HostWaitingForInstall Error")
	edit(l, l.host("h"), func(h *elementalv1.ElementalHost) {
		h.Labels = map[string]string{elementalv1.InstalledLabel: elementalv1.True}
	})
	l.settle()
	if got := l.links(); got != "h->m m->h" {
		t.Errorf("links %q, want both ways", got)
	}
	is(t, l.machine("m"), elementalv1.HostReady, "False HostWaitingForBootstrap Info")
}

func TestHostThatCannotBeReadKeepsItsMachine(t *testing.T) {
	l := bootstrapped(t)
	down := interceptor.NewClient(l.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*elementalv1.ElementalHost); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "elementalhosts"}, key.Name, errors.New("no right"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	healthy := l.WithWatch
	l.WithWatch = down
	_, err := l.controllers().machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
	l.WithWatch = healthy
	if err == nil {
		t.Errorf("Reconcile = no error, want the API's")
	}
	is(t, l.machine("m"), elementalv1.AssociationReady, "False AssociatedHostNotFound Warning")
	if got := l.links(); got != "h->m m->h" {
		t.Errorf("links %q, want them to stay", got)
	}
	l.settle()
	is(t, l.machine("m"), elementalv1.AssociationReady, "True")
}

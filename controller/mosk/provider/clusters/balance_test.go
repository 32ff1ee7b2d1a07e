package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
)

var (
	request  = ctrl.Request{NamespacedName: key}
	prefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

func noDial(context.Context, loadbalancer.Backend) (net.Conn, error) { return nil, net.ErrClosed }

// balancer is a Balancer that remembers what it has to forward, by Cluster.
type balancer struct {
	applied map[string]string // address and machines
	err     error
}

// Apply implements Balancer.
func (b *balancer) Apply(_ context.Context, cluster, host string, backends []loadbalancer.Backend) error {
	if b.err != nil {
		return b.err
	}
	text := host
	for _, x := range backends {
		text += fmt.Sprintf(" %s/%s=%s", x.Machine, x.Host, x.Address)
	}
	b.applied[cluster] = text
	return nil
}

// Remove implements Balancer.
func (b *balancer) Remove(cluster string) { delete(b.applied, cluster) }

// Holder implements Balancer.
func (b *balancer) Holder(host string) string {
	for cluster, text := range b.applied {
		if address, _, _ := strings.Cut(text, " "); address == host {
			return cluster
		}
	}
	return ""
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: name}
}

// control returns a control machine with an address.
func control(name string, ready bool) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: meta(name)}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: key.Name, clusterv1.ControlPlaneLabel: "true"}
	m.Annotations = map[string]string{clusterv1.BareMetalHostAnnotation: key.Namespace + "/host-" + name}
	m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{Ready: ready, PrivateIP: "10.0.0." + name[len(name)-1:]}
	return m
}

// balanced returns a lab whose Cluster asks for a load balancer, and a Balancer.
func balanced(t *testing.T, change func(*baremetalv1.ClusterProviderSpec), more ...client.Object) (*lab, *balancer) {
	t.Helper()
	all := objects(more...)
	value := &all[0].(*clusterv1.Cluster).Spec.ProviderSpec.Value
	value.LoadBalancerHost = "127.0.0.5"
	change(value)
	l, b := start(t, all...), &balancer{applied: map[string]string{}}
	l.r.Balancer = b
	return l, b
}

func update[T client.Object](l *lab, o T, change func(T)) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(o), o))
	change(o)
	l.must(l.Update(l.t.Context(), o))
}

func setReady(l *lab, m *clusterv1.Machine, ready bool) {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKeyFromObject(m), m))
	m.Status.ProviderStatus.Ready = ready
	l.must(l.Status().Update(l.t.Context(), m))
}

// The load balancer has the control machines that are Ready, and no others.
func TestLoadBalancerFollowsReadyControlMachines(t *testing.T) {
	worker, maintained := control("w-9", true), control("c-3", true)
	delete(worker.Labels, clusterv1.ControlPlaneLabel)
	maintained.Status.ProviderStatus.Maintenance = true
	l, b := balanced(t, func(*baremetalv1.ClusterProviderSpec) {}, control("c-1", false), control("c-2", false), worker, maintained)
	c := l.pass()
	if got := condition(t, c, ConditionLoadBalancer); got.Ready || got.Message != "no Machine with the label cluster.sigs.k8s.io/control-plane is Ready" || b.applied[key.String()] != "127.0.0.5" {
		t.Errorf("condition %+v, balancer %v", got, b.applied)
	}
	if e := l.lcm().Spec.ExternalEndpoint; e == nil || *e != (lcmv1.Endpoint{Host: "127.0.0.5", Port: 6443}) {
		t.Errorf("externalEndpoint %+v", e)
	}
	setReady(l, control("c-2", false), true)
	if got := condition(t, l.pass(), ConditionLoadBalancer); !got.Ready || b.applied[key.String()] != "127.0.0.5 c-2/host-c-2=10.0.0.2" {
		t.Errorf("condition %+v, balancer %v", got, b.applied)
	}
	setReady(l, control("c-1", false), true)
	setReady(l, control("c-2", false), false)
	if l.pass(); b.applied[key.String()] != "127.0.0.5 c-1/host-c-1=10.0.0.1" {
		t.Errorf("balancer %v", b.applied)
	}
	update(l, c, func(c *clusterv1.Cluster) { c.Spec.ProviderSpec.Value.LoadBalancerHost = "" })
	if c = l.pass(); len(b.applied) > 0 || hasCondition(c, ConditionLoadBalancer) || l.lcm().Spec.ExternalEndpoint != nil {
		t.Errorf("without loadBalancerHost: %v, %+v", b.applied, c.Status.ProviderStatus.Conditions)
	}
}

func hasCondition(c *clusterv1.Cluster, kind string) bool {
	for _, x := range c.Status.ProviderStatus.Conditions {
		if x.Type == kind {
			return true
		}
	}
	return false
}

func TestLoadBalancerEndsWithItsCluster(t *testing.T) {
	m := control("c-1", true)
	m.Finalizers = []string{"a/b"}
	l, b := balanced(t, func(*baremetalv1.ClusterProviderSpec) {}, m)
	c := l.pass()
	l.must(l.Delete(t.Context(), c))
	if l.pass(); len(b.applied) > 0 {
		t.Errorf("the Cluster is being deleted, and the balancer has %v", b.applied)
	}
}

// An address that cannot be used is in the condition. One that another program has is tried
// again, which an error demands.
func TestAddressOfALoadBalancerThatCannotBeUsed(t *testing.T) {
	l, b := balanced(t, func(*baremetalv1.ClusterProviderSpec) {})
	f, err := loadbalancer.New(loadbalancer.Config{Networks: prefixes, Dial: noDial})
	l.must(err)
	b.err = f.Apply(t.Context(), key.String(), "10.0.0.1", nil)
	if got := condition(t, l.pass(), ConditionLoadBalancer); got.Ready || got.Message != `spec.providerSpec.value.loadBalancerHost "10.0.0.1": give an IP address of 127.0.0.0/8` || l.lcm().Spec.ExternalEndpoint != nil {
		t.Errorf("condition %+v", got)
	}
	b.err = errors.New("address already in use")
	if _, err := l.r.Reconcile(t.Context(), request); !errors.Is(err, b.err) {
		t.Errorf("Reconcile = %v", err)
	}
	c := new(clusterv1.Cluster)
	l.must(l.Get(t.Context(), key, c))
	if got := condition(t, c, ConditionLoadBalancer); got.Ready || !strings.Contains(got.Message, "already in use") {
		t.Errorf("condition %+v", got)
	}
}

// The address of a load balancer is that of the Cluster that has it, whichever namespace and age another
// one has. After a start of the controllers the oldest Cluster that asks for it gets it.
func TestAddressOfAnotherClustersLoadBalancerIsRefused(t *testing.T) {
	other := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: key.Name, Labels: map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}}}
	other.Spec.ProviderSpec.Value.LoadBalancerHost = "127.0.0.6"
	l, b := balanced(t, func(*baremetalv1.ClusterProviderSpec) {}, other)
	at := client.ObjectKeyFromObject(other)
	age := func(key client.ObjectKey, of time.Duration) {
		c := new(clusterv1.Cluster)
		l.must(l.Get(t.Context(), key, c))
		update(l, c, func(c *clusterv1.Cluster) { c.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000, 0).Add(-of)) })
	}
	balance := func(key client.ObjectKey) ([]baremetalv1.Condition, error) {
		c := new(clusterv1.Cluster)
		l.must(l.Get(t.Context(), key, c))
		_, conditions, err := l.r.balance(t.Context(), c, nil, nil, nil)
		return conditions, err
	}
	refused := func(what string, key client.ObjectKey, by client.ObjectKey) {
		t.Helper()
		conditions, err := balance(key)
		want := fmt.Sprintf("the Cluster %s has the address: give another one", by)
		if err == nil || len(conditions) != 1 || conditions[0].Ready || !strings.Contains(conditions[0].Message, want) || b.applied[key.String()] != "" {
			t.Errorf("%s: balance() = %+v, %v; want %q, and no load balancer: %v", what, conditions, err, want, b.applied)
		}
	}
	has := func(what string, key client.ObjectKey) {
		t.Helper()
		if conditions, err := balance(key); err != nil || b.applied[key.String()] == "" {
			t.Errorf("%s: balance() = %+v, %v, with the load balancers %v", what, conditions, err, b.applied)
		}
	}
	age(key, time.Hour)
	age(at, 2*time.Hour)
	has("the first", key)
	has("an address of its own", at)
	update(l, other, func(c *clusterv1.Cluster) { c.Spec.ProviderSpec.Value.LoadBalancerHost = "127.0.0.5" })
	refused("an older Cluster that asks for it later", at, key)
	has("the first, again", key)
	b.applied = map[string]string{} // the controllers start anew
	refused("the younger one after a start", key, at)
	has("the older one after a start", at)
	refused("the younger one", key, at)
	update(l, other, func(c *clusterv1.Cluster) { c.Spec.ProviderSpec.Value.LoadBalancerHost = "" })
	if _, err := balance(at); err != nil {
		t.Error(err)
	}
	has("the other one has given it up", key)
}

// A credential that is missing or wrong stops the load balancer before it is created, and
// not after that. A credential is wrong when no server accepts it.
func TestCredentialOfACluster(t *testing.T) {
	l, b := balanced(t, func(v *baremetalv1.ClusterProviderSpec) { v.Credentials = "account" })
	waits := func(message string) {
		t.Helper()
		c := l.pass()
		if got := condition(t, c, ConditionCredentials); got.Ready != (message == "") || !strings.Contains(got.Message, message) || message == "" && got.Message != "" {
			t.Errorf("condition %+v, want %q", got, message)
		}
	}
	waits(`spec.providerSpec.value.credentials: there is no BareMetalHostCredential "account"`)
	account := &kaasv1.BareMetalHostCredential{ObjectMeta: meta("account")}
	l.must(l.Create(t.Context(), account))
	waits("is not ready yet")
	if got := condition(t, l.pass(), ConditionLoadBalancer); len(b.applied) > 0 || got.Ready || got.Message != `it waits for the BareMetalHostCredential "account"` || l.lcm().Spec.ExternalEndpoint != nil {
		t.Errorf("balancer %v, condition %+v", b.applied, got)
	}
	update(l, account, func(c *kaasv1.BareMetalHostCredential) { c.Status.ErrorMessage = "there is no Secret" })
	waits(`BareMetalHostCredential "account": there is no Secret`)
	server := func(name, credential, kind string) *kaasv1.BareMetalHostInventory {
		s := &kaasv1.BareMetalHostInventory{ObjectMeta: meta(name)}
		s.Spec.BMC.CredentialsName = credential
		s.Status.ErrorType, s.Status.ErrorMessage = kind, "401 of "+name
		return s
	}
	update(l, account, func(c *kaasv1.BareMetalHostCredential) { c.Status = kaasv1.BareMetalHostCredentialStatus{Ready: true} })
	l.must(errors.Join(l.Create(t.Context(), server("s-0", "account", "registration error")), l.Create(t.Context(), server("s-1", "other", ""))))
	waits(`BareMetalHostInventory "s-0": 401 of s-0`)
	if len(b.applied) > 0 {
		t.Errorf("balancer %v", b.applied)
	}
	l.must(l.Create(t.Context(), server("s-2", "account", "")))
	waits("")
	if b.applied[key.String()] != "127.0.0.5" {
		t.Errorf("balancer %v", b.applied)
	}
	l.must(l.Delete(t.Context(), account))
	waits("there is no BareMetalHostCredential")
	if b.applied[key.String()] != "127.0.0.5" || l.lcm().Spec.ExternalEndpoint == nil {
		t.Errorf("the balancer that was there has gone: %v", b.applied)
	}
}

// The stages of a deployment begin in their order, and a success stays one.
func TestStagesOfADeployment(t *testing.T) {
	template := &ipamv1.L2Template{ObjectMeta: meta("l2"), Spec: ipamv1.L2TemplateSpec{ClusterRef: key.Name}}
	l, _ := balanced(t, func(*baremetalv1.ClusterProviderSpec) {}, control("c-1", false), template)
	stages := func(want string) {
		t.Helper()
		c := l.pass()
		var s kaasv1.ClusterDeploymentStatus
		l.must(l.Get(t.Context(), key, &s))
		var all []string
		for _, x := range s.Stages {
			if x.Success != (x.Status == kaasv1.StageSuccess) || (x.Message == "") != (x.Status == kaasv1.StageSuccess || x.Status == kaasv1.StageNotStarted) || x.Timestamp == nil || !x.Timestamp.Time.Equal(labTime) {
				t.Errorf("stage %+v", x)
			}
			all = append(all, x.Name+": "+string(x.Status))
		}
		if got := strings.Join(all, ", "); got != want || s.Release != "mosk-1" || !metav1.IsControlledBy(&s, c) {
			t.Errorf("release %s, stages\n%s, want\n%s", s.Release, got, want)
		}
	}
	stages("Network prepared: InProgress, Load balancers created: NotStarted, IAM objects created: Success, HelmBundle created: Success, All machines of the cluster are ready: NotStarted, Cluster is ready: NotStarted")
	h := &ipamv1.IpamHost{ObjectMeta: meta("c-1")}
	h.Status.NetconfigV2State = ipamv1.ResultOK
	l.must(l.Create(t.Context(), h))
	stages("Network prepared: Success, Load balancers created: InProgress, IAM objects created: Success, HelmBundle created: Success, All machines of the cluster are ready: NotStarted, Cluster is ready: NotStarted")
	setReady(l, control("c-1", false), true)
	all := "Network prepared: Success, Load balancers created: Success, IAM objects created: Success, HelmBundle created: Success, All machines of the cluster are ready: Success, Cluster is ready: Success"
	stages(all)
	setReady(l, control("c-1", false), false)
	l.must(l.Delete(t.Context(), h))
	stages(all)
}

// A load balancer that was asked for while a reconcile wrote the status is no success: the
// write returns a spec that the conditions do not know yet.
func TestStageOfALoadBalancerThatIsNotLookedAtYet(t *testing.T) {
	l, _ := balanced(t, func(v *baremetalv1.ClusterProviderSpec) { v.LoadBalancerHost = "" })
	c := l.pass()
	c.Spec.ProviderSpec.Value.LoadBalancerHost = "127.0.0.5"
	l.must(l.r.recordStages(t.Context(), c, nil, new(lcmv1.HelmBundle)))
	var s kaasv1.ClusterDeploymentStatus
	l.must(l.Get(t.Context(), key, &s))
	i := slices.IndexFunc(s.Stages, func(x kaasv1.Stage) bool { return x.Name == kaasv1.StageLoadBalancers })
	if i < 0 || s.Stages[i].Success {
		t.Errorf("stages %+v, want the load balancer's without success", s.Stages)
	}
}

// A credential that a BMC has refused may work with the next server that gets it.
func TestChangesOfAServerThatConcernItsCredential(t *testing.T) {
	server := func(change func(*kaasv1.BareMetalHostInventory)) *kaasv1.BareMetalHostInventory {
		i := new(kaasv1.BareMetalHostInventory)
		i.Spec.BMC.CredentialsName = "a"
		change(i)
		return i
	}
	was := server(func(*kaasv1.BareMetalHostInventory) {})
	for name, tt := range map[string]struct {
		change func(*kaasv1.BareMetalHostInventory)
		want   bool
	}{
		"nothing":       {func(*kaasv1.BareMetalHostInventory) {}, false},
		"credential":    {func(i *kaasv1.BareMetalHostInventory) { i.Spec.BMC.CredentialsName = "b" }, true},
		"error":         {func(i *kaasv1.BareMetalHostInventory) { i.Status.ErrorType = "registration error" }, true},
		"error message": {func(i *kaasv1.BareMetalHostInventory) { i.Status.ErrorMessage = "refused" }, true},
		"power":         {func(i *kaasv1.BareMetalHostInventory) { i.Status.PoweredOn = true }, false},
	} {
		if got := accountChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: server(tt.change)}); got != tt.want {
			t.Errorf("%s: the Clusters are reconciled: %t, want %t", name, got, tt.want)
		}
	}
}

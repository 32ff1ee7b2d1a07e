package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// facts are what a pass has read. All objects but machine are the cache's, and are not
// changed.
type facts struct {
	machine *clusterv1.Machine
	release *kaasv1.ClusterRelease
	image   baremetalv1.Image
	keys    []string          // SSH public keys
	proxy   *kaasv1.ProxySpec // nil means none
	// problem is what the user has to correct before a host is claimed, or "".
	problem string
	// free are the hosts that the machine may claim, none of which another Machine names.
	free []*metal3.BareMetalHost
	// selected reports whether the selector selects any host, free or not.
	selected bool
	// claimed is a host whose consumerRef names the machine, when the annotation is empty.
	claimed *metal3.BareMetalHost
	named   string                // value of the annotation: NAMESPACE/NAME
	host    *metal3.BareMetalHost // that is named; nil when it does not exist
	// network is the name of the Secret with the host's network data; "" without an
	// L2Template. unconnected is why there is none yet.
	network, unconnected string
	netplan              []ipamv1.NetconfigFile // those of a network that network data cannot express
	lcm                  *lcmv1.LCMMachine      // nil when it does not exist
	node                 *corev1.Node           // of the server's host name; nil when it does not exist
	// nodeProblem is why the Cluster's own API cannot be asked for the Node, or "". ownAPI reports whether
	// it has one.
	nodeProblem string
	ownAPI      bool
	profile     hostProfile
	// userData are those of the user, nil when there are none. userDataProblem is what the
	// user has to correct in them, or "".
	userData        []byte
	userDataProblem string
	// agentChanged means that the server is to install an agent that is not the release's any more,
	// and that none has reported.
	agentChanged bool
}

func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*facts, error) {
	f := &facts{machine: new(clusterv1.Machine), lcm: new(lcmv1.LCMMachine)}
	if err := r.Client.Get(ctx, key, f.machine); err != nil {
		return nil, queue.Deleted(err)
	}
	if err := r.Client.Get(ctx, key, f.lcm); apierrors.IsNotFound(err) {
		f.lcm = nil
	} else if err != nil {
		return nil, fmt.Errorf("machines: LCMMachine: %w", err)
	}
	if err := r.observeNode(ctx, f); err != nil {
		return nil, err
	}
	f.named = f.machine.Annotations[clusterv1.BareMetalHostAnnotation]
	if err := r.observeHost(ctx, f); err != nil {
		return nil, err
	}
	if !f.machine.DeletionTimestamp.IsZero() {
		if f.named != "" {
			return f, nil
		}
		err := r.observeFree(ctx, f)
		if f.host = f.claimed; f.host != nil {
			f.named = f.host.Namespace + "/" + f.host.Name
		}
		return f, err
	}
	var mistake *release.Error
	if err := r.observeCluster(ctx, f); errors.As(err, &mistake) {
		f.problem = mistake.Error()
	} else if err != nil {
		return nil, fmt.Errorf("machines: %w", err)
	}
	if err := errors.Join(r.observeProfile(ctx, f), r.observeUserData(ctx, f)); err != nil {
		return nil, err
	}
	if f.named == "" {
		return f, r.observeFree(ctx, f)
	}
	return f, errors.Join(r.observeNetwork(ctx, f), r.observeAgent(ctx, f))
}

// observeNetwork reads the network that controller/mosk/provider/network has prepared for a host
// without an image.
func (r *Reconciler) observeNetwork(ctx context.Context, f *facts) error {
	if f.host == nil || f.host.Spec.Image != nil {
		return nil
	}
	m := f.machine
	var templates ipamv1.L2TemplateList
	if err := r.Client.List(ctx, &templates, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("machines: L2Templates: %w", err)
	}
	t, err := layout.Choose(templates.Items, m.Labels[clusterv1.ClusterNameLabel], m.Spec.ProviderSpec.Value.L2TemplateSelector)
	if err != nil {
		f.unconnected = err.Error()
	}
	if t == nil {
		return nil
	}
	var h ipamv1.IpamHost
	switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(m), &h); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("machines: IpamHost: %w", err)
	case err == nil && len(h.Status.Messages) > 0:
		f.unconnected = strings.Join(h.Status.Messages, "; ")
	case err != nil || h.Status.NetconfigV2State != ipamv1.ResultOK:
		f.unconnected = fmt.Sprintf("the network is being prepared from L2Template %q", t.Name)
	default:
		f.network = layout.SecretName(m.Name)
		if config := h.Status.NetconfigV2; config != nil && layout.NeedsFile(config.Raw) {
			f.netplan = h.Status.NetconfigFiles
		}
	}
	return nil
}

// observeHost reads the host that the annotation names. It is of the Machine's namespace:
// the annotation of a user reaches no other.
func (r *Reconciler) observeHost(ctx context.Context, f *facts) error {
	name, ok := strings.CutPrefix(f.named, f.machine.Namespace+"/")
	if !ok {
		return nil
	}
	f.host = new(metal3.BareMetalHost)
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: f.machine.Namespace, Name: name}, f.host)
	if apierrors.IsNotFound(err) {
		f.host = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("machines: BareMetalHost %s: %w", f.named, err)
	}
	return nil
}

// observeCluster reads the Cluster, its release and its keys.
func (r *Reconciler) observeCluster(ctx context.Context, f *facts) error {
	name := f.machine.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		return release.Mistake("metadata.labels: give the label %s, the name of the Cluster", clusterv1.ClusterNameLabel)
	}
	var c clusterv1.Cluster
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: f.machine.Namespace, Name: name}, &c); apierrors.IsNotFound(err) {
		return release.Mistake("there is no Cluster %q in the namespace", name)
	} else if err != nil {
		return fmt.Errorf("Cluster %s: %w", name, err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return release.Mistake("Cluster %q is being deleted", name)
	}
	// The release that was accepted: that of the spec may be off the upgrade path.
	p := c.Status.ProviderStatus
	if p == nil || p.ReleaseRefs.Current == nil {
		return release.Mistake("Cluster %q has no release yet: its conditions say why", name)
	}
	current, err := r.releaseOf(ctx, f, &c, p.ReleaseRefs.Current.Name)
	if err != nil {
		return err
	}
	if f.release, err = release.Get(ctx, r.Client, current); err != nil {
		return err
	}
	if f.image, err = release.Image(f.release, f.machine.Spec.ProviderSpec.Value); err != nil {
		return err
	}
	if f.keys, err = r.keys(ctx, &c); err != nil {
		return err
	}
	if err := r.observeProxy(ctx, f, &c); err != nil {
		return err
	}
	if f.host != nil && f.host.Spec.Image != nil {
		return nil // a server that has its image goes on without the credential
	}
	if err := release.Kubernetes(&c); err != nil {
		return err
	}
	return release.Credentials(&c)
}

// observeProxy reads the Proxy that a Cluster names.
func (r *Reconciler) observeProxy(ctx context.Context, f *facts, c *clusterv1.Cluster) error {
	name := c.Spec.ProviderSpec.Value.Proxy
	if name == "" {
		return nil
	}
	var p kaasv1.Proxy
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &p); apierrors.IsNotFound(err) {
		return release.Mistake("Cluster %q: spec.providerSpec.value.proxy: there is no Proxy %q in the namespace", c.Name, name)
	} else if err != nil {
		return fmt.Errorf("Proxy %s: %w", name, err)
	}
	f.proxy = &p.Spec
	return nil
}

// releaseOf returns the release of a machine: that of its Cluster, or the one that it has
// while the step of the ClusterUpdatePlan that updates it has not begun.
func (r *Reconciler) releaseOf(ctx context.Context, f *facts, c *clusterv1.Cluster, current string) (string, error) {
	if f.lcm == nil || f.lcm.Spec.Release == "" || f.lcm.Spec.Release == current {
		return current, nil
	}
	plan, err := release.PlanOf(ctx, r.Client, client.ObjectKeyFromObject(c), current)
	if err != nil {
		return "", err
	}
	if plan != nil && release.Withheld(plan, release.StepOf(plan, f.machine)) {
		return f.lcm.Spec.Release, nil
	}
	return current, nil
}

// keys returns the SSH keys of a cluster's machines, in the Cluster's order.
func (r *Reconciler) keys(ctx context.Context, c *clusterv1.Cluster) (out []string, err error) {
	for i, name := range c.Spec.ProviderSpec.Value.PublicKeys {
		var k kaasv1.PublicKey
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name.Name}, &k); apierrors.IsNotFound(err) {
			return nil, release.Mistake("Cluster %q: spec.providerSpec.value.publicKeys[%d]: there is no PublicKey %q in the namespace", c.Name, i, name.Name)
		} else if err != nil {
			return nil, fmt.Errorf("PublicKey %s: %w", name.Name, err)
		}
		out = append(out, strings.TrimSpace(k.Spec.PublicKey))
	}
	return out, nil
}

// observeFree lists the hosts that the machine may claim, and finds one that it has claimed.
func (r *Reconciler) observeFree(ctx context.Context, f *facts) error {
	selector, err := selectorOf(f.machine.Spec.ProviderSpec.Value.HostSelector)
	if err != nil {
		selector, f.problem = labels.Nothing(), fmt.Sprintf("spec.providerSpec.value.hostSelector: %v", err)
	}
	var hosts metal3.BareMetalHostList
	var others clusterv1.MachineList
	in := client.InNamespace(f.machine.Namespace)
	if err := r.Client.List(ctx, &hosts, in, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("machines: hosts: %w", err)
	}
	if err := r.Client.List(ctx, &others, in, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("machines: %w", err)
	}
	named := map[string]bool{}
	for i := range others.Items {
		if !others.Items[i].DeletionTimestamp.IsZero() { // it claims no host; when it is gone, no event reports that
			continue
		}
		named[others.Items[i].Annotations[clusterv1.BareMetalHostAnnotation]] = true
	}
	for i := range hosts.Items {
		h := &hosts.Items[i]
		matches := selector.Matches(labels.Set(h.Labels))
		f.selected = f.selected || matches
		switch {
		case claimedBy(h, f.machine):
			f.claimed = h
		case matches && unclaimable(h) == "" && !named[h.Namespace+"/"+h.Name]:
			f.free = append(f.free, h)
		}
	}
	return nil
}

// selectorOf returns a selector of hosts. An empty one selects all hosts of the namespace,
// as in Metal3's Cluster API provider.
func selectorOf(s baremetalv1.HostSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
}

// unclaimable returns why a host cannot be claimed, "" when it can. A claimable host is
// inspected, erased and without a consumer.
func unclaimable(h *metal3.BareMetalHost) string {
	switch state := h.Status.Provisioning.State; {
	case !h.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case h.Spec.ConsumerRef != nil:
		return "it is claimed"
	case h.Spec.Image != nil || h.Spec.CustomDeploy != nil || h.Spec.ExternallyProvisioned:
		return "it is provisioned by hand"
	case h.Status.ErrorMessage != "":
		return "it has an error"
	case !idle[state]:
		return "it is " + string(state)
	}
	return ""
}

// idle are the states of a host on which nothing is provisioned.
var idle = map[metal3.ProvisioningState]bool{metal3.StateAvailable: true, metal3.StateReady: true}

// consumer returns the reference by which a host names its Machine.
func consumer(m *clusterv1.Machine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name}
}

// claimedBy reports whether a host's consumerRef names a Machine.
func claimedBy(h *metal3.BareMetalHost, m *clusterv1.Machine) bool {
	c := h.Spec.ConsumerRef
	return c != nil && c.Kind == "Machine" && strings.HasPrefix(c.APIVersion, clusterv1.GroupVersion.Group+"/") && c.Namespace == m.Namespace && c.Name == m.Name
}

package elemental

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/reconcile/breaker"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

const (
	// kubeconfigSuffix is the end of the name of the Secret with a workload cluster's kubeconfig,
	// which Cluster API's control plane provider makes, and kubeconfigKey its key.
	kubeconfigSuffix = "-kubeconfig"
	kubeconfigKey    = "value"
)

// uninitialized is the taint of a Node without a provider ID. kubelet sets it where a cloud
// provider is to initialize the Node.
var uninitialized = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule}

// errNoNode says that a workload cluster has no Node of a host. An error that wraps it says why the Node of
// the host's name is none.
var errNoNode = errors.New("is not found")

// workload returns a client of the Nodes of a cluster: by its kubeconfig Secret, or Config.Local, which
// clusters without one share.
func (c *Config) workload(ctx context.Context, cluster *capi.Cluster) (_ client.Client, shared bool, err error) {
	var s corev1.Secret
	err = c.Reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + kubeconfigSuffix}, &s)
	if apierrors.IsNotFound(err) {
		return c.Local, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	out, err := connect(s.Data[kubeconfigKey], c.breakers, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return nil, false, fmt.Errorf("kubeconfig of Secret %s: %w", s.Name, err)
	}
	return out, false, nil
}

// connect returns a client by a kubeconfig, which must have no reference beyond itself: a Secret
// of a namespace must not run a program here or read a file.
func connect(kubeconfig []byte, b *breaker.Breakers, cluster client.ObjectKey) (client.Client, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, a := range parsed.AuthInfos {
		if err := checkAccount(a); err != nil {
			return nil, err
		}
	}
	for _, c := range parsed.Clusters {
		if c.CertificateAuthority != "" {
			return nil, errors.New("certificate-authority names a file: give certificate-authority-data")
		}
	}
	rest, err := clientcmd.NewDefaultClientConfig(*parsed, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	b.Wrap(rest, cluster)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return client.New(rest, client.Options{Scheme: scheme, Mapper: mapper})
}

func checkAccount(a *clientcmdapi.AuthInfo) error {
	switch {
	case a.Exec != nil, a.AuthProvider != nil:
		return errors.New("it names a program: give client-certificate-data and client-key-data, or token")
	case a.ClientCertificate != "", a.ClientKey != "", a.TokenFile != "":
		return errors.New("it names a file: give client-certificate-data and client-key-data, or token")
	}
	return nil
}

// provideNode sets the provider ID of the Node of a machine, which is its host's, and removes its taint. The
// name of a Node is that of an ElementalHost, which any namespace may have: a Node that another account has
// registered, that has another provider ID, or that is another server in a shared API, is not the machine's.
func provideNode(ctx context.Context, c client.Client, h *elementalv1.ElementalHost, machine client.ObjectKey, shared bool) error {
	name, id := h.Name, providerID(h)
	var n corev1.Node
	err := c.Get(ctx, client.ObjectKey{Name: name}, &n)
	if apierrors.IsNotFound(err) {
		return errNoNode
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	account := n.Annotations[nodeaccount.Annotation]
	if account != "" && account != nodeaccount.User(nodeaccount.Machines, nodeaccount.OfMachine(machine.Namespace, machine.Name)) || n.Spec.ProviderID != "" && n.Spec.ProviderID != id {
		return fmt.Errorf("%w: the Node of this name is another machine's", errNoNode)
	}
	if account == "" && shared && !isServerOf(&n, h) {
		return fmt.Errorf("%w: the Node of this name is another server, by its systemUUID and the annotation %s of the host", errNoNode, nodeaccount.SystemUUID)
	}
	before := n.DeepCopy()
	n.Spec.ProviderID = id
	n.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.MatchTaint(&uninitialized) })
	// Taints are a list that the write replaces.
	if err := c.Patch(ctx, &n, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}

// isServerOf reports whether a kubelet's Node is the server of a host, by the UUID of its firmware. A Node
// without one was made by hand, and has no server.
func isServerOf(n *corev1.Node, h *elementalv1.ElementalHost) bool {
	id := n.Status.NodeInfo.SystemUUID
	return id == "" || strings.EqualFold(id, h.Annotations[nodeaccount.SystemUUID])
}

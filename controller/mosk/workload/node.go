package workload

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// NodeAccounts is the namespace of the accounts of node agents in an API that a lab has started; each
// writes the Node of its own name (controller/config/nodes). In the API of a Cluster that name is the
// Machine's.
const NodeAccounts = nodeaccount.Named

// providerPrefix is the begin of the provider's ID of a server: the UID of its BareMetalHost follows.
const providerPrefix = "metal3://"

// Tie is whether a Node is that of a machine.
type Tie struct {
	Why    string // why it is not; "" when it is
	Others bool   // it is another machine's; else nobody knows whose it is
}

// TieOf returns whether a Node is that of a machine. The name of a Node proves nothing: others than
// the agent of a machine may write the host name in its LCMMachine. In an API that clusters share, a
// Node is the machine's when the machine's own account has registered it, or when spec.providerID has
// the UID of the BareMetalHost that the Machine has claimed in its namespace. In an API of the cluster's own every Node is, unless one of the two says
// that it is another machine's. management reads Machines and BareMetalHosts.
func TieOf(ctx context.Context, management client.Reader, n *corev1.Node, machine client.ObjectKey, own bool) (Tie, error) {
	namespace, name := nodeaccount.Parse(n.Annotations[nodeaccount.Annotation])
	if own && namespace == NodeAccounts {
		if name == machine.Name {
			return Tie{}, nil
		}
		return others("Node %s is that of the Machine %s: give one of the two another host name", n.Name, name), nil
	}
	if of, ok := strings.CutSuffix(name, nodeaccount.LCMSuffix); ok {
		owner := client.ObjectKey{Namespace: namespace, Name: of}
		if owner == machine {
			return Tie{}, nil
		}
		return others("Node %s is that of LCMMachine %s: give one of the two another host name, or its Cluster a Kubernetes API of its own (annotation %s)", n.Name, owner, Annotation), nil
	}
	uid, provided := strings.CutPrefix(n.Spec.ProviderID, providerPrefix)
	if own && !provided {
		return Tie{}, nil
	}
	if provided {
		h, err := hostOf(ctx, management, machine)
		if err != nil || h != nil && uid != "" && uid == string(h.UID) {
			return Tie{}, err
		}
	}
	return Tie{Why: fmt.Sprintf("Node %s is not known to be that of LCMMachine %s: the account of the machine's agent has not registered it: set its spec.providerID to %sUID, with the UID of the machine's BareMetalHost", n.Name, machine, providerPrefix)}, nil
}

func others(format string, args ...any) Tie { return Tie{fmt.Sprintf(format, args...), true} }

// hostOf returns the BareMetalHost that a Machine names and has claimed, in its namespace; nil when
// there is none.
func hostOf(ctx context.Context, r client.Reader, machine client.ObjectKey) (*metal3.BareMetalHost, error) {
	var m clusterv1.Machine
	if err := r.Get(ctx, machine, &m); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	name, ok := strings.CutPrefix(m.Annotations[clusterv1.BareMetalHostAnnotation], m.Namespace+"/")
	if !ok {
		return nil, nil
	}
	h := new(metal3.BareMetalHost)
	if err := r.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, h); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	c := h.Spec.ConsumerRef
	if c == nil || c.Kind != "Machine" || c.Namespace != m.Namespace || c.Name != m.Name || !strings.HasPrefix(c.APIVersion, clusterv1.GroupVersion.Group+"/") {
		return nil, nil
	}
	return h, nil
}

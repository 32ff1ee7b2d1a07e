package kube

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
)

// nodeAgentsPlugin is the name of the admission plugin that limits node agents.
const nodeAgentsPlugin = "NodeAgents"

// restrictNodeAgents adds the plugin to the options of a server. client reads Nodes.
func restrictNodeAgents(o *options.Options, client kubernetes.Interface) {
	g := o.Admission.GenericAdmission
	g.Plugins.Register(nodeAgentsPlugin, func(io.Reader) (admission.Interface, error) {
		return &nodeAgents{
			Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), client: client,
			upstream: noderestriction.NewPlugin(nodeidentifier.NewDefaultNodeIdentifier()),
		}, nil
	})
	g.RecommendedPluginOrder = append(slices.Clone(g.RecommendedPluginOrder), nodeAgentsPlugin)
	g.EnablePlugins = append(g.EnablePlugins, nodeAgentsPlugin)
}

// nodeAgents is an admission plugin for the accounts of controller/config/nodes/agents.yaml: an agent writes
// of Nodes, Leases and Pods what a kubelet may, those
// of its own Node. It finds the Node of the agent's account, and asks upstream's plugin NodeRestriction as
// if the request were that of the Node's kubelet. It has no cache: a Node that was registered just now, or
// a Pod that was bound, is known.
type nodeAgents struct {
	*admission.Handler
	client   kubernetes.Interface
	upstream *noderestriction.Plugin // only for what needs no cache of its own
}

// ofKubelet is a request with the user of the kubelet of a node.
type ofKubelet struct {
	admission.Attributes
	node string
}

// GetUserInfo implements admission.Attributes.
func (a ofKubelet) GetUserInfo() user.Info {
	return &user.DefaultInfo{Name: "system:node:" + a.node, Groups: []string{user.NodesGroup}}
}

// Validate implements admission.ValidationInterface.
func (p *nodeAgents) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	account := a.GetUserInfo().GetName()
	namespace, name := nodeaccount.Parse(account)
	isNamed := namespace == nodeaccount.Named
	if !isNamed && !nodeaccount.IsAgent(namespace, name) {
		return nil
	}
	resource := a.GetResource().GroupResource()
	node := a.GetName()
	switch resource {
	case corev1.Resource("nodes"), coordinationv1.Resource("leases"):
	case corev1.Resource("pods"):
		pod, ok := a.GetOldObject().(*core.Pod)
		if !ok || a.GetOperation() == admission.Create {
			return admission.NewForbidden(a, fmt.Errorf("the account %s of a node agent neither creates nor evicts Pods", account))
		}
		node = pod.Spec.NodeName
	default:
		return nil
	}
	own, why := name == node, ""
	if !isNamed {
		var err error
		if own, why, err = p.tells(ctx, account, node, a); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	if !own {
		return admission.NewForbidden(a, fmt.Errorf("the account %s of a node agent writes its own node alone, not %s%s", account, cmp.Or(node, "one without a name"), why))
	}
	if resource == corev1.Resource("pods") && a.GetOperation() == admission.Delete {
		return nil // upstream looks for the Pod in a cache, which may not have it yet
	}
	return p.upstream.Admit(ctx, ofKubelet{a, node}, o)
}

// tells reports whether the annotation of a Node tells an account. why, which may be "", says more of a
// Node that does not.
func (p *nodeAgents) tells(ctx context.Context, account, node string, a admission.Attributes) (own bool, why string, err error) {
	if created, ok := a.GetObject().(*core.Node); ok && a.GetOperation() == admission.Create {
		if created.Annotations[nodeaccount.Annotation] != account {
			return false, ": give it the annotation " + nodeaccount.Annotation + " with this account", nil
		}
		all, err := p.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		for _, n := range all.Items {
			if n.Name != node && n.Annotations[nodeaccount.Annotation] == account {
				return false, ": it has registered the Node " + n.Name, nil
			}
		}
		return true, "", nil
	}
	if node == "" { // a Pod that is bound to none
		return false, "", nil
	}
	n, err := p.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, ", which does not exist", nil
	} else if err != nil {
		return false, "", err
	}
	return n.Annotations[nodeaccount.Annotation] == account, "", nil
}

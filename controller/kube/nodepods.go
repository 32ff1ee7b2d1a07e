package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"

	"github.com/metalab-dev/metalab/agent/nodeaccount"
)

// podsOfNodeAgents is an authorizer that lets the accounts of node agents read the Pods of their own
// Node alone: their role allows all Pods, since roles know no field selectors. Upstream's node
// authorizer does the same for kubelets, whose users tell their Nodes. An account of an agent has its
// Node by its name, or by the annotation of the Node, which is read for each request: an agent lists
// and watches its Pods when it starts.
type podsOfNodeAgents struct {
	authorizer.Authorizer
	nodes kubernetes.Interface
}

// Authorize implements authorizer.Authorizer.
func (p podsOfNodeAgents) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, why, err := p.Authorizer.Authorize(ctx, a)
	if decision != authorizer.DecisionAllow || a.GetUser() == nil || a.GetAPIGroup() != "" || a.GetResource() != "pods" {
		return decision, why, err
	}
	switch a.GetVerb() {
	case "list", "watch", "deletecollection":
	default: // the admission plugin judges writes; their role has no get
		return decision, why, err
	}
	account := a.GetUser().GetName()
	namespace, name := nodeaccount.Parse(account)
	isNamed := namespace == nodeaccount.Named
	if !isNamed && !nodeaccount.IsAgent(namespace, name) {
		return decision, why, err
	}
	node := selectedNode(a)
	if node == "" {
		return authorizer.DecisionDeny, fmt.Sprintf("the account %s of a node agent reads the Pods of its own node alone: select them by the field spec.nodeName", account), nil
	}
	own := name == node
	if !isNamed {
		n, err := p.nodes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return authorizer.DecisionDeny, "", err
		}
		own = err == nil && n.Annotations[nodeaccount.Annotation] == account
	}
	if !own {
		return authorizer.DecisionDeny, fmt.Sprintf("the account %s of a node agent reads the Pods of its own node alone, not those of %s", account, node), nil
	}
	return decision, why, nil
}

// selectedNode returns the node whose Pods a request selects, "" when it selects more.
func selectedNode(a authorizer.Attributes) string {
	fields, err := a.GetFieldSelector()
	if err != nil { // it selects all that it could not be parsed for
		return ""
	}
	for _, f := range fields {
		if f.Field == "spec.nodeName" && (f.Operator == selection.Equals || f.Operator == selection.DoubleEquals) {
			return f.Value
		}
	}
	return ""
}

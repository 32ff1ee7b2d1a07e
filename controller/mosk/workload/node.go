package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// agentAnnotation of a Node is the user that its agent has registered it as; see guest/node.
	agentAnnotation = "metalab.dev/node-agent"
	userPrefix      = "system:serviceaccount:"
	lcmSuffix       = "-lcm-agent"
)

// OwnerOf returns the machine whose account has registered a Node. ok is false when the account is
// not a machine's: other accounts are named after the Node.
func OwnerOf(n *corev1.Node) (machine client.ObjectKey, ok bool) {
	account, ok := strings.CutPrefix(n.Annotations[agentAnnotation], userPrefix)
	if !ok {
		return client.ObjectKey{}, false
	}
	namespace, name, _ := strings.Cut(account, ":")
	name, ok = strings.CutSuffix(name, lcmSuffix)
	return client.ObjectKey{Namespace: namespace, Name: name}, ok
}

// Foreign reports whether a Node is another machine's: in an API that clusters share, two
// machines may have one host name, and the first one has the Node.
func Foreign(n *corev1.Node, machine client.ObjectKey) bool {
	owner, ok := OwnerOf(n)
	return ok && owner != machine
}

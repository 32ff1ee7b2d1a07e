// Package nodeaccount has the names of the service accounts of node agents in a lab's API, and of the
// annotations by which a Node tells its agent's account, and a host its server. The agent in guest/node writes
// the first, the API in controller/kube limits the accounts, and the families' controllers find by them which
// machine a Node is. The manifest controller/config/nodes/agents.yaml has the names, too.
package nodeaccount

import "strings"

// Annotation of a Node is the user that its agent has registered it as. The API of a lab lets an agent
// write no other user there.
const Annotation = "metalab.dev/node-agent"

// SystemUUID is the annotation of an ElementalHost that tells the UUID of its server (SMBIOS, "System
// Information"), in lower case: a kubelet writes it to its Node, status.nodeInfo.systemUUID. A host and a
// Node of one name in an API that several Clusters share are one server by it.
const SystemUUID = "metalab.dev/system-uuid"

const (
	// Named is the namespace of the accounts that have the names of their Nodes.
	Named = "lab-nodes"
	// Machines is the namespace of the accounts of Machines of Cluster API: see OfMachine.
	Machines = "lab-machines"
	// LCMSuffix ends the name of the account of an LCM agent, after that of its Machine, in whose
	// namespace it is.
	LCMSuffix = "-lcm-agent"
)

// userPrefix begins the user of a service account.
const userPrefix = "system:serviceaccount:"

// User returns the user of a service account.
func User(namespace, name string) string { return userPrefix + namespace + ":" + name }

// Parse returns the namespace and the name of the service account of a user, "" when it is that of none.
func Parse(user string) (namespace, name string) {
	account, ok := strings.CutPrefix(user, userPrefix)
	if !ok {
		return "", ""
	}
	namespace, name, _ = strings.Cut(account, ":")
	return namespace, name
}

// OfMachine returns the name of the account of a Machine of Cluster API, in the namespace Machines.
func OfMachine(namespace, name string) string { return namespace + "." + name }

// IsAgent reports whether an account is that of a node agent whose Node the annotation tells: an account
// of Machines, or of an LCM agent.
func IsAgent(namespace, name string) bool {
	return namespace == Machines || len(name) > len(LCMSuffix) && strings.HasSuffix(name, LCMSuffix)
}

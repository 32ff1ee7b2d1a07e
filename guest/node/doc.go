// Package node is the node agent of a server of the lab. In the place of a kubelet it
// registers the server as a Node of a cluster, renews the node's Lease, reports the pods that
// are bound to the node as Running, and lets those go that are deleted.
//
// It runs no container: the message of the node's condition Ready says so. It knows the API
// and the server's facts, and nothing of the lab.
package node

// Package deletion takes the nodes of machines out of their cluster before the machines
// are deleted: LCMMachine.spec.prepareDeletion demands it, and
// status.prepareDeletionPhase says how far it is. The applications of the cluster are asked
// by the maintenance protocol with a NodeDeletionRequest; then the node is cordoned and
// drained. When the demand is withdrawn the node is given back. When the LCMMachine is
// deleted its Node is deleted, and the requests with it.
//
// The package deletes no Machine and talks to no server: controller/provider/machines does.
package deletion

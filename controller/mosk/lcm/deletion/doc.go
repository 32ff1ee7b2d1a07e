// Package deletion takes the nodes of machines out of their cluster before the machines are
// deleted. LCMMachine.spec.prepareDeletion demands that, and status.prepareDeletionPhase shows
// the progress. The package asks the cluster's applications with a NodeDeletionRequest (see
// package maintenance), and then cordons and drains the node. It gives the node back when the
// demand is withdrawn. It deletes the Node and the requests when the LCMMachine is deleted.
//
// The package deletes no Machine and talks to no server: controller/mosk/provider/machines does.
package deletion

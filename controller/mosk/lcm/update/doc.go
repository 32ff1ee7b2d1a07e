// Package update updates the machines of a cluster to the items of its LCMCluster's release
// one after another (docs/statements/mosk.md, H37). A machine that has executed its items
// keeps them until its node is out of service: cordoned and drained by package maintenance.
// Then controller/mosk/lcm gives it the new ones, its agent executes them, and the node is given
// back.
//
// The control plane comes first, then the groups of workers by their index, groups with the
// same index at the same time. In a group as many machines are out of service as its
// UpdateGroup's concurrentUpdates permits; LCMCluster.spec.maxWorkerUpgradeCount is the limit
// of the default group, which has the workers without an UpdateGroup. Items of host OS
// configurations need no update: they reach machines in service.
//
// The annotation item.UpdatingAnnotation marks a machine from the first step to the last.
package update

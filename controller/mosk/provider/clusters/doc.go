// Package clusters is the part of the bare metal provider that makes the LCMCluster and the
// HelmBundle of a Cluster from its ClusterRelease, and shows the cluster's releases and machines in its
// status. A release that is not supported, or off the upgrade path, changes nothing but a
// condition. A deleted Cluster deletes its Machines first, then the HelmBundle, the LCMCluster
// and its IAM scopes.
//
// The state items of host OS configurations, which controller/mosk/provider/hoc writes, stay. The
// package provisions no machine.
package clusters

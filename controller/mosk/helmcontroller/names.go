// Package helmcontroller describes the Helm controller of a cluster: its chart, the account that it
// has in the management cluster, and the Lease by which one of two processes acts on the cluster's
// HelmBundle, the management cluster's lab-controller or the one that the chart has installed.
//
// The package installs no chart, and links no Helm SDK: controller/mosk/helm does.
package helmcontroller

// Name returns the name of what belongs to a Cluster's Helm controller in the management cluster, in
// the Cluster's namespace: the service account that LCMCluster.spec.helmControllerServiceAccountName
// names, its Role and RoleBinding, and the Lease.
func Name(cluster string) string { return cluster + "-helm-controller" }

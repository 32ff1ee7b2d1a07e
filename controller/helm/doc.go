// Package helm installs, upgrades and uninstalls the releases of HelmBundles with the Helm
// SDK: what the chart of the Helm controller does in a cluster. Releases are Helm 3's, so
// that helm(1) lists them. A release that fails does not stop those that do not require it,
// and is tried again with a backoff; one that has not changed is not installed again.
//
// A release is ready when Helm's own check finds that its objects are there and its
// workloads run. The package runs no workload. It does not know where a bundle comes from:
// controller/provider/clusters makes those of Clusters.
//
// The Helm SDK is linked here alone.
package helm

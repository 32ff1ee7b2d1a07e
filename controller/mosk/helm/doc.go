// Package helm installs, upgrades and uninstalls the releases of HelmBundles with the Helm
// SDK, in place of the product's Helm controller. It stores releases as Helm 3 does, so that
// helm(1) lists them. A failed release stops only the releases that require it, and is tried
// again with a backoff. An unchanged release is not installed again.
//
// A release is ready when Helm's own check finds that its objects are there and its
// workloads run. The package runs no workload. It does not know where a bundle comes from:
// controller/mosk/provider/clusters makes those of Clusters.
//
// The Helm SDK is linked here alone.
package helm

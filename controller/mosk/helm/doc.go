// Package helm installs, upgrades and uninstalls the releases of HelmBundles with the Helm
// SDK, in place of the product's Helm controller. It stores releases as Helm 3 does, so that
// helm(1) lists them. A failed release stops only the releases that require it, and is tried
// again with a backoff. An unchanged release is not installed again.
//
// A release is ready when Helm's own check finds that its objects are there and its
// workloads run. The package runs no workload. It does not know where a bundle comes from:
// controller/mosk/provider/clusters makes those of Clusters.
//
// In the API that has the bundle, charts act as a service account of the bundle's namespace: Helm
// impersonates it, for its own Secrets, lookups in templates and hooks, too. In the API of a Cluster
// of its own they act with the rights of that API's kubeconfig.
//
// The Helm SDK is linked here alone.
package helm

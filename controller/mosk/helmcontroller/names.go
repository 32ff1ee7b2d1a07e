// Package helmcontroller describes the Helm controller of a cluster: its chart, the account that it
// has in the management cluster, and the Lease by which one of two processes acts on the cluster's
// HelmBundle, the management cluster's lab-controller or the one that the chart has installed.
//
// The package installs no chart, and links no Helm SDK: controller/mosk/helm does.
package helmcontroller

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Name returns the name of what belongs to a Cluster's Helm controller in the management cluster, in
// the Cluster's namespace: the service account that LCMCluster.spec.helmControllerServiceAccountName
// names, its Role and RoleBinding, and the Lease.
func Name(cluster string) string { return cluster + "-helm-controller" }

// maxRelease is the length of the name of a release that Helm allows.
const maxRelease = 53

// SharedRelease returns the name of a Cluster's release of the chart in an API that Clusters share,
// where releases of equal names would be one: NAME-CLUSTER. It ends with a checksum where that is too
// long. It is not Name, whose account the management cluster has in the same namespace.
func SharedRelease(name, cluster string) string {
	out := name + "-" + cluster
	if len(out) <= maxRelease {
		return out
	}
	const digits = 8
	sum := sha256.Sum256([]byte(out))
	return strings.TrimRight(out[:maxRelease-digits-1], "-.") + "-" + hex.EncodeToString(sum[:])[:digits]
}

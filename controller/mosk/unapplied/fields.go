package unapplied

// Fields are the fields of each kind that nothing acts on, as paths in the object. A field covers
// those below it.
var Fields = map[string][]string{
	"Cluster": {
		"spec.clusterNetwork",
		value + "tls",
		value + "dedicatedControlPlane",
		value + "dedicatedMetallbPools",
		value + "containerRegistries",
	},
	"Machine": {
		"spec.versions",
		value + "ansibleExtraPassthrough",
	},
	"L2Template": {
		"spec.l3Layout[].subnetPool",
	},
	"Subnet": {"spec.subnetPoolRef"},
	"SubnetPool": {
		"spec.cidr",
		"spec.blockSize",
		"spec.gatewayPolicy",
		"spec.nameservers",
	},
	"KaaSRelease": {
		"spec.bootstrap",
		"spec.management.helmReleases[].required",
		"spec.management.helmReleases[].requiresPersistentVolumes",
		"spec.management.helmReleases[].localVolumes",
		"spec.regional[].helmReleases[].required",
		"spec.regional[].helmReleases[].requiresPersistentVolumes",
		"spec.regional[].helmReleases[].localVolumes",
		"spec.regionalHelmReleases[].required",
		"spec.regionalHelmReleases[].requiresPersistentVolumes",
		"spec.regionalHelmReleases[].localVolumes",
	},
	"ClusterRelease": {
		"spec.helm.releases[].required",
		"spec.helm.releases[].requiresPersistentVolumes",
		"spec.helm.releases[].localVolumes",
		"spec.helm.controller.required",
		"spec.helm.controller.requiresPersistentVolumes",
		"spec.helm.controller.localVolumes",
		"spec.images",
	},
	"LCMCluster": {
		// Which chart is external, and to what, is in no public text: helm.controller of a
		// ClusterRelease names another chart.
		"spec.helmControllerFromExternalChart",
		"spec.deploymentSecretName",
		"spec.kubeconfigSecretName",
		"spec.agentDataSecretName",
		"spec.mkeTLSSecretName",
		"spec.dedicatedControlPlane",
		"spec.images",
		"spec.oidc",
		"spec.mcrVersion",
		"spec.mkeUpgradeAttempts",
	},
	"LCMMachine": {
		"spec.deploymentSecretName",
		"spec.kubeconfigSecretName",
		"spec.tlsSecretName",
		"spec.rhelLicenseSubscription",
		"spec.mcrVersion",
		"spec.serviceAccount",
	},
	// In the order of the specification: the layout of the disks, which the image has, and the
	// boot loader. A software RAID of a profile has partitions as members, and Metal3's spec.raid
	// has only complete disks.
	"BareMetalHostProfile": {
		"spec.grubConfig",
		"spec.devices[].device.wipe",
		"spec.devices[].device.wipeDevice",
		"spec.devices[].device.useFor",
		"spec.devices[].partitions",
		"spec.softRaidDevices",
		"spec.volumeGroups",
		"spec.logicalVolumes",
		"spec.fileSystems",
		"spec.rootFSURL",
	},
}

// value is where Clusters and Machines have the provider's part of their spec.
const value = "spec.providerSpec.value."

// defaults are values that the API gives fields that nobody has set, by kind and field.
var defaults = map[[2]string]any{
	{"LCMCluster", "spec.dedicatedControlPlane"}: true,
	{"LCMCluster", "spec.mkeUpgradeAttempts"}:    5.0,
}

package unapplied

// Fields are the fields of each kind that nothing acts on, as paths in the object.
var Fields = map[string][]string{
	"Cluster": {
		value + "tls",
		value + "maxWorkerPrepareCount",
		value + "dedicatedControlPlane",
		value + "dedicatedMetallbPools",
		value + "containerRegistries",
	},
	"Machine": {
		"spec.versions.kubelet",
		"spec.versions.controlPlane",
		"spec.taints",
		value + "ansibleExtraPassthrough",
		value + "nodeLabels",
	},
	"Proxy": {"spec.caCertificate"},
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
		"spec.supportedClusterReleases[].tag",
		"spec.supportedClusterReleases[].availableUpgrades[].rebootRequired",
	},
	"ClusterRelease": {
		"spec.helm.releases[].required",
		"spec.helm.releases[].requiresPersistentVolumes",
		"spec.helm.releases[].localVolumes",
		"spec.helm.controller.required",
		"spec.helm.controller.requiresPersistentVolumes",
		"spec.helm.controller.localVolumes",
		"spec.allowedNodeLabels",
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

package redfish

import "slices"

// tree is all that the service serves, row by row. The rows stand beside what
// they serve; a resource links to the rows one segment below by itself
// (resource.link).
func tree() []resource {
	return slices.Concat(
		rootRows(),
		schemaRows(),
		sessionRows(),
		accountRows(),
		certificateRows(),
		systemRows(),
		bootRows(),
		processorRows(),
		networkRows(),
		biosRows(),
		registryRows(),
		updateRows(),
		inventoryRows(),
		storageRows(),
		mediaRows(),
		managerRows(),
		chassisRows(),
		pcieRows(),
		trustedRows(),
		sensorRows(),
		powerRows(),
		coolingRows(),
		environmentRows(),
		secureBootRows(),
		telemetryRows(),
		integrityRows(),
		taskRows(),
		logRows(),
		managerNetworkRows(),
		hostInterfaceRows(),
		planRows(),
		eventRows(),
	)
}

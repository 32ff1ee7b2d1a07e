package layering

// Writer is the one package that writes some fields of a status.
type Writer struct {
	Status  string // its Go type in controller/api
	Fields  []string
	Package string
}

// several are the statuses that more than one package writes.
var several = map[string]bool{"LCMMachineStatus": true, "HostOSConfigurationStatus": true}

// Writers are the owners of the fields of statuses that several packages write. A field has one
// writer, so that no two overwrite each other's.
var Writers = []Writer{
	{"LCMMachineStatus", []string{
		"Addresses", "AgentVersion", "Components", "Distribution", "HostInfo", "Interface", "LCMAgentUpgradeStatus", "Reboot", "StateItemStatuses",
	}, "agent/lcm"},
	{"LCMMachineStatus", []string{"Maintenance", "Release", "State"}, "controller/mosk/lcm"},
	{"LCMMachineStatus", []string{"KubernetesCordonDrain", "KubernetesCordonDrainError"}, "controller/mosk/lcm/maintenance"},
	{"LCMMachineStatus", []string{"PrepareDeletionPhase"}, "controller/mosk/lcm/deletion"},
	{"LCMMachineStatus", []string{"TokenSecret"}, "controller/mosk/provider/machines"},
	{"HostOSConfigurationStatus", []string{"Configs", "ContainsDeprecatedModules", "IsValid", "ObservedGeneration", "SpecUpdatedAt", "UpdatedAt"}, "controller/mosk/hostos"},
	{"HostOSConfigurationStatus", []string{"Conditions", "LastFailure", "MachinesDone", "MachinesStates", "MachinesTotal", "ModulesText", "Progress", "StateItems"}, "controller/mosk/provider/hoc"},
}

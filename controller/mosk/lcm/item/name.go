package item

import (
	"fmt"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// HostOSVersion is the version of the items of HostOSConfigurations.
const HostOSVersion = "v1"

// HostOS returns the two items of one config of a HostOSConfiguration, in the order of
// their execution: the download of the module, and the module's playbook. Neither has
// params: the overwrites of each machine have them.
func HostOS(configuration, module, version string, phase lcmv1.Phase) []lcmv1.LCMStateItem {
	suffix := fmt.Sprintf("%s-%s-%s-%s", configuration, module, version, phase)
	return []lcmv1.LCMStateItem{
		{Runner: lcmv1.RunnerDownloader, Name: "host-os-download-" + suffix, Version: HostOSVersion, Phase: phase},
		{Runner: lcmv1.RunnerAnsible, Name: "host-os-" + suffix, Version: HostOSVersion, Phase: phase},
	}
}

package item

import (
	"fmt"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// ComponentsFile is where an item of a release notes the versions of its components, as JSON of
// status.components of an LCMMachine: {"ucpVersion": "3.7.1"}. Its path is in no public text.
const ComponentsFile = "/var/lib/lcm/components.json"

// ComponentsWait returns why the components keep a machine of the types ucp and byo from being
// Ready, "" when they do not, or when its items are not done yet.
func ComponentsWait(m *lcmv1.LCMMachine) string {
	has, wants := m.Status.Components.UCPVersion, m.Spec.Components.UCPVersion
	ours := m.Spec.LCMType == lcmv1.LCMTypeBYO || m.Spec.LCMType == lcmv1.LCMTypeUCP && itemsState(m) == lcmv1.StateReady
	switch {
	case !ours || m.Status.Components == m.Spec.Components && has != "":
		return ""
	case has == "":
		return fmt.Sprintf(`the server reports no version: an item or its image has to write {"ucpVersion": VERSION} to %s`, ComponentsFile)
	case wants == "":
		return fmt.Sprintf("the server reports version %q: set spec.components.ucpVersion of the LCMCluster to the version that machines have to have", has)
	}
	return fmt.Sprintf("the server reports version %q in %s, and spec.components.ucpVersion is %q", has, ComponentsFile, wants)
}

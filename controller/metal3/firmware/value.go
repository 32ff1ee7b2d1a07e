package firmware

import (
	"maps"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// convertValue returns a value for the BMC: of the type in the registry or, if the
// registry has none, of the type of the present value (B-205).
func convertValue(v intstr.IntOrString, a *bmc.Attribute, current any) any {
	if v.Type == intstr.Int && current == nil && (a == nil || a.Type == bmc.UntypedAttribute) {
		return int64(v.IntVal)
	}
	return bmc.Setting(v.String(), a, current)
}

// changedSettings returns the settings that differ from the wanted ones, with
// values for the BMC.
func changedSettings(want metal3.DesiredSettingsMap, b bmc.BIOS) bmc.Settings {
	out := wantedValues(want, b)
	maps.DeleteFunc(out, func(name string, v any) bool {
		current, shown := b.Settings[name]
		return shown && bmc.SameValue(b.Registry.Attribute(name), current, v)
	})
	return out
}

// settled returns the settings that there are when the wanted ones are applied.
func settled(want metal3.DesiredSettingsMap, b bmc.BIOS) bmc.Settings {
	out := bmc.Settings{}
	maps.Copy(out, b.Settings)
	maps.Copy(out, wantedValues(want, b))
	return out
}

// wantedValues returns the wanted settings with values for the BMC.
func wantedValues(want metal3.DesiredSettingsMap, b bmc.BIOS) bmc.Settings {
	out := bmc.Settings{}
	for name, v := range want {
		out[name] = convertValue(v, b.Registry.Attribute(name), b.Settings[name])
	}
	return out
}

package firmware

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// formatValue returns a value as objects show it.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(v)
}

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
	out := bmc.Settings{}
	for name, v := range want {
		if current, shown := b.Settings[name]; !shown || formatValue(current) != v.String() {
			out[name] = convertValue(v, b.Registry.Attribute(name), current)
		}
	}
	return out
}

// validate returns the errors of wanted settings, sorted by name (B-204). The
// texts are upstream's; refusing unique settings follows the specification and not
// upstream.
func validate(want metal3.DesiredSettingsMap, shown metal3.SettingsMap, s *schema) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if isPassword(name) {
			errs = append(errs, fmt.Errorf("cannot set Password field"))
			continue
		}
		if _, known := shown[name]; !known {
			errs = append(errs, fmt.Errorf("setting %s is not in the Status field", name))
			continue
		}
		if s == nil {
			continue
		}
		one := s.settings[name]
		switch err := new(metal3.FirmwareSchema).ValidateSetting(name, want[name], s.settings); {
		case err != nil:
			errs = append(errs, err)
		case one.Unique != nil && *one.Unique:
			errs = append(errs, fmt.Errorf("Setting %s is invalid, it is Unique", name)) // as upstream words the others
		}
	}
	return errs
}

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

// text is a value as objects show it.
func text(v any) string {
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

// typed is a value as the BMC takes it: of the type that the registry names or,
// where that does not say, of the type of the value that is there (B-205).
func typed(v intstr.IntOrString, a *bmc.Attribute, is any) any {
	if v.Type == intstr.Int && is == nil && (a == nil || a.Type == bmc.UntypedAttribute) {
		return int64(v.IntVal)
	}
	return bmc.Setting(v.String(), a, is)
}

// differing are the settings that are not as wanted, as the BMC takes them.
func differing(want metal3.DesiredSettingsMap, b bmc.BIOS) bmc.Settings {
	out := bmc.Settings{}
	for name, v := range want {
		if is, shown := b.Settings[name]; !shown || text(is) != v.String() {
			out[name] = typed(v, b.Registry.Attribute(name), is)
		}
	}
	return out
}

// invalid says what is wrong with wanted settings, by name (B-204). The texts
// are upstream's; unique settings are refused as the specification wants it,
// which upstream does not do.
func invalid(want metal3.DesiredSettingsMap, shown metal3.SettingsMap, s *schema) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if secret(name) {
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
			errs = append(errs, fmt.Errorf("Setting %s is invalid, it is Unique", name)) //nolint:staticcheck // as upstream words the others
		}
	}
	return errs
}

package firmware

import (
	"fmt"
	"maps"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// validate returns the errors of wanted settings, sorted by name (B-204). The texts are
// upstream's; refusing unique settings follows the specification and not upstream. So
// does the context: upstream does not know that settings depend on each other. Settings
// are judged together: what one of them unlocks is valid, and the error of one that stays
// locked names what unlocks it.
func validate(want metal3.DesiredSettingsMap, b bmc.BIOS, s *schema) []error {
	var errs []error
	rules, locked := b.Registry.Rules(settled(want, b)), b.Registry.Locks(b.Settings, wantedValues(want, b))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if isPassword(name) {
			errs = append(errs, fmt.Errorf("cannot set Password field"))
			continue
		}
		if _, known := b.Settings[name]; !known {
			errs = append(errs, fmt.Errorf("setting %s is not in the Status field", name))
			continue
		}
		if s == nil {
			continue
		}
		one := map[string]metal3.SettingSchema{}
		if _, ok := s.settings[name]; ok {
			if e := locked[name]; e != nil {
				errs = append(errs, e)
				continue
			}
			one[name] = wantedSchema(b.Registry, rules, name)
		}
		switch err := new(metal3.FirmwareSchema).ValidateSetting(name, want[name], one); {
		case err != nil:
			errs = append(errs, err)
		case one[name].Unique != nil && *one[name].Unique:
			errs = append(errs, fmt.Errorf("Setting %s is invalid, it is Unique", name)) // as upstream words the others
		}
	}
	return errs
}

// wantedSchema returns the schema of a setting that is not locked, under the rules of the
// wanted settings. A setting that dependencies lock may be wanted as it is, or as they
// make it.
func wantedSchema(r *bmc.AttributeRegistry, rules *bmc.Rules, name string) metal3.SettingSchema {
	out := settingSchema(rules.Attribute(name))
	if r.Depends(name) {
		out.ReadOnly = new(false)
	}
	return out
}

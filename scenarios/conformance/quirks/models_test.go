package quirks

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/fixtures"
)

// noRAID is the error of models whose controllers or BMCs create no volumes.
const noRAID = "no controller makes mirrors"

// modelErrors are parts of the errors of operations that models do not support, beside
// volumes of a model without a RAID controller.
var modelErrors = map[string]map[string]string{
	"hpe-dl360-gen9": {"volumes": noRAID}, // iLO 4 creates volumes by HPE's tools alone
	"hpe-dl380-gen9": {"volumes": noRAID},
	// bmcweb has no BIOS attributes.
	"openbmc-mtjade":    {"settings": "it has nothing to set"},
	"openbmc-tiogapass": {"settings": "it has nothing to set"},
}

// errorsOf returns the parts of the errors of operations that a model does not support.
func errorsOf(t *testing.T, profile string) map[string]string {
	t.Helper()
	p, _, err := rack.ReadProfile(nil, profile)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	if !slices.ContainsFunc(p.Storage, func(c storage.ControllerModel) bool { return c.RAID != nil }) {
		out["volumes"] = noRAID
	}
	maps.Copy(out, modelErrors[profile])
	return out
}

// TestDriversManageEveryModel runs all operations on a server of each model, and so
// on a BMC of each dialect.
func TestDriversManageEveryModel(t *testing.T) {
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	for _, file := range files {
		profile := strings.TrimSuffix(path.Base(file), ".yaml")
		t.Run(profile, func(t *testing.T) {
			b := newBench(t, profile, "")
			b.runOperations(errorsOf(t, profile))
		})
	}
}

// TestDriversUseOEMResources runs all operations on BMCs with a quirk that leaves
// the vendor's OEM resources only.
func TestDriversUseOEMResources(t *testing.T) {
	for profile, quirk := range map[string]string{"supermicro-1029u": "vmedia-own-way"} {
		t.Run(profile, func(t *testing.T) { newBench(t, profile, quirk).runOperations(errorsOf(t, profile)) })
	}
}

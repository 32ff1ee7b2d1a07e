package quirks

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/fixtures"
)

// noRAID is for models whose controllers or BMCs create no volumes.
var noRAID = map[string]string{"volumes": "no controller makes mirrors"}

// modelErrors are parts of the errors of operations that models do not support.
var modelErrors = map[string]map[string]string{
	"generic":           noRAID,
	"dense":             noRAID,
	"vast":              noRAID,
	"fujitsu-rx2530-m6": noRAID,
	"fujitsu-rx2530-m7": noRAID,
	"gigabyte-r282":     noRAID,
	"lenovo-sr655":      noRAID,
	"hpe-dl360-gen9":    noRAID, // iLO 4 creates volumes by HPE's tools alone
	"hpe-dl380-gen9":    noRAID,
	// bmcweb has read-only storage and no BIOS attributes.
	"openbmc-mtjade":    {"volumes": "no controller makes mirrors", "settings": "it has nothing to set"},
	"openbmc-tiogapass": {"volumes": "no controller makes mirrors", "settings": "it has nothing to set"},
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
			b.runOperations(modelErrors[profile])
		})
	}
}

// TestDriversUseOEMResources runs all operations on BMCs with a quirk that leaves
// the vendor's OEM resources only.
func TestDriversUseOEMResources(t *testing.T) {
	for profile, quirk := range map[string]string{"supermicro-1029u": "vmedia-own-way"} {
		t.Run(profile, func(t *testing.T) { newBench(t, profile, quirk).runOperations(modelErrors[profile]) })
	}
}

package quirks

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/fixtures"
)

// noRAID is what servers answer whose controllers make no volumes, or whose BMCs
// do not.
var noRAID = map[string]string{"volumes": "no controller makes mirrors"}

// modelErrors are what the BMCs of server modelErrors do not let be done.
var modelErrors = map[string]map[string]string{
	"generic":           noRAID,
	"dense":             noRAID,
	"vast":              noRAID,
	"fujitsu-rx2530-m6": noRAID,
	"fujitsu-rx2530-m7": noRAID,
	"gigabyte-r282":     noRAID,
	"lenovo-sr655":      noRAID,
	"hpe-dl360-gen9":    noRAID, // that of iLO 4 is for tools of its own
	"hpe-dl380-gen9":    noRAID,
	// bmcweb shows storage and does not change it, and knows no BIOS attributes.
	"openbmc-mtjade":    {"volumes": "no controller makes mirrors", "settings": "it has nothing to set"},
	"openbmc-tiogapass": {"volumes": "no controller makes mirrors", "settings": "it has nothing to set"},
}

// TestEveryModelIsManaged does all work of the drivers on a server of each model
// that there is: with them, on a BMC of each vendor.
func TestEveryModelIsManaged(t *testing.T) {
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

// TestOwnWays does it on BMCs with a quirk that leaves nothing but what their
// vendor has of his own.
func TestOwnWays(t *testing.T) {
	for profile, quirk := range map[string]string{"supermicro-1029u": "vmedia-own-way"} {
		t.Run(profile, func(t *testing.T) { newBench(t, profile, quirk).runOperations(modelErrors[profile]) })
	}
}

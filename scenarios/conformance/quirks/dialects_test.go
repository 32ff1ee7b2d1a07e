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

// noSetup is what servers answer that show neither storage nor settings.
var noSetup = map[string]string{
	"inventory": "Storage: the system has none", "settings": "it has nothing to set", "volumes": "Storage: the system has none",
}

// models are server models whose BMCs do not let everything be done, or not by
// plain HTTP.
var models = map[string]struct {
	refused map[string]string
	tls     bool // images come by HTTPS
}{
	"generic":           {refused: noRAID},
	"dense":             {refused: noRAID},
	"vast":              {refused: noRAID},
	"fujitsu-rx2530-m6": {refused: noRAID},
	"fujitsu-rx2530-m7": {refused: noRAID},
	"gigabyte-r282":     {refused: noRAID},
	"lenovo-sr655":      {refused: noRAID},
	// iLO 4 shows storage and settings by resources of its own alone, which the
	// driver does not read; Metal3's ilo4 has neither (B-133).
	"hpe-dl360-gen9": {refused: noSetup},
	"hpe-dl380-gen9": {refused: noSetup},
	// iBMC fetches no image by plain HTTP.
	"huawei-1288h-v5": {tls: true},
	"huawei-2288h-v5": {tls: true},
	// bmcweb shows storage and does not change it, and knows no BIOS attributes.
	"openbmc-mtjade":    {refused: map[string]string{"volumes": "no controller makes mirrors", "settings": "it has nothing to set"}, tls: true},
	"openbmc-tiogapass": {refused: map[string]string{"volumes": "no controller makes mirrors", "settings": "it has nothing to set"}, tls: true},
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
			b.tls = models[profile].tls
			b.work(models[profile].refused)
		})
	}
}

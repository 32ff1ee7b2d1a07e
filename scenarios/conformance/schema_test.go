package conformance_test

import (
	"archive/zip"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// The generic emulator's resources are valid by DMTF's schemas, and the profile of
// Ironic holds.
func TestGenericEmulatorHoldsSchemasAndProfiles(t *testing.T) {
	prerequisites.Need(t, "DMTF archive")
	name, err := prerequisites.Find("DMTF archive")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	l := racktest.Start(t, rack.Config{})
	conf := target(l)
	conf.Schemas = archive
	got, _ := execute(t, conf, "SCH-001", "SCH-002", "SCH-003")
	for _, id := range []string{"SCH-001", "SCH-002"} {
		if r := got[id]; r.Verdict != conformance.Pass {
			t.Errorf("%s: %s %s, want pass", id, r.Verdict, r.Reason)
		}
	}
	for _, id := range []string{"SCH-001", "SCH-002", "SCH-003"} {
		t.Logf("%s: %s in %v, %v %s", id, got[id].Verdict, got[id].Took, got[id].Facts, got[id].Reason)
	}
}

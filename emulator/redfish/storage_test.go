package redfish

import (
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// raidStates lists states of a host with a RAID controller.
var raidStates = []struct {
	name string
	make func(t *testing.T, h *host)
}{
	{"as it came", func(*testing.T, *host) {}},
	{"volumes", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(time.Minute)
		for _, c := range []storage.Command{
			storage.CreateVolume{Controller: "1", Type: storage.RAID5, Drives: []string{"Disk.0", "Disk.1", "Disk.2"}, Capacity: 1e12, Spares: []string{"Disk.3"}},
			storage.CreateVolume{Controller: "1", Type: storage.RAID10, Drives: []string{"Disk.4", "Disk.5", "Disk.6", "Disk.7"}},
			storage.PullDrive{Drive: "Disk.1"},
			storage.PredictFailure{Drive: "Disk.2", Predicted: true},
			storage.PullDrive{Drive: "Disk.10"},
			storage.InsertDrive{Drive: "Disk.10", What: storage.InsertNew},
			storage.SetIndicator{Drive: "Disk.8", On: true},
			storage.SecureErase{Drive: "Disk.9"},
		} {
			must(t, h.Apply(t.Context(), machine.Storage{Command: c}))
		}
		h.pass(time.Minute)
	}},
	{"failures", func(t *testing.T, h *host) {
		must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
		h.pass(time.Minute)
		for _, c := range []storage.Command{
			storage.CreateVolume{Controller: "1", Type: storage.RAID0, Drives: []string{"Disk.0"}, Method: storage.Skip},
			storage.CreateVolume{Controller: "1", Type: storage.RAID1, Drives: []string{"Disk.4", "Disk.5"}, Method: storage.Foreground},
			storage.CreateVolume{Controller: "1", Type: storage.RAID1, Drives: []string{"Disk.6", "Disk.7"}, Write: storage.UnprotectedWriteBack},
			storage.FailDrive{Drive: "Disk.0"},
			storage.FailDrive{Drive: "Disk.6"},
			storage.AssignSpare{Controller: "1", Drive: "Disk.1"},
			storage.PullDrive{Drive: "Disk.2"},
			storage.InsertDrive{Drive: "Disk.2", What: storage.InsertForeign},
		} {
			must(t, h.Apply(t.Context(), machine.Storage{Command: c}))
		}
	}},
}

func TestRAIDServerLinksLeadToValidResources(t *testing.T) {
	for _, state := range raidStates {
		t.Run(state.name, func(t *testing.T) {
			h := newHostOf(t, "raid")
			state.make(t, h)
			s := newService(t, h)
			var check *schemaSet
			if _, err := openBundle(); err == nil {
				check = newSchemas(t)
			} else {
				t.Logf("bodies are not checked against DMTF's schemas: %v", err)
			}
			seen := strings.Join(walk(t, s, check), " ")
			for _, c := range h.Machine().Storage.Controllers() {
				for _, d := range c.Drives {
					if !strings.Contains(seen, "/Drives/"+d.ID+"/Metrics") {
						t.Errorf("no link leads to the metrics of drive %s", d.ID)
					}
				}
				for _, v := range c.Volumes {
					if !strings.Contains(seen, c.ID+"/Volumes/"+v.ID) {
						t.Errorf("no link leads to volume %s of controller %s", v.ID, c.ID)
					}
				}
			}
		})
	}
}

package idrac

import (
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

const enclosure = ":Enclosure.Internal.0-1:"

// driveFQDD returns the FQDD of a drive.
func driveFQDD(bay, controller string) string {
	return strings.Replace(bay, "Disk.", "Disk.Bay.", 1) + enclosure + controller
}

// volumeFQDD returns the FQDD of a volume.
func volumeFQDD(volume, controller string) string { return "Disk.Virtual." + volume + ":" + controller }

// bayOf returns the bay and the controller of the FQDD of a drive.
func bayOf(m *machine.View, fqdd string) (bay, controller string, ok bool) {
	for _, c := range m.Storage.Controllers() {
		for _, d := range c.Drives {
			if driveFQDD(d.ID, c.ID) == fqdd {
				return d.ID, c.ID, true
			}
		}
	}
	return "", "", false
}

func isController(m *machine.View, fqdd string) bool {
	_, ok := m.Storage.Controller(fqdd)
	return ok
}

func storageURI(controller string, below ...string) string {
	return strings.Join(append([]string{system, "Storage", controller}, below...), "/")
}

// raidComponents returns the RAID controllers with their volumes and drives.
func raidComponents(m *machine.View) []component {
	var out []component
	for _, c := range m.Storage.Controllers() {
		if c.RAID == nil {
			continue
		}
		x := component{FQDD: c.ID}
		x.set("RAIDresetConfig", "False")
		x.set("RAIDforeignConfig", "Ignore")
		x.set("RAIDrebuildRate", strconv.Itoa(c.Rebuild))
		for _, v := range c.Volumes {
			y := component{FQDD: volumeFQDD(v.ID, c.ID)}
			y.set("RAIDaction", "Update")
			y.set("Name", v.Name)
			y.set("Size", strconv.FormatInt(v.Size(), 10))
			y.set("StripeSize", strconv.FormatInt(v.Strip/512, 10))
			y.set("RAIDTypes", strings.Replace(string(v.Type), "RAID", "RAID ", 1))
			for _, d := range c.Drives {
				if slices.Contains(d.Volumes, v.ID) {
					y.set("IncludedPhysicalDiskID", driveFQDD(d.ID, c.ID))
				}
			}
			x.Components = append(x.Components, y)
		}
		box := component{FQDD: "Enclosure.Internal.0-1:" + c.ID}
		for _, d := range c.Drives {
			y := component{FQDD: driveFQDD(d.ID, c.ID)}
			y.set("RAIDHotSpareStatus", map[bool]string{true: "Global", false: "No"}[d.State == storage.DriveSpare])
			y.set("RAIDPDState", "Ready")
			box.Components = append(box.Components, y)
		}
		x.Components = append(x.Components, box)
		out = append(out, x)
	}
	return out
}

// raidChanges returns the requests that create and delete volumes of a controller as a
// profile asks.
func raidChanges(m *machine.View, x component) []dialect.StandardRequest {
	var out []dialect.StandardRequest
	one := func(c component, name string) string {
		for _, a := range c.Attributes {
			if a.Name == name {
				return a.Value
			}
		}
		return ""
	}
	if one(x, "RAIDresetConfig") == "True" {
		out = append(out, reset(x.FQDD))
	}
	for _, v := range x.Components {
		id, _, isVolume := strings.Cut(strings.TrimPrefix(v.FQDD, "Disk.Virtual."), ":")
		switch {
		case !isVolume || !strings.HasPrefix(v.FQDD, "Disk.Virtual."):
		case one(v, "RAIDaction") == "Delete":
			out = append(out, dialect.StandardRequest{Method: "DELETE", URI: storageURI(x.FQDD, "Volumes", id)})
		case one(v, "RAIDaction") == "Create":
			drives := []any{}
			for _, a := range v.Attributes {
				bay, controller, ok := bayOf(m, a.Value)
				if a.Name == "IncludedPhysicalDiskID" && ok {
					drives = append(drives, map[string]any{"@odata.id": strings.NewReplacer("{system}", "System.Embedded.1").Replace(storageURI(controller, "Drives", bay))})
				}
			}
			body := map[string]any{
				"RAIDType": strings.ReplaceAll(one(v, "RAIDTypes"), " ", ""), "Links": map[string]any{"Drives": drives},
			}
			if name := one(v, "Name"); name != "" {
				body["Name"] = name
			}
			if n, err := strconv.ParseInt(one(v, "Size"), 10, 64); err == nil && n > 0 {
				body["CapacityBytes"] = n
			}
			if n, err := strconv.ParseInt(one(v, "StripeSize"), 10, 64); err == nil && n > 0 { // in sectors
				body["StripSizeBytes"] = n * 512
			}
			out = append(out, dialect.StandardRequest{Method: "POST", URI: storageURI(x.FQDD, "Volumes"), Body: body})
		}
	}
	return out
}

// reset returns the request that deletes all volumes of a controller.
func reset(controller string) dialect.StandardRequest {
	return dialect.StandardRequest{Method: "POST", URI: storageURI(controller, "Actions", "Storage.ResetToDefaults"), Body: map[string]any{"ResetType": "ResetAll"}}
}

// raidActions returns the actions of the RAID service that change storage. The other
// actions of a real one return values or encrypt.
func (g generation) raidActions() []dialect.Action {
	fqdd := []dialect.Parameter{{Name: "TargetFQDD", Required: true}}
	spare := func(kind string) func(dialect.ActionCall) (dialect.Effect, error) {
		return func(c dialect.ActionCall) (dialect.Effect, error) {
			name, _ := c.Body["TargetFQDD"].(string)
			bay, controller, ok := bayOf(c.Machine, name)
			if !ok {
				return dialect.Effect{}, g.noSuch(name)
			}
			return dialect.Effect{Status: 202, Task: "Configure: " + controller, TaskDuration: realtime, Requests: []dialect.StandardRequest{
				{Method: "PATCH", URI: storageURI(controller, "Drives", bay), Body: map[string]any{"HotspareType": kind}},
			}}, nil
		}
	}
	drives := []dialect.Parameter{{Name: "PDArray", Type: dialect.ArrayParameter, Required: true}}
	var all []dialect.Action
	// A drive that no volume uses is visible to the system, and volumes can use it at
	// once, whatever its mode: a conversion changes what the drive shows. It is rejected
	// for drives in use.
	for _, to := range []struct {
		action string
		status any // RaidStatus of a drive that no volume uses; nil is Ready
	}{{"ConvertToRAID", nil}, {"ConvertToNonRAID", "NonRAID"}} {
		convert := func(c dialect.ActionCall) (dialect.Effect, error) {
			chosen, _ := c.Body["PDArray"].([]any)
			on, store := "", map[string]any{}
			for _, one := range chosen {
				name, _ := one.(string)
				bay, controller, ok := bayOf(c.Machine, name)
				if !ok {
					return dialect.Effect{}, g.noSuch(name)
				}
				of, _ := c.Machine.Storage.Controller(controller)
				for _, d := range of.Drives {
					if d.ID == bay && len(d.Volumes) > 0 {
						return dialect.Effect{}, &dialect.Rejection{Message: g.message("STOR023", "The drive %1 is part of a volume."), Args: []string{name}}
					}
				}
				on = controller
				store[storedMode(strings.ReplaceAll(storageURI(controller, "Drives", bay), "{system}", "System.Embedded.1"))] = to.status
			}
			if on == "" {
				return dialect.Effect{}, g.noSuch("drive")
			}
			return dialect.Effect{Task: "Configure: " + on, TaskDuration: realtime, Store: store}, nil
		}
		all = append(all, dialect.Action{ResourceURI: raidService, Name: "DellRaidService." + to.action, Parameters: drives, Effects: []dialect.Effect{{Hook: convert}}})
	}
	return append(all,
		dialect.Action{ResourceURI: raidService, Name: "DellRaidService.ClearForeignConfig", Parameters: fqdd, Effects: []dialect.Effect{{Hook: func(c dialect.ActionCall) (dialect.Effect, error) {
			name, _ := c.Body["TargetFQDD"].(string)
			of, ok := c.Machine.Storage.Controller(name)
			if !ok {
				return dialect.Effect{}, g.noSuch(name)
			}
			if !slices.ContainsFunc(of.Drives, func(d storage.DriveView) bool { return d.State == storage.DriveForeign }) {
				return dialect.Effect{}, &dialect.Rejection{Message: g.message("STOR018", "No drive of %1 brings a configuration along."), Args: []string{name}} // [V: sushy]
			}
			return dialect.Effect{Task: "Configure: " + name, TaskDuration: realtime, Requests: []dialect.StandardRequest{
				{Method: "POST", URI: storageURI(name, "Actions", "Storage.ClearForeign"), Body: map[string]any{}},
			}}, nil
		}}}},
		dialect.Action{ResourceURI: raidService, Name: "DellRaidService.ResetConfig", Parameters: fqdd, Effects: []dialect.Effect{{Hook: func(c dialect.ActionCall) (dialect.Effect, error) {
			name, _ := c.Body["TargetFQDD"].(string)
			if !isController(c.Machine, name) {
				return dialect.Effect{}, g.noSuch(name)
			}
			return dialect.Effect{Task: "Configure: " + name, TaskDuration: realtime, Requests: []dialect.StandardRequest{reset(name)}}, nil
		}}}},
		dialect.Action{ResourceURI: raidService, Name: "DellRaidService.AssignSpare", Parameters: fqdd, Effects: []dialect.Effect{{Hook: spare("Global")}}},
		dialect.Action{ResourceURI: raidService, Name: "DellRaidService.UnassignSpare", Parameters: fqdd, Effects: []dialect.Effect{{Hook: spare("None")}}},
	)
}

// storedMode is the name of the stored mode of the drive at a standard URI: NonRAID, or
// nothing.
func storedMode(drive string) string { return "mode of " + drive }

const realtime = 10e9 // duration of a storage job while the system is on [K]

func (g generation) noSuch(fqdd string) error {
	return &dialect.Rejection{Message: g.message("STOR003", "There is no %1 that this could be done to."), Args: []string{fqdd}}
}

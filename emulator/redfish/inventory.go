package redfish

import (
	"context"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const (
	firmwareInventory = "/redfish/v1/UpdateService/FirmwareInventory"
	softwareInventory = "/redfish/v1/UpdateService/SoftwareInventory"
)

// inventoryRows are the firmware that runs, component by component, and the
// images that components hold beside it: what they ran before, and what waits
// to be activated.
func inventoryRows() []resource {
	return []resource{
		{uri: firmwareInventory, schema: "SoftwareInventoryCollection", shows: componentShows,
			name: "Firmware Inventory", of: "firmware"},
		{uri: firmwareInventory + "/{firmware}", schema: "SoftwareInventory.v1_13_0", shows: componentShows,
			read: firmwareItem},
		{uri: softwareInventory, schema: "SoftwareInventoryCollection", shows: componentShows,
			name: "Software Inventory", of: "software"},
		{uri: softwareInventory + "/{software}", schema: "SoftwareInventory.v1_13_0", shows: componentShows,
			read: softwareItem, actions: softwareActions},
	}
}

// componentShows is what decides which components there are, and what of.
var componentShows = PartIdentity | PartFirmware | PartStorage

func firmwareURI(component string) string { return firmwareInventory + "/" + component }

// components are the IDs of the components.
func (v view) components() []string {
	return list(v.m.Components(), func(x firmware.Inventory) string { return x.ID })
}

// stored is an image that a component holds and does not run.
type stored struct {
	id   string
	slot firmware.Slot
	of   firmware.Inventory
	firmware.Release
}

// suffixes are those of the IDs of images by the slot that they are in.
var suffixes = map[firmware.Slot]string{firmware.BackupSlot: ".Backup", firmware.StagedSlot: ".Staged"}

// stored lists the images that components hold and do not run.
func (v view) stored() []stored {
	var out []stored
	for _, x := range v.m.Components() {
		add := func(slot firmware.Slot, r *firmware.Release) {
			if r != nil {
				out = append(out, stored{x.ID + suffixes[slot], slot, x, *r})
			}
		}
		add(firmware.BackupSlot, x.Backup)
		add(firmware.StagedSlot, x.Staged)
	}
	return out
}

// softwareImages are the addresses of all images of a component.
func (v view) softwareImages(component string) []string {
	out := []string{firmwareURI(component)}
	for _, s := range v.stored() {
		if s.of.ID == component {
			out = append(out, softwareInventory+"/"+s.id)
		}
	}
	return out
}

func firmwareItem(v view) object {
	x, _ := v.m.Firmware.Component(v.ids["firmware"])
	o := v.software(x, x.Active)
	o["Name"], o["Active"], o["Updateable"] = x.Name, !x.Broken, !x.Fixed
	state, health := "Enabled", "OK"
	switch {
	case x.Broken:
		state, health = "Disabled", "Critical"
		o["Version"] = nil // there is none that runs
	case x.Update != "":
		state = "Updating"
	}
	if x.Saved {
		health = "Warning"
	}
	o["Status"] = object{"State": state, "Health": health}
	if targets := v.related(x.Subject); !x.Broken && len(targets) > 0 {
		o["Links"] = object{"ActiveTargets": refs(targets...), "ActiveTargets@odata.count": len(targets)}
	}
	return o
}

func softwareItem(v view) object {
	s := pick(v.stored(), v.ids["software"], func(s stored) string { return s.id })
	o := v.software(s.of, s.Release)
	what := map[firmware.Slot]string{firmware.BackupSlot: " (backup image)", firmware.StagedSlot: " (staged image)"}
	o["Name"], o["Active"], o["Staged"], o["Updateable"] = s.of.Name+what[s.slot], false, s.slot == firmware.StagedSlot, false
	o["Status"] = object{"State": "StandbySpare", "Health": "OK"}
	if s.slot == firmware.BackupSlot && s.of.Saved {
		o["Active"], o["Status"] = true, status("Enabled")
	}
	if targets := v.related(s.of.Subject); s.slot == firmware.StagedSlot && len(targets) > 0 {
		o["Links"] = object{"StagedTargets": refs(targets...), "StagedTargets@odata.count": len(targets)}
	}
	return o
}

// software is what the two inventories have in common.
func (v view) software(x firmware.Inventory, r firmware.Release) object {
	related := v.related(x.Subject)
	o := object{
		"Description": "Firmware of " + x.Name + ".", "SoftwareId": softwareID(x.Component), "Manufacturer": x.Vendor, "Version": r.Version,
		"RelatedItem": refs(related...), "RelatedItem@odata.count": len(related),
		"ReleaseType": "Production", "WriteProtected": x.Fixed, "ResetRequiredOnUpdate": x.Activation == firmware.ByHost,
	}
	if r.Lowest != "" {
		o["LowestSupportedVersion"] = r.Lowest
	}
	if r.Released != "" {
		o["ReleaseDate"] = r.Released + "T00:00:00Z"
	}
	if r.Size > 0 {
		o["SizeBytes"] = r.Size
	}
	return o
}

// softwareID tells for which components an image is.
func softwareID(c *firmware.Component) string {
	return string(c.Kind) + ":" + strings.ReplaceAll(c.Vendor+":"+c.Model, " ", "-")
}

// related are the addresses of the part that a component is of: of a NIC also
// the adapter that it is on.
func (v view) related(s event.Subject) []string {
	uri, ok := v.origin(s)
	if !ok {
		return nil
	}
	out := []string{uri}
	if s.Part != event.NIC {
		return out
	}
	if c, ok := v.m.Profile.CardOf(s.ID); ok {
		out = append(out, v.chassis("NetworkAdapters", c.ID))
	}
	return out
}

var softwareActions = []action{{
	name:   "SoftwareInventory.Activate",
	inputs: append([]input{{name: "Targets", kind: array, of: []input{{kind: link}}, nullable: true}}, operationInputs...),
	beside: supportedTimes,
	apply: func(ctx context.Context, c operation) (reply, error) {
		s := pick(c.view.stored(), c.view.ids["software"], func(s stored) string { return s.id })
		if targets, ok := c.set["Targets"].([]any); ok {
			if err := c.knownTargets("SoftwareInventory.Activate", targets, []string{s.of.ID}); err != nil {
				return reply{}, err
			}
		}
		when, err := applyAt(c.set, operationTime, operationWindow, c.host.Now())
		if err != nil {
			return reply{}, err
		}
		return c.begin(ctx, "Activate firmware of "+s.of.Name, func(job string) machine.Command {
			return machine.Firmware{Command: firmware.Activate{ID: "activate-" + job, Task: job, Slot: s.slot, On: []string{s.of.ID}, When: when}}
		})
	},
}}

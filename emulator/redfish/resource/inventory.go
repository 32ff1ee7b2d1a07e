package resource

import (
	"context"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

const (
	FirmwareInventory = "/redfish/v1/UpdateService/FirmwareInventory"
	SoftwareInventory = "/redfish/v1/UpdateService/SoftwareInventory"
)

// inventoryRows are the firmware that runs, component by component, and the
// images that components hold beside it: what they ran before, and what waits
// to be activated.
func inventoryRows() []Row {
	return []Row{
		{URI: FirmwareInventory, Schema: "SoftwareInventoryCollection", DependsOn: componentShows,
			Name: "Firmware Inventory", MemberVariable: "firmware"},
		{URI: FirmwareInventory + "/{firmware}", Schema: "SoftwareInventory.v1_13_0", DependsOn: componentShows,
			Read: firmwareItem},
		{URI: SoftwareInventory, Schema: "SoftwareInventoryCollection", DependsOn: componentShows,
			Name: "Software Inventory", MemberVariable: "software"},
		{URI: SoftwareInventory + "/{software}", Schema: "SoftwareInventory.v1_13_0", DependsOn: componentShows,
			Read: softwareItem, Actions: softwareActions},
	}
}

// componentShows is what decides which components there are, and what of.
var componentShows = PartIdentity | PartFirmware | PartStorage

func FirmwareURI(component string) string { return FirmwareInventory + "/" + component }

// components are the IDs of the components.
func (v View) components() []string {
	return Map(v.Machine.Components(), func(x firmware.Inventory) string { return x.ID })
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
func (v View) stored() []stored {
	var out []stored
	for _, x := range v.Machine.Components() {
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
func (v View) softwareImages(component string) []string {
	out := []string{FirmwareURI(component)}
	for _, s := range v.stored() {
		if s.of.ID == component {
			out = append(out, SoftwareInventory+"/"+s.id)
		}
	}
	return out
}

func firmwareItem(v View) Object {
	x, _ := v.Machine.Firmware.Component(v.IDs["firmware"])
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
	o["Status"] = Object{"State": state, "Health": health}
	if targets := v.related(x.Subject); !x.Broken && len(targets) > 0 {
		o["Links"] = Object{"ActiveTargets": Refs(targets...), "ActiveTargets@odata.count": len(targets)}
	}
	return o
}

func softwareItem(v View) Object {
	s := Find(v.stored(), v.IDs["software"], func(s stored) string { return s.id })
	o := v.software(s.of, s.Release)
	what := map[firmware.Slot]string{firmware.BackupSlot: " (backup image)", firmware.StagedSlot: " (staged image)"}
	o["Name"], o["Active"], o["Staged"], o["Updateable"] = s.of.Name+what[s.slot], false, s.slot == firmware.StagedSlot, false
	o["Status"] = Object{"State": "StandbySpare", "Health": "OK"}
	if s.slot == firmware.BackupSlot && s.of.Saved {
		o["Active"], o["Status"] = true, status("Enabled")
	}
	if targets := v.related(s.of.Subject); s.slot == firmware.StagedSlot && len(targets) > 0 {
		o["Links"] = Object{"StagedTargets": Refs(targets...), "StagedTargets@odata.count": len(targets)}
	}
	return o
}

// software is what the two inventories have in common.
func (v View) software(x firmware.Inventory, r firmware.Release) Object {
	related := v.related(x.Subject)
	o := Object{
		"Description": "Firmware of " + x.Name + ".", "SoftwareId": softwareID(x.Component), "Manufacturer": x.Vendor, "Version": r.Version,
		"RelatedItem": Refs(related...), "RelatedItem@odata.count": len(related),
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
func (v View) related(s event.Subject) []string {
	uri, ok := v.OriginOfCondition(s)
	if !ok {
		return nil
	}
	out := []string{uri}
	if s.Part != event.NIC {
		return out
	}
	if c, ok := v.Machine.Profile.CardOf(s.ID); ok {
		out = append(out, v.chassis("NetworkAdapters", c.ID))
	}
	return out
}

var softwareActions = []Action{{
	Name:            "SoftwareInventory.Activate",
	Inputs:          append([]Input{{Name: "Targets", Kind: Array, Of: []Input{{Kind: Link}}, Nullable: true}}, operationInputs...),
	extraProperties: applyTimeAnnotation,
	Apply: func(ctx context.Context, c Call) (Result, error) {
		s := Find(c.View.stored(), c.View.IDs["software"], func(s stored) string { return s.id })
		if targets, ok := c.Values["Targets"].([]any); ok {
			if err := c.validateTargets("SoftwareInventory.Activate", targets, []string{s.of.ID}); err != nil {
				return Result{}, err
			}
		}
		when, err := applyAt(c.Values, OperationApplyTime, operationWindow, c.Host.Now())
		if err != nil {
			return Result{}, err
		}
		return c.Begin(ctx, "Activate firmware of "+s.of.Name, func(job string) machine.Command {
			return machine.Firmware{Command: firmware.Activate{ID: "activate-" + job, Task: job, Slot: s.slot, On: []string{s.of.ID}, When: when}}
		})
	},
}}

package resource

import (
	"context"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// URIs of the inventories of the UpdateService.
const (
	firmwareInventory = "/redfish/v1/UpdateService/FirmwareInventory"
	SoftwareInventory = "/redfish/v1/UpdateService/SoftwareInventory"
)

// inventoryRows returns the rows of the firmware inventory, with the active
// firmware of each component, and of the software inventory, with the inactive
// images of components: the backup of the former version and the staged one that
// waits to be activated.
func inventoryRows() []Row {
	return []Row{
		{URI: firmwareInventory, Schema: "SoftwareInventoryCollection", DependsOn: componentParts,
			collectionName: "Firmware Inventory", memberVariable: "firmware"},
		{URI: firmwareInventory + "/{firmware}", Schema: "SoftwareInventory.v1_13_0", DependsOn: componentParts,
			Read: firmwareItem},
		{URI: SoftwareInventory, Schema: "SoftwareInventoryCollection", DependsOn: componentParts,
			collectionName: "Software Inventory", memberVariable: "software"},
		{URI: SoftwareInventory + "/{software}", Schema: "SoftwareInventory.v1_13_0", DependsOn: componentParts,
			Read: softwareItem, Actions: softwareActions},
	}
}

// componentParts are the parts of the state that the components and their
// firmware depend on.
var componentParts = partIdentity | partFirmware | partStorage

// FirmwareURI returns the URI of the active firmware of a component.
func FirmwareURI(component string) string { return firmwareInventory + "/" + component }

// components returns the IDs of the components.
func (v View) components() []string {
	return Map(v.Machine.Components(), func(x firmware.Inventory) string { return x.ID })
}

// inactiveImage is an image that a component stores and does not run.
type inactiveImage struct {
	id   string
	slot firmware.Slot
	of   firmware.Inventory
	firmware.Release
}

// slotSuffixes are the suffixes of software inventory IDs by slot.
var slotSuffixes = map[firmware.Slot]string{firmware.BackupSlot: ".Backup", firmware.StagedSlot: ".Staged"}

// inactiveImages returns the images that components store and do not run.
func (v View) inactiveImages() []inactiveImage {
	var out []inactiveImage
	for _, x := range v.Machine.Components() {
		add := func(slot firmware.Slot, r *firmware.Release) {
			if r != nil {
				out = append(out, inactiveImage{x.ID + slotSuffixes[slot], slot, x, *r})
			}
		}
		add(firmware.BackupSlot, x.Backup)
		add(firmware.StagedSlot, x.Staged)
	}
	return out
}

// softwareImages returns the URIs of all images of a component.
func (v View) softwareImages(component string) []string {
	out := []string{FirmwareURI(component)}
	for _, s := range v.inactiveImages() {
		if s.of.ID == component {
			out = append(out, SoftwareInventory+"/"+s.id)
		}
	}
	return out
}

func firmwareItem(v View) Object {
	x, _ := v.Machine.Firmware.Component(v.IDs["firmware"])
	o := v.softwareObject(x, x.Active)
	o["Name"], o["Active"], o["Updateable"] = x.Name, !x.Broken, !x.Fixed
	state, health := "Enabled", "OK"
	switch {
	case x.Broken:
		state, health = "Disabled", "Critical"
		o["Version"] = nil // no firmware is running
	case x.Update != "":
		state = "Updating"
	}
	if x.Saved {
		health = "Warning"
	}
	o["Status"] = Object{"State": state, "Health": health}
	if targets := v.relatedURIs(x); !x.Broken && len(targets) > 0 {
		o["Links"] = Object{"ActiveTargets": refs(targets...), "ActiveTargets@odata.count": len(targets)}
	}
	return o
}

func softwareItem(v View) Object {
	s := Find(v.inactiveImages(), v.IDs["software"], func(s inactiveImage) string { return s.id })
	o := v.softwareObject(s.of, s.Release)
	what := map[firmware.Slot]string{firmware.BackupSlot: " (backup image)", firmware.StagedSlot: " (staged image)"}
	o["Name"], o["Active"], o["Staged"], o["Updateable"] = s.of.Name+what[s.slot], false, s.slot == firmware.StagedSlot, false
	o["Status"] = Object{"State": "StandbySpare", "Health": "OK"}
	if s.slot == firmware.BackupSlot && s.of.Saved {
		o["Active"], o["Status"] = true, status("Enabled")
	}
	if targets := v.relatedURIs(s.of); s.slot == firmware.StagedSlot && len(targets) > 0 {
		o["Links"] = Object{"StagedTargets": refs(targets...), "StagedTargets@odata.count": len(targets)}
	}
	return o
}

// softwareObject returns the properties that both inventories have in common.
func (v View) softwareObject(x firmware.Inventory, r firmware.Release) Object {
	related := v.relatedURIs(x)
	o := Object{
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

// softwareID returns the SoftwareId of a component: its kind, vendor and model.
// Components with the same SoftwareId accept the same images.
func softwareID(c *firmware.Component) string {
	return string(c.Kind) + ":" + strings.ReplaceAll(c.Vendor+":"+c.Model, " ", "-")
}

// relatedURIs returns the URIs of the resources that the firmware of a component
// belongs to: for a NIC also its network adapter, for a storage subsystem its
// controller, for a card its PCIe device, for a TPM its trusted component.
func (v View) relatedURIs(x firmware.Inventory) []string {
	uri, ok := v.OriginOfCondition(x.Subject)
	if !ok {
		return nil
	}
	out := []string{uri}
	if x.Subject.Part == event.Controller {
		out = append(out, uri+"/Controllers/0")
	}
	for _, c := range v.Machine.Profile.Cards {
		if c.Component != "" && c.Component == x.ID {
			out = append(out, v.chassis("PCIeDevices", c.ID))
		}
	}
	if t := v.Machine.Profile.TPM; t != nil && t.Component == x.ID {
		out = append(out, v.chassis("TrustedComponents", tpmID))
	}
	if x.Subject.Part != event.NIC {
		return out
	}
	if c, ok := v.Machine.Profile.CardOf(x.Subject.ID); ok {
		out = append(out, v.chassis("NetworkAdapters", c.ID))
	}
	return out
}

var softwareActions = []Action{{
	Name:            "SoftwareInventory.Activate",
	Inputs:          append([]Input{{Name: "Targets", Kind: Array, Of: []Input{{Kind: Link}}, nullable: true}}, operationInputs...),
	extraProperties: applyTimeAnnotation,
	Apply: func(ctx context.Context, c Call) (Result, error) {
		s := Find(c.View.inactiveImages(), c.View.IDs["software"], func(s inactiveImage) string { return s.id })
		if targets, ok := c.Values["Targets"].([]any); ok {
			if err := c.validateTargets("SoftwareInventory.Activate", targets, []string{s.of.ID}); err != nil {
				return Result{}, err
			}
		}
		when, err := parseApplyTime(c.Values, OperationApplyTime, operationWindow, c.Host.Now())
		if err != nil {
			return Result{}, err
		}
		return c.BeginTask(ctx, "Activate firmware of "+s.of.Name, func(job string) machine.Command {
			return machine.Firmware{Command: firmware.Activate{ID: "activate-" + job, Task: job, Slot: s.slot, On: []string{s.of.ID}, When: when}}
		})
	},
}}

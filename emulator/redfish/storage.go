package redfish

import (
	"context"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// disksShow is what drives and volumes follow from.
var disksShow = PartIdentity | PartStorage

func storageRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Systems/{system}/Storage", schema: "StorageCollection", shows: PartIdentity,
			name: "Storage", of: "storage"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}", schema: "Storage.v1_21_0", shows: disksShow,
			read: storageSubsystem, actions: storageActions, applies: raidTimes},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers", schema: "StorageControllerCollection", shows: PartIdentity,
			name: "Storage Controllers", of: "controller"},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers/{controller}", schema: "StorageController.v1_11_0",
			shows: disksShow | PartFirmware, read: storageController, patch: &controllerPatch, spares: hasNoRates},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}", schema: "Drive.v1_22_0", shows: disksShow | PartFirmware | PartTasks | PartTime,
			read: drive, volatile: []string{"Operations"},
			patch: &drivePatch, actions: driveActions, applies: anyTime},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}/Metrics", schema: "DriveMetrics.v1_3_0", shows: disksShow,
			read: driveMetrics},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes", schema: "VolumeCollection", shows: disksShow,
			name: "Volumes", of: "volume", create: &volumeCreate, spares: hasNoRAID, applies: raidTimes},
		{uri: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes/{volume}", schema: "Volume.v1_10_2", shows: disksShow | PartTime,
			read: volume, volatile: []string{"Operations"},
			patch: &volumePatch, remove: volumeRemove, actions: volumeActions, applies: raidTimes},
		{uri: "/redfish/v1/Chassis/{chassis}/Drives", schema: "DriveCollection", shows: disksShow, read: chassisDrives},
	}
}

// storage is the storage controller that the view is of, with all that it has.
func (v view) storage() storage.ControllerView {
	c, _ := v.m.Storage.Controller(v.ids["storage"])
	return c
}

// subsystem is the address of the storage that the view is of, or below.
func (v view) subsystem(below ...string) string {
	return v.system(append([]string{"Storage", v.ids["storage"]}, below...)...)
}

// disk carries out a command to the machine's storage.
func (c operation) disk(ctx context.Context, do storage.Command) error {
	return c.ruled(c.host.Apply(ctx, machine.Storage{Command: do}))
}

// diskJob begins a command to the machine's storage as a job, at once or with
// the next start of the machine.
func (c operation) diskJob(ctx context.Context, name string, do func(job string) storage.Command) (reply, error) {
	out, err := c.begin(ctx, name, func(job string) machine.Command {
		switch own := c.view.storage(); {
		case c.when == onReset:
			return machine.Storage{Command: storage.OnReset{Command: do(job), Task: job}}
		case takesJobs(c.view) && c.view.ids["drive"] == "":
			return machine.Storage{Command: storage.Soon{Controller: own.ID, Command: do(job), Task: job}}
		}
		return machine.Storage{Command: do(job)}
	})
	return out, c.ruled(err)
}

// hasRAID says whether the controller that the view is of makes volumes.
func hasRAID(v view) bool { return v.storage().RAID != nil }

func hasNoRAID(v view, method string) bool { return method == "POST" && !hasRAID(v) }

func hasNoRates(v view, method string) bool { return method == "PATCH" && !hasRAID(v) }

// raidTimes are when a controller does what takes the whole controller.
func raidTimes(v view) []string {
	if !hasRAID(v) {
		return nil
	}
	return texts(v.storage().RAID.When())
}

// takesJobs says whether the controller that the view is of makes a job of all
// that is done to its volumes.
func takesJobs(v view) bool { return hasRAID(v) && v.storage().RAID.JobSeconds > 0 }

func anyTime(view) []string { return []string{immediate, onReset} }

// health is how well a controller's drives and volumes are.
func (v view) health(c storage.ControllerView) string {
	all := []string{"OK"}
	for _, d := range c.Drives {
		all = append(all, string(d.Health()))
	}
	for _, x := range c.Volumes {
		all = append(all, string(x.Health()))
	}
	return worst(all...)
}

// disksHealth is how well all drives and volumes are.
func (v view) disksHealth() string {
	return worst(list(v.m.Storage.Controllers(), v.health)...)
}

func storageSubsystem(v view) object {
	c := v.storage()
	drives := list(c.Drives, func(d storage.DriveView) object { return ref(v.uri + "/Drives/" + d.ID) })
	inline := controller(v, c)
	inline["@odata.id"], inline["MemberId"], inline["Name"] = v.uri+"#/StorageControllers/0", "0", c.Name
	o := object{
		"Name": c.Name, "Description": c.Product, "Status": object{"State": "Enabled", "Health": "OK", "HealthRollup": v.health(c)},
		"Drives": drives, "Drives@odata.count": len(drives),
		// Before Storage 1.9 controllers stood here, where older clients look.
		"StorageControllers": []object{inline}, "StorageControllers@odata.count": 1,
		"Links": object{"Enclosures": refs(v.chassis()), "Enclosures@odata.count": 1},
	}
	if c.RAID != nil && c.RAID.Spares {
		o["HotspareActivationPolicy"] = "OnDriveFailure"
	}
	return o
}

func storageController(v view) object {
	c := v.storage()
	o := controller(v, c)
	o["Name"] = c.Name
	if running := v.version("Storage." + c.ID); running != nil {
		o["FirmwareVersion"] = running
	}
	links := object{}
	if c.RAID != nil {
		attached := list(c.Volumes, func(x storage.VolumeView) object { return ref(v.subsystem("Volumes", x.ID)) })
		links["AttachedVolumes"], links["AttachedVolumes@odata.count"] = attached, len(attached)
	}
	for _, card := range v.m.Profile.Cards {
		if card.Storage == c.ID {
			functions := []object{}
			for _, f := range v.m.Profile.Functions(card) {
				functions = append(functions, ref(v.chassis("PCIeDevices", card.ID, "PCIeFunctions", f.ID)))
			}
			o["PCIeInterface"] = pcieInterface(card)
			links["PCIeFunctions"], links["PCIeFunctions@odata.count"] = functions, len(functions)
		}
	}
	o["Links"] = links
	return o
}

// controller is what the resource and the older inline object have in common.
func controller(v view, c storage.ControllerView) object {
	protocols, types := []string{}, []string{}
	for i := range c.Bays {
		if p := string(c.Bays[i].Protocol); !slices.Contains(protocols, p) {
			protocols = append(protocols, p)
		}
	}
	o := object{
		"Manufacturer": c.Vendor, "Model": c.Product, "FirmwareVersion": c.Firmware, "SerialNumber": c.Serial,
		"SupportedControllerProtocols": []string{"PCIe"}, "SupportedDeviceProtocols": protocols, "Status": status("Enabled"),
	}
	if r := c.RAID; r != nil {
		types = list(r.Types, func(t storage.TypeRule) string { return string(t.Type) })
		o["ControllerRates"] = object{
			"RebuildRatePercent": c.Rebuild, "ConsistencyCheckRatePercent": c.Check, "TransformationRatePercent": c.Transform,
		}
		if r.CacheMiB > 0 {
			o["CacheSummary"] = object{"TotalCacheSizeMiB": r.CacheMiB, "PersistentCacheSizeMiB": persistent(r), "Status": status("Enabled")}
		}
	}
	o["SupportedRAIDTypes"] = types
	return o
}

// persistent is how much of a controller's cache outlives a loss of power.
func persistent(r *storage.RAID) int {
	if slices.Contains(r.Write, storage.ProtectedWriteBack) {
		return r.CacheMiB
	}
	return 0
}

var controllerPatch = patch{
	inputs: []input{{name: "ControllerRates", kind: group, of: []input{
		{name: "RebuildRatePercent", kind: integer, min: 1, max: 100},
		{name: "ConsistencyCheckRatePercent", kind: integer, min: 1, max: 100},
		{name: "TransformationRatePercent", kind: integer, min: 1, max: 100},
	}}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		percent := func(name string) *int {
			n, ok := c.set["ControllerRates/"+name].(int64)
			if !ok {
				return nil
			}
			return new(int(n))
		}
		return reply{}, c.disk(ctx, storage.SetRates{
			Controller: c.view.ids["storage"], Rebuild: percent("RebuildRatePercent"), Check: percent("ConsistencyCheckRatePercent"),
			Transform: percent("TransformationRatePercent"),
		})
	},
}

// The values of Storage.ResetToDefaults, ResetType.
const (
	resetAll        = "ResetAll"
	preserveVolumes = "PreserveVolumes"
)

var storageActions = []action{{
	// What vendors have for configurations that drives bring along.
	name: "Storage.ClearForeign", when: hasRAID, hidden: true, inner: true,
	apply: func(ctx context.Context, c operation) (reply, error) {
		return reply{}, c.disk(ctx, storage.ClearForeign{Controller: c.view.ids["storage"]})
	},
}, {
	name: "Storage.ResetToDefaults", when: hasRAID, defers: true,
	inputs: []input{{name: "ResetType", kind: text, required: true, values: func(view) []string { return []string{resetAll, preserveVolumes} }}},
	apply: func(ctx context.Context, c operation) (reply, error) {
		do := storage.ResetController{Controller: c.view.ids["storage"], KeepVolumes: value(c.set, "ResetType", "") == preserveVolumes}
		if c.when == immediate && !takesJobs(c.view) {
			return reply{}, c.disk(ctx, do)
		}
		return c.diskJob(ctx, "Reset storage controller "+do.Controller, func(job string) storage.Command { do.Task = job; return do })
	},
}}

// chassisDrives are the drives of the server, wherever they are attached.
func chassisDrives(v view) object {
	drives := v.drives()
	return object{"Name": "Drives", "Members": drives, "Members@odata.count": len(drives)}
}

// drives are links to all drives that are there.
func (v view) drives() []object {
	out := []object{}
	for _, c := range v.m.Storage.Controllers() {
		for _, d := range c.Drives {
			out = append(out, ref(v.system("Storage", c.ID, "Drives", d.ID)))
		}
	}
	return out
}

package resource

import (
	"context"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// storageParts is the parts of the state that drives and volumes depend on.
var storageParts = partIdentity | partStorage

func storageRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Systems/{system}/Storage", Schema: "StorageCollection", DependsOn: partIdentity,
			collectionName: "Storage", memberVariable: "storage"},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}", Schema: "Storage.v1_21_0", DependsOn: storageParts,
			Read: storageSubsystem, Actions: storageActions, ApplyTimes: raidApplyTimes},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers", Schema: "StorageControllerCollection", DependsOn: partIdentity,
			collectionName: "Storage Controllers", memberVariable: "controller"},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Controllers/{controller}", Schema: "StorageController.v1_11_0",
			DependsOn: storageParts | partFirmware, Read: storageController, Patch: &controllerPatch, Refuses: hasNoRates},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}", Schema: "Drive.v1_22_0", DependsOn: storageParts | partFirmware | partTasks | partTime,
			Read: drive, Volatile: []string{"Operations"},
			Patch: &drivePatch, Actions: driveActions, ApplyTimes: anyApplyTime},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Drives/{drive}/Metrics", Schema: "DriveMetrics.v1_3_0", DependsOn: storageParts,
			Read: driveMetrics},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes", Schema: "VolumeCollection", DependsOn: storageParts,
			collectionName: "Volumes", memberVariable: "volume", Create: &volumeCreate, Refuses: hasNoRAID, ApplyTimes: createApplyTimes},
		{URI: "/redfish/v1/Systems/{system}/Storage/{storage}/Volumes/{volume}", Schema: "Volume.v1_10_2", DependsOn: storageParts | partTime,
			Read: volume, Volatile: []string{"Operations"},
			Patch: &volumePatch, Remove: volumeRemove, Actions: volumeActions, ApplyTimes: raidApplyTimes},
		{URI: "/redfish/v1/Chassis/{chassis}/Drives", Schema: "DriveCollection", DependsOn: storageParts, Read: chassisDrives},
	}
}

// storage returns the storage controller of the view's Storage, with its drives and
// volumes.
func (v View) storage() storage.ControllerView {
	c, _ := v.Machine.Storage.Controller(v.IDs["storage"])
	return c
}

// subsystem returns the URI of the view's Storage, or of a resource below it.
func (v View) subsystem(below ...string) string {
	return v.system(append([]string{"Storage", v.IDs["storage"]}, below...)...)
}

// applyStorage executes a command of the machine's storage.
func (c Call) applyStorage(ctx context.Context, do storage.Command) error {
	return c.storageError(c.Host.Apply(ctx, machine.Storage{Command: do}))
}

// beginStorageTask starts a task that executes a command of the machine's storage:
// immediately, at the next reset of the machine when the client asks for OnReset, or
// through the job queue of a controller that has one.
func (c Call) beginStorageTask(ctx context.Context, name string, do func(job string) storage.Command) (Result, error) {
	out, err := c.BeginTask(ctx, name, func(job string) machine.Command {
		switch controller := c.View.storage(); {
		case c.ApplyTime == onReset:
			return machine.Storage{Command: storage.OnReset{Command: do(job), Task: job}}
		case queuesJobs(c.View) && c.View.IDs["drive"] == "":
			return machine.Storage{Command: storage.Soon{Controller: controller.ID, Command: do(job), Task: job}}
		}
		return machine.Storage{Command: do(job)}
	})
	return out, c.storageError(err)
}

// hasRAID reports whether the view's controller can create volumes.
func hasRAID(v View) bool { return v.storage().RAID != nil }

func hasNoRAID(v View, method string) bool { return method == "POST" && !hasRAID(v) }

func hasNoRates(v View, method string) bool { return method == "PATCH" && !hasRAID(v) }

// raidApplyTimes returns when the controller can execute operations on its volumes.
func raidApplyTimes(v View) []string {
	if !hasRAID(v) {
		return nil
	}
	return Texts(v.storage().RAID.When())
}

// createApplyTimes returns when the controller can create volumes. A collection that refuses
// POST lists no values: profiles such as Ironic's require the annotation in every
// VolumeCollection.
func createApplyTimes(v View) []string { return append([]string{}, raidApplyTimes(v)...) }

// queuesJobs reports whether the view's controller executes every change of its volumes as
// a job.
func queuesJobs(v View) bool { return hasRAID(v) && v.storage().RAID.JobSeconds > 0 }

func anyApplyTime(View) []string { return []string{Immediate, onReset} }

// controllerHealth returns the worst Health of a controller's drives and volumes.
func (v View) controllerHealth(c storage.ControllerView) string {
	all := []string{"OK"}
	for _, d := range c.Drives {
		all = append(all, string(d.Health()))
	}
	for _, x := range c.Volumes {
		all = append(all, string(x.Health()))
	}
	return worstHealth(all...)
}

// storageHealth returns the worst Health of all drives and volumes.
func (v View) storageHealth() string {
	return worstHealth(Map(v.Machine.Storage.Controllers(), v.controllerHealth)...)
}

func storageSubsystem(v View) Object {
	c := v.storage()
	drives := Map(c.Drives, func(d storage.DriveView) Object { return Ref(v.URI + "/Drives/" + d.ID) })
	inline := controller(v, c)
	inline["@odata.id"], inline["MemberId"], inline["Name"] = v.URI+"#/StorageControllers/0", "0", c.Name
	o := Object{
		"Name": c.Name, "Description": c.Product, "Status": Object{"State": "Enabled", "Health": "OK", "HealthRollup": v.controllerHealth(c)},
		"Drives": drives, "Drives@odata.count": len(drives),
		// Older clients read the controllers here: Storage 1.9 moved them to Controllers.
		"StorageControllers": []Object{inline}, "StorageControllers@odata.count": 1,
		"Links": Object{"Enclosures": refs(v.chassis()), "Enclosures@odata.count": 1},
	}
	if c.RAID != nil && c.RAID.Spares {
		o["HotspareActivationPolicy"] = "OnDriveFailure"
	}
	return o
}

func storageController(v View) Object {
	c := v.storage()
	o := controller(v, c)
	o["Name"] = c.Name
	if running := v.firmwareVersion("Storage." + c.ID); running != nil {
		o["FirmwareVersion"] = running
	}
	links := Object{}
	if c.RAID != nil {
		attached := Map(c.Volumes, func(x storage.VolumeView) Object { return Ref(v.subsystem("Volumes", x.ID)) })
		links["AttachedVolumes"], links["AttachedVolumes@odata.count"] = attached, len(attached)
	}
	for _, card := range v.Machine.Profile.Cards {
		if card.Storage == c.ID {
			functions := []Object{}
			for _, f := range v.Machine.Profile.Functions(card) {
				functions = append(functions, Ref(v.chassis("PCIeDevices", card.ID, "PCIeFunctions", f.ID)))
			}
			o["PCIeInterface"] = pcieInterface(card)
			links["PCIeFunctions"], links["PCIeFunctions@odata.count"] = functions, len(functions)
		}
	}
	o["Links"] = links
	return o
}

// controller returns the properties that StorageController and the older inline object
// share.
func controller(v View, c storage.ControllerView) Object {
	protocols, types := []string{}, []string{}
	for i := range c.Bays {
		if p := string(c.Bays[i].Protocol); !slices.Contains(protocols, p) {
			protocols = append(protocols, p)
		}
	}
	o := Object{
		"Manufacturer": c.Vendor, "Model": c.Product, "FirmwareVersion": c.Firmware, "SerialNumber": c.Serial,
		"SupportedControllerProtocols": []string{"PCIe"}, "SupportedDeviceProtocols": protocols, "Status": status("Enabled"),
	}
	if r := c.RAID; r != nil {
		types = Map(r.Types, func(t storage.TypeRule) string { return string(t.Type) })
		o["ControllerRates"] = Object{
			"RebuildRatePercent": c.Rebuild, "ConsistencyCheckRatePercent": c.Check, "TransformationRatePercent": c.Transform,
		}
		if r.CacheMiB > 0 {
			o["CacheSummary"] = Object{"TotalCacheSizeMiB": r.CacheMiB, "PersistentCacheSizeMiB": persistentCacheMiB(r), "Status": status("Enabled")}
		}
	}
	o["SupportedRAIDTypes"] = types
	return o
}

// persistentCacheMiB returns how much of a controller's cache survives a loss of power, in
// MiB.
func persistentCacheMiB(r *storage.RAID) int {
	if slices.Contains(r.Write, storage.ProtectedWriteBack) {
		return r.CacheMiB
	}
	return 0
}

var controllerPatch = Patch{
	Inputs: []Input{{Name: "ControllerRates", Kind: Group, Of: []Input{
		{Name: "RebuildRatePercent", Kind: Integer, Min: 1, Max: 100},
		{Name: "ConsistencyCheckRatePercent", Kind: Integer, Min: 1, Max: 100},
		{Name: "TransformationRatePercent", Kind: Integer, Min: 1, Max: 100},
	}}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		percent := func(name string) *int {
			n, ok := c.Values["ControllerRates/"+name].(int64)
			if !ok {
				return nil
			}
			return new(int(n))
		}
		return Result{}, c.applyStorage(ctx, storage.SetRates{
			Controller: c.View.IDs["storage"], Rebuild: percent("RebuildRatePercent"), Check: percent("ConsistencyCheckRatePercent"),
			Transform: percent("TransformationRatePercent"),
		})
	},
}

// The values of Storage.ResetToDefaults, ResetType.
const (
	resetAll        = "ResetAll"
	preserveVolumes = "PreserveVolumes"
)

var storageActions = []Action{{
	// Vendors' own actions clear foreign configurations through this one.
	Name: "Storage.ClearForeign", when: hasRAID, Hidden: true, Internal: true,
	Apply: func(ctx context.Context, c Call) (Result, error) {
		return Result{}, c.applyStorage(ctx, storage.ClearForeign{Controller: c.View.IDs["storage"]})
	},
}, {
	Name: "Storage.ResetToDefaults", when: hasRAID, SupportsApplyTime: true,
	Inputs: []Input{{Name: "ResetType", Kind: Text, Required: true, Allowed: func(View) []string { return []string{resetAll, preserveVolumes} }}},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		do := storage.ResetController{Controller: c.View.IDs["storage"], KeepVolumes: Value(c.Values, "ResetType", "") == preserveVolumes}
		if c.ApplyTime == Immediate && !queuesJobs(c.View) {
			return Result{}, c.applyStorage(ctx, do)
		}
		return c.beginStorageTask(ctx, "Reset storage controller "+do.Controller, func(job string) storage.Command { do.Task = job; return do })
	},
}}

// chassisDrives returns the collection of all drives of the server, whichever controller
// they are attached to.
func chassisDrives(v View) Object {
	drives := v.driveLinks()
	return Object{"Name": "Drives", "Members": drives, "Members@odata.count": len(drives)}
}

// driveLinks returns links to all drives that are present.
func (v View) driveLinks() []Object {
	out := []Object{}
	for _, c := range v.Machine.Storage.Controllers() {
		for _, d := range c.Drives {
			out = append(out, Ref(v.system("Storage", c.ID, "Drives", d.ID)))
		}
	}
	return out
}

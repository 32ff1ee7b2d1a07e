package redfish

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// drive is the drive that the view is of.
func (v view) drive() storage.DriveView {
	return pick(v.storage().Drives, v.ids["drive"], func(d storage.DriveView) string { return d.ID })
}

// driveStates says how a drive that does something is shown: its
// Resource.State, its StatusIndicator, and its health if it is otherwise well.
var driveStates = map[storage.DriveState]struct{ state, indicator, health string }{
	storage.DriveUnused:     {"Enabled", "OK", "OK"},
	storage.DriveOnline:     {"Enabled", "OK", "OK"},
	storage.DriveRebuilding: {"Enabled", "Rebuild", "OK"},
	storage.DriveStale:      {"StandbyOffline", "InAFailedArray", "Warning"},
	storage.DriveReserved:   {"Enabled", "OK", "OK"},
	storage.DriveSpare:      {"StandbySpare", "Hotspare", "OK"},
	storage.DriveErasing:    {"Updating", "OK", "OK"},
	storage.DriveForeign:    {"StandbyOffline", "OK", "Warning"},
	storage.DriveFailed:     {"UnavailableOffline", "Fail", "Critical"},
}

func drive(v view) object {
	c, d := v.storage(), v.drive()
	shown := driveStates[d.State]
	health := string(d.Health())
	if health == "OK" {
		health = shown.health
	}
	indicator := shown.indicator
	if d.Predicted && indicator == "OK" {
		indicator = "PredictiveFailureAnalysis"
	}
	revision := d.Revision
	if d.Original() { // its firmware can be updated
		if running, ok := v.version(d.ID).(string); ok {
			revision = running
		}
	}
	volumes := list(d.Volumes, func(id string) object { return ref(v.subsystem("Volumes", id)) })
	o := object{
		"Name": "Drive in bay " + strconv.Itoa(d.Bay), "Manufacturer": d.Vendor, "Model": d.Product, "Revision": revision,
		"FirmwareVersion": revision, "SerialNumber": d.Serial, "Protocol": string(d.Protocol), "MediaType": string(d.Media),
		"CapacityBytes": d.Capacity, "BlockSizeBytes": d.BlockSize, "FailurePredicted": d.Predicted, "StatusIndicator": indicator,
		"Status": object{"State": shown.state, "Health": health}, "LocationIndicatorActive": d.Locate, "Multipath": false,
		"EncryptionAbility": "None", "EncryptionStatus": "Unencrypted",
		"Identifiers":      []object{durableName(d)},
		"PhysicalLocation": label("Bay "+strconv.Itoa(d.Bay), "Bay", d.Bay),
		"Links": object{
			"Chassis": ref(v.chassis()), "Storage": ref(v.subsystem()), "Volumes": volumes, "Volumes@odata.count": len(volumes),
		},
		"Metrics": ref(v.uri + "/Metrics"), "Operations": driveOperations(v),
	}
	if slices.Contains(d.Sanitizes(), storage.CryptographicErase) { // it has a key to forget
		o["EncryptionAbility"], o["EncryptionStatus"] = "SelfEncryptingDrive", "Unlocked"
	}
	if c.RAID != nil && c.RAID.Spares {
		o["HotspareType"], o["HotspareReplacementMode"] = spareKind(d), "NonRevertible"
	}
	if used, ok := d.SMART(storage.PercentageUsed); ok {
		o["PredictedMediaLifeLeftPercent"] = max(0, 100-used)
	}
	if d.FormFactor != "" {
		o["DriveFormFactor"], o["SlotFormFactor"] = d.FormFactor, d.FormFactor
	}
	if d.RotationRPM > 0 {
		o["RotationSpeedRPM"] = d.RotationRPM
	}
	if d.SpeedGbps > 0 {
		o["CapableSpeedGbs"], o["NegotiatedSpeedGbs"] = d.SpeedGbps, d.SpeedGbps
	}
	return o
}

// durableName is the worldwide name of a drive: an EUI is written octet by
// octet, an NAA is not (DSP0268, Resource, "DurableNameFormat").
func durableName(d storage.DriveView) object {
	if d.Protocol != storage.NVMe {
		return object{"DurableName": d.WWN, "DurableNameFormat": "NAA"}
	}
	var octets []string
	for w := d.WWN; len(w) >= 2; w = w[2:] {
		octets = append(octets, w[:2])
	}
	return object{"DurableName": strings.Join(octets, "-"), "DurableNameFormat": "EUI"}
}

// noSpare is the HotspareType of a drive that is none.
const noSpare = "None"

func spareKind(d storage.DriveView) string {
	if d.Spare == "" {
		return noSpare
	}
	return string(d.Spare)
}

// opNames says for each kind of work which operation it is (DSP2046,
// Volume.OperationType).
var opNames = map[storage.OpKind]string{
	storage.OpRebuild:    "Rebuild",
	storage.OpInitialize: "Initialize",
	storage.OpCheck:      "CheckConsistency",
	storage.OpExpand:     "Resize",
	storage.OpErase:      "Sanitize",
}

// driveOperations is the Operations property of a drive.
func driveOperations(v view) []object {
	all := []object{}
	if o := v.drive().Op; o != nil {
		op := object{"Operation": opNames[o.Kind], "PercentageComplete": o.Percent(v.now)}
		if slices.Contains(things["task"](v), o.Task) {
			op["AssociatedTask"] = ref(taskURI(o.Task))
		}
		all = append(all, op)
	}
	return all
}

// spareKinds are what a drive can be made by itself. One that stands by for
// some volumes only is made that by those.
func spareKinds(view) []string { return []string{noSpare, string(storage.GlobalSpare)} }

var drivePatch = patch{
	inputs: []input{
		{name: "LocationIndicatorActive", kind: boolean},
		{name: "HotspareType", kind: text, values: spareKinds},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		v, d := c.view, c.view.drive()
		kind, sent := c.set["HotspareType"].(string)
		var bad []refusal
		switch raid := v.storage().RAID; {
		case !sent || kind == spareKind(d):
		case raid == nil || !raid.Spares:
			bad = append(bad, refusal{path: []string{"HotspareType"}, why: unknown})
		default:
			var do storage.Command = storage.UnassignSpare{Controller: d.Controller, Drive: d.ID}
			if kind != noSpare {
				do = storage.AssignSpare{Controller: d.Controller, Drive: d.ID}
			}
			if err := c.disk(ctx, do); err != nil {
				return reply{}, err
			}
		}
		if on, ok := c.set["LocationIndicatorActive"].(bool); ok {
			if err := c.disk(ctx, storage.SetIndicator{Drive: d.ID, On: on}); err != nil {
				return reply{}, err
			}
		} else if len(bad) > 0 {
			return reply{}, decline(http.StatusBadRequest, bad[0].ofProperty())
		}
		return reply{bad: bad}, nil
	},
}

func sanitizations(v view) []string {
	d := v.drive()
	return texts(d.Sanitizes())
}

func driveResets(view) []string { return []string{"ForceRestart", "PowerCycle"} }

func resetsDrive(v view) bool {
	d := v.drive()
	return d.Model != nil && d.Resets()
}

var driveActions = []action{
	{
		name: "Drive.SecureErase", defers: true,
		inputs: []input{
			{name: "SanitizationType", kind: text, values: sanitizations},
			{name: "OverwritePasses", kind: integer, max: storage.MaxPasses}, // 0: as many as it takes,
		},
		apply: func(ctx context.Context, c operation) (reply, error) {
			do := storage.SecureErase{
				Drive: c.view.ids["drive"], Way: storage.Sanitize(value(c.set, "SanitizationType", "")),
				Passes: int(value(c.set, "OverwritePasses", int64(0))),
			}
			return c.diskJob(ctx, "Erase drive "+do.Drive, func(job string) storage.Command { do.Task = job; return do })
		},
	},
	{
		name: "Drive.Reset", when: resetsDrive,
		inputs: []input{{name: "ResetType", kind: text, values: driveResets}},
		apply: func(ctx context.Context, c operation) (reply, error) {
			do := storage.ResetDrive{Drive: c.view.ids["drive"], Power: value(c.set, "ResetType", "") == "PowerCycle"}
			return reply{}, c.disk(ctx, do)
		},
	},
}

// metrics says which attribute of a drive each property of DriveMetrics is.
var metrics = []struct {
	property  string
	attribute storage.Attribute
}{
	{"PowerOnHours", storage.PowerOnHours},
	{"BadBlockCount", storage.Reallocated},
	{"CorrectableIOReadErrorCount", storage.Corrected},
	{"UncorrectableIOReadErrorCount", storage.Uncorrectable},
	{"UncorrectableIOWriteErrorCount", storage.WriteErrors},
	{"ReadIOKiBytes", storage.ReadKiB},
	{"WriteIOKiBytes", storage.WrittenKiB},
}

// dataUnitKiB is what NVMe drives count in: a thousand blocks of 512 bytes
// (NVMe 2.0, §5.16.1.3, "Data Units Read").
const dataUnitKiB = 500

func driveMetrics(v view) object {
	d := v.drive()
	o := object{"Name": "Metrics of drive " + d.ID}
	smart := func(a storage.Attribute) int64 {
		n, _ := d.SMART(a)
		return n
	}
	for _, m := range metrics {
		o[m.property] = smart(m.attribute)
	}
	if d.Protocol == storage.NVMe {
		spare := smart(storage.AvailableSpare)
		o["NVMeSMART"] = object{
			"CompositeTemperatureCelsius": smart(storage.Temperature), "PercentageUsed": smart(storage.PercentageUsed),
			"AvailableSparePercent": spare, "AvailableSpareThresholdPercent": storage.SpareThreshold,
			"PowerCycles": smart(storage.PowerCycles), "PowerOnHours": smart(storage.PowerOnHours),
			"UnsafeShutdowns": smart(storage.UnsafeShutdowns), "MediaAndDataIntegrityErrors": smart(storage.Uncorrectable),
			"DataUnitsRead": smart(storage.ReadKiB) / dataUnitKiB, "DataUnitsWritten": smart(storage.WrittenKiB) / dataUnitKiB,
			"CriticalWarnings": object{
				"SpareCapacityWornOut": spare < storage.SpareThreshold, "MediaInReadOnly": false, "PowerBackupFailed": false,
				"OverallSubsystemDegraded": d.Predicted, "PMRUnreliable": false,
			},
		}
	}
	return o
}

package resource

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

// drive returns the drive that the view addresses.
func (v View) drive() storage.DriveView {
	return Find(v.storage().Drives, v.IDs["drive"], func(d storage.DriveView) string { return d.ID })
}

// driveStates maps the state of a drive to its Status.State, its
// StatusIndicator, and its Status.Health unless the drive itself reports a worse
// one.
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

func drive(v View) Object {
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
	if d.Original() { // the inventory has its firmware
		if running, ok := v.firmwareVersion(d.ID).(string); ok {
			revision = running
		}
	}
	volumes := Map(d.Volumes, func(id string) Object { return Ref(v.subsystem("Volumes", id)) })
	o := Object{
		"Name": "Drive in bay " + strconv.Itoa(d.Bay), "Manufacturer": d.Vendor, "Model": d.Product, "Revision": revision,
		"FirmwareVersion": revision, "SerialNumber": d.Serial, "Protocol": string(d.Protocol), "MediaType": string(d.Media),
		"CapacityBytes": d.Capacity, "BlockSizeBytes": d.BlockSize, "FailurePredicted": d.Predicted, "StatusIndicator": indicator,
		"Status": Object{"State": shown.state, "Health": health}, "LocationIndicatorActive": d.Locate, "Multipath": false,
		"EncryptionAbility": "None", "EncryptionStatus": "Unencrypted",
		"Identifiers":      []Object{durableName(d)},
		"PhysicalLocation": partLocation("Bay "+strconv.Itoa(d.Bay), "Bay", d.Bay),
		"Links": Object{
			"Chassis": Ref(v.chassis()), "Storage": Ref(v.subsystem()), "Volumes": volumes, "Volumes@odata.count": len(volumes),
		},
		"Metrics": Ref(v.URI + "/Metrics"), "Operations": driveOperations(v),
	}
	if slices.Contains(d.Sanitizes(), storage.CryptographicErase) { // it encrypts with a key that it can erase
		o["EncryptionAbility"], o["EncryptionStatus"] = "SelfEncryptingDrive", "Unlocked"
	}
	if c.RAID != nil && c.RAID.Spares {
		o["HotspareType"], o["HotspareReplacementMode"] = hotspareType(d), "NonRevertible"
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

// durableName returns the worldwide name of a drive as a durable name: an EUI
// has hyphens between octets, an NAA has none (DSP0268, Resource,
// "DurableNameFormat").
func durableName(d storage.DriveView) Object {
	if d.Protocol != storage.NVMe {
		return Object{"DurableName": d.WWN, "DurableNameFormat": "NAA"}
	}
	var octets []string
	for w := d.WWN; len(w) >= 2; w = w[2:] {
		octets = append(octets, w[:2])
	}
	return Object{"DurableName": strings.Join(octets, "-"), "DurableNameFormat": "EUI"}
}

// noHotspare is the HotspareType of a drive that is not a spare.
const noHotspare = "None"

func hotspareType(d storage.DriveView) string {
	if d.Spare == "" {
		return noHotspare
	}
	return string(d.Spare)
}

// operationTypes maps storage operations to Volume.OperationType (DSP2046).
var operationTypes = map[storage.OpKind]string{
	storage.OpRebuild:    "Rebuild",
	storage.OpInitialize: "Initialize",
	storage.OpCheck:      "CheckConsistency",
	storage.OpExpand:     "Resize",
	storage.OpErase:      "Sanitize",
}

// driveOperations returns the Operations property of a drive.
func driveOperations(v View) []Object {
	all := []Object{}
	if o := v.drive().Op; o != nil {
		op := Object{"Operation": operationTypes[o.Kind], "PercentageComplete": o.Percent(v.Now)}
		if slices.Contains(Members["task"](v), o.Task) {
			op["AssociatedTask"] = Ref(TaskURI(o.Task))
		}
		all = append(all, op)
	}
	return all
}

// hotspareTypes returns the values of HotspareType that a PATCH of a drive accepts.
// Links.DedicatedSpareDrives of a volume sets Dedicated.
func hotspareTypes(View) []string { return []string{noHotspare, string(storage.GlobalSpare)} }

var drivePatch = Patch{
	Inputs: []Input{
		{Name: "LocationIndicatorActive", Kind: Boolean},
		{Name: "HotspareType", Kind: Text, Allowed: hotspareTypes},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		v, d := c.View, c.View.drive()
		kind, sent := c.Values["HotspareType"].(string)
		var bad []InputError
		switch raid := v.storage().RAID; {
		case !sent || kind == hotspareType(d):
		case raid == nil || !raid.Spares:
			bad = append(bad, InputError{Path: []string{"HotspareType"}, Problem: Unknown})
		default:
			var do storage.Command = storage.UnassignSpare{Controller: d.Controller, Drive: d.ID}
			if kind != noHotspare {
				do = storage.AssignSpare{Controller: d.Controller, Drive: d.ID}
			}
			if err := c.applyStorage(ctx, do); err != nil {
				return Result{}, err
			}
		}
		if on, ok := c.Values["LocationIndicatorActive"].(bool); ok {
			if err := c.applyStorage(ctx, storage.SetIndicator{Drive: d.ID, On: on}); err != nil {
				return Result{}, err
			}
		} else if len(bad) > 0 {
			return Result{}, Reject(http.StatusBadRequest, bad[0].PropertyMessage())
		}
		return Result{InputErrors: bad}, nil
	},
}

func sanitizations(v View) []string {
	d := v.drive()
	return Texts(d.Sanitizes())
}

func driveResets(View) []string { return []string{"ForceRestart", "PowerCycle"} }

func resetsDrive(v View) bool {
	d := v.drive()
	return d.Model != nil && d.Resets()
}

var driveActions = []Action{
	{
		Name: "Drive.SecureErase", SupportsApplyTime: true,
		Inputs: []Input{
			{Name: "SanitizationType", Kind: Text, Allowed: sanitizations},
			{Name: "OverwritePasses", Kind: Integer, Max: storage.MaxPasses}, // 0: as many as it takes,
		},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			do := storage.SecureErase{
				Drive: c.View.IDs["drive"], Way: storage.Sanitize(Value(c.Values, "SanitizationType", "")),
				Passes: int(Value(c.Values, "OverwritePasses", int64(0))),
			}
			return c.beginStorageTask(ctx, "Erase drive "+do.Drive, func(job string) storage.Command { do.Task = job; return do })
		},
	},
	{
		Name: "Drive.Reset", when: resetsDrive,
		Inputs: []Input{{Name: "ResetType", Kind: Text, Allowed: driveResets}},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			do := storage.ResetDrive{Drive: c.View.IDs["drive"], Power: Value(c.Values, "ResetType", "") == "PowerCycle"}
			return Result{}, c.applyStorage(ctx, do)
		},
	},
}

// driveMetricAttributes maps properties of DriveMetrics to drive attributes.
var driveMetricAttributes = []struct {
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

// dataUnitKiB is the size of an NVMe data unit in KiB: a thousand blocks of 512
// bytes (NVMe 2.0, §5.16.1.3, "Data Units Read").
const dataUnitKiB = 500

func driveMetrics(v View) Object {
	d := v.drive()
	o := Object{"Name": "Metrics of drive " + d.ID}
	smart := func(a storage.Attribute) int64 {
		n, _ := d.SMART(a)
		return n
	}
	for _, m := range driveMetricAttributes {
		o[m.property] = smart(m.attribute)
	}
	if d.Protocol == storage.NVMe {
		spare := smart(storage.AvailableSpare)
		o["NVMeSMART"] = Object{
			"CompositeTemperatureCelsius": smart(storage.Temperature), "PercentageUsed": smart(storage.PercentageUsed),
			"AvailableSparePercent": spare, "AvailableSpareThresholdPercent": storage.SpareThreshold,
			"PowerCycles": smart(storage.PowerCycles), "PowerOnHours": smart(storage.PowerOnHours),
			"UnsafeShutdowns": smart(storage.UnsafeShutdowns), "MediaAndDataIntegrityErrors": smart(storage.Uncorrectable),
			"DataUnitsRead": smart(storage.ReadKiB) / dataUnitKiB, "DataUnitsWritten": smart(storage.WrittenKiB) / dataUnitKiB,
			"CriticalWarnings": Object{
				"SpareCapacityWornOut": spare < storage.SpareThreshold, "MediaInReadOnly": false, "PowerBackupFailed": false,
				"OverallSubsystemDegraded": d.Predicted, "PMRUnreliable": false,
			},
		}
	}
	return o
}

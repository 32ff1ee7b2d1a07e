package irmc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
)

const (
	bios     = systems + "/Bios"
	settings = bios + "/Settings"
	volumes  = systems + "/Storage/{storage}/Volumes"
	slots    = systems + "/VirtualMedia"
	task     = "/redfish/v1/TaskService/Tasks/{task}"
	reset    = systems + "/Actions/ComputerSystem.Reset"
)

// resetKinds maps the values of the OEM reset to reset types [V] collection:
// irmc_powerstate.
var resetKinds = []struct{ is, means string }{
	{"PowerOn", "On"}, {"PowerOff", "ForceOff"}, {"PowerCycle", "PowerCycle"}, {"GracefulPowerOff", "GracefulShutdown"},
	{"ImmediateReset", "ForceRestart"}, {"GracefulReset", "GracefulRestart"}, {"PulseNmi", "Nmi"}, {"PressPowerButton", "PushPowerButton"},
}

// extensions returns the OEM resources and actions that provisioning uses. A real iRMC
// also has attributes (iRMCConfiguration/Attributes), OEM certificates, SCCI, and
// updates by FWUpdate and TFTP; here SimpleUpdate updates the firmware.
func extensions(n names) dialect.OEM {
	oem := systems + "/Oem/" + n.oem
	media := oem + "/VirtualMedia"
	typed := func(name string) string { return n.prefix + name + ".v1_0_0." + n.prefix + name }
	override := func(enabled string) []dialect.Effect {
		return []dialect.Effect{
			{When: map[string][]string{"": {"None"}}, Requests: []dialect.StandardRequest{{Method: "PATCH", URI: systems, Body: map[string]any{
				"Boot": map[string]any{"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}}}}},
			{Requests: []dialect.StandardRequest{{Method: "PATCH", URI: systems, Body: map[string]any{
				"Boot": map[string]any{"BootSourceOverrideTarget": "$", "BootSourceOverrideEnabled": enabled}}}}},
		}
	}
	enable := func(enabled string) []dialect.StandardRequest {
		return []dialect.StandardRequest{{Method: "PATCH", URI: systems, Body: map[string]any{"Boot": map[string]any{"BootSourceOverrideEnabled": enabled}}}}
	}
	o := dialect.OEM{
		Resources: []dialect.Resource{
			// [V] collection: irmc_eventlog, irmc_facts.
			{URI: oem + "/System", Type: typed("System"), Name: "System", Set: []dialect.PropertyRule{
				{Path: "AssetTag", From: systems + "#AssetTag"}, {Path: "Model", From: systems + "#Model"}, {Path: "SerialNumber", From: systems + "#SerialNumber"},
			}},
			{URI: oem + "/FirmwareInventory", Type: typed("FirmwareInventory"), Name: "Firmware Inventory", Set: []dialect.PropertyRule{
				{Path: "SystemBIOS", From: systems + "#BiosVersion"}, {Path: "BMCFirmware", From: "/redfish/v1/Managers/{manager}#FirmwareVersion"},
			}},
			// [V] provider: resource_boot_source_override.go.
			{URI: oem + "/BootConfig", Type: typed("BootConfig"), Name: "Boot Configuration", Set: []dialect.PropertyRule{
				{Path: "BootDevice", From: systems + "#Boot/BootSourceOverrideTarget"},
				{Path: "NextBootOnlyEnabled", From: systems + "#Boot/BootSourceOverrideEnabled", Map: map[string]any{"Once": true}, Value: false},
				{Path: "BootDevice@Redfish.AllowableValues", Value: []any{"None", "Pxe", "Cd", "Hdd", "BiosSetup"}},
			}},
			// [V] collection: irmc_setvm, irmc_getvm.
			{URI: media, Type: typed("VirtualMedia"), Name: "Virtual Media", Set: []dialect.PropertyRule{
				{Path: "RemoteMountEnabled", Value: true},
				{Path: "CDImage", Value: image()}, {Path: "HDImage", Value: image()},
			}, Writable: []string{"RemoteMountEnabled", "CDImage/*", "HDImage/*"}},
			// [V] provider: storage_volume_helpers.go.
			{URI: systems + "/Storage/{storage}/Oem/" + n.oem + "/RAIDCapabilities", Type: typed("RAIDCapabilities"), Name: "RAID Capabilities", Read: raidCapabilities},
			// [V] provider: task.go; [K] for the content of the log.
			{URI: task + "/Oem/" + n.oem + "/Logs", Type: typed("TaskLogs"), Name: "Logs", Set: []dialect.PropertyRule{{Path: "Entries", From: task + "#Messages"}}},
			// [V] provider: common_bios.go: the settings resource has the pending settings,
			// or, while none is pending, all that can be written.
			{URI: settings, Type: "Bios.v1_2_3.Bios", BasedOn: settings, PassedMethods: []string{"PATCH", "DELETE"}, Read: writableSettings},
		},
		Actions: []dialect.Action{
			{ResourceURI: systems, Name: n.prefix + "ComputerSystem.Reset", Parameters: []dialect.Parameter{{Name: n.prefix + "ResetType", Required: true}}},
			{ // [V] collection: irmc_connectvm. The allowable values are not shown.
				ResourceURI: systems, Name: n.prefix + "ComputerSystem.VirtualMedia",
				Parameters: []dialect.Parameter{{Name: n.prefix + "VirtualMediaAction", Required: true, AllowableValues: []string{"ConnectCD", "DisconnectCD", "ConnectHD", "DisconnectHD"}}},
				Effects:    []dialect.Effect{{Hook: mount(n)}},
			},
			{ // [V] provider: storage_volume_helpers.go, getNewVolumeConfigFromPlan.
				ResourceURI: volumes, Name: "VolumeCollection.Create", Target: "/", Hidden: true,
				Parameters: []dialect.Parameter{
					{Name: "Name"}, {Name: "RAIDType"}, {Name: "CapacityBytes", Type: dialect.IntegerParameter}, {Name: "PhysicalDisks", Type: dialect.ArrayParameter},
					{Name: "InitMode", AllowableValues: []string{"None", "Fast", "Normal"}}, {Name: "OptimumIOSizeBytes", Type: dialect.IntegerParameter},
					{Name: "ReadMode", AllowableValues: []string{"NoReadAhead", "ReadAhead", "Adaptive"}},
					{Name: "WriteMode", AllowableValues: []string{"WriteThrough", "WriteBack", "AlwaysWriteBack"}},
					{Name: "DriveCacheMode", AllowableValues: []string{"Enabled", "Disabled", "Unchanged"}},
					// A standard body is accepted as well.
					{Name: "DisplayName"}, {Name: "StripSizeBytes", Type: dialect.IntegerParameter}, {Name: "Links", Type: dialect.ObjectParameter}, {Name: "VolumeType"},
					{Name: "InitializeMethod"}, {Name: "ReadCachePolicy"}, {Name: "WriteCachePolicy"}, {Name: "MediaSpanCount", Type: dialect.IntegerParameter},
					{Name: "Encrypted", Type: dialect.BooleanParameter}, {Name: "@Redfish.OperationApplyTime"},
				},
				Effects: []dialect.Effect{{Hook: createVolume}},
			},
		},
		WritableProperties: []dialect.WritableProperty{
			{ResourceType: n.prefix + "BootConfig", Path: "BootDevice", Effects: override("Once")},
			{ResourceType: n.prefix + "BootConfig", Path: "NextBootOnlyEnabled", Type: dialect.BooleanParameter, Effects: []dialect.Effect{
				{When: map[string][]string{"": {"true"}}, Requests: enable("Once")}, {Requests: enable("Continuous")},
			}},
		},
	}
	power := &o.Actions[0]
	for _, k := range resetKinds {
		power.Parameters[0].AllowableValues = append(power.Parameters[0].AllowableValues, k.is)
		power.Effects = append(power.Effects, dialect.Effect{
			When:     map[string][]string{n.prefix + "ResetType": {k.is}},
			Requests: []dialect.StandardRequest{{Method: "POST", URI: reset, Body: map[string]any{"ResetType": k.means}}},
		})
	}
	o.Resources = append(o.Resources, profiles()...)
	o.Actions = append(o.Actions, profileActions()...)
	return o
}

func image() map[string]any {
	return map[string]any{
		"MaximumNumberOfDevices": 1, "ShareType": "NFS", "Server": "", "ShareName": "", "ImageName": "", "UserName": "", "UserDomain": "", "UsbAttachMode": "AutoAttach",
	}
}

// mount inserts the image that the OEM resource of virtual media names. Images are
// fetched by HTTP and HTTPS: an NFS or SMB share is rejected.
func mount(n names) func(dialect.ActionCall) (dialect.Effect, error) {
	return func(c dialect.ActionCall) (dialect.Effect, error) {
		action, _ := c.Body[n.prefix+"VirtualMediaAction"].(string)
		verb, kind := action[:len(action)-2], action[len(action)-2:]
		slot := slots + "/" + map[string]string{"CD": "0", "HD": "1"}[kind]
		if verb == "Disconnect" {
			return dialect.Effect{Requests: []dialect.StandardRequest{{Method: "POST", URI: slot + "/Actions/VirtualMedia.EjectMedia"}}}, nil
		}
		at := strings.ReplaceAll(systems, "{system}", c.Variables["system"]) + "/Oem/" + n.oem + "/VirtualMedia"
		set, _ := c.Stored[at].(map[string]any)
		is := func(name string) string { s, _ := set[kind+"Image/"+name].(string); return s }
		if is("Server") == "" || is("ImageName") == "" {
			return dialect.Effect{}, &dialect.Rejection{Status: 409, Message: baseMessage("ResourceNotReadyRetry", "No image is configured.")}
		}
		scheme := strings.ToLower(is("ShareType"))
		if scheme == "" {
			scheme = "nfs"
		}
		url := scheme + "://" + is("Server") + "/" + strings.Trim(is("ShareName"), "/") + "/" + is("ImageName")
		body := map[string]any{"Image": strings.Replace(url, is("Server")+"//", is("Server")+"/", 1)}
		if user := is("UserName"); user != "" {
			body["UserName"] = user
		}
		return dialect.Effect{Requests: []dialect.StandardRequest{{Method: "POST", URI: slot + "/Actions/VirtualMedia.InsertMedia", Body: body}}}, nil
	}
}

// raidCapabilities returns the RAID types that a controller supports.
func raidCapabilities(l dialect.HookContext) map[string]any {
	c, _ := l.Machine.Storage.Controller(l.Variables["storage"])
	levels := []any{}
	if c.RAID != nil {
		for _, t := range c.RAID.Types {
			level := map[string]any{
				"RAIDType": string(t.Type), "StripeSizes": c.RAID.Strips, "MinimumDriveCount": t.Min, "MaximumDriveCount": t.Max,
				"SupportedInitMode": []any{"None", "Fast", "Normal"}, "SupportedReadMode": []any{"NoReadAhead", "ReadAhead"},
				"SupportedWriteMode": []any{"WriteThrough", "WriteBack", "AlwaysWriteBack"}, "SupportedDriveCacheMode": []any{"Unchanged"},
			}
			if t.Type.Nested() {
				level["MinimumSpanCount"], level["MaximumSpanCount"] = 2, t.MaxSpans
				level["MinimumDriveCount"], level["MaximumDriveCount"] = 2*t.Min, t.MaxSpans*t.Max
			}
			levels = append(levels, level)
		}
	}
	return map[string]any{"RAIDLevels": levels}
}

// writableSettings returns the content of the settings resource while no setting is
// pending.
func writableSettings(l dialect.HookContext) map[string]any {
	if l.Machine.Firmware.Pending() != nil || l.Machine.Profile.Firmware.Model == nil {
		return nil
	}
	all, _ := l.Standard(strings.ReplaceAll(bios, "{system}", l.Variables["system"]))["Attributes"].(map[string]any)
	out := map[string]any{}
	for _, a := range l.Machine.Profile.Firmware.Model.Registry().Attributes {
		if v, ok := all[a.Name]; ok && !a.ReadOnly && a.Type != firmware.PasswordType {
			out[a.Name] = v
		}
	}
	return map[string]any{"Attributes": out}
}

// Volume policies, from the OEM values to the standard's.
var (
	reads  = map[string]string{"NoReadAhead": "Off", "ReadAhead": "ReadAhead", "Adaptive": "AdaptiveReadAhead"}
	writes = map[string]string{"WriteThrough": "WriteThrough", "WriteBack": "ProtectedWriteBack", "AlwaysWriteBack": "UnprotectedWriteBack"}
	inits  = map[string]string{"None": "Skip", "Fast": "Background", "Normal": "Foreground"}
)

// createVolume translates a volume in the vendor's properties into a POST to the
// standard collection of volumes. Drives are named by enclosure and slot, "0-3", or
// by slot; each group of drives is a span.
func createVolume(c dialect.ActionCall) (dialect.Effect, error) {
	body := map[string]any{}
	for name, v := range c.Body {
		to, words := name, map[string]string(nil)
		switch name {
		case "ReadMode":
			to, words = "ReadCachePolicy", reads
		case "WriteMode":
			to, words = "WriteCachePolicy", writes
		case "InitMode":
			to, words = "InitializeMethod", inits
		case "OptimumIOSizeBytes":
			to = "StripSizeBytes"
		case "PhysicalDisks", "DriveCacheMode":
			continue
		}
		if is, ok := v.(string); ok && words[is] != "" {
			v = words[is]
		}
		body[to] = v
	}
	groups, _ := c.Body["PhysicalDisks"].([]any)
	var links []any
	for _, g := range groups {
		group, _ := g.(map[string]any)
		disks, _ := group["Group"].([]any)
		for _, d := range disks {
			place := fmt.Sprint(d)
			slot := place[strings.LastIndexByte(place, '-')+1:]
			links = append(links, drive(c, slot))
		}
		if len(groups) > 1 {
			body["MediaSpanCount"] = len(disks)
		}
	}
	if len(groups) > 0 {
		body["Links"] = map[string]any{"Drives": links}
	}
	return dialect.Effect{Requests: []dialect.StandardRequest{{Method: "POST", URI: volumes, Body: body}}}, nil
}

// drive returns a link to the standard resource of a drive of the controller whose
// action is called.
func drive(c dialect.ActionCall, slot string) map[string]any {
	return map[string]any{"@odata.id": strings.NewReplacer("{system}", c.Variables["system"], "{storage}", c.Variables["storage"]).Replace(drives) + "/Disk." + slot}
}

// unusedDrives returns the bays of the drives of a controller that are in no
// volume.
func unusedDrives(c storage.ControllerView) []string {
	var out []string
	for _, d := range c.Drives {
		if len(d.Volumes) == 0 && d.Spare == "" {
			out = append(out, d.ID)
		}
	}
	return slices.Clip(out)
}

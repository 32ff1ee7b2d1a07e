package ibmc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

const (
	insertMedia = systems + "/VirtualMedia/{slot}/Actions/VirtualMedia.InsertMedia"
	ejectMedia  = systems + "/VirtualMedia/{slot}/Actions/VirtualMedia.EjectMedia"
	resetSystem = systems + "/Actions/ComputerSystem.Reset"
	vmmControl  = "VirtualMedia.VmmControl"
	fruControl  = "ComputerSystem.FruControl"
)

// extensions returns the OEM resources and actions that provisioning uses. A real iBMC
// also imports and exports configuration files, collects logs into files, and has Smart
// Provisioning and OEM resources of NTP, SNMP, SMTP and syslog.
func extensions() dialect.OEM {
	return dialect.OEM{Actions: []dialect.Action{
		{
			// [V] cmdlets: Deploy.ps1; collection: api_deploy_os_by_service_cd.py. An
			// image on NFS or CIFS is accepted, and its task fails: only HTTPS is
			// implemented.
			ResourceURI: "/redfish/v1/Managers/{manager}/VirtualMedia/{slot}",
			Name:        vmmControl, Target: "/Oem/Huawei/Actions/" + vmmControl, Hidden: true, // presentation.go shows it
			Parameters: []dialect.Parameter{
				{Name: "VmmControlType", Required: true, AllowableValues: []string{"Connect", "Disconnect"}}, {Name: "Image", Secret: true},
			},
			Effects: []dialect.Effect{
				{When: map[string][]string{"VmmControlType": {"Connect"}}, Task: "vmm connect task",
					Requests: []dialect.StandardRequest{{Method: "POST", URI: insertMedia, Body: map[string]any{"Image": "$Image"}}}},
				{When: map[string][]string{"VmmControlType": {"Disconnect"}}, Task: "vmm disconnect task",
					Requests: []dialect.StandardRequest{{Method: "POST", URI: ejectMedia}}},
			},
		},
		{
			// [V] cmdlets: PowerControl.ps1.
			ResourceURI: systems, Name: fruControl, Target: "/Actions/Oem/Huawei/" + fruControl, Hidden: true,
			Parameters: []dialect.Parameter{
				{Name: "FruControlType", Required: true, AllowableValues: []string{"On", "GracefulShutdown", "ForceRestart", "Nmi", cycle}},
				{Name: "FruID", Type: dialect.IntegerParameter},
			},
			Effects: []dialect.Effect{
				{When: map[string][]string{"FruControlType": {cycle}},
					Requests: []dialect.StandardRequest{{Method: "POST", URI: resetSystem, Body: map[string]any{"ResetType": "PowerCycle"}}}},
				{Requests: []dialect.StandardRequest{{Method: "POST", URI: resetSystem, Body: map[string]any{"ResetType": "$FruControlType"}}}},
			},
		},
		{
			// [V] client: volume.py.
			ResourceURI: systems + "/Storages/{storage}/Volumes",
			Name:        "VolumeCollection.Create", Target: "/", Hidden: true,
			Parameters: []dialect.Parameter{
				{Name: "CapacityBytes", Type: dialect.IntegerParameter}, {Name: "OptimumIOSizeBytes", Type: dialect.IntegerParameter},
				{Name: oem + "/VolumeName"}, {Name: oem + "/VolumeRaidLevel"}, {Name: oem + "/Drives", Type: dialect.ArrayParameter},
				{Name: oem + "/SpanNumber", Type: dialect.IntegerParameter},
				{Name: oem + "/DefaultReadPolicy", AllowableValues: []string{"NoReadAhead", "ReadAhead"}},
				{Name: oem + "/DefaultWritePolicy", AllowableValues: []string{"WriteThrough", "WriteBackWithBBU", "WriteBack"}},
				{Name: oem + "/DefaultCachePolicy", AllowableValues: []string{"CachedIO", "DirectIO"}},
				{Name: oem + "/AccessPolicy", AllowableValues: []string{"ReadWrite", "ReadOnly", "Blocked"}},
				{Name: oem + "/InitializationMode", AllowableValues: []string{"UnInit", "QuickInit", "FullInit"}},
				{Name: oem + "/DriveCachePolicy", AllowableValues: []string{"Unchanged", "Enabled", "Disabled"}},
				// A standard body is accepted as well [K].
				{Name: "RAIDType"}, {Name: "Name"}, {Name: "DisplayName"}, {Name: "StripSizeBytes", Type: dialect.IntegerParameter},
				{Name: "Links", Type: dialect.ObjectParameter}, {Name: "VolumeType"}, {Name: "InitializeMethod"},
				{Name: "ReadCachePolicy"}, {Name: "WriteCachePolicy"}, {Name: "MediaSpanCount", Type: dialect.IntegerParameter},
			},
			Effects: []dialect.Effect{{Hook: createVolume}},
		},
	}}
}

// Volume policies, from the OEM values to the standard's.
var (
	reads  = map[string]string{"NoReadAhead": "Off", "ReadAhead": "ReadAhead"}
	writes = map[string]string{"WriteThrough": "WriteThrough", "WriteBackWithBBU": "ProtectedWriteBack", "WriteBack": "UnprotectedWriteBack"}
	inits  = map[string]string{"UnInit": "Skip", "QuickInit": "Background", "FullInit": "Foreground"}
)

// createVolume translates a volume in the vendor's properties into a POST to the
// standard collection of volumes.
func createVolume(c dialect.ActionCall) (dialect.Effect, error) {
	body := map[string]any{}
	for name, v := range c.Body {
		body[name] = v
	}
	group, _ := c.Body["Oem"].(map[string]any)
	huawei, is := group["Huawei"].(map[string]any)
	delete(body, "Oem")
	if is {
		rename := func(from, to string, words map[string]string) {
			if v, ok := huawei[from]; ok {
				if is, ok := v.(string); ok && words[is] != "" {
					v = words[is]
				}
				body[to] = v
			}
		}
		rename("VolumeName", "Name", nil)
		rename("VolumeRaidLevel", "RAIDType", nil)
		rename("DefaultReadPolicy", "ReadCachePolicy", reads)
		rename("DefaultWritePolicy", "WriteCachePolicy", writes)
		rename("InitializationMode", "InitializeMethod", inits)
		at := strings.NewReplacer("{system}", c.Variables["system"], "{storage}", c.Variables["storage"]).Replace(storage + "/{storage}/Drives/Disk.")
		var links []any
		all, _ := huawei["Drives"].([]any)
		for _, n := range all {
			links = append(links, map[string]any{"@odata.id": at + fmt.Sprint(n)})
			if c.Standard(at+fmt.Sprint(n)) == nil {
				return dialect.Effect{}, &dialect.Rejection{Args: []string{fmt.Sprint(all)}, Message: vendorMessage("PhysicalDiskIdInvalid", // [V] client: create-volume-task-exception-response.json
					"The value %1 of the property Oem/Huawei/Drives has the ID of a drive that there is not.")}
			}
		}
		body["Links"] = map[string]any{"Drives": links}
		if spans, err := strconv.Atoi(fmt.Sprint(huawei["SpanNumber"])); err == nil && spans > 1 && len(all)%spans == 0 {
			body["MediaSpanCount"] = len(all) / spans
		}
	}
	if v, ok := body["OptimumIOSizeBytes"]; ok { // here the size of a strip
		body["StripSizeBytes"] = v
		delete(body, "OptimumIOSizeBytes")
	}
	return dialect.Effect{Requests: []dialect.StandardRequest{{Method: "POST", URI: volumes, Body: body}}}, nil
}

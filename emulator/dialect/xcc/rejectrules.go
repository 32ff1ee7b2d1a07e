package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

func vendorMessage(key, text, resolution string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.12.1", Key: key, Text: text, Resolution: resolution}
}

var (
	unknown     = vendorMessage("PropertyUnknown", "The property %1 is not one that this resource has.", "Leave the property out.")
	notWritable = vendorMessage("PropertyNotWritable", "The property %1 cannot be written.", "Leave the property out.")
)

// rejectRules are the RejectRules of both generations.
var rejectRules = []dialect.RejectRule{
	// Only EXT accepts images [V: reference; scripts, which skip all other members; K for
	// the message].
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/RDOC{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/Remote{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	// [V: mockup, which has neither]
	{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot/HttpBootUri", "Boot/AliasBootOrder"}, Message: unknown},
	// The one apply time that the system offers for its settings [V: mockup].
	{
		ResourceType: "ComputerSystem", URI: pending, Method: "PATCH", NotOneOf: map[string][]string{"@Redfish.SettingsApplyTime/ApplyTime": {"OnReset"}},
		Message: vendorMessage("PropertyValueNotInList", "The value %2 for the property %1 is not in the list of acceptable values.", "Send OnReset."),
	},
}

// inputAliases accept the apply time of the pending boot order, and translate a POST of a
// volume: cache policies have Lenovo's names, and
// other OEM properties are ignored [V: scripts,
// lenovo_create_raid_volume.py, which has both names for each policy].
var inputAliases = []dialect.InputAlias{
	{ResourceType: "ComputerSystem", URI: pending, Method: "PATCH", Path: "@Redfish.SettingsApplyTime", To: dialect.Discard},
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/ReadPolicy", To: "ReadCachePolicy", Values: map[string]any{"NoReadAhead": "Off"}},
	{
		ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/WritePolicy", To: "WriteCachePolicy",
		Values: map[string]any{"AlwaysWriteBack": "UnprotectedWriteBack", "WriteBackWithBBU": "ProtectedWriteBack", "WriteBack": "ProtectedWriteBack"},
	},
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem", To: dialect.Discard}, // IOPolicy, AccessPolicy, DriveCachePolicy
}

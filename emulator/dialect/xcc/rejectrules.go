package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

func vendorMessage(key, text, resolution string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.12.1", Key: key, Text: text, Resolution: resolution}
}

var (
	unknown     = vendorMessage("PropertyUnknown", "The property %1 is not one that this resource has.", "Leave the property out.")
	notWritable = vendorMessage("PropertyNotWritable", "The property %1 cannot be written.", "Leave the property out.")
)

// rejectRules are what an XCC rejects.
var rejectRules = []dialect.RejectRule{
	// Images go into EXT alone [V: reference; scripts, which pass over all other
	// members]. Which message it is is a lead.
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/RDOC{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/Remote{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	// [V: mockup, which has neither]
	{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot/HttpBootUri", "Boot/AliasBootOrder"}, Message: unknown},
}

// inputAliases translate a new volume: cache policies have names of Lenovo's, and
// further properties have no meaning for the lab [V: scripts,
// lenovo_create_raid_volume.py, which has both names for each policy].
var inputAliases = []dialect.InputAlias{
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/ReadPolicy", To: "ReadCachePolicy", Values: map[string]any{"NoReadAhead": "Off"}},
	{
		ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/WritePolicy", To: "WriteCachePolicy",
		Values: map[string]any{"AlwaysWriteBack": "UnprotectedWriteBack", "WriteBackWithBBU": "ProtectedWriteBack", "WriteBack": "ProtectedWriteBack"},
	},
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem", To: dialect.Discard}, // IOPolicy, AccessPolicy, DriveCachePolicy
}

package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

func say(key, text, resolution string) dialect.VendorMessage {
	return dialect.VendorMessage{Registry: "Base", Version: "1.12.1", Key: key, Text: text, Resolution: resolution}
}

var (
	unknown     = say("PropertyUnknown", "The property %1 is not one that this resource has.", "Leave the property out.")
	notWritable = say("PropertyNotWritable", "The property %1 cannot be written.", "Leave the property out.")
)

// rules are what an XCC refuses.
var rules = []dialect.RejectRule{
	// Images go into EXT alone [V: reference; scripts, which pass over all other
	// members]. Which message it is is a lead.
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/RDOC{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	{ResourceType: "VirtualMedia", URI: system + "/VirtualMedia/Remote{slot}", Method: "PATCH", SendsAny: []string{"Image"}, Message: notWritable},
	// [V: mockup, which has neither]
	{ResourceType: "ComputerSystem", Method: "PATCH", SendsAny: []string{"Boot/HttpBootUri", "Boot/AliasBootOrder"}, Message: unknown},
}

// readings are how a new volume is read: cache policies have names of Lenovo's,
// and what else is there has no meaning for the model [V: scripts,
// lenovo_create_raid_volume.py, which has both words for each policy].
var readings = []dialect.InputAlias{
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/ReadPolicy", To: "ReadCachePolicy", Values: map[string]any{"NoReadAhead": "Off"}},
	{
		ResourceType: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/WritePolicy", To: "WriteCachePolicy",
		Values: map[string]any{"AlwaysWriteBack": "UnprotectedWriteBack", "WriteBackWithBBU": "ProtectedWriteBack", "WriteBack": "ProtectedWriteBack"},
	},
	{ResourceType: "VolumeCollection", Method: "POST", Path: "Oem", To: dialect.Discard}, // IOPolicy, AccessPolicy, DriveCachePolicy
}

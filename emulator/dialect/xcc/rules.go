package xcc

import "github.com/metalab-dev/metalab/emulator/dialect"

func say(key, text, resolution string) dialect.Saying {
	return dialect.Saying{Registry: "Base", Version: "1.12.1", Key: key, Text: text, Resolution: resolution}
}

var (
	unknown     = say("PropertyUnknown", "The property %1 is not one that this resource has.", "Leave the property out.")
	notWritable = say("PropertyNotWritable", "The property %1 cannot be written.", "Leave the property out.")
)

// rules are what an XCC refuses.
var rules = []dialect.Rule{
	// Images go into EXT alone [V: reference; scripts, which pass over all other
	// members]. Which message it is is a lead.
	{Of: "VirtualMedia", At: system + "/VirtualMedia/RDOC{slot}", Method: "PATCH", Sent: []string{"Image"}, Says: notWritable},
	{Of: "VirtualMedia", At: system + "/VirtualMedia/Remote{slot}", Method: "PATCH", Sent: []string{"Image"}, Says: notWritable},
	// [V: mockup, which has neither]
	{Of: "ComputerSystem", Method: "PATCH", Sent: []string{"Boot/HttpBootUri", "Boot/AliasBootOrder"}, Says: unknown},
}

// readings are how a new volume is read: cache policies have names of Lenovo's,
// and what else is there has no meaning for the model [V: scripts,
// lenovo_create_raid_volume.py, which has both words for each policy].
var readings = []dialect.Reading{
	{Of: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/ReadPolicy", To: "ReadCachePolicy", Words: map[string]any{"NoReadAhead": "Off"}},
	{
		Of: "VolumeCollection", Method: "POST", Path: "Oem/Lenovo/WritePolicy", To: "WriteCachePolicy",
		Words: map[string]any{"AlwaysWriteBack": "UnprotectedWriteBack", "WriteBackWithBBU": "ProtectedWriteBack", "WriteBack": "ProtectedWriteBack"},
	},
	{Of: "VolumeCollection", Method: "POST", Path: "Oem", To: dialect.Nowhere}, // IOPolicy, AccessPolicy, DriveCachePolicy
}

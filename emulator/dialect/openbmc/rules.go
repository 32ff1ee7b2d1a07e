package openbmc

import "github.com/metalab-dev/metalab/emulator/dialect"

func base(key, text string) dialect.Saying {
	return dialect.Saying{Registry: "Base", Version: "1.19.0", Key: key, Text: text, Resolution: "Change the request and send it again."}
}

const insert = "VirtualMedia.InsertMedia"

// rules are what bmcweb refuses although the standard allows it.
func rules() []dialect.Rule {
	readOnly := base("OperationNotAllowed", "The method of the request is not allowed here.")
	return []dialect.Rule{
		// [V] virtual_media.hpp, validateParams, in its order.
		{Of: "VirtualMedia", Method: insert, Is: map[string][]string{"Inserted": {"false"}},
			Says: base("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
		{Of: "VirtualMedia", Method: insert, Beyond: map[string][]string{"TransferMethod": {"Stream"}},
			Says: base("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
		{Of: "VirtualMedia", Method: insert, Begins: map[string][]string{"Image": {"http://", "nfs://", "ftp://", "sftp://", "scp://", "tftp://", "cifs://"}},
			Says: base("ResourceAtUriInUnknownFormat", "The resource at %2 is in a format that the service does not know.")},
		{Of: "VirtualMedia", Method: insert, Beyond: map[string][]string{"TransferProtocolType": {"CIFS", "HTTPS"}},
			Says: base("PropertyValueNotInList", "The value %2 of the property %1 is not one of those that it can have.")},
		// [V] virtual_media.hpp has no PATCH, storage.hpp and bios.hpp neither.
		{Of: "VirtualMedia", Method: "PATCH", Status: 405, Says: readOnly},
		{Of: "Bios", Method: "PATCH", Status: 405, Says: readOnly},
		{Of: "Storage", Method: "PATCH", Status: 405, Says: readOnly},
		{Of: "Drive", Method: "PATCH", Status: 405, Says: readOnly},
		{Of: "StorageController", Method: "PATCH", Status: 405, Says: readOnly},
		// [V] systems.hpp, handleComputerSystemPatch: properties that it does not read.
		{Of: "ComputerSystem", Method: "PATCH", Sent: []string{
			"HostName", "PowerOnDelaySeconds", "PowerCycleDelaySeconds", "Boot/BootOrder", "Boot/BootNext", "Boot/HttpBootUri", "Boot/AliasBootOrder",
			"Boot/UefiTargetBootSourceOverride", "Boot/BootOrderPropertySelection",
		}, Says: base("PropertyUnknown", "The property %1 is not known.")},
		// [V] managers.hpp: everything goes, or nothing.
		{Of: "Manager", Method: "Manager.ResetToDefaults", Beyond: map[string][]string{"ResetType": {"ResetAll"}},
			Says: base("ActionParameterNotSupported", "The parameter %1 cannot have the value %2 here.")},
	}
}

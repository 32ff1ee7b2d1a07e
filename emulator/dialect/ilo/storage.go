package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

// readOnlyVolumes: a Smart Array shows its volumes, and takes them by
// SmartStorageConfig only [V table; docs, smartstorage].
var readOnlyVolumes = []dialect.Rule{
	{Of: "VolumeCollection", Method: "POST", Status: 405, Says: base(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
	{Of: "Volume", Method: "DELETE", Status: 405, Says: base(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
}

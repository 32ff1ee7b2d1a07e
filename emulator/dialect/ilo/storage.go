package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

// readOnlyVolumes: a Smart Array shows its volumes, and changes them by
// SmartStorageConfig only [V table; docs, smartstorage].
var readOnlyVolumes = []dialect.RejectRule{
	{ResourceType: "VolumeCollection", Method: "POST", Status: 405, Message: baseMessage(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
	{ResourceType: "Volume", Method: "DELETE", Status: 405, Message: baseMessage(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
}

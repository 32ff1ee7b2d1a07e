package ilo

import "github.com/metalab-dev/metalab/emulator/dialect"

// readOnlyVolumes rejects changes of volumes: only SmartStorageConfig changes the
// volumes of a Smart Array [V table; docs, smartstorage].
var readOnlyVolumes = []dialect.RejectRule{
	{ResourceType: "VolumeCollection", Method: "POST", Status: 405, Message: baseMessage(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
	{ResourceType: "Volume", Method: "DELETE", Status: 405, Message: baseMessage(gen5, "OperationNotAllowed", "The method of the request is not allowed here.")},
}

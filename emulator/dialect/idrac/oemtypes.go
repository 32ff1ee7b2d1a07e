package idrac

import "github.com/metalab-dev/metalab/emulator/dialect"

// oemTypes are the types of the objects that the vendor adds to standard resources.
var oemTypes = []dialect.OEMType{
	{Namespace: "DellServiceRoot", Version: "v1_0_0", Name: "ServiceRootSummary", Properties: []dialect.OEMProperty{
		{Name: "IsBranded", Type: dialect.EdmInt64, Description: "Whether another company's name is on the server."},
		{Name: "ManagerMACAddress", Type: dialect.EdmString, Description: "MAC address of the controller."},
		{Name: "ServiceTag", Type: dialect.EdmString, Description: "Serial number of the server, by which its maker knows it."},
	}},
}

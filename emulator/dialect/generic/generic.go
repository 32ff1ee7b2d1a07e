// Package generic has the dialect of a BMC that follows DSP0266 in every point
// and has no quirks. It is a product like the others: their records do not begin with
// it, but with that of package template.
package generic

import (
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/template"
)

// Record is the generic dialect. Dialect files may begin with it.
var Record = record()

func record() dialect.Record {
	r := template.Record()
	r.Name, r.Vendor, r.Product, r.ManagerModel = "generic", "Metalab", "Metalab BMC", "Metalab BMC"
	r.Protocol.WriteableProperties = []string{"*"}
	r.IPMI.Manufacturer, r.IPMI.Product = 32473 /* reserved for documentation (RFC 5612) */, 0x4d4c
	return r
}

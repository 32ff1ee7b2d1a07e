package layering

import "slices"

// emulated are the rows of the emulated servers.
var emulated = []Row{
	{Package: "emulator", May: []string{"emulator/...", "emulator/rack/racktest"}},
	{Package: "emulator/clock", Never: sockets},
	{Package: "emulator/suggest", Never: noWorld},
	{Package: "emulator/yamlfile", May: []string{"emulator/suggest"}, Never: noWorld},
	{Package: "emulator/natural", Never: noWorld},
	{Package: "emulator/fault", May: []string{"emulator/yamlfile"}, Never: slices.Concat(sockets, []string{"emulator/clock"})},
	{Package: "emulator/machine", May: model, Never: noWorld, Tests: []string{"fixtures"}},
	{Package: "emulator/machine/console", Never: noWorld},
	{Package: "emulator/machine/event", Never: noWorld},
	{Package: "emulator/machine/event/sel", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/machine/storage", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/machine/firmware", May: []string{"emulator/machine/event", "emulator/natural", "emulator/yamlfile"}, Never: noWorld, Tests: []string{"fixtures"}},
	{Package: "emulator/machine/thermal", May: []string{"emulator/machine/event"}, Never: noWorld},
	{Package: "emulator/bmc", May: []string{"emulator/machine/..."}, Never: []string{"net/http/...", "emulator/clock"}},
	{
		Package: "emulator/dialect", May: []string{"emulator/bmc", "emulator/machine/...", "emulator/yamlfile"}, Never: noServer,
		Tests: []string{"emulator/dialect/..."}, // that each vendor's record is valid
	},
	{Package: "emulator/dialect/template", May: ofVendor},
	{Package: "emulator/dialect/generic", May: slices.Concat(ofVendor, []string{"emulator/dialect/template"})},
	{Package: "emulator/dialect/quirk", May: slices.Concat(ofVendor, []string{"emulator/suggest", "emulator/yamlfile"}), Tests: []string{"emulator/dialect/generic"}},
	{
		Package: "emulator/dialect/file", May: slices.Concat(ofVendor, []string{"emulator/dialect/quirk", "emulator/suggest", "emulator/yamlfile"}),
		Never: noServer, Tests: []string{"emulator/dialect/generic"},
	},
	{
		Package: "emulator/dialect/ilo", May: oneVendor,
		Tests: []string{"emulator/dialect/...", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile", "fixtures"}, // what its clients see
	},
	{Package: "emulator/dialect/idrac", May: oneVendor, Tests: ofRack},
	{Package: "emulator/dialect/xcc", May: oneVendor},
	{Package: "emulator/dialect/supermicro", May: oneVendor},
	{Package: "emulator/dialect/openbmc", May: ofVendor},
	{Package: "emulator/dialect/irmc", May: ofVendor},
	{Package: "emulator/dialect/ibmc", May: ofVendor},
	{Package: "emulator/dialect/megarac", May: oneVendor},
	{
		Package: "emulator/redfish", May: slices.Concat(service, []string{"emulator/redfish/..."}),
		Never: []string{"emulator/dialect"},                 // emulator/redfish/vendor reads a record
		Tests: []string{"emulator/dialect/...", "fixtures"}, // a service needs a vendor and a server to show
	},
	{Package: "emulator/redfish/odata"},
	{Package: "emulator/redfish/message"},
	{Package: "emulator/redfish/cache"},
	// The rooms of the service, each of which knows those before it.
	{Package: "emulator/redfish/resource", May: slices.Concat(ofRedfish, []string{"emulator/dialect", "emulator/redfish/odata", "emulator/clock"})},
	{Package: "emulator/redfish/vendor", May: slices.Concat(ofRedfish, []string{"emulator/dialect", "emulator/redfish/odata", "emulator/redfish/resource"})},
	{Package: "emulator/redfish/render", May: slices.Concat(ofRedfish, []string{"emulator/redfish/resource", "emulator/redfish/vendor"})},
	{
		Package: "emulator/redfish/event",
		May:     slices.Concat(ofRedfish, []string{"emulator/redfish/resource", "emulator/redfish/vendor", "emulator/redfish/render"}),
	},
	{
		Package: "emulator/ipmi", May: slices.Concat(service, []string{"emulator/ipmi/..."}),
		Tests: []string{"emulator/dialect/...", "fixtures"},
	},
	{
		Package: "emulator/ipmi/command",
		May: slices.Concat(ofVendor, []string{
			"emulator/dialect", "emulator/ipmi/wire", "emulator/ipmi/session", "emulator/ipmi/fru", "emulator/ipmi/sdr",
		}),
		Never: slices.Concat(noServer, files, []string{"emulator/clock"}),
		Tests: []string{"emulator/dialect/...", "fixtures"},
	},
	{Package: "emulator/ipmi/wire", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/fru", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/sdr", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/sol", May: []string{"emulator/ipmi/wire"}, Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/vm", Never: slices.Concat(sockets, files)},
	{Package: "emulator/ipmi/session", May: []string{"emulator/ipmi/wire"}, Never: slices.Concat(sockets, files)},
	{
		Package: "emulator/rack", May: []string{"emulator/...", "fixtures"},
		Never: []string{"emulator/rack/control", "emulator/rack/racktest"}, // they stand above it
	},
	{Package: "emulator/rack/rackfile", May: []string{"emulator/fault", "emulator/yamlfile"}},
	{Package: "emulator/rack/journal", May: []string{"emulator/fault"}, Never: slices.Concat(sockets, files)},
	{Package: "emulator/rack/exchange", Never: files}, // it wraps handlers, and knows no host
	{Package: "emulator/rack/snapshot", Never: sockets},
	{Package: "emulator/rack/integrity", Never: sockets},
	{Package: "emulator/rack/space", Never: sockets},
	{Package: "emulator/rack/statedir", Never: sockets},
	{Package: "emulator/rack/network", May: []string{"emulator/bmc", "emulator/clock", "emulator/fault"}},
	{
		Package: "emulator/rack/faults",
		May: []string{
			"emulator/clock", "emulator/fault", "emulator/rack/faulthttp", "emulator/rack/journal", "emulator/rack/store",
			"emulator/machine/event", "emulator/redfish/message", "emulator/suggest", "emulator/yamlfile",
		},
	},
	{Package: "emulator/rack/faulthttp", May: []string{"emulator/fault", "emulator/clock", "emulator/rack/network", "emulator/redfish/message"}},
	{Package: "emulator/rack/store", Tests: []string{"emulator/machine/storage"}}, // that a file is a Medium
	{Package: "emulator/rack/outbound", May: []string{"emulator/bmc", "emulator/clock"}},
	{
		Package: "emulator/rack/control",
		May:     []string{"emulator/rack", "emulator/rack/network", "emulator/rack/rackfile", "emulator/rack/journal", "emulator/rack/snapshot", "emulator/dialect/quirk", "emulator/fault", "emulator/bmc", "emulator/machine/...", "emulator/suggest", "version"},
		Tests:   []string{"emulator/clock"},
	},
	{Package: "emulator/rack/gateway", May: []string{"emulator/clock"}, Tests: []string{"emulator/fault", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile"}}, // it knows hosts by their names alone
	{Package: "emulator/rack/ssdp", May: []string{"emulator/clock"}},
	{Package: "emulator/rack/racktest", May: []string{"scenarios/patience", "emulator/rack", "emulator/rack/journal", "emulator/rack/rackfile", "emulator/rack/ssdp", "emulator/clock", "emulator/fault", "emulator/machine"}},
}

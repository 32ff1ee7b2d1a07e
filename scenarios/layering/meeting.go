package layering

import "slices"

// meeting are the rows of the packages where emulated servers, controllers and agents meet.
var meeting = []Row{
	{
		// Its tests see to it that no dialect and no scheme is left out.
		Package: "features",
		May:     []string{"features/steps", "scenarios/...", "emulator/suggest"},
		Tests:   []string{"features/step/...", "docs/statements", "controller/bmc", "emulator/rack", "emulator/dialect", "emulator/machine", "fixtures"},
	},
	{Package: "features/step", Never: kubernetes},
	{Package: "features/step/falseclaim", Never: kubernetes},
	{Package: "features/rack", May: []string{"features/rack/steps"}, Tests: []string{"features/step/...", "docs/statements", "emulator/dialect/quirk"}},
	{Package: "features/conformance", May: []string{"features/conformance/steps"}, Tests: []string{"scenarios/conformance", "scenarios/sample", "scenarios/prerequisites"}, Never: kubernetes},
	{
		// These steps check an emulated BMC, with its quirks and faults, and any other.
		Package: "features/conformance/steps",
		May: []string{
			"scenarios/conformance", "scenarios/clientclock", "scenarios/sample", "emulator/rack", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/machine/...",
			"emulator/dialect/quirk", "emulator/clock", "emulator/fault",
		},
		Never: kubernetes, But: utilsClock,
	},
	{
		// These steps see BMCs over the wire, and of the lab what stands beside it.
		Package: "features/rack/steps",
		May:     []string{"features/step", "scenarios/patience", "scenarios/prerequisites", "emulator/rack/...", "emulator/rack/racktest", "emulator/machine/...", "emulator/dialect/quirk", "emulator/clock", "emulator/fault", "fixtures", "scenarios/conformance/ipmi"},
		Never:   kubernetes, But: utilsClock,
	},
	{
		// Steps do what operators do and look at what servers then are.
		Package: "features/steps",
		May: []string{
			"features/step", "lab", "scenarios/...", "emulator/rack/...", "emulator/machine/...", "emulator/bmc", "emulator/dialect/quirk", "emulator/fault", "fixtures",
			"emulator/rack/racktest",                                           // which ports no other test has
			"scenarios/patience",                                               // how long they wait
			"scenarios/prerequisites",                                          // what scenarios need
			"guest/elementalsim", "agent/lcm", "guest/node", "guest/cloudinit", // the units, files and configurations that user data install
			"controller/drain", "controller/reconcile/patch", // what evicts pods; patches that conflict
			"controller/elemental/condition",                                                                       // what conditions say
			"controller/api/...", "controller/config", "controller/mosk/hostos/module", "controller/mosk/lcm/item", // what agents do with the objects of day 2
			"controller/machineconfig", "controller/machineconfig/registry", // what builds and images are named
		},
		Tests: []string{"controller/inband"}, // whose tokens no console may show
	},
	{Package: "scenarios/registry", Never: kubernetes},
	{
		// An agent in process runs over systest, backed by a machine's disks.
		Package: "lab",
		May:     []string{"emulator/...", "controller/...", "agent/...", "guest/...", "agent/sys/systest", "version", "fixtures", "scenarios/charts", "scenarios/images", "scenarios/registry", "scenarios/view", "lab/clusterapi", "lab/helmpods", "lab/ownapi", "lab/pxe"},
		Tests:   []string{"scenarios/sample"},
	},
	{
		// It stands in for Cluster API's controllers, and knows no emulated server.
		Package: "lab/clusterapi",
		May:     []string{"agent/nodeaccount", "guest/node", "controller/api/...", "controller/elemental/condition", "controller/elemental/object", "controller/reconcile/queue"},
	},
	{
		// It stands in for the cluster that runs the chart's pods, and installs no chart.
		Package: "lab/helmpods",
		May:     []string{"controller/mosk/helmcontroller", "controller/reconcile/queue"},
		Tests:   []string{"controller/config", "controller/kube", "scenarios/patience"},
	},
	{
		Package: "lab/ownapi",
		May:     []string{"controller/api/...", "controller/kube", "controller/mosk/workload", "controller/reconcile/queue"},
		Tests:   []string{"controller/config", "scenarios/patience"},
	},
	{
		// The firmware of a NIC, and the loader that it starts.
		Package: "lab/pxe", May: []string{"controller/netboot", "controller/netboot/cpio", "controller/netboot/stub", "agent/job"},
		Never: kubernetes,
		Tests: []string{"controller/inband"}, // whose keys sign what is booted
	},
	{
		// It knows a BMC by its address alone; its tests check the emulator.
		Package: "scenarios/conformance", May: []string{"scenarios/conformance/interop", "scenarios/conformance/ipmi", "scenarios/capture"}, Never: kubernetes, But: utilsClock,
		Tests: []string{"emulator/clock", "emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/dialect/quirk", "emulator/fault", "emulator/machine", "scenarios/prerequisites", "scenarios/sample", "fixtures", "scenarios/record", "scenarios/conformance/report"},
	},
	{
		// It knows results and no BMC; its tests run the checks on the emulator.
		Package: "scenarios/conformance/report", May: []string{"scenarios/conformance", "scenarios/outfile"},
		Tests: []string{"emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile"},
	},
	{
		// A program that runs the checks against servers in containers.
		Package: "scenarios/conformance/peers", May: []string{"scenarios/conformance"}, Never: kubernetes,
	},
	{
		// It evaluates documents, and reads none.
		Package: "scenarios/conformance/interop", Never: slices.Concat(sockets, files, kubernetes),
		Tests: []string{"scenarios/prerequisites"},
	},
	{
		// Its tests check the emulator, and the driver on it.
		Package: "scenarios/conformance/ipmi",
		Tests: []string{
			"emulator/clock", "emulator/ipmi", "emulator/rack", "emulator/rack/journal", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/bmc", "emulator/machine",
			"controller/bmc", "controller/bmc/ipmi", "controller/bmc/redfish",
		},
	},
	{
		// Its tests run the driver on the emulator.
		Package: "scenarios/conformance/firmware",
		Tests: []string{
			"emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/machine", "emulator/machine/firmware",
			"controller/bmc", "controller/bmc/redfish", "fixtures", "scenarios/sample",
		},
	},
	{
		// Its tests run public clients on BMCs of all dialects.
		Package: "scenarios/conformance/clients",
		Tests: []string{
			"emulator/bmc", "emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/machine",
			"emulator/machine/firmware", "emulator/machine/storage", "fixtures", "scenarios/sample",
		},
	},
	{
		// Its tests run the drivers on BMCs with quirks.
		Package: "scenarios/conformance/quirks",
		Tests: []string{
			"emulator/bmc", "emulator/rack", "emulator/rack/racktest", "emulator/rack/outbound", "emulator/rack/rackfile", "emulator/dialect/quirk",
			"emulator/machine", "emulator/machine/storage", "controller/bmc", "controller/bmc/ipmi", "controller/bmc/redfish", "fixtures",
		},
	},
	{
		// Its tests run the agent against the API, on this machine.
		Package: "scenarios/lcm",
		Tests: []string{
			"agent/job", "agent/lcm", "agent/sys", "controller/api/...", "controller/config", "controller/mosk/hostos/module", "controller/kube", "controller/mosk/lcm/item",
			"fixtures", "scenarios/prerequisites",
		},
	},
	{
		// Its tests are where both sides of RAID meet without Kubernetes.
		Package: "scenarios/raid",
		Tests: []string{
			"controller/bmc", "controller/bmc/redfish", "controller/bmc/bmctest", "controller/metal3/host", "controller/metal3/host/phase", "controller/metal3/raid",
			"emulator/bmc", "emulator/rack", "emulator/rack/control", "emulator/rack/racktest", "emulator/rack/rackfile", "emulator/machine/storage",
		},
	},
	{Package: "scenarios/capture", May: []string{"emulator/natural"}}, // it sees a BMC as any client does
	{
		// It serves what it makes, to see what of the BMC is missing still.
		Package: "scenarios/record",
		May: []string{
			"scenarios/capture", "scenarios/outfile", "emulator/natural", "emulator/clock", "emulator/rack", "emulator/rack/rackfile", "emulator/dialect",
			"emulator/dialect/file", "emulator/bmc", "emulator/machine/...", "emulator/yamlfile", "fixtures",
		},
	},
	{
		Package: "scenarios/images", May: []string{"agent/gpt", "controller/netboot/stub"},
		Tests: []string{"controller/netboot"}, // that its media boot, too
	},
	{Package: "scenarios/charts", May: []string{"controller/mosk/helmcontroller", "fixtures"}},
	{
		// It reads the objects of a cluster, and calls shards.
		Package: "scenarios/cluster", May: []string{"emulator/rack/control", "emulator/rack/rackfile"},
		Tests: []string{"scenarios/cluster/clustertest"},
	},
	{Package: "scenarios/cluster/clustertest", May: []string{"emulator/rack", "emulator/rack/control", "emulator/rack/racktest", "emulator/rack/rackfile"}},
	{
		Package: "scenarios/shards", // it runs programs, and links none of them
		May:     []string{"emulator/rack", "emulator/rack/control", "emulator/rack/network", "emulator/rack/rackfile"},
		Never:   kubernetes, But: utilsClock,
		Tests: []string{"emulator/clock"},
	},
	{
		// It shows the emulated lab, and gets objects of Kubernetes as texts.
		Package: "scenarios/view",
		May: []string{
			"emulator/rack", "emulator/rack/control", "emulator/rack/exchange", "emulator/rack/journal", "emulator/rack/network", "emulator/rack/snapshot", "emulator/machine", "emulator/machine/event", "emulator/machine/firmware",
			"emulator/machine/thermal", "emulator/bmc", "emulator/dialect", "emulator/dialect/quirk", "emulator/fault",
			"scenarios/outfile",
		},
		Never: kubernetes, But: utilsClock,
		Tests: []string{"emulator/rack/racktest", "emulator/rack/rackfile", "scenarios/prerequisites"},
	},
	{Package: "scenarios/containers"}, // it reads an image, and the output of its commands
	{Package: "scenarios/clientclock", May: []string{"emulator/clock"}, Tests: []string{"scenarios/patience"}, Never: kubernetes, But: utilsClock},
	{Package: "scenarios/patience", Never: slices.Concat(sockets, kubernetes)}, // it bounds waiting, and knows nothing that is waited for
	{Package: "scenarios/prerequisites", May: []string{"scenarios/patience"}},  // it finds programs, and knows no test
	{Package: "scenarios/prerequisites/missing", May: []string{"scenarios/prerequisites"}},
	{Package: "scenarios/loopdisk"},                                            // it attaches files, and knows no test
	{Package: "scenarios/smalldisk"},                                           // it mounts a file system, and knows no test
	{Package: "scenarios/smallroot", May: []string{"scenarios/prerequisites"}}, // it makes files
	{Package: "scenarios/outfile", Never: slices.Concat(sockets, kubernetes)},  // it writes files, and knows no content
	{Package: "scenarios/leak"},                                                // it counts, and knows no lab
	{Package: "scenarios/sample"},                                              // it chooses among names, and knows no kind of name
	// It runs the go command, and knows packages by their names.
	{Package: "scenarios/suite", May: []string{"scenarios/leak", "scenarios/prerequisites", "scenarios/sample"}},
	{Package: "scenarios/mutants"}, // it reads sources and runs the go command
	{Package: "scenarios/layering"},
	{Package: "fixtures"},
	{Package: "cmd"}, // scripts
	{Package: "cmd/usage", May: []string{"emulator/suggest"}, Never: noWorld}, // it knows flags and arguments, and no command
	{Package: "cmd/labctl/crash", May: []string{"emulator/rack/statedir"}},    // it reads how a process ended, and starts none
	{Package: "cmd/labctl", May: []string{"cmd/labctl/crash", "cmd/usage", "docs", "emulator/...", "controller/...", "agent/...", "guest/...", "lab/...", "scenarios/...", "fixtures", "features", "features/steps", "version"}},
	{Package: "cmd/lab-controller", May: []string{"cmd/usage", "controller/...", "version"}, Never: []string{"controller/kube"}},
	{Package: "cmd/lab-agent", May: []string{"agent/...", "cmd/usage", "guest/elementalsim", "version"}},
}

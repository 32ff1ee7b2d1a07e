package layering

import (
	"go/token"
	"slices"
)

// House is a folder of packages that belong together: a family of the product on one side of the
// wire, or what families share.
type House struct {
	Name string   // its folder
	Has  string   // what it has, for docs/architecture.md
	May  []string // the houses that it may import, all of them before it in Houses; a file obeys its package's Row, too
}

// Houses are listed from the ground up, so that no two import each other. A package belongs to the
// house with the longest name that its path begins with. Test files and test kits are free.
var Houses = []House{
	{Name: "emulator", Has: "the servers: models of machine and BMC, the services Redfish and IPMI, the vendors' dialects, and in `emulator/rack` the servers together, with their network, store and journal"},
	{Name: "agent", Has: "the in-band agent of Metal³, and what all agents share: `agent/job`, `agent/broker`, `agent/ledger`, `agent/sys`, `agent/kubeapi`, `agent/nodeaccount`, `agent/gpt`, `agent/plugin/disk`"},
	{
		Name: "controller", May: []string{"agent"},
		Has: "what controllers share: drivers of BMCs (`controller/bmc`), network boot (`controller/netboot`), the server of the in-band agent (`controller/inband`), `controller/drain`, `controller/nodes`, the kinds of all families (`controller/api`), queues, events and writes (`controller/reconcile`), manifests (`controller/config`), the API in the process (`controller/kube`), `controller/webhook`; of the in-band agent it knows the messages and what the boot image runs",
	},
	{Name: "controller/metal3", Has: "Metal³: BareMetalHost, its firmware, RAID, images, subscriptions", May: []string{"agent", "controller"}},
	{Name: "controller/mosk", Has: "day 2: the bare metal provider, LCM, host OS configuration, Helm releases", May: []string{"agent", "controller"}},
	{Name: "controller/elemental", Has: "servers that register themselves for Cluster API", May: []string{"agent", "controller"}},
	{Name: "controller/machineconfig", Has: "machine configuration: rendered, built as an OS image, rolled out to nodes", May: []string{"controller"}},
	{
		Name: "controller/manager", Has: "the controllers of all families in one process",
		May: []string{"agent", "controller", "controller/metal3", "controller/mosk", "controller/elemental", "controller/machineconfig"},
	},
	{Name: "agent/lcm", Has: "the LCM agent of day 2; it knows the family's wire contract: the kinds, items and archives of modules", May: []string{"agent", "controller", "controller/mosk"}},
	{Name: "agent/elemental", Has: "the Elemental agent", May: []string{"agent"}},
	{Name: "agent/machineconfig", Has: "the machine-config daemon; it knows the annotations and Ignition configurations of its controllers", May: []string{"agent", "controller/machineconfig"}},
	{
		Name: "guest", May: []string{"agent", "agent/elemental", "agent/machineconfig"},
		Has: "the operating system of a server that has booted in a lab: its root and programs, the root file system of its image, the files of an installation, cloud-init, the node agent, OS images, and what acts on the files of the Elemental agent",
	},
	{
		Name: "scenarios", May: []string{"emulator", "agent", "controller", "controller/metal3", "controller/mosk", "controller/elemental", "controller/machineconfig", "controller/manager", "agent/lcm"},
		Has: "conformance, models of recorded BMCs, the view, shards, images and charts; and what tests the product: the suite, layering, mutants",
	},
	{
		Name: "lab", May: everything,
		Has: "what `labctl up` starts: a rack with its clock, agents, Kubernetes API and controllers, wired",
	},
	{Name: "features", Has: "the behaviour of all of it in Gherkin, and the steps; `features/rack` sees the servers alone", May: slices.Concat(everything, []string{"lab"})},
	{Name: "docs", Has: "the pages, which `labctl docs` shows"},
	{Name: "cmd", Has: "the programs: `labctl`, `lab-controller`, `lab-agent`", May: slices.Concat(everything, []string{"lab", "features", "docs"})},
}

// everything are the houses below the lab, which wires them.
var everything = []string{
	"emulator", "agent", "controller", "controller/metal3", "controller/mosk", "controller/elemental", "controller/machineconfig", "controller/manager",
	"agent/lcm", "agent/elemental", "agent/machineconfig", "guest", "scenarios",
}

// HouseOf returns the house of a package, nil for one that is in none.
func HouseOf(pkg string) *House {
	var best *House
	for i, h := range Houses {
		if matches(h.Name+"/...", pkg) && (best == nil || len(h.Name) > len(best.Name)) {
			best = &Houses[i]
		}
	}
	return best
}

// checkHouses reports an import of a house that the file's house may not know.
func (f *file) checkHouses(at token.Pos, imported string) {
	from, to := HouseOf(f.pkg), HouseOf(imported)
	if f.test || from == nil || to == nil || from == to || slices.Contains(kits, imported) || slices.Contains(kits, f.pkg) || slices.Contains(from.May, to.Name) {
		return
	}
	f.report(at, "%s may not import %s: the house %s does not know %s", f.pkg, imported, from.Name, to.Name)
}

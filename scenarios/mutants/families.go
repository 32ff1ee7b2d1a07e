package main

import (
	"fmt"
	"slices"
	"strings"
)

// Family is a group of packages that is mutated together.
type Family struct {
	Name     string
	Packages []string // patterns of the go command, from the root of the module
	// Suites are the packages, nearest first, that test these from outside. They
	// run when the tests of the mutated package pass.
	Suites []string
	// Rules are folders of manifests whose rules are left out, too, and RuleSuites the packages,
	// nearest first, whose tests ask an API that has them.
	Rules      []string
	RuleSuites []string
}

// families are all that `make mutants` mutates. The embedded Kubernetes API is
// not in it: its tests take minutes each.
var families = []Family{
	{
		Name: "emulator",
		Packages: []string{
			"./emulator/machine/...", "./emulator/bmc", "./emulator/dialect/...", "./emulator/fault", "./emulator/natural",
			"./emulator/yamlfile", "./emulator/clock",
		},
		Suites: []string{"./emulator/machine", "./emulator/redfish", "./emulator/ipmi/command", "./emulator/rack", "./features/rack"},
	},
	{
		Name:     "ipmi",
		Packages: []string{"./emulator/ipmi/..."},
		Suites:   []string{"./emulator/ipmi/command", "./emulator/ipmi", "./emulator/rack", "./scenarios/conformance/ipmi", "./features/rack"},
	},
	{
		Name:     "redfish",
		Packages: []string{"./emulator/redfish/..."},
		Suites:   []string{"./emulator/redfish", "./emulator/rack", "./features/rack"},
	},
	{
		Name:     "lab",
		Packages: []string{"./emulator", "./emulator/rack/..."},
		Suites:   []string{"./emulator/rack", "./emulator/rack/control", "./emulator", "./features/rack"},
	},
	{
		Name: "controller",
		Packages: []string{
			"./controller/bmc/...", "./controller/metal3/dataimage", "./controller/metal3/firmware", "./controller/metal3/host/...", "./controller/inband",
			"./controller/netboot/...", "./controller/metal3/preprovisioning", "./controller/reconcile/queue", "./controller/metal3/raid",
			"./controller/reconcile/readafterwrite", "./controller/metal3/subscription",
		},
		Suites: []string{
			"./controller/bmc/redfish", "./controller/bmc/ipmi", "./controller/metal3/host", "./scenarios/raid", "./scenarios/conformance/firmware",
			"./scenarios/conformance/quirks", "./lab",
		},
	},
	{
		// The statements H1 and up: docs/statements/mosk.md. The lab's own tests are none of the
		// suites: each survivor would wait minutes for them.
		Name: "day2",
		Packages: []string{
			"./controller/drain", "./controller/nodes/...", "./controller/webhook", "./controller/mosk/...", "./agent/lcm/...", "./guest/...",
		},
		Suites: []string{
			"./controller/mosk/provider/hoc", "./controller/mosk/provider/machines", "./controller/mosk/lcm", "./agent/lcm", "./guest/sandbox", "./scenarios/lcm",
		},
		Rules:      []string{"controller/config/hoc"},
		RuleSuites: []string{"./controller/kube"},
	},
	{
		// The statements E-01 and up: docs/statements/elemental.md.
		Name:     "E",
		Packages: []string{"./controller/elemental/...", "./agent/elemental/..."},
		Suites:   []string{"./controller/elemental", "./controller/elemental/registration", "./agent/elemental"},
	},
	{
		// The statements M1 and up: docs/statements/machine-config.md.
		Name:     "M",
		Packages: []string{"./controller/machineconfig/...", "./agent/machineconfig"},
		Suites:   []string{"./controller/machineconfig/node", "./controller/machineconfig/build", "./agent/machineconfig", "./lab"},
	},
	{
		Name:     "agent",
		Packages: []string{"./agent/..."},
		Suites:   []string{"./agent/plugin/disk", "./agent/runner", "./agent", "./controller/metal3/raid", "./lab"},
	},
	{
		Name:     "models",
		Packages: []string{"./scenarios/capture", "./scenarios/images", "./scenarios/record"},
		Suites:   []string{"./scenarios/record"},
	},
}

// choose returns the families of a list of names, separated by commas: all when
// it is empty.
func choose(from []Family, names string) ([]Family, error) {
	if names == "" {
		return from, nil
	}
	var chosen []Family
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(from, func(f Family) bool { return f.Name == name })
		if i < 0 {
			var all []string
			for _, f := range from {
				all = append(all, f.Name)
			}
			return nil, fmt.Errorf("family %q is not one of %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, from[i])
	}
	return chosen, nil
}

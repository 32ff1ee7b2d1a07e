// Package boot makes a system of a bare kernel: as the first process it mounts
// what the kernel shows, loads the drivers of what is there, and gets an address
// from DHCP, so that the agent can work. It knows nothing of the agent's work
// nor of how the kernel came here; the ramdisk is made for it by
// controller/netboot/ramdisk.
package boot

import (
	"path"
	"slices"
	"strings"
)

// IndexPath is where the ramdisk says which drivers it has, as JSON.
const IndexPath = "/lib/modules/index.json"

// ModuleDir is where they are, by NAME.ko.
const ModuleDir = "/lib/modules"

// Index is the drivers by their names, in which dashes are underscores.
type Index map[string]Module

// Module is what a driver says of itself.
type Module struct {
	Needs   []string `json:"needs,omitempty"`   // drivers that must be loaded before it
	Aliases []string `json:"aliases,omitempty"` // patterns of the devices that it drives
}

// Name is how drivers are named here.
func Name(s string) string { return strings.ReplaceAll(s, "-", "_") }

// For lists the drivers of a device (sysfs: modalias), sorted.
func (x Index) For(device string) []string {
	var out []string
	for name, m := range x {
		if slices.ContainsFunc(m.Aliases, func(pattern string) bool {
			ok, err := path.Match(pattern, device)
			return ok && err == nil
		}) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Order lists a driver and all that it needs, which comes before it. What the
// index does not have is built into the kernel, or not to be had.
func (x Index) Order(name string) []string {
	var out []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		m, ok := x[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		for _, n := range m.Needs {
			visit(n)
		}
		out = append(out, name)
	}
	visit(Name(name))
	return out
}

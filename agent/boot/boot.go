// Package boot sets up a system from a bare kernel: as the first process it mounts
// the kernel's file systems, loads drivers, and gets an address by DHCP, so that
// the agent can work. It knows nothing of the agent's work nor of how the kernel
// was loaded; controller/netboot/ramdisk builds its ramdisk.
package boot

import (
	"path"
	"slices"
	"strings"
)

// IndexPath is the ramdisk's index of drivers, as JSON.
const IndexPath = "/lib/modules/index.json"

// ModuleDir is the directory of the drivers, named NAME.ko.
const ModuleDir = "/lib/modules"

// Index maps names of drivers to their modules. Dashes in names are underscores.
type Index map[string]Module

// Module describes a driver.
type Module struct {
	Needs   []string `json:"needs,omitempty"`   // drivers that must be loaded before it
	Aliases []string `json:"aliases,omitempty"` // patterns of the devices that it drives
}

// Name returns the name of a driver in an Index.
func Name(s string) string { return strings.ReplaceAll(s, "-", "_") }

// For returns the drivers of a device by its modalias (sysfs), sorted.
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

// Order returns a driver after all drivers that it needs. Drivers missing from the
// index are built into the kernel, or not available.
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

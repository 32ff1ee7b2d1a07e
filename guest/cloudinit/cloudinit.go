// Package cloudinit configures an operating system at its first boot, as cloud-init
// does: it finds the data source among the disks, reads the user data, and writes the
// files that follow from it, from the host name to the users' keys. It executes nothing:
// Result lists the commands, for the caller, and the modules that it does not have.
//
// Names, keys and places are those of cloud-init's documentation ("Module reference",
// "User-data formats", data sources "Config drive" and "NoCloud").
package cloudinit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Result is the outcome of Configure.
type Result struct {
	Hostname string
	// Hooks are the paths of the boot hooks, for every boot, in their order and before Boot, with
	// HookEnv in their environment.
	Hooks []string
	// HookEnv is the environment of Hooks, each NAME=value.
	HookEnv []string
	// Boot are the commands of bootcmd, for every boot, each a line of a shell.
	Boot []string
	// Scripts are the paths of the scripts of vendor and user data, for the first boot, in their
	// order. That of runcmd is RunScript.
	Scripts []string
	// BootScripts are the paths of the scripts for every boot, which follow the first boot's.
	BootScripts []string
	// Run are the commands of runcmd, each a line of a shell.
	Run []string
	// Ignored lists the parts of the user data that are not applied, and why, each as a
	// sentence for the console.
	Ignored []string
}

func (r *Result) ignore(format string, args ...any) {
	r.Ignored = append(r.Ignored, fmt.Sprintf(format, args...))
}

// instanceDir has cloud-init's files of the running instance.
const instanceDir = "var/lib/cloud/instance"

// Configure applies the data of an instance to the files of a system. Parts of the user
// data that cannot be read or applied are left out and listed: a server boots with
// whatever its user data are.
func Configure(i Instance, root Root) Result {
	r := Result{}
	root.write("var/lib/cloud/data/instance-id", 0o644, i.ID+"\n")
	if len(i.UserData) > 0 {
		root.write(instanceDir+"/user-data.txt", 0o600, string(i.UserData))
	}
	if len(i.VendorData) > 0 {
		root.write(instanceDir+"/vendor-data.txt", 0o600, string(i.VendorData))
	}
	if len(i.VendorData2) > 0 {
		root.write(instanceDir+"/vendor-data2.txt", 0o600, string(i.VendorData2))
	}
	vars := sync.OnceValue(func() dict { return instanceData(i, root) })
	user := handle(i.launched(partsOf(i.UserData, "the user data", &r)), "scripts", vars, &r)
	vendor := handle(staticVendor.parts(i, i.VendorData, user.doc, &r), "scripts/vendor", vars, &r)
	dynamic := handle(dynamicVendor.parts(i, i.VendorData2, user.doc, &r), "scripts/vendor", vars, &r)
	doc := user.doc
	doc.below(dynamic.doc)
	doc.below(vendor.doc)
	vendor.add(dynamic)
	c := doc.decode(&r)
	c.hostname(i, root, &r)
	applyNetwork(i, root, &r)
	c.users(i, root, &r)
	c.writeFiles(root, &r)
	c.Passwords.apply(root, &r)
	c.commands(user, vendor, i, root, &r)
	return r
}

// Lines returns the lines that a server's console shows of a first boot.
func (r Result) Lines(source, from string) []string {
	out := []string{fmt.Sprintf("cloud-init: %s of %s, host name %s", source, from, r.Hostname)}
	for _, text := range r.Ignored {
		out = append(out, "cloud-init: "+text)
	}
	return out
}

// Commands returns all that the user data want executed, for a line of the console.
func (r Result) Commands() string {
	scripts := slices.DeleteFunc(slices.Clone(r.Scripts), func(name string) bool { return name == RunScript })
	return strings.Join(shorten(slices.Concat(r.Hooks, r.Boot, scripts, r.Run, r.BootScripts)), "; ")
}

// shorten shortens commands for a line of the console.
func shorten(commands []string) []string {
	const most, length = 5, 60
	var out []string
	for _, c := range commands[:min(most, len(commands))] {
		line, _, more := strings.Cut(c, "\n")
		if len(line) > length || more {
			line = line[:min(length, len(line))] + "..."
		}
		out = append(out, line)
	}
	if len(commands) > most {
		out = append(out, "...")
	}
	return out
}

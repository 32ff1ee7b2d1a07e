package sandbox

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"sync"
)

// machineFiles are the files of /etc that programs in /usr need, and which say nothing of
// this machine.
var machineFiles = sync.OnceValue(func() Tree {
	t := Tree{}
	if entries, err := os.ReadDir("/etc/alternatives"); err == nil {
		for _, e := range entries {
			name := path.Join("etc/alternatives", e.Name())
			if to, err := os.Readlink("/" + name); err == nil {
				t[name] = Node{Mode: fs.ModeSymlink | 0o777, Link: to}
			}
		}
	}
	for _, name := range []string{"etc/ld.so.cache", "etc/ld.so.conf", "etc/protocols", "etc/services"} {
		if b, err := os.ReadFile("/" + name); err == nil {
			t[name] = File(0o644, string(b))
		}
	}
	return t
})

// MachineFiles returns what a Base needs of this machine's /etc, so that the programs in
// its /usr run: the links of update-alternatives(1), the cache of the dynamic loader, and
// the numbers of protocols and services.
func MachineFiles() Tree { return maps.Clone(machineFiles()) }

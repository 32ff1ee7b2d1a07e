package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// This file has the databases of dpkg and apt for the packages of this machine's /usr.

const (
	packageStatus = "var/lib/dpkg/status"
	packageLists  = "var/lib/dpkg/info"
)

// maxDatabase is how many bytes a database may have.
const maxDatabase = 16 << 20

var machinePackages = sync.OnceValue(func() Tree {
	t := Tree{}
	names := []string{packageStatus, "var/lib/dpkg/arch", "var/lib/dpkg/diversions", "var/lib/apt/extended_states"}
	const alternatives = "var/lib/dpkg/alternatives" // what the links of MachineFiles may lead to
	if entries, err := os.ReadDir("/" + alternatives); err == nil {
		for _, e := range entries {
			names = append(names, path.Join(alternatives, e.Name()))
		}
	}
	for _, name := range names {
		if st, err := os.Stat("/" + name); err != nil || !st.Mode().IsRegular() || st.Size() > maxDatabase {
			continue
		}
		if b, err := os.ReadFile("/" + name); err == nil {
			t[name] = Node{Mode: 0o644, Content: b}
		}
	}
	if t[packageStatus].Content == nil {
		return Tree{} // it is no Debian
	}
	return t
})

// MachinePackages returns the databases of packages of this machine, empty where it has none: a Base
// with these says what its /usr has. Commands find the lists of the packages' files, too.
func MachinePackages() Tree { return maps.Clone(machinePackages()) }

// isPackageList reports whether a file of dpkg's is one that has the names or sums of a package's
// files. Scripts of packages are not for a server that has not run them.
func isPackageList(name string) bool {
	return strings.HasSuffix(name, ".list") || strings.HasSuffix(name, ".md5sums")
}

// addPackageLists adds the lists of the packages' files to the directory of a base that has this
// machine's packages. They are 17 MB for 800 packages: they are links to the machine's where that is
// possible, since nobody writes to a lower layer, and in no process's memory. Where there is no room
// for copies some are missing, which dpkg says, and commands run all the same.
func addPackageLists(base Tree, dir string) {
	status := machinePackages()[packageStatus].Content
	if status == nil || !bytes.Equal(base[packageStatus].Content, status) {
		return
	}
	entries, err := os.ReadDir("/" + packageLists)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := path.Join(packageLists, e.Name())
		if _, ok := base[name]; ok || !isPackageList(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		from, to := "/"+name, filepath.Join(dir, name)
		if os.Link(from, to) == nil {
			continue
		}
		if err := copyFile(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) { // dpkg replaces them
			_ = os.Remove(to) // a part of a list would be wrong
			return
		}
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxDatabase))
	return errors.Join(err, out.Close())
}

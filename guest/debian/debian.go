// Package debian has the files of /etc, /var, /boot and /root of a minimal server as its
// installation leaves them: of Debian 12 and 13, of Ubuntu 22.04 and 24.04, and what is common to
// all others. They are texts of ours, as short as the programs that read them allow. The package
// knows no server: what differs between two of the same release is not here.
//
// Programs are not here: a sandbox shows those of this machine. So no unit is enabled but cron's, which
// a sandbox has itself.
package debian

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/guest/sandbox"
)

// Bookworm is the os-release of Debian 12, as far as programs need it.
const Bookworm = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n"

// OSRelease is the file that names the system. On a host it is a link to one in /usr, which in a
// sandbox is that of this machine.
const OSRelease = "etc/os-release"

var bases = struct {
	sync.Mutex
	by map[string]sandbox.Tree
}{by: map[string]sandbox.Tree{}}

// Base returns the base of a system with a text of os-release: Tree, with what programs of this
// machine need. Equal texts have the same map, which must not change.
func Base(osRelease string) sandbox.Tree {
	bases.Lock()
	defer bases.Unlock()
	t, ok := bases.by[osRelease]
	if !ok {
		t = sandbox.MachineFiles()
		maps.Copy(t, Tree(osRelease))
		if _, ok := t["var/lib/dpkg/status"]; ok {
			maps.Copy(t, sandbox.MachinePackages()) // which are in /usr
		}
		addDirs(t)
		bases.by[osRelease] = t
	}
	return t
}

// Tree returns the files of a server that has just been installed, with a text of os-release(5).
// The text decides on the release: Debian 12 or 13, Ubuntu 22.04 or 24.04, of others that are
// derived from these (ID_LIKE) the nearest one, and what every Linux has for the rest. Every
// directory above a file is in the tree.
func Tree(osRelease string) sandbox.Tree {
	b := &builder{release: releaseOf(osRelease), tree: sandbox.Tree{}}
	b.file(OSRelease, osRelease)
	b.file("usr/lib/os-release", osRelease) // over that of this machine
	b.accounts()
	b.basics()
	b.shells()
	b.pam()
	b.kernel()
	b.systemd()
	b.network()
	b.daemons()
	b.logs()
	b.boot()
	b.variable()
	b.cloud()
	if b.isDebian() {
		b.debian()
		b.packages()
	}
	addDirs(b.tree)
	return b.tree
}

// addDirs adds the directories above the nodes of a tree.
func addDirs(t sandbox.Tree) {
	dirs := map[string]bool{}
	for name := range t {
		for up := path.Dir(name); up != "." && !dirs[up]; up = path.Dir(up) {
			dirs[up] = true
		}
	}
	for name := range dirs {
		if _, ok := t[name]; !ok {
			t[name] = sandbox.Node{Mode: fs.ModeDir | 0o755}
		}
	}
}

// builder makes the tree of a release.
type builder struct {
	release
	tree          sandbox.Tree
	users, groups map[string]int // IDs by name
}

func (b *builder) dirs(names ...string) {
	b.dirsAs(0o755, "root:root", names...)
}

// dirsAs adds directories of an owner "USER:GROUP".
func (b *builder) dirsAs(mode fs.FileMode, owner string, names ...string) {
	for _, name := range names {
		b.add(name, sandbox.Node{Mode: fs.ModeDir | mode}, owner)
	}
}

func (b *builder) file(name, text string) {
	b.fileAs(0o644, "root:root", name, text)
}

// script adds a file that is executed.
func (b *builder) script(name, text string) {
	b.fileAs(0o755, "root:root", name, text)
}

func (b *builder) fileAs(mode fs.FileMode, owner, name, text string) {
	b.add(name, sandbox.File(mode, text), owner)
}

func (b *builder) link(name, to string) {
	b.add(name, sandbox.Node{Mode: fs.ModeSymlink | 0o777, Link: to}, "root:root")
}

func (b *builder) add(name string, n sandbox.Node, owner string) {
	if _, ok := b.tree[name]; ok {
		panic("debian: two nodes " + name)
	}
	if user, group, _ := strings.Cut(owner, ":"); owner != "root:root" {
		n.UID, n.GID = id(b.users, user), id(b.groups, group)
	}
	b.tree[name] = n
}

func id(of map[string]int, name string) int {
	id, ok := of[name]
	if !ok {
		panic(fmt.Sprintf("debian: an owner %q, whom the accounts lack", name))
	}
	return id
}

// idsOf returns the IDs of the names in a text of passwd(5) or group(5).
func idsOf(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Split(line, ":")
		n, err := strconv.Atoi(f[2])
		if err != nil {
			panic("debian: the account " + line)
		}
		out[f[0]] = n
	}
	return out
}

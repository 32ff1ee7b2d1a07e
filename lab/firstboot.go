package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/datasource"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// This file has the files on which the first boot of a server works, as cloud-init sees them, and
// the data source in its CD drive.

// base is what lies below the layer of a system that was installed, shared by all servers with the
// same os-release.
type base struct {
	tree sandbox.Tree
	root cloudinit.Root // its files and directories, as cloud-init sees them
}

var bases = struct {
	sync.Mutex
	by map[string]*base
}{by: map[string]*base{}}

// baseFor returns the base of systems with a text of os-release.
func baseFor(osRelease string) *base {
	bases.Lock()
	defer bases.Unlock()
	b := bases.by[osRelease]
	if b == nil {
		t := debian.Base(osRelease)
		b = &base{t, rootOf(t)}
		bases.by[osRelease] = b
	}
	return b
}

// rootOf returns the files and directories of a tree, with the names of their owners. Links are left
// out: cloud-init writes to where they lead.
func rootOf(t sandbox.Tree) cloudinit.Root {
	names := func(file string) map[int]string {
		out := map[int]string{}
		for name, id := range accountLines(string(t[file].Content)) {
			out[id] = name
		}
		return out
	}
	users, groups := names("etc/passwd"), names("etc/group")
	out := cloudinit.Root{}
	for name, n := range t {
		if n.Mode.IsDir() || n.Mode.IsRegular() {
			out[name] = cloudinit.File{Content: n.Content, Mode: n.Mode & (fs.ModeDir | fs.ModePerm), Owner: users[n.UID], Group: groups[n.GID]}
		}
	}
	return out
}

// treeOf returns the files of a root that differ from others, with the IDs of their
// owners.
func treeOf(root, others cloudinit.Root) sandbox.Tree {
	users, groups := idsOf(root, "etc/passwd"), idsOf(root, "etc/group")
	out := sandbox.Tree{}
	for name, f := range root {
		if old, ok := others[name]; ok && string(old.Content) == string(f.Content) && old.Mode == f.Mode && old.Owner == f.Owner && old.Group == f.Group {
			continue
		}
		if f.Mode&fs.ModeSymlink != 0 {
			out[name] = sandbox.Node{Mode: f.Mode, Link: string(f.Content)}
			continue
		}
		out[name] = sandbox.Node{Mode: f.Mode & (fs.ModeDir | fs.ModePerm), UID: users[f.Owner], GID: groups[f.Group], Content: f.Content}
	}
	return out
}

// idsOf returns the IDs of the names in /etc/passwd or /etc/group.
func idsOf(root cloudinit.Root, file string) map[string]int {
	f, _ := root.Get(file)
	out := map[string]int{}
	for name, id := range accountLines(string(f.Content)) {
		out[name] = id
	}
	return out
}

// accountLines yields the names and IDs of a file such as /etc/passwd (passwd(5)).
func accountLines(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 3 {
			continue
		}
		if id, err := strconv.Atoi(f[2]); err == nil {
			out[f[0]] = id
		}
	}
	return out
}

// mediumSource reads the data source of the medium in the virtual CD drive of a server.
func mediumSource(h *rack.Host) (cloudinit.Instance, error) {
	for _, slot := range h.BMC().Slots {
		if media, ok := h.Media(slot.ID); ok {
			defer media.Close()
			i, err := datasource.Read(media.File, media.Size)
			if err != nil && !errors.Is(err, cloudinit.ErrNoSource) {
				err = fmt.Errorf("/dev/sr0: %w", err)
			}
			return i, err
		}
	}
	return cloudinit.Instance{}, cloudinit.ErrNoSource
}

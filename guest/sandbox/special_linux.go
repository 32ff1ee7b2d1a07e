package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// This file keeps what would make a server's program privileged on this machine as data: its
// set-user-ID and set-group-ID bits and its capabilities. In a server they have no effect
// (PR_SET_NO_NEW_PRIVS). What a command sets is on the disk until the session ends: the mounts are
// nosuid, and no other user reaches the directory. The bits of a directory give nobody anything, and
// stay.

// Attributes of regular files that have this as data. An overlay shows them (overlayfs.rst, "User
// xattr": its own are below user.overlay).
const (
	modeAttr       = "user.metalab.mode" // octal: special bits and permissions, as chmod(1) takes them
	capabilityAttr = "user.metalab.capability"
)

// realCapabilityAttr has the capabilities of a program (capabilities(7), "File capabilities").
const realCapabilityAttr = "security.capability"

// maxAttr is how many bytes of an attribute are read: capabilities have at most 24.
const maxAttr = 64

// plainMode is the mode that a file has on the disk.
func plainMode(m fs.FileMode) fs.FileMode {
	kept := fs.ModePerm | fs.ModeSticky
	if m.IsDir() {
		kept |= fs.ModeSetuid | fs.ModeSetgid
	}
	return m & kept
}

// special returns the attributes that keep the special bits and capabilities of a file on the disk.
func (n Node) special() map[string]string {
	out := map[string]string{}
	if !n.Mode.IsRegular() {
		return out
	}
	if n.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		out[modeAttr] = strconv.FormatInt(tarMode(n.Mode), 8)
	}
	if n.Capability != "" {
		out[capabilityAttr] = n.Capability
	}
	return out
}

// readSpecial adds to a node of a regular file what a session has written for it, or a command has
// set.
func (n *Node) readSpecial(f *os.File) {
	names := make([]byte, 4096)
	k, err := unix.Flistxattr(int(f.Fd()), names)
	if err != nil || k == 0 {
		return
	}
	value := func(name string) string {
		if !strings.Contains("\x00"+string(names[:k]), "\x00"+name+"\x00") {
			return ""
		}
		b := make([]byte, maxAttr)
		k, err := unix.Fgetxattr(int(f.Fd()), name, b)
		if err != nil {
			return ""
		}
		return string(b[:k])
	}
	n.addMode(value(modeAttr))
	if n.Capability = value(realCapabilityAttr); n.Capability == "" {
		n.Capability = value(capabilityAttr)
	}
}

// addMode adds the special bits of a recorded mode. One whose permissions differ is none any more: a
// command has changed the mode since.
func (n *Node) addMode(recorded string) {
	mode, err := strconv.ParseUint(recorded, 8, 12)
	if err != nil || fs.FileMode(mode).Perm() != n.Mode.Perm() {
		return
	}
	n.Mode |= modeOf(uint32(mode)) & (fs.ModeSetuid | fs.ModeSetgid)
}

// specialOf adds the special bits to a node of an open file, which need not be readable.
func (n *Node) specialOf(f *os.File) {
	if !n.Mode.IsRegular() {
		return
	}
	b := make([]byte, maxAttr)
	if k, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), modeAttr, b); err == nil {
		n.addMode(string(b[:k]))
	}
}

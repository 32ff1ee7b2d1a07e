package rootfs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"
)

// Names in the directory that Unpack makes.
const (
	treeName     = "tree"
	manifestName = "manifest" // lines of JSON
	aboutName    = "about.json"
)

// Root is a root file system that Unpack has written to a directory of this machine.
type Root struct {
	Dir          string // of the files; nothing may be written there
	Architecture string // as GOARCH has it; "" is not known
	OSRelease    string // the text of its os-release(5)
	Files        int64  // names
	Bytes        int64  // that its files take

	manifest string
	load     sync.Once
	failed   error
	differs  map[string]attribute
}

// about has the fields from which a Root is opened.
type about struct {
	Architecture string `json:"architecture"`
	OSRelease    string `json:"osRelease"`
	Files        int64  `json:"files"`
	Bytes        int64  `json:"bytes"`
}

// attribute is a line of the manifest: a file whose attributes are not those on the disk.
type attribute struct {
	Name       string `json:"name,omitempty"`
	Raw        []byte `json:"raw,omitempty"` // a name that is not UTF-8
	Mode       uint16 `json:"mode"`          // st_mode, see inode(7)
	UID        int    `json:"uid"`
	GID        int    `json:"gid"`
	Capability []byte `json:"capability,omitempty"`
}

// maxAbout is how many bytes of what Unpack writes about a root are read.
const maxAbout = 1 << 20

// OpenRoot returns what Unpack has written to a directory.
func OpenRoot(dir string) (*Root, error) {
	f, err := os.Open(filepath.Join(dir, aboutName))
	if err != nil {
		return nil, fmt.Errorf("rootfs: %w", err)
	}
	defer f.Close()
	var a about
	if err := json.NewDecoder(io.LimitReader(f, maxAbout)).Decode(&a); err != nil {
		return nil, fmt.Errorf("rootfs: %s: %w", f.Name(), err)
	}
	return &Root{
		Dir: filepath.Join(dir, treeName), Architecture: a.Architecture, OSRelease: a.OSRelease, Files: a.Files, Bytes: a.Bytes,
		manifest: filepath.Join(dir, manifestName),
	}, nil
}

// Load reads the manifest. Attributes and Capability do that too, but return no error.
func (r *Root) Load() error {
	r.load.Do(func() {
		f, err := os.Open(r.manifest)
		if err != nil {
			r.failed = fmt.Errorf("rootfs: %w", err)
			return
		}
		defer f.Close()
		differs := map[string]attribute{}
		lines := json.NewDecoder(bufio.NewReader(f))
		for {
			var a attribute
			err := lines.Decode(&a)
			if errors.Is(err, io.EOF) {
				r.differs = differs
				return
			}
			if err != nil {
				r.failed = fmt.Errorf("rootfs: %s: %w", r.manifest, err)
				return
			}
			name := a.Name
			if a.Raw != nil {
				name = string(a.Raw)
			}
			a.Name, a.Raw = "", nil
			differs[name] = a
		}
	})
	return r.failed
}

// Attributes returns the mode and owner that a file has in the image where they are not
// those on the disk: set-user-ID and set-group-ID bits, and owners that this process cannot
// give. Names are relative to the root: "usr/bin/sudo".
//
// Where ok is false, the disk has them. Where Unpack did not run as root, its user's files
// are those of root, as in a user namespace whose root that user is.
func (r *Root) Attributes(name string) (mode fs.FileMode, uid, gid int, ok bool) {
	a, ok := r.attribute(name)
	if !ok {
		return 0, 0, 0, false
	}
	mode, _ = modeOf(a.Mode)
	return mode, a.UID, a.GID, true
}

// Capability returns the attribute security.capability (capabilities(7)) of a file in the
// image. On the disk no file has it.
func (r *Root) Capability(name string) []byte {
	a, _ := r.attribute(name)
	return a.Capability
}

func (r *Root) attribute(name string) (attribute, bool) {
	if r.Load() != nil {
		return attribute{}, false
	}
	a, ok := r.differs[strings.TrimPrefix(path.Clean("/"+name), "/")]
	return a, ok
}

// line returns the line of a file in the manifest.
func line(name string, in Inode, capability []byte) attribute {
	a := attribute{Name: name, Mode: unixMode(in.Mode), UID: in.UID, GID: in.GID, Capability: capability}
	if !utf8.ValidString(name) {
		a.Name, a.Raw = "", []byte(name)
	}
	return a
}

// unixMode is the inverse of modeOf.
func unixMode(m fs.FileMode) uint16 {
	out := uint16(m.Perm())
	for _, b := range []struct {
		bit   fs.FileMode
		value uint16
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&b.bit != 0 {
			out |= b.value
		}
	}
	switch m.Type() {
	case 0:
		return out | 0x8000
	case fs.ModeDir:
		return out | 0x4000
	case fs.ModeSymlink:
		return out | 0xa000
	default: // Unpack writes no devices and sockets
		return out | 0x1000
	}
}

package sandbox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Node is a file, a directory or a symbolic link.
type Node struct {
	Mode     fs.FileMode // type and permission bits
	UID, GID int
	Content  []byte // content of a regular file
	Link     string // target of a symbolic link
	Modified time.Time
	// Capability is the value of a program's attribute security.capability (capabilities(7)). It is
	// kept, and has no effect.
	Capability string
	// Removed is a whiteout: nothing of this name is seen of the layers below.
	Removed bool
	// Opaque is a directory that hides the directory of that name in the layers below.
	Opaque bool
}

// Tree is a layer: nodes by their paths, without the leading slash ("etc/hostname").
// Parents need not be in it.
type Tree map[string]Node

// File returns a regular file of the superuser.
func File(mode fs.FileMode, content string) Node {
	return Node{Mode: mode.Perm(), Content: []byte(content)}
}

// Names of whiteouts (OCI Image Format Specification, "Whiteouts").
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// literalRecord marks a file whose name begins as a whiteout's, but which is none. Its key has the
// form of a vendor's own (POSIX pax, "pax Extended Header").
const literalRecord = "METALAB.literal"

// capabilityRecord has a file's capabilities, as GNU tar writes them.
const capabilityRecord = "SCHILY.xattr.security.capability"

// maxLayer is how many bytes a layer may have unpacked.
const maxLayer = 1 << 30

// Encode returns the layer as a tar archive that gzip has compressed. Equal trees give
// equal bytes.
func (t Tree) Encode() ([]byte, error) {
	var out bytes.Buffer
	z := compressor(&out)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := writeNode(w, name, t[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	compressors.Put(z)
	return out.Bytes(), nil
}

func writeNode(w *tar.Writer, name string, n Node) error {
	h := tar.Header{Name: name, Uid: n.UID, Gid: n.GID, Mode: tarMode(n.Mode), ModTime: n.Modified.Truncate(time.Second), Format: tar.FormatPAX}
	switch {
	case n.Removed:
		h.Name, h.Typeflag = path.Join(path.Dir(name), whiteout+path.Base(name)), tar.TypeReg
	case n.Mode.IsDir():
		h.Name, h.Typeflag = name+"/", tar.TypeDir
	case n.Mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname = tar.TypeSymlink, n.Link
	case n.Mode&fs.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	case n.Mode.IsRegular():
		h.Typeflag, h.Size = tar.TypeReg, int64(len(n.Content))
	default:
		return nil // a socket: nothing listens to it after a boot
	}
	if !n.Removed && strings.HasPrefix(path.Base(name), whiteout) {
		h.PAXRecords = map[string]string{literalRecord: "1"}
	}
	if n.Capability != "" {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords[capabilityRecord] = n.Capability
	}
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	if _, err := w.Write(n.Content); err != nil {
		return err
	}
	if n.Opaque {
		return w.WriteHeader(&tar.Header{Name: path.Join(name, opaque), Typeflag: tar.TypeReg, Format: tar.FormatPAX})
	}
	return nil
}

// specialBits are the mode bits beyond permissions in a tar header (POSIX pax, "mode").
var specialBits = map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}

func tarMode(m fs.FileMode) int64 {
	out := int64(m.Perm())
	for bit, value := range specialBits {
		if m&bit != 0 {
			out |= value
		}
	}
	return out
}

// Decode reads a layer that Encode has returned. It refuses names that leave the root or
// lie below a file or link, devices, and more than 1 GiB.
func Decode(b []byte) (Tree, error) {
	out := Tree{}
	if len(b) == 0 {
		return out, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	limited := &io.LimitedReader{R: z, N: maxLayer}
	r := tar.NewReader(limited)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, out.checkParents()
		}
		if err == nil {
			err = out.add(h, r)
		}
		if limited.N <= 0 {
			err = fmt.Errorf("more than %d bytes", maxLayer)
		}
		if err != nil {
			return nil, fmt.Errorf("layer: %w", err)
		}
	}
}

// checkParents refuses files below a name that is no directory, such as a symbolic link through
// which they would be written elsewhere.
func (t Tree) checkParents() error {
	for name := range t {
		for up := path.Dir(name); up != "."; up = path.Dir(up) {
			if n, ok := t[up]; ok && !n.Mode.IsDir() {
				return fmt.Errorf("layer: %s is below %s, which is no directory", name, up)
			}
		}
	}
	return nil
}

func (t Tree) add(h *tar.Header, r io.Reader) error {
	name := Clean(h.Name)
	if name == "." || strings.Contains("/"+h.Name+"/", "/../") {
		return fmt.Errorf("name %q leaves the root", h.Name)
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	literal := h.PAXRecords[literalRecord] != ""
	if base == opaque && !literal {
		n := t[dir]
		n.Opaque = true
		t[dir] = n
		return nil
	}
	if hidden, ok := strings.CutPrefix(base, whiteout); ok && !literal {
		t[path.Join(dir, hidden)] = Node{Removed: true}
		return nil
	}
	n := Node{Mode: fs.FileMode(h.Mode).Perm(), UID: h.Uid, GID: h.Gid, Modified: h.ModTime}
	for bit, value := range specialBits {
		if h.Mode&value != 0 {
			n.Mode |= bit
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		n.Mode |= fs.ModeDir
	case tar.TypeSymlink:
		n.Mode |= fs.ModeSymlink
		n.Link = h.Linkname
	case tar.TypeFifo:
		n.Mode |= fs.ModeNamedPipe
	case tar.TypeReg:
		content, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n.Content, n.Capability = content, h.PAXRecords[capabilityRecord]
	default:
		return fmt.Errorf("%s: type %q is not stored", name, h.Typeflag)
	}
	t[name] = n
	return nil
}

// Clean returns a path without the leading slash and without "." and ".." elements; "."
// for the root.
func Clean(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return name
}

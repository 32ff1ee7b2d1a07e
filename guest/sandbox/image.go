package sandbox

import (
	"archive/tar"
	"bufio"
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
)

// Bounds of the root of an image.
const (
	maxImageBytes = 256 << 20
	maxImageFiles = 50_000
)

// An ImageError is the reason why the layers of an image are no root.
type ImageError struct{ Reason string }

// Error implements error.
func (e *ImageError) Error() string { return "image: " + e.Reason }

func imageError(format string, args ...any) error {
	return &ImageError{fmt.Sprintf(format, args...)}
}

// Unpack returns the root of an image: its layers over each other, the lowest first, as tar
// archives that gzip may have compressed (OCI Image Format Specification, "Image Layer
// Filesystem Changeset"). It refuses names and links that leave the root, files below a
// link, devices, more than 256 MiB and more than 50,000 files. Nothing is written.
func Unpack(layers ...io.Reader) (Tree, error) {
	out := Tree{}
	size := int64(0)
	for i, r := range layers {
		if err := out.unpack(r, &size); err != nil {
			if refused := new(ImageError); errors.As(err, &refused) {
				return nil, imageError("layer %d of %d: %s", i+1, len(layers), refused.Reason)
			}
			return nil, fmt.Errorf("image: layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	if err := out.checkParents(); err != nil {
		return nil, imageError("%v", err)
	}
	return out, nil
}

// unpack applies a layer to the files of those below it.
func (t Tree) unpack(in io.Reader, size *int64) error {
	b := bufio.NewReader(in)
	var plain io.Reader = b
	if magic, err := b.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		plain = z
	}
	// Headers and padding count, too: an archive of empty files is bounded.
	limited := &io.LimitedReader{R: plain, N: 2*maxImageBytes + 1}
	layer := Tree{}
	r := tar.NewReader(limited)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if limited.N <= 0 {
			return imageError("it has more than %d MiB unpacked", 2*maxImageBytes>>20)
		}
		if err != nil {
			return err
		}
		if Clean(h.Name) == "." && h.Typeflag == tar.TypeDir { // the root itself
			continue
		}
		if *size += max(h.Size, 0); *size > maxImageBytes {
			return imageError("more than %d MiB of files", maxImageBytes>>20)
		}
		if len(t)+len(layer) >= maxImageFiles {
			return imageError("more than %d files", maxImageFiles)
		}
		if h.Typeflag == tar.TypeLink {
			err = layer.link(h, t)
		} else if err = climbs(h); err == nil {
			err = layer.add(h, io.LimitReader(r, h.Size))
		}
		if err != nil {
			return imageError("%v", err)
		}
	}
	if _, err := io.Copy(io.Discard, b); err != nil { // the end of the blob, whose digest the reader checks
		return err
	}
	t.apply(layer)
	return nil
}

// climbs refuses a symbolic link that leads out of the root.
func climbs(h *tar.Header) error {
	if h.Typeflag != tar.TypeSymlink || path.IsAbs(h.Linkname) {
		return nil
	}
	if at := path.Join(path.Dir(Clean(h.Name)), h.Linkname); at == ".." || strings.HasPrefix(at, "../") {
		return fmt.Errorf("link %q to %q leaves the root", h.Name, h.Linkname)
	}
	return nil
}

// link adds a hard link: another name of a file of this layer or of those below.
func (t Tree) link(h *tar.Header, lower Tree) error {
	name, to := Clean(h.Name), Clean(h.Linkname)
	if !fs.ValidPath(name) || strings.Contains("/"+h.Name+"/", "/../") || strings.Contains("/"+h.Linkname+"/", "/../") {
		return fmt.Errorf("link %q to %q leaves the root", h.Name, h.Linkname)
	}
	n, ok := t[to]
	if !ok {
		n, ok = lower[to]
	}
	if !ok || !n.Mode.IsRegular() {
		return fmt.Errorf("link %q: there is no file %q", h.Name, h.Linkname)
	}
	t[name] = n
	return nil
}

// apply puts a layer over the files of those below it.
func (t Tree) apply(layer Tree) {
	for _, name := range slices.Sorted(maps.Keys(layer)) {
		n := layer[name]
		was, there := t[name]
		if n.Removed || n.Opaque || there && was.Mode.IsDir() && !n.Mode.IsDir() {
			for file := range t {
				if file == name && n.Removed || strings.HasPrefix(file, name+"/") {
					delete(t, file)
				}
			}
		}
		if n.Removed {
			continue
		}
		if n.Opaque = false; n.Mode == 0 && n.Content == nil && n.Link == "" { // a whiteout alone made the directory opaque
			if there {
				continue
			}
			n.Mode = fs.ModeDir | 0o755
		}
		t[name] = n
	}
}

// equal reports whether two trees have the same nodes.
func (t Tree) equal(other Tree) bool {
	return maps.EqualFunc(t, other, func(a, b Node) bool {
		return a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Link == b.Link && a.Capability == b.Capability && a.Removed == b.Removed && a.Opaque == b.Opaque &&
			a.Modified.Equal(b.Modified) && bytes.Equal(a.Content, b.Content)
	})
}

package osimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/metalab-dev/metalab/controller/machineconfig/ignition"
)

// Bounds of an image that is read.
const (
	maxEntries = 500_000
	maxContent = 256 << 20 // bytes of files that a COPY copies
)

// entry is a file, directory or link of a root. Names have no leading slash.
type entry struct {
	kind     byte // tar's type
	mode     int64
	uid, gid int
	link     string
	size     int64
	content  []byte // content of a file that a layer adds
}

// tree is the root of an image: names and metadata, without content.
type tree map[string]entry

// list returns the tree of an image.
func list(img v1.Image) (tree, error) {
	out := tree{}
	err := walk(img, func(name string, h *tar.Header, _ io.Reader) error {
		if len(out) >= maxEntries {
			return fmt.Errorf("the image has more than %d files", maxEntries)
		}
		out[name] = entry{kind: h.Typeflag, mode: h.Mode, uid: h.Uid, gid: h.Gid, link: h.Linkname, size: h.Size}
		return nil
	})
	return out, err
}

// walk calls f for each entry of an image's root, as all its layers leave it.
func walk(img v1.Image, f func(name string, h *tar.Header, content io.Reader) error) error {
	r := mutate.Extract(img)
	defer r.Close() // it only releases the layers
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the layers: %w", err)
		}
		name := clean(h.Name)
		if name == "" {
			continue
		}
		if err := f(name, h, t); err != nil {
			return err
		}
	}
}

// clean returns a path without the slashes around it, as the names of a tree are.
func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// maxLinks is how many symbolic links a path may have (Linux, path_resolution(7)).
const maxLinks = 40

// resolve returns the path to which a file is written, after the links among its parents, and an
// error when a parent is no directory. The last element is not followed: a file replaces a link.
func (t tree) resolve(name string) (string, error) {
	links := 0
	parts := strings.Split(clean(name), "/")
	at := ""
	for i := 0; i < len(parts)-1; i++ {
		next := path.Join(at, parts[i])
		e, has := t[next]
		switch {
		case !has || e.kind == tar.TypeDir:
			at = next
		case e.kind == tar.TypeSymlink:
			if links++; links > maxLinks {
				return "", fmt.Errorf("/%s: more than %d links", name, maxLinks)
			}
			if err := ignition.CheckTarget("/"+next, e.link); err != nil {
				return "", fmt.Errorf("/%s: link /%s: %w", name, next, err)
			}
			target := e.link
			if !path.IsAbs(target) {
				target = path.Join("/", at, target)
			}
			rest := append(strings.Split(clean(target), "/"), parts[i+1:]...)
			if clean(target) == "" {
				rest = parts[i+1:]
			}
			parts, at, i = rest, "", -1
		default:
			return "", fmt.Errorf("/%s: /%s is no directory", name, next)
		}
	}
	return path.Join(at, parts[len(parts)-1]), nil
}

// layer holds the files that one step adds to a root.
type layer struct {
	under   tree // the root below, which the layer completes
	entries map[string]entry
}

func newLayer(under tree) *layer { return &layer{under: under, entries: map[string]entry{}} }

// add adds an entry, and the parents that the root lacks.
func (l *layer) add(name string, e entry) error {
	if err := ignition.CheckPath("/" + clean(name)); err != nil {
		return fmt.Errorf("/%s: %w", clean(name), err)
	}
	if e.kind != tar.TypeReg && e.kind != tar.TypeDir && e.kind != tar.TypeSymlink {
		return fmt.Errorf("/%s is a device or of another kind that no image of a configuration has", name)
	}
	resolved, err := l.under.resolve(name)
	if err != nil {
		return err
	}
	if has, ok := l.under[resolved]; ok && has.kind == tar.TypeDir && e.kind != tar.TypeDir {
		return fmt.Errorf("/%s is a directory: a file or link cannot replace it", resolved)
	}
	for dir := path.Dir(resolved); dir != "."; dir = path.Dir(dir) {
		if _, has := l.under[dir]; !has {
			d := entry{kind: tar.TypeDir, mode: 0o755}
			l.under[dir], l.entries[dir] = d, d
		}
	}
	l.under[resolved], l.entries[resolved] = e, e
	return nil
}

// image returns the layer as one of an image. Equal entries give equal bytes.
func (l *layer) image() (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[name]
		h := &tar.Header{Name: name, Typeflag: e.kind, Mode: e.mode, Uid: e.uid, Gid: e.gid, Linkname: e.link, Size: int64(len(e.content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if e.kind == tar.TypeDir {
			h.Name += "/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("/%s: %w", name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("/%s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// read returns the files below a path of an image, by their paths relative to it; the path itself
// is "" when it is a file.
func read(img v1.Image, from string) (map[string]entry, error) {
	from = clean(from)
	out, total := map[string]entry{}, int64(0)
	err := walk(img, func(name string, h *tar.Header, content io.Reader) error {
		rel, below := strings.CutPrefix(name, from+"/")
		switch {
		case name == from && h.Typeflag != tar.TypeDir:
			rel = ""
		case name == from:
			out["."] = entry{kind: tar.TypeDir} // it exists
			return nil
		case from == "":
			rel = name
		case !below:
			return nil
		}
		if total += h.Size; total > maxContent {
			return fmt.Errorf("/%s has more than %d bytes", from, maxContent)
		}
		e := entry{kind: h.Typeflag, mode: h.Mode, uid: h.Uid, gid: h.Gid, link: h.Linkname}
		if h.Typeflag == tar.TypeReg {
			var err error
			if e.content, err = io.ReadAll(content); err != nil {
				return err
			}
		}
		out[rel] = e
		return nil
	})
	if err == nil && len(out) == 0 && from != "" {
		err = fmt.Errorf("there is no /%s", from)
	}
	delete(out, ".")
	return out, err
}

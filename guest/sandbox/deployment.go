package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"weak"
)

// This file holds the roots of a system whose files come from OS images, as OSTree has
// deployments: one that is booted, one that is staged for the next boot, and the previous
// one for a rollback. They are stored with the layer, so that they move, are copied and are
// lost with the disk.

// Deployment identifies a root.
type Deployment struct {
	Image     string   // REPOSITORY@sha256:DIGEST; "": the installation's
	Arguments []string // kernel arguments
}

// Deployments are the roots on the disk of a system.
type Deployments struct {
	Booted           Deployment
	Staged, Previous *Deployment // nil: none
}

// root is a deployment with its files.
type root struct {
	Deployment
	Sum  string   // SHA-256 of content
	Boot string   // ID of the boot in which it was staged
	Drop []string // files whose local copies the first boot of this root removes
	// Etc is the local part of /etc that a rollback to this root restores: an encoded layer.
	Etc []byte
	// Restore makes the first boot of this root restore Etc.
	Restore bool
	Size    int64 // bytes of content

	content []byte // an encoded Tree, empty for the installation
}

// disk is what a Store holds: the layer, and the roots if there are any beside the
// installation.
type disk struct {
	Booted, Staged, Previous *root
	layer                    []byte
}

// diskMagic begins a stored disk that has roots. A layer alone begins with gzip's magic.
var diskMagic = []byte("labroot1")

func (d *disk) roots() []*root { return []*root{d.Booted, d.Staged, d.Previous} }

func (d *disk) encode() ([]byte, error) {
	if d.Booted == nil && d.Staged == nil && d.Previous == nil {
		return d.layer, nil
	}
	head, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	out := binary.BigEndian.AppendUint32(slices.Clone(diskMagic), uint32(len(head)))
	out = append(out, head...)
	for _, r := range d.roots() {
		if r != nil {
			out = append(out, r.content...)
		}
	}
	return append(out, d.layer...), nil
}

func decodeDisk(b []byte) (*disk, error) {
	rest, ok := bytes.CutPrefix(b, diskMagic)
	if !ok {
		return &disk{layer: b}, nil
	}
	short := errors.New("roots: the stored files are cut off")
	if len(rest) < 4 {
		return nil, short
	}
	n := int64(binary.BigEndian.Uint32(rest))
	if rest = rest[4:]; int64(len(rest)) < n {
		return nil, short
	}
	d := &disk{}
	if err := json.Unmarshal(rest[:n], d); err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	rest = rest[n:]
	for _, r := range d.roots() {
		if r == nil {
			continue
		}
		if r.Size < 0 || int64(len(rest)) < r.Size {
			return nil, short
		}
		r.content, rest = rest[:r.Size:r.Size], rest[r.Size:]
	}
	d.layer = rest
	return d, nil
}

// trees shares the decoded roots of systems that have the same image, by the SHA-256 of
// their content: a thousand nodes have one copy.
var trees struct {
	sync.Mutex
	by map[string]weak.Pointer[Tree]
}

// tree returns the files of a root. It refuses content whose digest differs from the stored one.
func (r *root) tree() (*Tree, error) {
	if sum := sha256.Sum256(r.content); hex.EncodeToString(sum[:]) != r.Sum {
		return nil, fmt.Errorf("the root of %s does not match its checksum: it is not booted", r.Image)
	}
	trees.Lock()
	defer trees.Unlock()
	if t := trees.by[r.Sum].Value(); t != nil {
		return t, nil
	}
	t, err := Decode(r.content)
	if err != nil {
		return nil, err
	}
	if trees.by == nil {
		trees.by = map[string]weak.Pointer[Tree]{}
	}
	for sum, p := range trees.by {
		if p.Value() == nil {
			delete(trees.by, sum)
		}
	}
	trees.by[r.Sum] = weak.Make(&t)
	return &t, nil
}

// open reads the disk at the first use of a boot: a root that was staged in an earlier boot
// becomes the booted one. The caller holds s.mu.
func (s *System) open() error {
	if s.opened {
		return nil
	}
	b, err := s.c.Store.Load()
	if err != nil {
		return err
	}
	d, err := decodeDisk(b)
	if err != nil {
		return err
	}
	if d.Staged != nil && d.Staged.Boot != s.c.Boot.ID {
		if err := s.boot(d); err != nil {
			return err
		}
	}
	s.base, s.own = s.c.Base, s.c.Own
	var base lower = sortedNames(s.c.Base)
	if s.c.Root != nil {
		s.root = s.c.Root()
	}
	if s.root != nil {
		s.base, base = nil, Tree{}
	}
	if d.Booted != nil && d.Booted.Image != "" {
		t, err := d.Booted.tree()
		if err != nil {
			return err
		}
		s.image, s.base, base = t, *t, *t
	}
	if d.Booted != nil {
		s.own = maps.Clone(s.own)
		if s.own == nil {
			s.own = Tree{}
		}
		s.own[cmdlineFile] = File(0o444, strings.Join(d.Booted.Arguments, " ")+"\n")
	}
	if d.Booted == nil {
		if err := s.bootOfGrub(d.layer); err != nil {
			return err
		}
	}
	s.lower = over{s.own, base}
	s.opened, s.roots = true, d.Booted != nil || d.Staged != nil || d.Previous != nil
	return nil
}

// cmdlineFile shows the command line of a system's kernel (proc_cmdline(5)).
const cmdlineFile = "proc/cmdline"

// boot makes the staged root of a disk the booted one, and stores that. A root whose content
// is damaged is dropped.
func (s *System) boot(d *disk) error {
	next := d.Staged
	d.Staged = nil
	if next.Image != "" {
		if _, err := next.tree(); err != nil {
			s.report("%v", err)
			return s.store(d)
		}
	}
	layer, err := Decode(d.layer)
	if err != nil {
		return err
	}
	was := d.Booted
	if was == nil {
		was = &root{}
	}
	if was.Etc, err = below(layer, "etc").Encode(); err != nil {
		return err
	}
	if next.Restore {
		for name := range below(layer, "etc") {
			delete(layer, name)
		}
		etc, err := Decode(next.Etc)
		if err != nil {
			return err
		}
		for name, n := range etc {
			layer[name] = n
		}
	}
	for _, name := range next.Drop {
		for file := range layer {
			if file == name || strings.HasPrefix(file, name+"/") {
				delete(layer, file)
			}
		}
	}
	next.Drop, next.Etc, next.Restore, was.Restore, was.Drop = nil, nil, false, false, nil
	d.Booted, d.Previous = next, was
	if d.layer, err = layer.Encode(); err != nil {
		return err
	}
	return s.store(d)
}

// below returns the nodes of a directory.
func below(t Tree, dir string) Tree {
	out := Tree{}
	for name, n := range t {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			out[name] = n
		}
	}
	return out
}

func (s *System) store(d *disk) error {
	b, err := d.encode()
	if err != nil {
		return err
	}
	return s.c.Store.Save(b)
}

// changeRoots changes the roots of the disk, all or nothing.
func (s *System) changeRoots(change func(*disk) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.open(); err != nil {
		return err
	}
	b, err := s.c.Store.Load()
	if err != nil {
		return err
	}
	d, err := decodeDisk(b)
	if err != nil {
		return err
	}
	if err := change(d); err != nil {
		return err
	}
	s.roots = d.Booted != nil || d.Staged != nil || d.Previous != nil
	return s.store(d)
}

// Stage writes a root to the disk, which the next boot boots. The present root does not
// change. files is the root's whole content; nil keeps the files of the booted root and
// changes only the kernel's arguments. The first boot removes the local copies of the files
// that drop names, so that those of the image are seen. A root that is staged already is
// replaced.
func (s *System) Stage(x Deployment, files Tree, drop []string) error {
	if x.Image != "" && files == nil || x.Image == "" && files != nil {
		return errors.New("a root of an image has files, and the installation's has none to write")
	}
	r := &root{Deployment: x, Boot: s.c.Boot.ID}
	for _, name := range drop {
		file := Clean(name)
		if file == "." || !path.IsAbs(name) {
			return fmt.Errorf("%q: give the absolute path of a file", name)
		}
		r.Drop = append(r.Drop, file)
	}
	if files != nil {
		content, err := files.Encode()
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		r.content, r.Size, r.Sum = content, int64(len(content)), hex.EncodeToString(sum[:])
	}
	return s.changeRoots(func(d *disk) error { d.Staged = r; return nil })
}

// StageInstalled stages a root of files that are on the disk already, with other arguments
// of the kernel: those of the booted image, or of the previous one.
func (s *System) StageInstalled(x Deployment, drop []string) (ok bool, err error) {
	err = s.changeRoots(func(d *disk) error {
		for _, r := range []*root{d.Booted, d.Previous} {
			if r == nil || r.Image != x.Image || r.Image == "" {
				continue
			}
			staged := &root{Deployment: x, Sum: r.Sum, Size: r.Size, content: r.content, Boot: s.c.Boot.ID}
			for _, name := range drop {
				staged.Drop = append(staged.Drop, Clean(name))
			}
			d.Staged, ok = staged, true
			return nil
		}
		return nil
	})
	return ok, err
}

// Unstage removes the root that is staged, if there is one.
func (s *System) Unstage() error {
	return s.changeRoots(func(d *disk) error { d.Staged = nil; return nil })
}

// Rollback stages the previous root with the /etc that it had.
func (s *System) Rollback() error {
	return s.changeRoots(func(d *disk) error {
		if d.Previous == nil {
			return errors.New("there is no previous root to go back to")
		}
		back := *d.Previous
		back.Boot, back.Restore = s.c.Boot.ID, true
		d.Staged = &back
		return nil
	})
}

// Deployments returns the roots on the disk.
func (s *System) Deployments() (out Deployments, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return out, ErrClosed
	}
	if err := s.open(); err != nil {
		return out, err
	}
	b, err := s.c.Store.Load()
	if err != nil {
		return out, err
	}
	d, err := decodeDisk(b)
	if err != nil {
		return out, err
	}
	if d.Booted != nil {
		out.Booted = d.Booted.Deployment
	}
	if d.Staged != nil {
		out.Staged = &d.Staged.Deployment
	}
	if d.Previous != nil {
		out.Previous = &d.Previous.Deployment
	}
	return out, nil
}

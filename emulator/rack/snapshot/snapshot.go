// Package snapshot saves the files of a lab to a directory or a tar file, with the
// holes of its disks, and loads them. It owns that format and how holes are copied.
// It knows neither what the files mean nor when they may be read.
package snapshot

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Info describes a snapshot.
type Info struct {
	Format int       `json:"format"` // version of the format: 1
	Name   string    `json:"name"`   // name of the lab
	Seed   uint64    `json:"seed"`
	Hosts  int       `json:"hosts"`
	Time   time.Time `json:"time"`           // the lab's time
	Sums   bool      `json:"sums,omitempty"` // it ends with sumsFile: not in one of an earlier release
}

// format is the format that Save writes. Open refuses others.
const format = 1

// infoFile is the first file of a snapshot.
const infoFile = "snapshot.json"

// ErrNone means that there is no snapshot in a place.
var ErrNone = errors.New("there is no snapshot")

// Progress is called with the bytes that were copied and those that there are. Holes
// do not count.
type Progress func(done, all int64)

// isTar reports whether a name is that of a tar file.
func isTar(name string) bool { return strings.HasSuffix(name, ".tar") }

// Save writes the files of dir whose names keep accepts to a new tar file when to
// ends in .tar, else to a new directory. It leaves nothing behind when it fails.
func Save(ctx context.Context, dir, to string, info Info, keep func(name string) bool, report Progress) (err error) {
	info.Format, info.Sums = format, true
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists: choose another name", to)
	}
	files, all, err := list(dir, keep)
	if err != nil {
		return err
	}
	part := to + "." + rand.Text() + ".part" // a name that no other file has
	defer func() {
		if err == nil {
			err = os.Rename(part, to)
		}
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	head, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	m := &progress{ctx: ctx, all: all, report: report}
	if isTar(to) {
		return saveTar(part, head, files, m)
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return err
	}
	written := sums{}
	for _, f := range files {
		if err := f.copyTo(filepath.Join(part, f.name), m); err != nil {
			return err
		}
		if err := written.add(part, f.name); err != nil {
			return err
		}
	}
	tail, err := written.encode()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(part, sumsFile), tail, 0o600), os.WriteFile(filepath.Join(part, infoFile), head, 0o600))
}

// file is a file of the lab and where its data is.
type file struct {
	path, name string // name has slashes
	size       int64
	mode       fs.FileMode
	data       []extent
}

// extent is a range of a file that is not a hole.
type extent struct{ off, n int64 }

func (f *file) bytes() (n int64) {
	for _, e := range f.data {
		n += e.n
	}
	return n
}

// list returns the files of a directory, and how many bytes of data they hold.
func list(dir string, keep func(name string) bool) (files []*file, all int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !keep(filepath.ToSlash(name)) {
			return err
		}
		f := &file{path: path, name: filepath.ToSlash(name)}
		if err := f.findData(); err != nil {
			return err
		}
		files, all = append(files, f), all+f.bytes()
		return nil
	})
	return files, all, err
}

// findData finds the file's extents.
func (f *file) findData() error {
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	f.size, f.mode = st.Size(), st.Mode().Perm()
	f.data, err = extents(in, f.size)
	return err
}

// copyTo copies the file with its holes.
func (f *file) copyTo(to string, m *progress) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode|0o600)
	if err != nil {
		return err
	}
	if clone(out, in) == nil {
		m.add(f.bytes())
		return out.Close()
	}
	err = out.Truncate(f.size)
	for _, e := range f.data {
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(out, e.off), m.reader(io.NewSectionReader(in, e.off, e.n)))
		}
	}
	return errors.Join(err, out.Close())
}

// Open reads the description of a snapshot.
func Open(from string) (Info, error) {
	var raw []byte
	st, err := os.Stat(from)
	switch {
	case err != nil:
	case st.IsDir():
		raw, err = os.ReadFile(filepath.Join(from, infoFile))
	default:
		raw, err = tarInfo(from)
	}
	switch {
	case err == nil && len(raw) == 0, errors.Is(err, errCut):
		return Info{}, damaged(from, "it is empty, or cut off in "+infoFile)
	case err != nil:
		return Info{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var info Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return Info{}, fmt.Errorf("%w: %s: %w", ErrNone, from, err)
	}
	if info.Format != format {
		return Info{}, fmt.Errorf("%s has format %d: this release reads %d", from, info.Format, format)
	}
	return info, nil
}

// Load writes the files of a snapshot to a new directory. It refuses a snapshot that lacks files,
// or has others than were saved.
func Load(ctx context.Context, from, dir string, report Progress) (err error) {
	info, err := Open(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	m := &progress{ctx: ctx, report: report}
	var tail []byte
	if st, serr := os.Stat(from); serr == nil && st.IsDir() {
		tail, err = loadDir(from, dir, m)
	} else {
		tail, err = loadTar(from, dir, m)
	}
	switch {
	case err != nil:
		return err
	case !info.Sums:
		return nil
	case tail == nil:
		return damaged(from, "it ends before "+sumsFile)
	}
	want, err := decodeSums(from, tail)
	if err != nil {
		return err
	}
	return want.check(from, dir)
}

// loadDir copies the files of a directory, and returns its sumsFile; nil when it has none.
func loadDir(from, dir string, m *progress) (tail []byte, err error) {
	var files []*file
	files, m.all, err = list(from, func(name string) bool { return name != infoFile && name != sumsFile })
	for _, f := range files {
		if err == nil {
			err = f.copyTo(filepath.Join(dir, filepath.FromSlash(f.name)), m)
		}
	}
	if err == nil {
		tail, err = os.ReadFile(filepath.Join(from, sumsFile))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return tail, nil
}

// progress counts copied bytes, and stops a copy when its context ends.
type progress struct {
	ctx       context.Context
	done, all int64
	report    Progress
}

func (m *progress) add(n int64) {
	m.done += n
	if m.report != nil {
		m.report(m.done, m.all)
	}
}

func (m *progress) reader(r io.Reader) io.Reader { return &progressReader{r, m} }

type progressReader struct {
	io.Reader
	m *progress
}

// Read implements io.Reader.
func (r *progressReader) Read(b []byte) (int, error) {
	if r.m.ctx.Err() != nil {
		return 0, context.Cause(r.m.ctx)
	}
	n, err := r.Reader.Read(b)
	r.m.add(int64(n))
	return n, err
}

// PAX records of a tar file. A file with holes is stored as its data only, one
// extent after the other; the records say where the extents belong. (archive/tar
// cannot write GNU tar's sparse formats.)
const (
	sizeRecord    = "METALAB.size"
	extentsRecord = "METALAB.extents" // off+n,off+n,…
)

func saveTar(to string, head []byte, files []*file, m *progress) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	err = w.WriteHeader(&tar.Header{Name: infoFile, Mode: 0o600, Size: int64(len(head)), Format: tar.FormatPAX})
	if err == nil {
		_, err = w.Write(head)
	}
	written := sums{}
	for _, f := range files {
		if err == nil {
			err = f.pack(w, written, m)
		}
	}
	var tail []byte
	if err == nil {
		tail, err = written.encode()
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: sumsFile, Mode: 0o600, Size: int64(len(tail)), Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = w.Write(tail)
	}
	return errors.Join(err, w.Close(), out.Close())
}

func (f *file) pack(w *tar.Writer, written sums, m *progress) error {
	h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: f.bytes(), Format: tar.FormatPAX}
	if f.bytes() != f.size {
		var at []string
		for _, e := range f.data {
			at = append(at, fmt.Sprintf("%d+%d", e.off, e.n))
		}
		h.PAXRecords = map[string]string{sizeRecord: strconv.FormatInt(f.size, 10), extentsRecord: strings.Join(at, ",")}
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	content := crc32.New(castagnoli) // of what is written: a disk may change meanwhile
	for _, e := range f.data {
		if _, err := io.Copy(io.MultiWriter(w, content), m.reader(io.NewSectionReader(in, e.off, e.n))); err != nil {
			return err
		}
	}
	line := sum{Size: f.size}
	if f.bytes() == f.size && f.size < large {
		line.CRC = crcText(content)
	}
	written[f.name] = line
	return nil
}

func tarInfo(from string) ([]byte, error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r := tar.NewReader(in)
	h, err := r.Next()
	if (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && begins(in) {
		return nil, errCut
	}
	if err != nil || h.Name != infoFile {
		return nil, errors.Join(fmt.Errorf("%s does not begin with %s", from, infoFile), err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errCut
	}
	return raw, err
}

// errCut means that a tar file ends in its first file.
var errCut = errors.New("it is cut off")

// begins reports whether a tar file is empty or begins with the name of its first file, or with a
// part of it.
func begins(in io.ReaderAt) bool {
	b := make([]byte, len(infoFile))
	n, err := in.ReadAt(b, 0)
	return (err == nil || errors.Is(err, io.EOF)) && strings.HasPrefix(infoFile, string(b[:n]))
}

// loadTar copies the files of a tar file, and returns its sumsFile; nil when it has none.
func loadTar(from, dir string, m *progress) (tail []byte, err error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	m.all = st.Size()
	r := tar.NewReader(in)
	last := infoFile
	for {
		h, err := r.Next()
		if err == nil {
			last = h.Name
		}
		switch {
		case errors.Is(err, io.EOF):
			return tail, nil
		case err != nil:
		case h.Name == infoFile:
		case h.Name == sumsFile:
			tail, err = io.ReadAll(io.LimitReader(r, 1<<30))
		case h.Typeflag != tar.TypeReg || !fs.ValidPath(h.Name):
			return nil, fmt.Errorf("%s: %q is no file of a lab", from, h.Name)
		default:
			err = unpack(r, h, filepath.Join(dir, filepath.FromSlash(h.Name)), m)
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			return nil, damaged(from, "it is cut off in or after "+last)
		case errors.Is(err, tar.ErrHeader):
			return nil, damaged(from, "what follows "+last+" is no file")
		case err != nil:
			return nil, fmt.Errorf("%s: %w", last, err)
		}
	}
}

func unpack(r io.Reader, h *tar.Header, to string, m *progress) error {
	size, data := h.Size, []extent{{0, h.Size}}
	if s, ok := h.PAXRecords[sizeRecord]; ok {
		var err error
		if size, err = strconv.ParseInt(s, 10, 64); err != nil || size < 0 {
			return fmt.Errorf("%s is %q", sizeRecord, s)
		}
		data = nil
		for part := range strings.SplitSeq(h.PAXRecords[extentsRecord], ",") {
			if part == "" {
				continue
			}
			var e extent
			if _, err := fmt.Sscanf(part, "%d+%d", &e.off, &e.n); err != nil || e.off < 0 || e.n < 0 || e.off > size-e.n {
				return fmt.Errorf("%s has %q", extentsRecord, part)
			}
			data = append(data, e)
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode).Perm()|0o600)
	if err != nil {
		return err
	}
	err = out.Truncate(size)
	for _, e := range data {
		if err == nil {
			_, err = io.CopyN(io.NewOffsetWriter(out, e.off), m.reader(r), e.n)
		}
	}
	return errors.Join(err, out.Close())
}

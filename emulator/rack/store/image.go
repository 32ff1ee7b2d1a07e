package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// imageDir is a directory of image files, each of a host and an ID. It names the
// images in errors too.
type imageDir string

const (
	mediaDir   imageDir = "media"   // images of virtual media; the ID is that of the slot
	updatesDir imageDir = "updates" // images of firmware updates in progress
)

// Image identifies an image of one host.
type Image struct{ Host, ID string }

// Incoming is an image that is being written.
type Incoming struct {
	*os.File
	store *Store
	of    imageDir
	final string
}

func (s *Store) image(of imageDir, host, id string) string {
	return filepath.Join(s.dir, string(of), url.PathEscape(host)+"-"+url.PathEscape(id))
}

func (of imageDir) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", of, err)
}

// incoming creates a file for an image. Keep gives it its final name; until then it
// can be dropped, and KeepMedia or KeepUpdates remove it after a restart.
func (s *Store) incoming(of imageDir, final, part string, flag int) (*Incoming, error) {
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|flag, 0o600)
	if err != nil {
		return nil, of.failed(err)
	}
	return &Incoming{File: f, store: s, of: of, final: final}, nil
}

// Write implements io.Writer.
func (i *Incoming) Write(p []byte) (int, error) {
	if err := i.store.use(len(p)); err != nil {
		return 0, i.of.failed(err)
	}
	return i.File.Write(p)
}

// WriteString implements io.StringWriter by Write: that of the file would not ask for
// space.
func (i *Incoming) WriteString(s string) (int, error) { return i.Write([]byte(s)) }

// ReadFrom implements io.ReaderFrom, in the same way.
func (i *Incoming) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{i}, r)
}

// Keep closes the image and gives it its final name.
func (i *Incoming) Keep() error {
	var err error
	if i.store.fsync {
		err = i.Sync()
	}
	if err = errors.Join(err, i.Close()); err == nil {
		err = os.Rename(i.Name(), i.final)
	}
	if err == nil && i.store.fsync {
		err = syncDir(filepath.Dir(i.final))
	}
	if err != nil {
		_ = os.RemoveAll(i.Name()) // when it still exists
	}
	return i.of.failed(err)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Drop closes and removes the image.
func (i *Incoming) Drop() error { return i.of.failed(errors.Join(i.Close(), os.Remove(i.Name()))) }

// openImage opens an image. Its error is fs.ErrNotExist when there is none.
func (s *Store) openImage(of imageDir, host, id string) (*os.File, error) {
	f, err := os.Open(s.image(of, host, id))
	return f, of.failed(err)
}

// removeImage removes an image, if there is one. Open files of it stay readable.
func (s *Store) removeImage(of imageDir, host, id string) error {
	err := os.Remove(s.image(of, host, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return of.failed(err)
}

// keepImages removes all images but the given ones.
func (s *Store) keepImages(of imageDir, keep []Image) error {
	keepNames := map[string]bool{}
	for _, k := range keep {
		keepNames[filepath.Base(s.image(of, k.Host, k.ID))] = true
	}
	dir := filepath.Join(s.dir, string(of))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return of.failed(err)
	}
	for _, e := range entries {
		if keepNames[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return of.failed(err)
		}
	}
	return nil
}

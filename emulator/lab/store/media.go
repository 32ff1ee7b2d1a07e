package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

const mediaDir = "media"

func (s *Store) media(host, slot string) string {
	return filepath.Join(s.dir, mediaDir, url.PathEscape(host)+"-"+url.PathEscape(slot))
}

// Incoming is an image on its way into a slot of a host's virtual media, or to
// its firmware.
type Incoming struct {
	*os.File
	store *Store
	final string
}

// NewMedia makes a file for the fetch-th image of a host. It becomes what the
// slot holds with Keep; until then it can be dropped, and a restart drops it.
func (s *Store) NewMedia(host, slot string, fetch uint64) (*Incoming, error) {
	final := s.media(host, slot)
	f, err := os.OpenFile(fmt.Sprintf("%s.%d.part", final, fetch), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: media: %w", err)
	}
	return &Incoming{File: f, store: s, final: final}, nil
}

// Keep makes the image what its slot holds, and closes it.
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
		_ = os.RemoveAll(i.Name()) // if it is there still
		return fmt.Errorf("store: media: %w", err)
	}
	return nil
}

// syncDir makes the names in a directory as durable as the files are.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Drop removes the image.
func (i *Incoming) Drop() error {
	if err := errors.Join(i.Close(), os.Remove(i.Name())); err != nil {
		return fmt.Errorf("store: media: %w", err)
	}
	return nil
}

// Media opens the image that a slot holds; the error is fs.ErrNotExist when
// there is none.
func (s *Store) Media(host, slot string) (*os.File, error) {
	f, err := os.Open(s.media(host, slot))
	if err != nil {
		return nil, fmt.Errorf("store: media: %w", err)
	}
	return f, nil
}

// RemoveMedia removes the image that a slot holds. Who has it open can read on.
func (s *Store) RemoveMedia(host, slot string) error {
	if err := os.Remove(s.media(host, slot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: media: %w", err)
	}
	return nil
}

// Slot names a slot of one host.
type Slot struct{ Host, Slot string }

// KeepMedia removes all images but those of the given slots.
func (s *Store) KeepMedia(keep []Slot) error {
	kept := map[string]bool{}
	for _, k := range keep {
		kept[filepath.Base(s.media(k.Host, k.Slot))] = true
	}
	return s.keepOnly(mediaDir, kept)
}

// keepOnly removes the files of a directory but some.
func (s *Store) keepOnly(name string, kept map[string]bool) error {
	dir := filepath.Join(s.dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	for _, e := range entries {
		if kept[e.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("store: %s: %w", name, err)
		}
	}
	return nil
}

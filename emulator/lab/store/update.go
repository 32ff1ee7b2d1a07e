package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// updatesDir is where firmware images are while updates with them are under
// way.
const updatesDir = "updates"

func (s *Store) update(host, id string) string {
	return filepath.Join(s.dir, updatesDir, url.PathEscape(host)+"-"+url.PathEscape(id))
}

// NewUpdate makes a file for a firmware image of a host, and gives it an ID
// that no other of its images has. It stays with Keep; until then it can be
// dropped, and a restart drops it.
func (s *Store) NewUpdate(host string) (*Incoming, string, error) {
	for n := 1; ; n++ {
		id := strconv.Itoa(n)
		final := s.update(host, id)
		if _, err := os.Lstat(final); err == nil {
			continue
		}
		f, err := os.OpenFile(final+".part", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, fs.ErrExist): // another is coming
			continue
		case err != nil:
			return nil, "", fmt.Errorf("store: update: %w", err)
		}
		return &Incoming{File: f, store: s, final: final}, id, nil
	}
}

// Update opens a firmware image; the error is fs.ErrNotExist when there is
// none.
func (s *Store) Update(host, id string) (*os.File, error) {
	f, err := os.Open(s.update(host, id))
	if err != nil {
		return nil, fmt.Errorf("store: update: %w", err)
	}
	return f, nil
}

// RemoveUpdate removes a firmware image, if there is one.
func (s *Store) RemoveUpdate(host, id string) error {
	if err := os.Remove(s.update(host, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: update: %w", err)
	}
	return nil
}

// Image names a firmware image of one host.
type Image struct{ Host, ID string }

// KeepUpdates removes all firmware images but those given.
func (s *Store) KeepUpdates(keep []Image) error {
	kept := map[string]bool{}
	for _, k := range keep {
		kept[filepath.Base(s.update(k.Host, k.ID))] = true
	}
	return s.keepOnly(updatesDir, kept)
}

package store

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// NewUpdate creates a file for a firmware image of a host, and returns an ID that no
// other of the host's images has.
func (s *Store) NewUpdate(host string) (*Incoming, string, error) {
	for n := 1; ; n++ {
		id := strconv.Itoa(n)
		final := s.image(updatesDir, host, id)
		if _, err := os.Lstat(final); err == nil {
			continue
		}
		in, err := s.incoming(updatesDir, final, final+".part", os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) { // else another image with this ID is being written
			return in, id, err
		}
	}
}

// Update opens a firmware image. Its error is fs.ErrNotExist when there is none.
func (s *Store) Update(host, id string) (*os.File, error) { return s.openImage(updatesDir, host, id) }

// RemoveUpdate removes a firmware image, if there is one.
func (s *Store) RemoveUpdate(host, id string) error { return s.removeImage(updatesDir, host, id) }

// KeepUpdates removes all firmware images but the given ones.
func (s *Store) KeepUpdates(keep []Image) error { return s.keepImages(updatesDir, keep) }

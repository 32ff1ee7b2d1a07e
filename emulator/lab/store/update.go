package store

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// NewUpdate makes a file for a firmware image of a host, and gives it an ID
// that no other of its images has.
func (s *Store) NewUpdate(host string) (*Incoming, string, error) {
	for n := 1; ; n++ {
		id := strconv.Itoa(n)
		final := s.image(updatesDir, host, id)
		if _, err := os.Lstat(final); err == nil {
			continue
		}
		in, err := s.incoming(updatesDir, final, final+".part", os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) { // else another is coming
			return in, id, err
		}
	}
}

// Update opens a firmware image; the error is fs.ErrNotExist when there is
// none.
func (s *Store) Update(host, id string) (*os.File, error) { return s.openImage(updatesDir, host, id) }

// RemoveUpdate removes a firmware image, if there is one.
func (s *Store) RemoveUpdate(host, id string) error { return s.removeImage(updatesDir, host, id) }

// KeepUpdates removes all firmware images but those given.
func (s *Store) KeepUpdates(keep []Image) error { return s.keepImages(updatesDir, keep) }

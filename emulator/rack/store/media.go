package store

import (
	"fmt"
	"os"
)

// NewMedia creates a file for the fetch-th image of a host's slot. Keep makes it the
// content of the slot.
func (s *Store) NewMedia(host, slot string, fetch uint64) (*Incoming, error) {
	final := s.image(mediaDir, host, slot)
	return s.incoming(mediaDir, final, fmt.Sprintf("%s.%d.part", final, fetch), os.O_TRUNC)
}

// Media opens the image in a slot. Its error is fs.ErrNotExist when there is none.
func (s *Store) Media(host, slot string) (*os.File, error) { return s.openImage(mediaDir, host, slot) }

// RemoveMedia removes the image in a slot. Open files of it stay readable.
func (s *Store) RemoveMedia(host, slot string) error { return s.removeImage(mediaDir, host, slot) }

// KeepMedia removes all images but those in the given slots.
func (s *Store) KeepMedia(keep []Image) error { return s.keepImages(mediaDir, keep) }

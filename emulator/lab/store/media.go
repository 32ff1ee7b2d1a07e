package store

import (
	"fmt"
	"os"
)

// NewMedia makes a file for the fetch-th image of a host's slot, which holds it
// from Keep on.
func (s *Store) NewMedia(host, slot string, fetch uint64) (*Incoming, error) {
	final := s.image(mediaDir, host, slot)
	return s.incoming(mediaDir, final, fmt.Sprintf("%s.%d.part", final, fetch), os.O_TRUNC)
}

// Media opens the image that a slot holds; the error is fs.ErrNotExist when
// there is none.
func (s *Store) Media(host, slot string) (*os.File, error) { return s.openImage(mediaDir, host, slot) }

// RemoveMedia removes the image that a slot holds. Who has it open can read on.
func (s *Store) RemoveMedia(host, slot string) error { return s.removeImage(mediaDir, host, slot) }

// KeepMedia removes all images but those of the given slots.
func (s *Store) KeepMedia(keep []Image) error { return s.keepImages(mediaDir, keep) }

package images

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// algorithms are the checksum types of BareMetalHost, by the suffix of the checksum
// file. MD5 protects against accidents only, but some clients support no other.
var algorithms = []struct {
	suffix string
	make   func() hash.Hash
}{
	{".sha256", sha256.New},
	{".sha512", sha512.New},
	{".md5", md5.New},
}

const listSuffix = ".sha256" // suffix of the algorithm that a listing shows

// cutSum splits the name of a checksum file.
func cutSum(file string) (name, suffix string, ok bool) {
	for _, a := range algorithms {
		if name, ok := strings.CutSuffix(file, a.suffix); ok && name != "" {
			return name, a.suffix, true
		}
	}
	return "", "", false
}

// errChanged says that a file was written while it was read.
var errChanged = errors.New("file changed while it was read")

// sums caches the checksums of files until their size or modification time changes.
// A second request for a checksum that is being computed waits for it. The zero
// value is ready for use. It is safe for concurrent use.
type sums struct {
	mu    sync.Mutex
	known map[checksumKey]*sum
}

type checksumKey struct{ name, suffix string }

type sum struct {
	size    int64 // bytes
	changed time.Time

	done chan struct{} // closed when the rest is set
	hex  string
	err  error
}

// maxSums is how many checksums are cached; then the cache is emptied.
const maxSums = 4096

// checksum returns the checksum of an open file, whose offset it moves.
func (s *sums) checksum(f *os.File, name, suffix string) (*sum, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	key := checksumKey{name, suffix}
	s.mu.Lock()
	if e := s.known[key]; e != nil && e.describes(info) {
		s.mu.Unlock()
		<-e.done
		return e, e.err
	}
	if s.known == nil || len(s.known) >= maxSums {
		s.known = map[checksumKey]*sum{}
	}
	e := &sum{size: info.Size(), changed: info.ModTime(), done: make(chan struct{})}
	s.known[key] = e
	s.mu.Unlock()

	e.compute(f, suffix)
	close(e.done)
	if e.err != nil {
		s.mu.Lock()
		if s.known[key] == e {
			delete(s.known, key)
		}
		s.mu.Unlock()
	}
	return e, e.err
}

func (e *sum) describes(info fs.FileInfo) bool {
	return e.size == info.Size() && e.changed.Equal(info.ModTime())
}

func (e *sum) compute(f *os.File, suffix string) {
	var h hash.Hash
	for _, a := range algorithms {
		if a.suffix == suffix {
			h = a.make()
		}
	}
	n, err := io.Copy(h, f)
	if err != nil {
		e.err = err
		return
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		e.err = err
	case n != e.size || !e.describes(info):
		e.err = errChanged
	}
	e.hex = hex.EncodeToString(h.Sum(nil))
}

// line returns the content of a checksum file, in the form of sha256sum.
func (e *sum) line(name string) string {
	return fmt.Sprintf("%s  %s\n", e.hex, name)
}

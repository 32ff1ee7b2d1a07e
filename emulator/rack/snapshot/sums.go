package snapshot

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// sumsFile is the last file of a snapshot: the sizes and checksums of the others. A tar file that
// was cut between two files would else be a whole one.
const sumsFile = "snapshot.sums"

// large is the size in bytes from which on a file has no checksum: a directory may share the
// blocks of a disk with the lab, and is made without reading them. In a tar file, one with holes
// has none, either.
const large = 64 << 20

// sum is the line of a file.
type sum struct {
	Size int64  `json:"size"` // bytes, with holes
	CRC  string `json:"crc32c,omitempty"`
}

// sums has the files by name.
type sums map[string]sum

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crcText(h hash.Hash32) string { return fmt.Sprintf("%08x", h.Sum32()) }

// add adds the file of a directory.
func (s sums) add(dir, name string) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	line := sum{Size: st.Size()}
	if line.Size < large {
		h := crc32.New(castagnoli)
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		line.CRC = crcText(h)
	}
	s[name] = line
	return nil
}

// check compares the files that a snapshot was loaded to with the lines.
func (s sums) check(from, dir string) error {
	is := sums{}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return damaged(from, "it lacks "+name)
		}
		if err := is.add(dir, name); err != nil {
			return err
		}
		switch want, got := s[name], is[name]; {
		case got.Size != want.Size:
			return damaged(from, fmt.Sprintf("%s has %d bytes and had %d", name, got.Size, want.Size))
		case want.CRC != "" && got.CRC != want.CRC:
			return damaged(from, name+" was changed")
		}
	}
	return nil
}

// encode returns the content of sumsFile.
func (s sums) encode() ([]byte, error) { return json.Marshal(s) }

// decodeSums reads the content of sumsFile.
func decodeSums(from string, raw []byte) (s sums, err error) {
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return nil, damaged(from, sumsFile+" has no list of files")
	}
	return s, nil
}

// damaged returns the error for a snapshot that is not as it was saved.
func damaged(from, detail string) error {
	return fmt.Errorf("%s is damaged: %s: copy it again from where it is whole, or use another snapshot", from, detail)
}

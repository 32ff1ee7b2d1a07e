package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the files that Ensure creates.
const (
	DemoRaw   = "metalab-demo.img"
	DemoQCOW2 = "metalab-demo.qcow2"
)

// DemoSpace is how many bytes the files that Ensure creates take at most.
const DemoSpace = 8 << 20

// Image is an image file.
type Image struct {
	Name   string
	Path   string
	Format string // raw or qcow2, as BareMetalHost spells them
	SHA256 string // hex
	Size   int64  // bytes of the file
}

// Ensure writes the demo image to a directory in both formats, and describes the
// files. It does not change a file of another image: a user may have put it there. A
// demo image that is empty, cut off or changed in places is written again. Files are
// written atomically.
func Ensure(dir string) ([]Image, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	raw, err := Build()
	if err != nil {
		return nil, err
	}
	qcow, err := QCOW2(raw)
	if err != nil {
		return nil, err
	}
	var made []Image
	for _, f := range []struct {
		name, format string
		content      []byte
	}{
		{DemoRaw, "raw", raw},
		{DemoQCOW2, "qcow2", qcow},
	} {
		target := filepath.Join(dir, f.name)
		missing, err := missingOrDamaged(target, f.content)
		if err != nil {
			return nil, err
		}
		if missing {
			if err := writeAtomically(target, f.content); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		m, err := describe(target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		m.Format = f.format
		made = append(made, m)
	}
	return made, nil
}

// missingOrDamaged reports whether a file has to be written: it is not there, empty, or
// most of its blocks are those of content but not all.
func missingOrDamaged(target string, content []byte) (bool, error) {
	st, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case st.IsDir():
		return false, fmt.Errorf("%s is a directory: move it away: the lab makes a file there", target)
	case st.Size() > int64(len(content)):
		return false, nil
	}
	b, err := os.ReadFile(target)
	if err != nil || bytes.Equal(b, content) {
		return false, err
	}
	const block = 4096
	zeros := make([]byte, block)
	same, all := 0, 0
	for at := 0; at < len(b); at += block {
		end := min(at+block, len(b))
		is, want := b[at:end], content[at:end]
		if equal := bytes.Equal(is, want); !equal || !bytes.Equal(is, zeros[:len(is)]) { // zeros are in any image
			all++
			if equal {
				same++
			}
		}
	}
	return 2*same > all || all == 0, nil
}

// writeAtomically writes a file under a hidden name, which Server does not serve,
// and renames it. It syncs: after a power cut an empty file would be taken for a
// user's file.
func writeAtomically(target string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

func describe(target string) (Image, error) {
	f, err := os.Open(target)
	if err != nil {
		return Image{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return Image{}, err
	}
	return Image{Name: filepath.Base(target), Path: target, SHA256: hex.EncodeToString(h.Sum(nil)), Size: size}, nil
}

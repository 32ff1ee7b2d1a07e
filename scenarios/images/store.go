package images

import (
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

// Image is an image file.
type Image struct {
	Name   string
	Path   string
	Format string // raw or qcow2, as BareMetalHost spells them
	SHA256 string // hex
	Size   int64  // bytes of the file
}

// Ensure writes the demo image to a directory in both formats, and describes the
// files. It does not change a file that exists: a user may have put it there. Files
// are written atomically.
func Ensure(dir string) ([]Image, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("images: %w", err)
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
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			if err := writeAtomically(target, f.content); err != nil {
				return nil, fmt.Errorf("images: %s: %w", f.name, err)
			}
		}
		m, err := describe(target)
		if err != nil {
			return nil, fmt.Errorf("images: %s: %w", f.name, err)
		}
		m.Format = f.format
		made = append(made, m)
	}
	return made, nil
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

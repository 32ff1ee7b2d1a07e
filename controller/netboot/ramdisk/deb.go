package ramdisk

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxFile is the most bytes of a package's file that are read into memory.
const maxFile = 256 << 20

// unpackers are the supported compressions, by file extension.
var unpackers = map[string]func(io.Reader) (io.Reader, error){
	".gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	".xz":  func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) },
	".zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
}

func unpack(name string, r io.Reader) (io.Reader, error) {
	if open := unpackers[path.Ext(name)]; open != nil {
		return open(r)
	}
	return r, nil
}

// Layout of an ar(1) archive: a Debian package is one (deb(5)).
const (
	arMagic  = "!<arch>\n"
	arHeader = 60 // bytes, before each member
)

// readDeb calls take for each regular file that a package installs.
func readDeb(name string, take func(name string, r io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != arMagic {
		return fmt.Errorf("%s: not a Debian package", name)
	}
	for {
		head := make([]byte, arHeader)
		if _, err := io.ReadFull(f, head); err != nil {
			return fmt.Errorf("%s: no member data.tar: %w", name, err)
		}
		member := strings.TrimRight(strings.TrimSpace(string(head[:16])), "/")
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		if err != nil || size < 0 || !bytes.Equal(head[58:], []byte("`\n")) {
			return fmt.Errorf("%s: a member's header is damaged", name)
		}
		if strings.HasPrefix(member, "data.tar") {
			if err := readTar(member, io.LimitReader(f, size), take); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
		if _, err := f.Seek(size+size%2, io.SeekCurrent); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func readTar(member string, r io.Reader, take func(name string, r io.Reader) error) error {
	r, err := unpack(strings.TrimPrefix(member, "data.tar"), r)
	if err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := take(path.Clean("/"+h.Name), io.LimitReader(t, maxFile)); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/metalab-dev/metalab/fixtures"
)

// packed is the time of all built-in files. With a constant one an archive has the same
// bytes, and the index the same digest, at every start.
var packed = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// packBuiltin packs the charts of fixtures.
func packBuiltin() ([]archive, error) {
	charts, err := fs.Sub(fixtures.Charts, "charts")
	if err != nil {
		return nil, err
	}
	dirs, err := fs.ReadDir(charts, ".")
	if err != nil {
		return nil, err
	}
	var out []archive
	for _, d := range dirs {
		text, err := Pack(charts, d.Name())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(), err)
		}
		a := archive{time: packed, size: int64(len(text)), text: text}
		a.parse(text)
		if a.err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name(), a.err)
		}
		a.file = a.chart.Name + "-" + a.chart.Version + extension
		out = append(out, a)
	}
	return out, nil
}

// Pack returns the archive of the chart in a directory of files. The same files give the
// same bytes.
func Pack(files fs.FS, dir string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(text)), ModTime: packed}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	err = errors.Join(err, w.Close(), zipped.Close())
	return out.Bytes(), err
}

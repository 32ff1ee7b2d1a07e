package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/fixtures"
)

// packed is the time of all built-in files. With a constant one an archive has the same
// bytes, and the index the same digest, at every start.
var packed = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// packBuiltin packs the charts of fixtures, and that of the Helm controller.
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
	add := func(name string, text []byte, err error) error {
		a := archive{time: packed, size: int64(len(text)), text: text}
		if err == nil {
			a.parse(text)
			err = a.err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a.file = a.chart.Name + "-" + a.chart.Version + extension
		out = append(out, a)
		return nil
	}
	for _, d := range dirs {
		text, err := Pack(charts, d.Name())
		if err := add(d.Name(), text, err); err != nil {
			return nil, err
		}
	}
	files, err := helmcontroller.Files()
	if err != nil {
		return nil, err
	}
	text, err := pack(files)
	return out, add(helmcontroller.Chart, text, err)
}

// Pack returns the archive of the chart in a directory of files. The same files give the
// same bytes.
func Pack(files fs.FS, dir string) ([]byte, error) {
	all := map[string][]byte{}
	err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[path], err = fs.ReadFile(files, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pack(all)
}

// pack returns the archive of files by their paths.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(files)) {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(files[path])), ModTime: packed}))
		_, err := w.Write(files[path])
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, w.Close(), zipped.Close())...)
	return out.Bytes(), err
}

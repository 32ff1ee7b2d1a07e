package module

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Build returns the archive of a directory with a module's files, after loading it. The
// same files give the same bytes, whatever their owners, modes and times.
func Build(dir fs.FS) ([]byte, *Module, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || name == "." {
			return err
		}
		return pack(files, dir, name, d)
	})
	if err := errors.Join(err, files.Close(), zipped.Close()); err != nil {
		return nil, nil, err
	}
	m, err := Load(out.Bytes())
	return out.Bytes(), m, err
}

// pack adds a file or directory to an archive.
func pack(w *tar.Writer, dir fs.FS, name string, d fs.DirEntry) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, ModTime: time.Unix(0, 0), Uname: "root", Gname: "root"}
	if d.IsDir() {
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
		return w.WriteHeader(h)
	}
	if !d.Type().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// FileName is the name of a module's archive.
func (m *Metadata) FileName() string { return m.Name + "-" + m.Version + ".tgz" }

// Package ignition reads the Ignition configuration of a MachineConfig: its version, the
// content of its files, and the bounds within which a MachineConfig may use it. Types, merge and
// validation are Ignition's own.
//
// It writes nothing. Controllers merge configurations and build images of them; the daemon on a
// node writes them.
package ignition

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v3 "github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_5/types"
	"github.com/vincent-petithory/dataurl"
)

// Bounds of a configuration. An object of the API is smaller than its files are once they are
// decompressed.
const (
	MaxSize  = 2 << 20  // bytes of the configuration itself, as JSON
	MaxFile  = 16 << 20 // bytes of one file
	MaxFiles = 20_000   // files, links and units
	MaxTotal = 64 << 20 // bytes of all files
)

// Parse reads a configuration of any version 3 up to 3.5.0, and returns it as 3.5.0. No bytes are
// an empty configuration: a MachineConfig may have a kernel argument alone.
func Parse(raw []byte) (types.Config, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return Empty(), nil
	}
	if len(raw) > MaxSize {
		return types.Config{}, fmt.Errorf("ignition: the configuration has %d bytes: at most %d are allowed", len(raw), MaxSize)
	}
	c, report, err := v3.ParseCompatibleVersion(raw)
	if err != nil {
		if report.IsFatal() {
			return types.Config{}, fmt.Errorf("ignition: %w: %s", err, strings.TrimSpace(report.String()))
		}
		return types.Config{}, fmt.Errorf("ignition: %w: versions 3.0.0 to %s are read", err, types.MaxVersion)
	}
	return c, nil
}

// Empty returns a configuration without content.
func Empty() types.Config {
	return types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
}

// Content returns the decoded content of a resource. A MachineConfig is complete in itself, so
// only data URLs are read (RFC 2397).
func Content(r types.Resource) ([]byte, error) {
	if r.Source == nil || *r.Source == "" {
		return nil, nil
	}
	if !strings.HasPrefix(*r.Source, "data:") {
		scheme, _, _ := strings.Cut(*r.Source, ":")
		return nil, fmt.Errorf("source has the scheme %q: use data, which has the content in the MachineConfig", scheme)
	}
	u, err := dataurl.DecodeString(*r.Source)
	if err != nil {
		return nil, fmt.Errorf("source is no data URL: %w", err)
	}
	switch {
	case r.Compression == nil || *r.Compression == "":
		if len(u.Data) > MaxFile {
			return nil, fmt.Errorf("content has %d bytes: at most %d are allowed", len(u.Data), MaxFile)
		}
		return u.Data, nil
	case *r.Compression != "gzip":
		return nil, fmt.Errorf("compression %q is not gzip", *r.Compression)
	}
	z, err := gzip.NewReader(bytes.NewReader(u.Data))
	if err != nil {
		return nil, fmt.Errorf("compression is gzip, but the content is not: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("content is cut off or damaged: %w", err)
	}
	if len(out) > MaxFile {
		return nil, fmt.Errorf("content has more than %d bytes once it is decompressed: that is the limit", MaxFile)
	}
	return out, nil
}

// Check returns an error for each part of a configuration that no node may get: a path or a link
// that leaves the root, content that cannot be read, and more than the bounds.
func Check(c types.Config) error {
	var errs []error
	add := func(kind, name string, err error) {
		if err != nil && len(errs) < 10 {
			errs = append(errs, fmt.Errorf("%s %q: %w", kind, name, err))
		}
	}
	if n := len(c.Storage.Files) + len(c.Storage.Links) + len(c.Storage.Directories) + len(c.Systemd.Units); n > MaxFiles {
		return fmt.Errorf("ignition: %d files, links, directories and units: at most %d are allowed", n, MaxFiles)
	}
	total := 0
	for i := range c.Storage.Files {
		f := &c.Storage.Files[i]
		add("file", f.Path, CheckPath(f.Path))
		b, err := Content(f.Contents)
		add("file", f.Path, err)
		total += len(b)
		for _, a := range f.Append {
			_, err := Content(a)
			add("append of file", f.Path, err)
		}
	}
	if total > MaxTotal {
		errs = append(errs, fmt.Errorf("all files have %d bytes: at most %d are allowed", total, MaxTotal))
	}
	for _, d := range c.Storage.Directories {
		add("directory", d.Path, CheckPath(d.Path))
	}
	for _, l := range c.Storage.Links {
		add("link", l.Path, CheckPath(l.Path))
		if l.Target != nil {
			add("link", l.Path, CheckTarget(l.Path, *l.Target))
		}
	}
	for _, u := range c.Systemd.Units {
		add("unit", u.Name, checkName(u.Name))
		for _, d := range u.Dropins {
			add("drop-in of unit "+u.Name, d.Name, checkName(d.Name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ignition: %w", err)
	}
	return nil
}

// mounts are directories whose content the kernel makes: devices and processes.
var mounts = []string{"/dev", "/proc", "/sys"}

// CheckPath returns an error when a path is not absolute, not in its shortest form, or below a
// directory that has the kernel's devices.
func CheckPath(p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsRune(p, 0) {
		return errors.New("use an absolute path below /, without . and .. in it")
	}
	for _, m := range mounts {
		if p == m || strings.HasPrefix(p, m+"/") {
			return fmt.Errorf("%s has files of the kernel: no configuration writes there", m)
		}
	}
	return nil
}

// CheckTarget returns an error when the target of a link leaves the root of the system.
func CheckTarget(link, target string) error {
	if path.IsAbs(target) {
		return nil // an absolute target begins at the root that the link is in
	}
	depth := strings.Count(path.Dir(link), "/")
	if path.Dir(link) == "/" {
		depth = 0
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return fmt.Errorf("target %q leaves the root of the system", target)
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return errors.New("use the name of a file without a path")
	}
	return nil
}

package rack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/fixtures"
)

// Files are files of server models in memory, by name: profiles/NAME.yaml,
// registries/NAME.yaml and dialects/NAME.yaml.
type Files map[string][]byte

// ReadFile implements fs.ReadFileFS.
func (f Files) ReadFile(name string) ([]byte, error) {
	b, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(b), nil
}

// Open implements fs.FS.
func (f Files) Open(name string) (fs.File, error) {
	b, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{Reader: *bytes.NewReader(b), name: path.Base(name)}, nil
}

// openFile is an open file of Files, and its own fs.FileInfo.
type openFile struct {
	bytes.Reader
	name string
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *openFile) Close() error               { return nil }
func (f *openFile) Name() string               { return f.name }
func (f *openFile) Mode() fs.FileMode          { return 0o444 }
func (f *openFile) ModTime() time.Time         { return time.Time{} }
func (f *openFile) IsDir() bool                { return false }
func (f *openFile) Sys() any                   { return nil }

// Profiles returns the names of the profiles, sorted.
func (f Files) Profiles() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if kind, base := path.Split(name); kind == "profiles/" {
			out = append(out, strings.TrimSuffix(base, ".yaml"))
		}
	}
	return out
}

// Check returns the errors in the profiles and in the files that they name.
func (f Files) Check() error {
	var errs []error
	for _, name := range f.Profiles() {
		_, _, err := ReadProfile(layers{f, fixtures.Profiles}, name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Bounds of what LoadModels reads.
const (
	maxModels = 500
	maxModel  = 16 << 20
)

var modelKinds = []string{"profiles", "registries", "dialects"}

// LoadModels reads a user's server models from a folder with profiles/, registries/
// and dialects/, or from one profile in or beside these folders.
func LoadModels(at string) (Files, error) {
	info, err := os.Stat(at)
	if err != nil {
		return nil, err
	}
	out := Files{}
	dir := at
	if !info.IsDir() {
		b, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		f, err := yamlfile.Read(at, b, "name: NAME")
		if err != nil {
			return nil, err
		}
		var name string
		if err := f.Take("name", &name); err != nil || name == "" || strings.ContainsAny(name, "/\\ ") {
			return nil, f.Locate(yamlfile.Errorf("name", "%q: is no profile: a profile has a name, without slashes and blanks", name))
		}
		out["profiles/"+name+".yaml"] = b
		if dir = filepath.Dir(at); filepath.Base(dir) == "profiles" {
			dir = filepath.Dir(dir)
		}
	}
	for _, kind := range modelKinds {
		if kind == "profiles" && !info.IsDir() {
			continue // the argument named one profile
		}
		entries, err := os.ReadDir(filepath.Join(dir, kind))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			i, err := e.Info()
			if err != nil || !i.Mode().IsRegular() || filepath.Ext(e.Name()) != ".yaml" {
				continue
			}
			if i.Size() > maxModel || len(out) == maxModels {
				return nil, fmt.Errorf("%s: there may be %d files of %d bytes", filepath.Join(dir, kind, e.Name()), maxModels, maxModel)
			}
			b, err := os.ReadFile(filepath.Join(dir, kind, e.Name()))
			if err != nil {
				return nil, err
			}
			out[kind+"/"+e.Name()] = b
		}
	}
	if len(out.Profiles()) == 0 {
		return nil, fmt.Errorf("%s: holds no profiles/NAME.yaml", at)
	}
	return out, out.Check()
}

// modelsDir is the directory in a lab's directory for models that are not built in,
// so that the rack can be opened without the folder they came from.
const modelsDir = "models"

// Models returns the server models of the rack in a directory: its own and the
// built-in ones.
func Models(dir string) fs.FS {
	return layers{os.DirFS(filepath.Join(dir, modelsDir)), fixtures.Profiles}
}

// KeepModels stores models in the lab's directory. A model that the rack has already
// must be the same, because its servers were made from it.
func KeepModels(dir string, f Files) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if _, err := fs.Stat(fixtures.Profiles, name); err == nil {
			return fmt.Errorf("%s: there is a built-in one of that name: give it another", name)
		}
		to := filepath.Join(dir, modelsDir, filepath.FromSlash(name))
		switch b, err := os.ReadFile(to); {
		case err == nil && !bytes.Equal(b, f[name]):
			return fmt.Errorf("%s: the lab in %s was made with another one: name another --state, or give it another name", name, dir)
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to+".part", f[name], 0o600); err != nil {
			return err
		}
		if err := os.Rename(to+".part", to); err != nil {
			return err
		}
	}
	return nil
}

// layers are file systems; a file comes from the first that has it.
type layers []fs.FS

func (l layers) Open(name string) (fs.File, error) {
	var err error
	for _, from := range l {
		if from == nil {
			continue
		}
		var f fs.File
		if f, err = from.Open(name); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, err
}

// Beside joins two sets of models. Those of the first take precedence.
func Beside(first, others fs.FS) fs.FS { return layers{first, others} }

// profileNames returns the names of the profiles in a file system and of the built-in
// ones, sorted.
func profileNames(from fs.FS) []string {
	var names []string
	switch from := from.(type) {
	case nil:
	case Files:
		names = from.Profiles()
	case layers:
		for _, l := range from {
			names = append(names, profileNames(l)...)
		}
	default:
		files, err := fs.Glob(from, "profiles/*.yaml")
		if err == nil {
			for _, f := range files {
				names = append(names, strings.TrimSuffix(path.Base(f), ".yaml"))
			}
		}
	}
	if from != fs.FS(fixtures.Profiles) {
		names = append(names, profileNames(fixtures.Profiles)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

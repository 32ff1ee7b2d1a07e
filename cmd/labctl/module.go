package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

func newModule(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "module",
		Short: "Make, build, verify, run and serve host OS modules",
		Long: `Make, build, verify, run and serve host OS modules: Ansible playbooks that HostOSConfigurations
apply to machines. A module is a directory with metadata.yaml, a playbook, and the JSON
Schema of its values; its archive is NAME-VERSION.tgz.

Modules that come with labctl are named builtin:NAME: ` + strings.Join(builtinModules(), ", ") + `.`,
	}
	c.AddCommand(newModuleInit(o), newModuleBuild(o), newModuleSort(), newModuleVerify(o), newModuleServe(), newModuleRun(o))
	return c
}

// builtin begins the names of the modules in fixtures.
const builtin = "builtin:"

// builtinModules returns the names of the modules in fixtures.
func builtinModules() []string {
	entries, err := fs.ReadDir(fixtures.Modules, "modules")
	if err != nil {
		panic(err) // they are built in
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// moduleFile is a module for output.
type moduleFile struct {
	File          string   `json:"file,omitempty"`
	Name          string   `json:"name"`
	Version       string   `json:"version"`
	Description   string   `json:"description,omitempty"`
	Playbook      string   `json:"playbook"`
	Schema        string   `json:"valuesJsonSchema,omitempty"`
	Deprecates    []string `json:"deprecates,omitempty"`
	Distributions []string `json:"supportedDistributions,omitempty"`
	SHA256        string   `json:"sha256sum"`
	Files         []string `json:"files"`
}

func (f moduleFile) print(w io.Writer, o *options) error {
	rows := [][]string{
		{"name", f.Name}, {"version", f.Version}, {"description", f.Description}, {"playbook", f.Playbook}, {"schema", f.Schema},
		{"deprecates", strings.Join(f.Deprecates, ", ")}, {"distributions", strings.Join(f.Distributions, ", ")},
		{"files", strings.Join(f.Files, ", ")}, {"sha256sum", f.SHA256}, {"file", f.File},
	}
	var given [][]string
	for _, r := range rows {
		if r[1] != "" {
			given = append(given, r)
		}
	}
	return o.output.print(w, f, given)
}

func describeModule(m *module.Module, file string) moduleFile {
	out := moduleFile{
		File: file, Name: m.Name, Version: m.Version, Description: m.Description, Playbook: m.Playbook, Schema: m.Schema,
		Distributions: m.SupportedDistributions, SHA256: m.SHA256, Files: m.Archive.Files(),
	}
	for _, d := range m.Deprecates {
		out.Deprecates = append(out.Deprecates, d.Name+" "+d.Version)
	}
	return out
}

// moduleFiles returns the files of a directory, or of a built-in module.
func moduleFiles(dir string) (fs.FS, error) {
	name, isBuiltin := strings.CutPrefix(dir, builtin)
	if !isBuiltin {
		return os.DirFS(dir), nil
	}
	files, err := fixtures.Module(name)
	if err == nil {
		_, err = fs.Stat(files, module.MetadataFile)
	}
	if err != nil {
		return nil, usage.New(fmt.Errorf("%s: there is no such module: use one of %s", dir, strings.Join(builtinModules(), ", ")))
	}
	return files, nil
}

func newModuleBuild(o *options) *cobra.Command {
	var to, index, base string
	force := false
	c := &cobra.Command{
		Use:   "build DIR",
		Short: "Build the archive of a module",
		Long: `Build the archive of a module, after verifying it. The same files give the same bytes,
on every machine: names, modes, owners and times in the archive do not vary.

With --index the module is added to a file with a HostOSConfigurationModules, which is
created if it does not exist; an entry of the same name and version is replaced.`,
		Example: `  labctl module build ./sysctl --to ./modules
  labctl module build builtin:sysctl --to ./modules --index ./modules/index.yaml --base-url http://192.0.2.7:8000`,
		Args: usage.Arguments("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := moduleFiles(args[0])
			if err != nil {
				return err
			}
			archive, m, err := module.Build(files)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			// A module is built again and again: an archive of its name and version is replaced.
			if err := (outfile.Tree{Dir: to, Files: map[string][]byte{m.FileName(): archive}, Made: isModule, Force: force}).Write(0o755, 0o644); err != nil {
				return err
			}
			name := filepath.Join(to, m.FileName())
			if index != "" {
				if err := addToIndex(index, base, m); err != nil {
					return err
				}
			}
			return describeModule(m, name).print(c.OutOrStdout(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&to, "to", ".", "directory for the archive")
	f.BoolVar(&force, "force", false, "replace a file of the archive's name that is no module")
	f.StringVar(&index, "index", "", "file with the HostOSConfigurationModules to add the module to")
	f.StringVar(&base, "base-url", "", "URL of the directory that archives are served from, for --index")
	must(c.MarkFlagDirname("to"))
	return c
}

// isModule reports whether a file is the archive of a module.
func isModule(name string) bool {
	b, err := readArchive(name)
	if err == nil {
		_, err = module.Load(b)
	}
	return err == nil
}

// readArchive reads a file that may be as large as a disk, but for an archive.
func readArchive(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > module.MaxArchive {
		return nil, fmt.Errorf("an archive has %d MiB at most, and this file %s", module.MaxArchive>>20, size(st.Size()))
	}
	return io.ReadAll(io.LimitReader(f, module.MaxArchive+1)) // module.Load refuses one byte more
}

// replaceFile writes a file at once that the command has read before, or that is the lab's.
func replaceFile(name string, b []byte, mode fs.FileMode) error {
	return outfile.File{Path: name, Force: true}.Write(mode, outfile.Bytes(b))
}

// addToIndex adds a module to the list in a file.
func addToIndex(file, base string, m *module.Module) error {
	x := module.NewIndex("custom-modules")
	text, err := os.ReadFile(file)
	if err == nil {
		x, err = module.ParseIndex(text)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("--index %s: %w", file, err)
	}
	e := module.Entry{Name: m.Name, Version: m.Version, SHA256: m.SHA256}
	if base != "" {
		e.URL = strings.TrimSuffix(base, "/") + "/" + m.FileName()
	}
	x.Put(e)
	if text, err = x.Text(); err != nil {
		return err
	}
	return replaceFile(file, text, 0o644)
}

func newModuleSort() *cobra.Command {
	return &cobra.Command{
		Use:   "sort FILE",
		Short: "Sort a HostOSConfigurationModules by name and version",
		Long: `Sort the modules in a file with a HostOSConfigurationModules by their names, and by
their versions as Semantic Versioning orders them: 1.9.0 before 1.10.0. Comments in the file are lost.`,
		Example: "  labctl module sort index.yaml",
		Args:    usage.Arguments("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			x, err := module.ParseIndex(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			x.Sort()
			if text, err = x.Text(); err != nil {
				return err
			}
			return replaceFile(args[0], text, 0o644)
		},
	}
}

// verifyTimeout limits the download of an archive.
const verifyTimeout = time.Minute

func newModuleVerify(o *options) *cobra.Command {
	var sum, values string
	c := &cobra.Command{
		Use:   "verify MODULE",
		Short: "Verify a module's archive, and values for it",
		Long: `Verify a module: the archive, its metadata, playbook and schema. MODULE is the file or
URL of an archive, or a directory with a module's files. With --values the values in a file are validated
against the module's schema, as a HostOSConfiguration's are.`,
		Example: `  labctl module verify sysctl-1.1.0.tgz --sha256 1cdab0…
  labctl module verify https://repo.example.org/sysctl-1.1.0.tgz
  labctl module verify builtin:sysctl --values values.yaml`,
		Args: usage.Arguments("MODULE"),
		RunE: func(c *cobra.Command, args []string) error {
			archive, err := readModule(c.Context(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if got := module.Sum(archive); sum != "" && got != sum {
				return fmt.Errorf("%s: %w", args[0], &module.SumError{Got: got, Want: sum})
			}
			m, err := module.Load(archive)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if values != "" {
				given, err := readValues(values)
				if err == nil {
					err = m.Validate(given)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", values, err)
				}
			}
			return describeModule(m, "").print(c.OutOrStdout(), o)
		},
	}
	c.Flags().StringVar(&sum, "sha256", "", "SHA-256 that the archive must have")
	c.Flags().StringVar(&values, "values", "", "file with values for the module, as YAML or JSON")
	return c
}

// readModule returns the archive in a file, at a URL, or of a directory.
func readModule(ctx context.Context, from string) ([]byte, error) {
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
		defer cancel()
		return module.Fetch(ctx, http.DefaultClient, from)
	}
	info, err := os.Stat(from)
	if strings.HasPrefix(from, builtin) || err == nil && info.IsDir() {
		files, err := moduleFiles(from)
		if err != nil {
			return nil, err
		}
		archive, _, err := module.Build(files)
		return archive, err
	}
	if err != nil {
		return nil, err
	}
	return readArchive(from)
}

// readValues reads the values in a file as kubectl reads those of a HostOSConfiguration. A name that
// is there twice is an error.
func readValues(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSONStrict(text); err != nil {
		return nil, err
	}
	values := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, errors.New("give values by their names, as YAML or JSON: name: value")
	}
	if values == nil { // an empty file
		values = map[string]any{}
	}
	return values, nil
}

func newModuleServe() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve the archives and the index of a directory by HTTP",
		Long: `Serve the archives (*.tgz) of a directory by HTTP, until Ctrl-C, and its index.yaml and
index-dev.yaml, which may be a vendor's index: see labctl up --module-index. It prints its URL, for
labctl module build --base-url, once it accepts connections. Other files are not served.`,
		Example: "  labctl module serve ./modules --listen 127.0.0.1:8000",
		Args:    usage.Arguments("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			if at, err := netip.ParseAddrPort(listen); err == nil && at.Addr().IsLoopback() {
				if err := needLoopback(); err != nil {
					return err
				}
			}
			l, err := new(net.ListenConfig).Listen(c.Context(), "tcp", listen)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			srv := newArchiveServer(root.FS())
			defer context.AfterFunc(c.Context(), func() { srv.Close() })()
			fmt.Fprintf(c.OutOrStdout(), "http://%s\n", l.Addr())
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on")
	return c
}

// requestTimeout is for the whole of a request for an archive, which has no body.
const requestTimeout = 30 * time.Second

// newArchiveServer returns the server of a directory's archives. A client that sends its
// headers, or a body that nobody reads, too slowly is cut; a download may take any time.
func newArchiveServer(files fs.FS) *http.Server {
	return &http.Server{
		Handler: archives(files), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
}

// archives serves the archives and indexes in the root of a file system.
func archives(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if strings.Contains(name, "/") || !strings.HasSuffix(name, ".tgz") && name != "index.yaml" && name != "index-dev.yaml" {
			http.NotFound(w, r)
			return
		}
		http.ServeFileFS(w, r, files, name)
	})
}

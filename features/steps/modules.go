package steps

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/fixtures"
)

// modulesName is the name of the list of modules.
const modulesName = "modules"

// moduleServer serves the archives of host OS modules.
type moduleServer struct {
	url  string
	http *http.Server
	done sync.WaitGroup

	mu      sync.Mutex
	files   map[string][]byte // by path
	stalled chan struct{}     // closed when the server continues; nil: it does not stall
}

func startModuleServer() (*moduleServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &moduleServer{url: "http://" + l.Addr().String(), files: map[string][]byte{}}
	m.http = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute}
	m.done.Go(func() { _ = m.http.Serve(l) })
	return m, nil
}

// ServeHTTP implements http.Handler.
func (m *moduleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	file, exists := m.files[r.URL.Path]
	stalled := m.stalled
	m.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
			return
		}
	}
	if !exists {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_, _ = w.Write(file)
}

func (m *moduleServer) put(path string, file []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path] = file
}

// stall makes the server answer no request until resume.
func (m *moduleServer) stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = make(chan struct{})
}

func (m *moduleServer) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled != nil {
		close(m.stalled)
		m.stalled = nil
	}
}

// clear removes all files.
func (m *moduleServer) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.files)
}

func (m *moduleServer) close() {
	m.resume()
	_ = m.http.Close()
	m.done.Wait()
}

// ofModule splits NAME VERSION.
func ofModule(text string) (name, version string, err error) {
	name, version, found := strings.Cut(text, " ")
	if !found {
		return "", "", fmt.Errorf("module %q: write NAME VERSION", text)
	}
	return name, version, nil
}

var (
	versionLine     = regexp.MustCompile(`(?m)^version: .*$`)
	deprecatesLines = regexp.MustCompile(`(?ms)^deprecates:.*`)
)

// buildModule builds the archive of a module of fixtures. With another version than that of
// fixtures, the module deprecates nothing.
func (s *scenario) buildModule(name, version string) ([]byte, error) {
	files, err := fixtures.Module(name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "modules", name+"-"+version)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, module.MetadataFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if line := []byte("version: " + version); !bytes.Equal(versionLine.Find(text), line) {
		text = deprecatesLines.ReplaceAll(versionLine.ReplaceAll(text, line), nil)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	archive, _, err := module.Build(os.DirFS(dir))
	return archive, err
}

const archiveSuffix = ".tgz"

func archivePath(name, version string) string { return "/" + name + "-" + version + archiveSuffix }

// moduleFaults change the archive that is served, and the digest that is listed.
var moduleFaults = map[string]func(archive []byte, sum string) (served []byte, listed string){
	"":                         func(b []byte, sum string) ([]byte, string) { return b, sum },
	"another SHA-256":          func(b []byte, _ string) ([]byte, string) { return b, strings.Repeat("0", 64) },
	"no archive on the server": func(_ []byte, sum string) ([]byte, string) { return nil, sum },
	"a damaged archive": func(b []byte, _ string) ([]byte, string) {
		cut := b[:len(b)/2]
		return cut, module.Sum(cut)
	},
	"an archive of another module": nil, // see listModules
}

func (s *scenario) listModules(ctx context.Context, list, fault string) error {
	if s.modules == nil {
		var err error
		if s.modules, err = startModuleServer(); err != nil {
			return err
		}
	}
	spec := kaasv1.HostOSConfigurationModulesSpec{}
	for _, text := range fields(list) {
		name, version, err := ofModule(text)
		if err != nil {
			return err
		}
		source, change := name, moduleFaults[fault]
		if change == nil {
			source, change = "failing", moduleFaults[""]
		}
		archive, err := s.buildModule(source, version)
		if err != nil {
			return err
		}
		path := archivePath(name, version)
		served, sum := change(archive, module.Sum(archive))
		if served != nil {
			s.modules.put(path, served)
		}
		spec.Modules = append(spec.Modules, kaasv1.Module{Name: kaasv1.ModuleName(name), Version: kaasv1.SemVer(version), SHA256Sum: sum, URL: s.modules.url + path})
	}
	o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: modulesName}, Spec: spec}
	err := s.kube.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(conflictBackoff, func() error {
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Spec = spec
		return s.kube.Update(ctx, o)
	})
}

func (s *scenario) publishModules(list string) error {
	for _, text := range fields(list) {
		name, version, err := ofModule(text)
		if err != nil {
			return err
		}
		archive, err := s.buildModule(name, version)
		if err != nil {
			return err
		}
		s.modules.put(archivePath(name, version), archive)
	}
	return nil
}

func (s *scenario) replaceArchive(text, by string) error {
	name, version, err := ofModule(text)
	if err != nil {
		return err
	}
	source := name
	if by == "that of another module" {
		source = "failing"
	}
	archive, err := s.buildModule(source, version)
	if err != nil {
		return err
	}
	if source == name {
		archive = archive[:len(archive)/2]
	}
	s.modules.put(archivePath(name, version), archive)
	return nil
}

// awaitModule waits until ok accepts the status of a module, NAME VERSION.
func (s *scenario) awaitModule(ctx context.Context, text, what string, ok func(kaasv1.Module, kaasv1.ModuleStatus) bool) error {
	name, version, err := ofModule(text)
	if err != nil {
		return err
	}
	return eventually(ctx, "the module "+text+" "+what, func(ctx context.Context) (bool, string, error) {
		o := &kaasv1.HostOSConfigurationModules{ObjectMeta: metav1.ObjectMeta{Name: modulesName}}
		if err := s.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return false, "", err
		}
		i := slices.IndexFunc(o.Status.Modules, func(m kaasv1.ModuleStatus) bool {
			return string(m.Name) == name && string(m.Version) == version
		})
		if i < 0 || i >= len(o.Spec.Modules) || o.Status.ObservedGeneration != o.Generation {
			return false, "no status yet", nil
		}
		return ok(o.Spec.Modules[i], o.Status.Modules[i]), fmt.Sprintf("%+v", o.Status.Modules[i]), nil
	})
}

func (s *scenario) moduleIs(ctx context.Context, text, state string) error {
	return s.awaitModule(ctx, text, "is "+state, func(spec kaasv1.Module, m kaasv1.ModuleStatus) bool {
		schema, err := fixtures.Modules.ReadFile("modules/" + string(m.Name) + "/schema.json")
		return err == nil && string(m.State) == state && m.Error == "" && m.SHA256Sum == spec.SHA256Sum && m.PlaybookName == "main.yaml" &&
			m.Description != "" && m.DocURL != "" && bytes.Equal(m.ValuesValidationSchema, schema) && (len(m.DeprecatedBy) > 0) == (state == "deprecated")
	})
}

func (s *scenario) moduleFails(ctx context.Context, text, want string) error {
	return s.awaitModule(ctx, text, "has the error "+want, func(spec kaasv1.Module, m kaasv1.ModuleStatus) bool {
		named := strings.NewReplacer("URL", spec.URL, "WANT", spec.SHA256Sum, "GOT", m.SHA256Sum, "'", `"`)
		return m.State == kaasv1.ModuleError && strings.Contains(strings.ReplaceAll(m.Error, "'", `"`), named.Replace(want))
	})
}

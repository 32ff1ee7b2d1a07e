// Package charts serves a repository of Helm charts by HTTP: the charts of fixtures, and
// the archives of a directory. It knows no cluster, and installs nothing.
package charts

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"
)

// PathPrefix is the URL path of a Server's files: /charts/index.yaml, /charts/ARCHIVE.
const PathPrefix = "/charts/"

const (
	indexName = "index.yaml"
	extension = ".tgz"
	// maxArchive is the size, in bytes, up to which controller/mosk/helm downloads an archive.
	maxArchive = 20 << 20
)

// Config has the parameters of a Server.
type Config struct {
	Dir string       // directory of archives, NAME.tgz; it may be missing
	Log *slog.Logger // nil means slog.Default
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())
}

// Server serves the index and the archives of a repository. Both are those of the
// directory at the time of the request. A chart of the directory replaces the built-in
// one of its name and version. It is an http.Handler and safe for concurrent use.
type Server struct {
	Config
	builtin []archive

	mu     sync.Mutex
	known  map[string]archive // archives of the directory, by the name of the file
	warned map[string]string  // why files are not served, as it was logged
}

// archive is a packed chart.
type archive struct {
	file   string
	time   time.Time // time of the last change
	size   int64
	text   []byte // bytes of a built-in archive
	chart  *chart.Metadata
	digest string // SHA-256, in hexadecimal
	err    error  // why it cannot be served
}

// New returns a server of the built-in charts and of those in c.Dir.
func New(c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	s := &Server{Config: c, known: map[string]archive{}, warned: map[string]string{}}
	var err error
	if s.builtin, err = packBuiltin(); err != nil {
		return nil, err
	}
	return s, nil
}

// ServeHTTP implements http.Handler: GET and HEAD. A path that is neither the index nor an
// archive of the index is not found, so that no path leads out of the directory.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Enter != nil {
		defer s.Enter()()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name, _ := strings.CutPrefix(r.URL.Path, PathPrefix)
	root, err := os.OpenRoot(s.Dir) // for each request: the directory may be replaced
	switch {
	case err == nil:
		defer root.Close()
	case !errors.Is(err, fs.ErrNotExist):
		s.fail(w, err)
		return
	}
	all, err := s.list(root)
	if err != nil {
		s.fail(w, err)
		return
	}
	if name == indexName {
		s.serveIndex(w, r, all)
		return
	}
	i := slices.IndexFunc(all, func(a archive) bool { return a.file == name })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	s.serveArchive(w, r, root, all[i])
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	s.Log.Warn("charts cannot be read", "dir", s.Dir, "error", err)
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// list returns the archives that are served: those of the directory, in the order of their
// names, and the built-in ones. It logs once why a file is not served.
func (s *Server) list(root *os.Root) (out []archive, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []fs.DirEntry
	if root != nil {
		if entries, err = fs.ReadDir(root.FS(), "."); err != nil {
			return nil, err
		}
	}
	known, warned := map[string]archive{}, map[string]string{}
	files := map[string]string{} // by chart and version
	add := func(a archive) {
		id := a.chart.Name + " " + a.chart.Version
		if other, exists := files[id]; exists {
			if a.text == nil {
				warned[a.file] = fmt.Sprintf("it has chart %s, as %s has: remove one of them", id, other)
			}
			return
		}
		files[id] = a.file
		out = append(out, a)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, extension) || strings.HasPrefix(name, ".") {
			continue
		}
		a := s.read(root, name)
		known[name] = a
		if a.err != nil {
			warned[name] = a.err.Error()
			continue
		}
		add(a)
	}
	for _, b := range s.builtin {
		if _, exists := known[b.file]; !exists { // else two archives would have one URL
			add(b)
		}
	}
	for _, e := range entries { // not the map: the log has an order
		if why := warned[e.Name()]; why != "" && why != s.warned[e.Name()] {
			s.Log.Warn("file is not served as a chart", "file", e.Name(), "dir", s.Dir, "error", why)
		}
	}
	s.known, s.warned = known, warned
	return out, nil
}

// read returns an archive of the directory. It checks the type before it opens the file,
// since opening a pipe blocks until its other end is opened.
func (s *Server) read(root *os.Root, name string) archive {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return archive{file: name, err: err}
	case !info.Mode().IsRegular():
		return archive{file: name, err: errors.New("it is no regular file")}
	case info.Size() > maxArchive:
		return archive{file: name, err: fmt.Errorf("it has %d bytes, more than %d MiB", info.Size(), maxArchive>>20)}
	}
	if a, exists := s.known[name]; exists && a.time.Equal(info.ModTime()) && a.size == info.Size() && a.digest != "" { // without a digest it was not read
		return a
	}
	a := archive{file: name, time: info.ModTime(), size: info.Size()}
	f, err := root.Open(name)
	if err != nil {
		a.err = err
		return a
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxArchive))
	if err != nil {
		a.err = err
		return a
	}
	a.parse(text)
	return a
}

// parse sets what the content of an archive has.
func (a *archive) parse(text []byte) {
	sum := sha256.Sum256(text)
	a.digest = hex.EncodeToString(sum[:])
	if a.err = complete(text); a.err != nil {
		return
	}
	c, err := loader.LoadArchive(bytes.NewReader(text))
	if err != nil {
		a.err = err
		return
	}
	a.chart = c.Metadata
}

// complete returns an error if a gzip stream is cut off. Helm does not see that when it cuts
// no file of the chart, as in a copy that is not finished.
func complete(text []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, loader.MaxDecompressedChartSize+1))
	if err == nil && n > loader.MaxDecompressedChartSize {
		err = fmt.Errorf("it unfolds to more than %d MiB", loader.MaxDecompressedChartSize>>20)
	}
	return err
}

// serveIndex answers with the index of archives.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request, all []archive) {
	index := repo.NewIndexFile()
	index.Generated = time.Time{}
	for _, a := range all {
		// Relative to the index, as the port of another start may be another.
		at := (&url.URL{Path: a.file}).String()
		m := *a.chart
		if err := index.MustAdd(&m, at, "", a.digest); err != nil {
			s.fail(w, err)
			return
		}
		versions := index.Entries[m.Name]
		versions[len(versions)-1].Created = a.time
		if a.time.After(index.Generated) {
			index.Generated = a.time
		}
	}
	index.SortEntries()
	text, err := yaml.Marshal(index)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

func (s *Server) serveArchive(w http.ResponseWriter, r *http.Request, root *os.Root, a archive) {
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("ETag", `"`+a.digest+`"`)
	if a.text != nil {
		http.ServeContent(w, r, "", a.time, bytes.NewReader(a.text))
		return
	}
	f, err := root.Open(a.file)
	if err != nil {
		s.fail(w, err)
		return
	}
	defer f.Close()
	http.ServeContent(w, r, "", a.time, f)
}

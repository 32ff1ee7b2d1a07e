package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// pack packs a chart of testdata as a version, the same bytes each time.
func pack(t *testing.T, name, version string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	root := os.DirFS("testdata/" + name)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		if path == "Chart.yaml" {
			b = append(b, "version: "+version+"\n"...)
		}
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(b))}); err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// repository serves charts of testdata.
type repository struct {
	*httptest.Server
	mu       sync.Mutex
	files    map[string][]byte
	index    string
	password string // that it demands; "" is none
	fetched  int    // archives
}

func serveCharts(t *testing.T) *repository {
	r := &repository{files: map[string][]byte{}, index: "apiVersion: v1\nentries:\n"}
	r.Server = httptest.NewServer(r)
	r.Config.Handler = r
	t.Cleanup(r.Close)
	return r
}

// add adds a chart. A digest that is "" is none.
func (r *repository) add(t *testing.T, name, version, digest string) {
	file := fmt.Sprintf("%s-%s.tgz", name, version)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files["/"+file] = pack(t, name, version)
	r.index += fmt.Sprintf("  %s:\n  - {apiVersion: v2, name: %s, version: %s, urls: [%s], digest: %q}\n", name, name, version, file, digest)
}

// ServeHTTP implements http.Handler.
func (r *repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if user, password, _ := req.BasicAuth(); r.password != "" && (user != "lab" || password != r.password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.HasSuffix(req.URL.Path, "/index.yaml") {
		_, _ = w.Write([]byte(r.index))
		return
	}
	b, exists := r.files[req.URL.Path]
	if !exists {
		http.NotFound(w, req)
		return
	}
	r.fetched++
	_, _ = w.Write(b)
}

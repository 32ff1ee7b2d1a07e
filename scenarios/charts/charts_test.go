package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"
)

// repository is a Server with its directory and its log.
type repository struct {
	*testing.T
	*Server
	log bytes.Buffer
}

func open(t *testing.T) *repository {
	t.Helper()
	r := &repository{T: t}
	var err error
	if r.Server, err = New(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&r.log, nil))}); err != nil {
		t.Fatal(err)
	}
	return r
}

// put writes a file of the directory.
func (r *repository) put(name string, text []byte) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, name), text, 0o600); err != nil {
		r.Fatal(err)
	}
}

// packed returns the archive of a chart.
func (r *repository) packed(name, version string) []byte {
	r.Helper()
	text, err := Pack(fstest.MapFS{name + "/Chart.yaml": {Data: fmt.Appendf(nil, "apiVersion: v2\nname: %s\nversion: %s\n", name, version)}}, name)
	if err != nil {
		r.Fatal(err)
	}
	return text
}

// get requests a path as it stands.
func (r *repository) get(path string) *http.Response {
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "http://lab/", nil)
	req.URL.Path = path
	r.ServeHTTP(w, req)
	return w.Result()
}

// text returns the index.
func (r *repository) text() []byte {
	r.Helper()
	resp := r.get("/charts/index.yaml")
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("GET index.yaml: %s, %v: %s", resp.Status, err, text)
	}
	return text
}

// index returns the index as helm reads it, which is strict, and sorts it.
func (r *repository) index() *repo.IndexFile {
	r.Helper()
	file := filepath.Join(r.TempDir(), "index.yaml")
	if err := os.WriteFile(file, r.text(), 0o600); err != nil {
		r.Fatal(err)
	}
	index, err := repo.LoadIndexFile(file)
	if err != nil {
		r.Fatal(err)
	}
	return index
}

// versions returns the versions of a chart, in the order of the index.
func (r *repository) versions(name string) (out []string) {
	r.Helper()
	var index repo.IndexFile
	if err := yaml.UnmarshalStrict(r.text(), &index); err != nil {
		r.Fatal(err)
	}
	for _, v := range index.Entries[name] {
		out = append(out, v.Version)
	}
	return out
}

func TestIndexIsThatOfHelm(t *testing.T) {
	r := open(t)
	r.put("app-1.2.0.tgz", r.packed("app", "1.2.0"))
	r.put("app-1.10.0.tgz", r.packed("app", "1.10.0"))
	r.put("app-1.9.0.tgz", r.packed("app", "1.9.0"))
	r.put("a b%.tgz", r.packed("blank", "1.0.0"))
	index := r.index()
	want, err := repo.IndexDirectory(r.Dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, versions := range want.Entries {
		for _, v := range versions {
			got, err := index.Get(name, v.Version)
			if err != nil || got.Digest != v.Digest || got.Digest == "" {
				t.Errorf("%s %s: %+v, %v, want %+v", name, v.Version, got, err, v)
			}
		}
	}
	if got := r.versions("app"); !slices.Equal(got, []string{"1.10.0", "1.9.0", "1.2.0"}) {
		t.Errorf("versions of app: %q, want the newest first", got)
	}
	for name, versions := range index.Entries {
		for _, v := range versions {
			at, err := repo.ResolveReferenceURL("http://lab/charts/", v.URLs[0])
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodGet, at, nil)
			resp := r.get(req.URL.Path)
			c, err := loader.LoadArchive(resp.Body)
			if resp.StatusCode != http.StatusOK || err != nil || c.Name() != name || c.Metadata.Version != v.Version {
				t.Errorf("GET %s: %s, %v, %v", at, resp.Status, c, err)
			}
		}
	}
}

func TestBuiltinChartsHaveTheSameDigestAtEachStart(t *testing.T) {
	a, b := open(t).index(), open(t).index()
	for _, name := range []string{"settings", "web", "helm-controller"} {
		x, err := a.Get(name, "")
		if err != nil {
			t.Fatal(err)
		}
		if y, err := b.Get(name, ""); err != nil || x.Digest != y.Digest {
			t.Errorf("%s: %v, %v, want the digest %s", name, y, err, x.Digest)
		}
	}
}

// TestPackedFilesHaveAConstantTime reads the headers: two archives of one second have the same
// bytes anyway.
func TestPackedFilesHaveAConstantTime(t *testing.T) {
	z, err := gzip.NewReader(bytes.NewReader(open(t).packed("app", "1.0.0")))
	if err != nil {
		t.Fatal(err)
	}
	h, err := tar.NewReader(z).Next()
	if err != nil || !h.ModTime.Equal(packed) || !z.ModTime.IsZero() {
		t.Errorf("times %v and %v, %v, want %v and none", h.ModTime, z.ModTime, err, packed)
	}
}

func TestFileWithTheNameOfABuiltinArchiveReplacesIt(t *testing.T) {
	for _, tt := range []struct {
		text    []byte
		entries int
		code    int
	}{
		{open(t).packed("another", "1.0.0"), 3, http.StatusOK}, // web, helm-controller and another
		{[]byte("damaged"), 2, http.StatusNotFound},
	} {
		r := open(t)
		r.put("settings-1.0.0.tgz", tt.text)
		if index := r.index(); len(index.Entries) != tt.entries || index.Entries["settings"] != nil {
			t.Errorf("with %.7q: the index has %v", tt.text, index.Entries)
		}
		resp := r.get("/charts/settings-1.0.0.tgz")
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != tt.code || tt.code == http.StatusOK && !bytes.Equal(text, tt.text) {
			t.Errorf("with %.7q: %s, %d bytes, %v, want %d and the file", tt.text, resp.Status, len(text), err, tt.code)
		}
	}
}

func TestIndexFollowsTheDirectory(t *testing.T) {
	r := open(t)
	if got := r.versions("app"); got != nil {
		t.Fatalf("versions of app without a file: %q", got)
	}
	r.put("app.tgz", r.packed("app", "1.0.0"))
	if got := r.versions("app"); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("versions of app with a file: %q", got)
	}
	r.put("app.tgz", append(r.packed("app", "1.0.1"), make([]byte, 8)...)) // the file gets another size
	if got := r.versions("app"); got != nil {
		t.Errorf("versions of app with a damaged file: %q", got)
	}
	r.put("app.tgz", r.packed("app", "1.0.10"))
	if got := r.versions("app"); !slices.Equal(got, []string{"1.0.10"}) {
		t.Errorf("versions of app with another file: %q", got)
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	if got := r.versions("app"); got != nil {
		t.Errorf("versions of app without the directory: %q", got)
	}
	if got := r.versions("settings"); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("versions of the built-in chart without the directory: %q", got)
	}
}

func TestChartOfTheDirectoryReplacesTheBuiltinOne(t *testing.T) {
	for _, file := range []string{"settings-1.0.0.tgz", "another.tgz"} {
		r := open(t)
		text := r.packed("settings", "1.0.0")
		r.put(file, text)
		all := r.index().Entries["settings"]
		if len(all) != 1 || all[0].URLs[0] != file {
			t.Fatalf("%s: the index has %+v", file, all)
		}
		if got, err := io.ReadAll(r.get("/charts/" + file).Body); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v, want the file", file, len(got), err)
		}
		if r.log.Len() > 0 {
			t.Errorf("%s: %s", file, r.log.String())
		}
	}
}

func TestFilesThatAreNoChartsAreLeftOutWithAWarning(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.tgz")
	for _, tt := range []struct {
		name, why string
		make      func(r *repository, name string) error
	}{
		{"text.tgz", "gzip", func(r *repository, name string) error { return os.WriteFile(name, []byte("no archive"), 0o600) }},
		{"cut.tgz", "EOF", func(r *repository, name string) error {
			text := r.packed("cut", "1.0.0")
			return os.WriteFile(name, text[:len(text)-12], 0o600)
		}},
		{"unversioned.tgz", "chart.metadata.version", func(r *repository, name string) error {
			return os.WriteFile(name, r.packed("unversioned", "one"), 0o600)
		}},
		{"zzz.tgz", "it has chart good 1.0.0, as good.tgz has", func(r *repository, name string) error {
			return os.WriteFile(name, r.packed("good", "1.0.0"), 0o600)
		}},
		{"link.tgz", "escapes", func(r *repository, name string) error {
			if err := os.WriteFile(outside, r.packed("outside", "1.0.0"), 0o600); err != nil {
				return err
			}
			return os.Symlink(outside, name)
		}},
		{"pipe.tgz", "no regular file", func(_ *repository, name string) error { return syscall.Mkfifo(name, 0o600) }},
		{"dir.tgz", "no regular file", func(_ *repository, name string) error { return os.Mkdir(name, 0o700) }},
		{"bomb.tgz", "unfolds to more than 100 MiB", func(r *repository, name string) error {
			var out bytes.Buffer
			out.Write(r.packed("bomb", "1.0.0"))
			z := gzip.NewWriter(&out) // after the archive's end, in the same file
			zeros := make([]byte, 1<<20)
			for range 101 {
				if _, err := z.Write(zeros); err != nil {
					return err
				}
			}
			if err := z.Close(); err != nil {
				return err
			}
			return os.WriteFile(name, out.Bytes(), 0o600)
		}},
		{"huge.tgz", "more than 20 MiB", func(_ *repository, name string) error {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(name, maxArchive+1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := open(t)
			r.put("good.tgz", r.packed("good", "1.0.0"))
			if err := tt.make(r, filepath.Join(r.Dir, tt.name)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := r.versions("good"); !slices.Equal(got, []string{"1.0.0"}) {
					t.Errorf("versions of the good chart: %q", got)
				}
			}
			if len(r.index().Entries) != 4 {
				t.Errorf("the index has %v", r.index().Entries)
			}
			if resp := r.get("/charts/" + tt.name); resp.StatusCode != http.StatusNotFound {
				t.Errorf("GET %s: %s, want 404", tt.name, resp.Status)
			}
			if got := r.log.String(); !strings.Contains(got, "file="+tt.name) || !strings.Contains(got, tt.why) || strings.Count(got, "\n") != 1 {
				t.Errorf("log %q, want one line with %s and %q", got, tt.name, tt.why)
			}
		})
	}
}

// A file whose mode is changed has the same size and time.
func TestFileThatCouldNotBeReadIsReadAgain(t *testing.T) {
	r := open(t)
	r.put("late.tgz", r.packed("late", "1.0.0"))
	info, err := os.Stat(filepath.Join(r.Dir, "late.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	r.known["late.tgz"] = archive{file: "late.tgz", time: info.ModTime(), size: info.Size(), err: fs.ErrPermission}
	if got := r.versions("late"); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("versions of the chart that can be read now: %q", got)
	}
}

func TestPathsOutsideTheRepositoryAreNotFound(t *testing.T) {
	r := open(t)
	if err := os.WriteFile(filepath.Join(r.Dir, "..", "secret.tgz"), r.packed("secret", "1.0.0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.Dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.put("sub/sub.tgz", r.packed("sub", "1.0.0"))
	r.put(".hidden.tgz", r.packed("hidden", "1.0.0"))
	r.put("README.md", []byte("text"))
	for _, path := range []string{
		"/charts/../secret.tgz", "/charts/sub/../../secret.tgz", "/charts/" + filepath.Join(r.Dir, "..", "secret.tgz"), "/charts//etc/passwd", "/charts/..",
		"/charts/", "/charts/.", "/charts/sub", "/charts/sub/sub.tgz", "/charts/.hidden.tgz", "/charts/README.md", "/charts/x/index.yaml", "/charts/settings-1.0.0.tgz/", `/charts/..\secret.tgz`,
	} {
		if resp := r.get(path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s: %s, want 404", path, resp.Status)
		}
	}
	if r.log.Len() > 0 {
		t.Errorf("log %s", r.log.String())
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	r := open(t)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "http://lab/charts/app.tgz", strings.NewReader("x")))
	if resp := w.Result(); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("PUT: %s, Allow %q", resp.Status, resp.Header.Get("Allow"))
	}
	if entries, err := os.ReadDir(r.Dir); err != nil || len(entries) > 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestIndexIsStable(t *testing.T) {
	r := open(t)
	r.put("app.tgz", r.packed("app", "1.0.0"))
	a := r.text()
	if b := r.text(); !bytes.Equal(a, b) {
		t.Errorf("two responses differ:\n%s\n%s", a, b)
	}
	var index repo.IndexFile
	if err := yaml.Unmarshal(a, &index); err != nil || index.Generated.IsZero() {
		t.Errorf("generated at %v, %v", index.Generated, err)
	}
}

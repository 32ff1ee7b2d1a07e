package images

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const content = "hello, disk"

// tree creates a directory to serve, beside a file that must not be served.
func tree(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "images")
	for name, text := range map[string]string{
		"secret":                  "secret",
		"images/a.img":            content,
		"images/b.img":            content + "2",
		"images/b.img.md5":        "real\n",
		"images/.a.img-1":         "half",
		"images/below/c.img":      "c",
		"images/two words.img":    "w",
		"images/odd\nname.img":    "o",
		"images/empty.img":        "",
		"images/d.img.sha256/dir": "",
		"images/d.img":            content,
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"inside.img":   "a.img",
		"outside.img":  "../secret",
		"absolute.img": filepath.Join(top, "secret"),
		"dangling.img": "nothing",
		"loop.img":     "loop.img",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.img"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func request(s http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path // as it is: NewRequest would refuse some
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func line(sum any, name string) string { return fmt.Sprintf("%x  %s\n", sum, name) }

func TestServer(t *testing.T) {
	s := &Server{Dir: tree(t)}
	all := []byte(content)
	sums := line(sha256.Sum256(all), "a.img") +
		line(sha256.Sum256([]byte(content+"2")), "b.img") +
		line(sha256.Sum256(all), "d.img") +
		line(sha256.Sum256(nil), "empty.img") +
		line(sha256.Sum256(all), "inside.img") +
		line(sha256.Sum256([]byte("w")), "two words.img")
	for _, tt := range []struct {
		method, path string
		header       []string
		code         int
		body         string // checked when code is 200 or 206
	}{
		{path: "/images/a.img", code: 200, body: content},
		{method: "HEAD", path: "/images/a.img", code: 200},
		{path: "/images/a.img", header: []string{"Range", "bytes=7-10"}, code: 206, body: "disk"},
		{path: "/images/a.img", header: []string{"Range", "bytes=-4"}, code: 206, body: "disk"},
		{path: "/images/a.img", header: []string{"Range", "bytes=100-"}, code: 416},
		{path: "/images/empty.img", code: 200},
		{path: "/images/two words.img", code: 200, body: "w"},
		{path: "/images/inside.img", code: 200, body: content},

		{path: "/images/a.img.sha256", code: 200, body: line(sha256.Sum256(all), "a.img")},
		{path: "/images/a.img.sha512", code: 200, body: line(sha512.Sum512(all), "a.img")},
		{path: "/images/a.img.md5", code: 200, body: line(md5.Sum(all), "a.img")},
		{method: "HEAD", path: "/images/a.img.md5", code: 200},
		{path: "/images/b.img.md5", code: 200, body: "real\n"},
		{path: "/images/b.img.sha256", code: 200, body: line(sha256.Sum256([]byte(content+"2")), "b.img")},
		{path: "/images/b.img.md5.md5", code: 200, body: line(md5.Sum([]byte("real\n")), "b.img.md5")},
		{path: "/images/a.img.md5.md5", code: 404},
		{path: "/images/d.img.sha256", code: 200, body: line(sha256.Sum256(all), "d.img")},
		{path: "/images/", code: 200, body: sums},
		{path: "/images/SHA256SUMS", code: 200, body: sums},

		{method: "PUT", path: "/images/a.img", code: 405},
		{method: "POST", path: "/images/", code: 405},
		{method: "DELETE", path: "/images/a.img", code: 405},
		{path: "/", code: 404},
		{path: "/images", code: 404},
		{path: "/other/a.img", code: 404},
		{path: "/images/nothing.img", code: 404},
		{path: "/images/nothing.img.sha256", code: 404},
		{path: "/images/.sha256", code: 404},
		{path: "/images/.a.img-1", code: 404},
		{path: "/images/.a.img-1.sha256", code: 404},
		{path: "/images/below", code: 404},
		{path: "/images/below/c.img", code: 404},
		{path: "/images/odd\nname.img", code: 404},
		{path: "/images/pipe.img", code: 404},
		{path: "/images/pipe.img.md5", code: 404},
		{path: "/images/..", code: 404},
		{path: "/images/../secret", code: 404},
		{path: "/images/below/../../secret", code: 404},
		{path: "/images/../secret.sha256", code: 404},
		{path: "/images//etc/passwd", code: 404},
		{path: `/images/..\secret`, code: 404},
		{path: "/images/a.img\x00", code: 404},
		{path: "/images/outside.img", code: 404},
		{path: "/images/outside.img.sha256", code: 404},
		{path: "/images/absolute.img", code: 404},
		{path: "/images/dangling.img", code: 404},
		{path: "/images/loop.img", code: 404},
	} {
		if tt.method == "" {
			tt.method = http.MethodGet
		}
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			w := request(s, tt.method, tt.path, tt.header...)
			if w.Code != tt.code {
				t.Fatalf("status = %d (%s), want %d", w.Code, w.Body, tt.code)
			}
			if got := w.Body.String(); tt.code < 300 && got != tt.body {
				t.Errorf("body = %q, want %q", got, tt.body)
			}
			if tt.code >= 400 && strings.Contains(w.Body.String(), "secret") {
				t.Errorf("body = %q: it tells of what is outside", w.Body)
			}
		})
	}
}

func TestServerSupportsConditionalRequests(t *testing.T) {
	s := &Server{Dir: tree(t)}
	for _, path := range []string{"/images/a.img", "/images/a.img.sha256"} {
		tag := request(s, http.MethodGet, path).Header().Get("ETag")
		if tag == "" || strings.HasPrefix(tag, "W/") {
			t.Fatalf("GET %s: ETag = %q, want a strong one", path, tag)
		}
		if w := request(s, http.MethodGet, path, "If-None-Match", tag); w.Code != http.StatusNotModified {
			t.Errorf("GET %s with its ETag = %d, want 304", path, w.Code)
		}
		if w := request(s, http.MethodGet, path, "If-Range", tag, "Range", "bytes=0-0"); w.Code != http.StatusPartialContent {
			t.Errorf("GET %s, range of its ETag = %d, want 206", path, w.Code)
		}
		if w := request(s, http.MethodGet, path, "If-Range", `"old"`, "Range", "bytes=0-0"); w.Code != http.StatusOK {
			t.Errorf("GET %s, range of another ETag = %d, want 200", path, w.Code)
		}
	}
}

// rewrite changes a file and its time.
func rewrite(t *testing.T, path, text string, changed time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, changed, changed); err != nil {
		t.Fatal(err)
	}
}

func TestChecksumsAreCachedUntilTheFileChanges(t *testing.T) {
	s := &Server{Dir: tree(t)}
	path := filepath.Join(s.Dir, "a.img")
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name, text string
		changed    time.Time
		want       string // whose checksum is served
	}{
		{"first", "one", then, "one"},
		{"same size and time", "two", then, "one"}, // what shows that it is remembered
		{"another time", "two", then.Add(1), "two"},
		{"another size", "three", then.Add(1), "three"},
	} {
		rewrite(t, path, tt.text, tt.changed)
		want := line(sha256.Sum256([]byte(tt.want)), "a.img")
		if got := request(s, http.MethodGet, "/images/a.img.sha256").Body.String(); got != want {
			t.Errorf("%s: checksum = %q, want %q", tt.name, got, want)
		}
	}
}

// TestChecksumOfAFileThatGrows has a file grow between being looked at and
// being read: what the reader of a download in progress sees.
func TestChecksumOfAFileThatGrows(t *testing.T) {
	path := writeFile(t, "a.img", []byte("one"))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	e := &sum{size: info.Size(), changed: info.ModTime()}
	rewrite(t, path, "one and more", info.ModTime())
	if e.compute(f, ".md5"); !errors.Is(e.err, errChanged) {
		t.Errorf("compute of a file that grew = %v, want %v", e.err, errChanged)
	}
	w := httptest.NewRecorder()
	if writeError(w, e.err); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("refuse(%v) = %d, %v; want 503 with Retry-After", e.err, w.Code, w.Header())
	}
}

func TestServerIsSafeForConcurrentUse(t *testing.T) {
	s := &Server{Dir: tree(t)}
	want := line(sha256.Sum256([]byte(content)), "a.img")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got := request(s, http.MethodGet, "/images/a.img.sha256").Body.String(); got != want {
				t.Errorf("checksum = %q, want %q", got, want)
			}
			request(s, http.MethodGet, "/images/")
		})
	}
	wg.Wait()
}

func TestServerEntersAndLeaves(t *testing.T) {
	inside, entered := 0, 0
	s := &Server{Dir: tree(t), Enter: func() func() {
		inside++
		entered++
		return func() { inside-- }
	}}
	for _, path := range []string{"/images/a.img", "/images/nothing", "/images/"} {
		request(s, http.MethodGet, path)
	}
	request(s, http.MethodPut, "/images/a.img")
	if entered != 4 || inside != 0 {
		t.Errorf("entered %d times, %d not left; want 4 and 0", entered, inside)
	}
}

func TestServerWithoutItsDirectory(t *testing.T) {
	s := &Server{Dir: filepath.Join(t.TempDir(), "missing")}
	if w := request(s, http.MethodGet, "/images/a.img"); w.Code != http.StatusNotFound {
		t.Errorf("GET = %d, want 404", w.Code)
	}
}

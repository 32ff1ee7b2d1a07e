package lcm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/hostos/module"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// archive returns a gzip tar with entries.
func archive(t *testing.T, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range entries {
		if h.Typeflag == 0 {
			h.Typeflag, h.Mode = tar.TypeReg, 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > module.MaxUnpacked { // refused by its header
			break
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, strings.Repeat("x", int(h.Size))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Flush(), z.Close()); err != nil && !slices.ContainsFunc(entries, func(h *tar.Header) bool { return h.Size > module.MaxUnpacked }) {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fixture returns the archive of a module of fixtures/modules.
func fixture(t *testing.T, name string) ([]byte, *module.Module) {
	t.Helper()
	files, err := fs.Sub(fixtures.Modules, "modules/"+name)
	if err != nil {
		t.Fatal(err)
	}
	data, m, err := module.Build(files)
	if err != nil {
		t.Fatal(err)
	}
	return data, m
}

// files serves content by path.
func files(t *testing.T, content map[string][]byte) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := content[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(s.Close)
	return s
}

// executed runs one item without an agent's loop and returns its result.
func executed(t *testing.T, f *fakeAPI, s *server, m *lcmv1.LCMMachine, it lcmv1.LCMStateItem) result {
	t.Helper()
	return newAgent(t, f, s).run(t.Context(), m, it)
}

func newAgent(t *testing.T, f *fakeAPI, s *server) *agent {
	t.Helper()
	c := config(f, s)
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	c.KeepUser = true
	return &agent{Config: c, boot: s.boot, api: newClient(c.Account, s, f)}
}

func downloader(params map[string]string) lcmv1.LCMStateItem {
	return lcmv1.LCMStateItem{Runner: lcmv1.RunnerDownloader, Name: "download", Version: "v1", Phase: lcmv1.PhaseReconfigure, Params: params}
}

const moduleDir = "/root/host-os-modules/sysctl-1.0.0"

func TestDownloaderUnpacksAModule(t *testing.T) {
	f, s := newAPI(), newServer(t)
	data, m := fixture(t, "sysctl")
	web := files(t, map[string][]byte{"/sysctl.tgz": data, "/next.tgz": archive(t, &tar.Header{Name: "a/b", Size: 3}, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/b"})})
	p := map[string]string{"url": web.URL + "/sysctl.tgz", "sha256": m.SHA256, "path": moduleDir}
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(p)); r.code != 0 {
		t.Fatalf("download = %+v", r)
	}
	for _, name := range m.Archive.Files() {
		want, err := fs.ReadFile(fixtures.Modules, "modules/sysctl/"+name)
		if got := s.read(t, moduleDir+"/"+name); err != nil || got != string(want) {
			t.Errorf("%s = %q, %v", name, got, err)
		}
	}
	if got := s.read(t, moduleDir+".sha256"); got != m.SHA256+"\n" {
		t.Errorf("the file of the SHA-256 has %q", got)
	}
	// Another archive replaces all of it.
	next := archive(t, &tar.Header{Name: "a/b", Size: 3}, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/b"})
	p["url"], p["sha256"] = web.URL+"/next.tgz", module.Sum(next)
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(p)); r.code != 0 {
		t.Fatalf("download = %+v", r)
	}
	if names, err := s.ReadDir(moduleDir); err != nil || !slices.Equal(names, []string{"a", "l"}) {
		t.Errorf("files of the next archive: %q, %v", names, err)
	}
	if names, err := s.ReadDir(filepath.Dir(moduleDir)); err != nil || len(names) != 2 {
		t.Errorf("beside the directory: %q, %v, want its SHA-256 alone", names, err)
	}
	if info, err := os.Stat(s.path(moduleDir + "/l")); err != nil || info.Mode() != 0o755 {
		t.Errorf("a link to a file of mode 0755: %v, %v", info, err)
	}
}

// statement H25: an archive with another SHA-256 is not unpacked, and the playbook does not
// run.
func TestDownloadOfAnotherSumFailsAndItsPlaybookNeverRuns(t *testing.T) {
	data, _ := fixture(t, "sysctl")
	web := files(t, map[string][]byte{"/sysctl.tgz": data})
	f, s := newAPI(), newServer(t)
	wrong := strings.Repeat("a", 64)
	play := lcmv1.LCMStateItem{Runner: lcmv1.RunnerAnsible, Name: "play", Version: "v1", Phase: lcmv1.PhaseReconfigure, Params: map[string]string{"path": moduleDir, "playbook": "main.yaml", "sha256": wrong}}
	f.change(machineWith(downloader(map[string]string{"url": web.URL + "/sysctl.tgz", "sha256": wrong, "path": moduleDir}), play))
	start(t, config(f, s))
	patience.Await(t, "the download fails", func() bool { return f.statuses()["download"] == "1 after 1" })
	got := f.machine().Status.StateItemStatuses
	want := fmt.Sprintf("hashes are not the same: got '%s' want '%s'", module.Sum(data), wrong)
	if got["download"].Message != want || len(got) != 1 {
		t.Errorf("statuses = %+v, want the message %q and no play", got, want)
	}
	if _, err := s.ReadDir(moduleDir); !errors.Is(err, fs.ErrNotExist) || len(s.commands()) > 0 {
		t.Errorf("the directory: %v, commands: %v", err, s.commands())
	}
}

// statement H4: no file of an unsafe archive is written, and the old files stay.
func TestDownloaderRefusesUnsafeArchives(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"path to the parent", archive(t, &tar.Header{Name: "a", Size: 1}, &tar.Header{Name: "../x", Size: 1}), `path has ..`},
		{"absolute path", archive(t, &tar.Header{Name: "/etc/x", Size: 1}), "path is absolute"},
		{"link out of the root", archive(t, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../../etc"}), "leaves the root"},
		{"absolute link", archive(t, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), "must be relative"},
		{"hard link out of the root", archive(t, &tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/shadow"}), "path is absolute"},
		{"device", archive(t, &tar.Header{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}), "device file"},
		{"bomb", archive(t, &tar.Header{Name: "a", Size: module.MaxUnpacked + 1}), "more than 256 MiB unpacked"},
		{"damaged", archive(t, &tar.Header{Name: "a", Size: 1})[:40], "not a tar file"},
	} {
		f, s := newAPI(), newServer(t)
		old := archive(t, &tar.Header{Name: "old", Size: 1})
		web := files(t, map[string][]byte{"/old": old, "/new": tt.data})
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(map[string]string{"url": web.URL + "/old", "sha256": module.Sum(old), "path": moduleDir})); r.code != 0 {
			t.Fatal(r)
		}
		before := tree(t, s.dir)
		r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(map[string]string{"url": web.URL + "/new", "sha256": module.Sum(tt.data), "path": moduleDir}))
		if r.code != 1 || !strings.Contains(r.message, tt.want) {
			t.Errorf("%s: download = %+v, want %q", tt.name, r, tt.want)
		}
		if diff := cmp.Diff(before, tree(t, s.dir)); diff != "" {
			t.Errorf("%s: files (-before +after):\n%s", tt.name, diff)
		}
	}
}

func tree(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		out = append(out, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDownloaderRefusesParams(t *testing.T) {
	f, s := newAPI(), newServer(t)
	s.write(t, "/etc/operator", "x", 0o600)
	data := archive(t, &tar.Header{Name: "a", Size: 1})
	web := files(t, map[string][]byte{"/a": data})
	for _, tt := range []struct {
		name, value string
		want        string
	}{
		{"path", "", "absolute path"},
		{"path", "etc", "absolute path"},
		{"path", "/", "absolute path below /"},
		{"path", "/root/../etc", "without . and .."},
		{"path", "/etc", "has files, and not of an archive"},
		{"url", "file:///etc/shadow", "use a URL of HTTP or HTTPS"},
		{"url", web.URL + "/none", "403 Forbidden"},
		{"url", "http://u:password@127.0.0.1:1/", "connection refused"},
		{"sha256", "abc", "give 64 hexadecimal digits"},
		{"mode", "999", "permissions in octal"},
		{"mode", "4755", "permissions in octal"},
		{"timeout", "soon", "give a duration"},
	} {
		p := map[string]string{"url": web.URL + "/a", "sha256": module.Sum(data), "path": "/opt/a"}
		p[tt.name] = tt.value
		r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(p))
		if r.code != 1 || !strings.Contains(r.message, tt.want) || strings.Contains(r.message, "password") {
			t.Errorf("%s %q: download = %+v, want %q", tt.name, tt.value, r, tt.want)
		}
	}
	if s.read(t, "/etc/operator") != "x" {
		t.Error("a file of the operator is gone")
	}
}

func TestDownloaderWritesAFile(t *testing.T) {
	f, s := newAPI(), newServer(t)
	zipped := archive(t, &tar.Header{Name: "a", Size: 1})
	web := files(t, map[string][]byte{"/a.sh": []byte("#!/bin/sh\n"), "/a.tgz": zipped})
	for _, p := range []map[string]string{
		{"url": web.URL + "/a.sh", "sha256": module.Sum([]byte("#!/bin/sh\n")), "path": "/opt/a.sh", "mode": "0750"},
		{"url": web.URL + "/a.tgz", "sha256": module.Sum(zipped), "path": "/opt/a.tgz", "unpack": "false"},
	} {
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(p)); r.code != 0 {
			t.Errorf("%v: download = %+v", p, r)
		}
		if got := module.Sum([]byte(s.read(t, p["path"]))); got != p["sha256"] {
			t.Errorf("%s has the SHA-256 %s", p["path"], got)
		}
	}
	if info, err := os.Stat(s.path("/opt/a.sh")); err != nil || info.Mode() != 0o750 {
		t.Errorf("mode = %v, %v, want 0750", info, err)
	}
}

// statement H3: the agent downloads through the proxy of the LCMMachine, and names what the
// proxy answers.
func TestDownloadThroughAProxy(t *testing.T) {
	f, s := newAPI(), newServer(t)
	data := []byte("a script")
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("Proxy-Authorization"))
		if strings.Contains(r.URL.Path, "forbidden") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(data)
	}))
	defer proxy.Close()
	f.secret("proxy", map[string]string{"HTTP_PROXY": strings.Replace(proxy.URL, "http://", "http://u:secretword@", 1), "NO_PROXY": "direct.example"})
	m := &lcmv1.LCMMachine{Spec: lcmv1.LCMMachineSpec{ProxySecretName: "proxy"}}
	p := map[string]string{"url": "http://modules.example/a", "sha256": module.Sum(data), "path": "/opt/a"}
	if r := executed(t, f, s, m, downloader(p)); r.code != 0 {
		t.Errorf("download = %+v", r)
	}
	if diff := cmp.Diff([]string{"http://modules.example/a Basic dTpzZWNyZXR3b3Jk"}, asked); diff != "" {
		t.Errorf("requests of the proxy (-want +got):\n%s", diff)
	}
	p["url"] = "http://modules.example/forbidden"
	if r := executed(t, f, s, m, downloader(p)); r.code != 1 || r.message != `Get "http://modules.example/forbidden": 403 Forbidden` {
		t.Errorf("download = %+v", r)
	}
	proxy.Close()
	if r := executed(t, f, s, m, downloader(p)); r.code != 1 || strings.Contains(r.message, "secretword") {
		t.Errorf("download through a proxy that is away = %+v", r)
	}
	f.secret("proxy", nil)
	m.Spec.ProxySecretName = "gone"
	if r := executed(t, f, s, m, downloader(p)); r.code != 1 || !strings.Contains(r.message, "proxy: Secret default/gone: the API answers 404") {
		t.Errorf("download without the Secret = %+v", r)
	}
}

// An https URL is fetched through a tunnel (RFC 9110, §9.3.6), and past the proxy if
// NO_PROXY names its host.
func TestDownloadThroughATunnel(t *testing.T) {
	f, s := newAPI(), newServer(t)
	data := []byte("a script")
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	defer server.Close()
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		to, err := new(net.Dialer).DialContext(r.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer to.Close()
		w.WriteHeader(http.StatusOK)
		client, begun, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		go func() { _, _ = io.Copy(to, begun) }() // begun has the first byte where it was early; both end with the test's servers
		_, _ = io.Copy(client, to)
	}))
	defer proxy.Close()
	m := &lcmv1.LCMMachine{Spec: lcmv1.LCMMachineSpec{ProxySecretName: "proxy"}}
	p := map[string]string{"url": "https://example.com/a", "sha256": module.Sum(data), "path": "/opt/a"}
	through := func(values map[string]string) result {
		f.secret("proxy", values)
		a := newAgent(t, f, s)
		a.Downloads = server.Client().Transport.(*http.Transport)
		return a.run(t.Context(), m, downloader(p))
	}
	with := strings.Replace(proxy.URL, "http://", "http://u:secretword@", 1)
	if r := through(map[string]string{"HTTPS_PROXY": with}); r.code != 0 {
		t.Errorf("download = %+v", r)
	}
	if diff := cmp.Diff([]string{"CONNECT example.com:443 Basic dTpzZWNyZXR3b3Jk"}, asked); diff != "" {
		t.Errorf("requests of the proxy (-want +got):\n%s", diff)
	}
	if r := through(map[string]string{"HTTPS_PROXY": with, "NO_PROXY": "other.example,example.com"}); r.code != 0 || len(asked) != 1 {
		t.Errorf("download past the proxy = %+v, requests of the proxy %q", r, asked)
	}
	if r := through(map[string]string{"HTTPS_PROXY": proxy.URL}); r.code != 1 || !strings.Contains(r.message, "Proxy Authentication Required") {
		t.Errorf("download without a password = %+v", r)
	}
	for _, wrong := range []string{"u:secretword@192.0.2.1", "http://u:secretword@%zz", "http://u:secretword@[::1", "socks5://u:secretword@a"} {
		for _, key := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
			if r := through(map[string]string{key: wrong}); r.code != 1 || r.message != "proxy: Secret default/proxy: "+key+": give a URL of http or https" {
				t.Errorf("%s %s: download = %+v", key, wrong, r)
			}
		}
	}
}

// The server of modules is slow: the deadline ends the download.
func TestDownloadEndsAtItsDeadline(t *testing.T) {
	f, s := newAPI(), newServer(t)
	begun := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	defer web.Close()
	p := map[string]string{"url": web.URL, "sha256": strings.Repeat("a", 64), "path": "/opt/a", "timeout": "300ms"}
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(p)); r.code != codeTimeout || !strings.Contains(r.message, "ended after 300ms, its deadline (timeout: 300ms)") {
		t.Errorf("download = %+v, want the deadline", r)
	}
	<-begun
}

// A full disk fails the item with its reason, leaves nothing of the archive, and the item
// succeeds when there is room.
func TestFullDisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		data := archive(t, &tar.Header{Name: "a", Size: batch + 1}, &tar.Header{Name: "b", Size: 1})
		a := newAgent(t, f, s)
		full := true
		s.put = func(files []sys.File) error {
			for _, file := range files {
				if full && (strings.HasSuffix(file.Name, "/b") || file.Name == stateFile) {
					return &fs.PathError{Op: "write", Path: file.Name, Err: syscall.ENOSPC}
				}
			}
			return nil
		}
		got, err := module.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.unpack(got, moduleDir, module.Sum(data)); err == nil || !strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("unpack error = %v", err)
		}
		if names, err := s.ReadDir(filepath.Dir(moduleDir)); err != nil || len(names) > 0 {
			t.Errorf("left on the full disk: %q, %v", names, err)
		}
		// An item that needs no room runs, and its result is reported although the agent's
		// state cannot be written.
		f.change(machineWith(script("a", "true", lcmv1.PhaseDeploy)))
		r := start(t, config(f, s))
		pass(0)
		check(t, f, map[string]string{"a": "0 after 1"})
		if !strings.Contains(r.log.String(), "no space left on device") {
			t.Errorf("the log does not name the full disk: %s", r.log)
		}
		full = false
		if err := a.unpack(got, moduleDir, module.Sum(data)); err != nil {
			t.Errorf("unpack with room: %v", err)
		}
	})
}

// An agent that was ended while it unpacked begins again.
func TestUnpackGoesOnAfterAKill(t *testing.T) {
	f, s := newAPI(), newServer(t)
	s.write(t, moduleDir+"/half", "x", 0o600)
	s.write(t, moduleDir+partSuffix, "", 0o600)
	data := archive(t, &tar.Header{Name: "a", Size: 1})
	web := files(t, map[string][]byte{"/a": data})
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, downloader(map[string]string{"url": web.URL + "/a", "sha256": module.Sum(data), "path": moduleDir})); r.code != 0 {
		t.Errorf("download = %+v", r)
	}
	if names, err := s.ReadDir(moduleDir); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("files = %q, %v, want those of the archive alone", names, err)
	}
}

func TestBash(t *testing.T) {
	f, s := newAPI(), newServer(t)
	text := []byte("echo \"$VALUE $1 $2 $#\"; cat; exit 5\n")
	web := files(t, map[string][]byte{"/a.sh": text})
	s.write(t, "/opt/a.sh", string(text), 0o600)
	for _, p := range []map[string]string{
		{"script": string(text)},
		{"url": web.URL + "/a.sh", "sha256": module.Sum(text)},
		{"path": "/opt/a.sh"},
	} {
		p["args"], p["VALUE"] = "one  two", "a b"
		it := lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Name: "a", Params: p}
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, it); r.code != 5 || r.message != "a b one two 2" {
			t.Errorf("%v: bash = %+v, want 5 and its output", p, r)
		}
	}
	if _, err := s.ReadDir(runDir + "/item"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of the item are left: %v", err)
	}
	for _, p := range []map[string]string{{}, {"path": "a.sh"}, {"url": web.URL + "/a.sh", "sha256": strings.Repeat("0", 64)}} {
		if r := executed(t, f, s, &lcmv1.LCMMachine{}, lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Params: p}); r.code != 1 || r.message == "" {
			t.Errorf("%v: bash = %+v, want a refusal", p, r)
		}
	}
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, lcmv1.LCMStateItem{Runner: "perl"}); r.code != 1 || !strings.Contains(r.message, `runner "perl"`) {
		t.Errorf("perl = %+v", r)
	}
	// The message is the end of the output, and bounded.
	loop := lcmv1.LCMStateItem{Runner: lcmv1.RunnerBash, Params: map[string]string{"script": "for i in {1..20000}; do echo line $i; done"}}
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, loop); len(r.message) > maxMessage || !strings.HasPrefix(r.message, "line ") || !strings.HasSuffix(r.message, "\nline 20000") {
		t.Errorf("message of %d bytes: %.40q", len(r.message), r.message)
	}
}

func TestRetryDelay(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: minRetry, 2: 2 * minRetry, 3: 4 * minRetry, 6: maxRetry, 1 << 30: maxRetry} {
		if got := retryDelay(attempt); got != want {
			t.Errorf("retryDelay(%d) = %s, want %s", attempt, got, want)
		}
	}
}

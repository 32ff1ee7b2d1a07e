package netboot

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

func newServer(t *testing.T) *Server {
	t.Helper()
	s, err := New(Config{
		Key: make(inband.Key, inband.KeySize),
		URL: "http://127.0.0.1:1",
		Media: func(b inband.Boot) job.Media {
			return job.Media{Server: "https://127.0.0.1:2", Token: "secret", Boot: b.String()}
		},
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

func get(t *testing.T, s *Server, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func TestMediumHoldsTheAgentsConfiguration(t *testing.T) {
	s := newServer(t)
	b := inband.Boot{Host: "h1", ID: "b1"}
	url := s.ISO(b)
	if !s.Ours(url) || s.Ours("http://127.0.0.1:9/boot/x") {
		t.Errorf("Ours(%s) = %v, and a foreign one %v", url, s.Ours(url), s.Ours("http://127.0.0.1:9/boot/x"))
	}
	path := strings.TrimPrefix(url, "http://127.0.0.1:1")
	s.Open(b)
	resp := get(t, s, path)
	iso, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %d, %v", path, resp.StatusCode, err)
	}
	name := filepath.Join(t.TempDir(), "a.iso")
	if err := os.WriteFile(name, iso, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := file.OpenFromPath(name, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs, err := iso9660.Read(f, int64(len(iso)), 0, 0)
	if err != nil {
		t.Fatalf("iso9660.Read: %v", err)
	}
	in, err := fs.OpenFile(job.MediaConfigPath, os.O_RDONLY)
	if err != nil {
		t.Fatalf("open %s: %v", job.MediaConfigPath, err)
	}
	var m job.Media
	if err := json.NewDecoder(in).Decode(&m); err != nil || m.Token != "secret" || m.Boot != b.String() {
		t.Errorf("%s = %+v, %v", job.MediaConfigPath, m, err)
	}
	// El Torito 1.0, §2.0: the boot record stands in sector 17 and points at
	// the catalogue, whose second entry is bootable (88h).
	record := iso[17*isoBlock:]
	if got := string(record[7:30]); got != "EL TORITO SPECIFICATION" {
		t.Fatalf("boot record says %q", got)
	}
	entry := iso[int(binary.LittleEndian.Uint32(record[71:]))*isoBlock+32:]
	image := iso[int(binary.LittleEndian.Uint32(entry[8:]))*isoBlock:]
	if entry[0] != 0x88 || image[510] != 0x55 || image[511] != 0xaa {
		t.Errorf("catalogue entry % x, image ends in % x: want a bootable one", entry[:12], image[510:512])
	}

	if part := get(t, s, path, "Range", "bytes=32769-32773"); part.StatusCode != http.StatusPartialContent {
		t.Errorf("range: status %d, want 206", part.StatusCode)
	} else if got, _ := io.ReadAll(part.Body); string(got) != "CD001" {
		t.Errorf("range = %q, want CD001", got)
	}
}

func TestMediumOfAForgedURLIsNotFound(t *testing.T) {
	s := newServer(t)
	b, other := inband.Boot{Host: "h1", ID: "b1"}, inband.Boot{Host: "h2", ID: "b1"}
	s.Open(b)
	s.Open(other)
	good := strings.TrimPrefix(s.ISO(b), "http://127.0.0.1:1")
	path, query, _ := strings.Cut(good, "?")
	code := s.cfg.Key.Signature(mediaPurpose, b)
	for _, bad := range []string{
		strings.Replace(good, "h1_b1", "h2_b1", 1),
		path + "?token=" + s.cfg.Key.Signature("agent", b), // signed for another purpose
		path, path + "?", path + "?token=", path + "?Token=" + code, path + "?token=" + code + "=", path + "?token=" + code + "%0A",
		path + "?token=" + code[:len(code)-1], good + "&token=" + code, path + "?token=x&" + query,
		"/boot/" + s.cfg.Key.Sign(mediaPurpose, b) + "/agent.iso",
		strings.Replace(good, "/agent.iso", "", 1), strings.Replace(good, "/agent.iso", "/../agent.iso", 1),
		"/", "/boot/", "/boot/../etc/passwd",
	} {
		if got := get(t, s, bad).StatusCode; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", bad, got)
		}
	}
	if got := get(t, s, good).StatusCode; got != http.StatusOK {
		t.Errorf("GET %s = %d, want 200", good, got)
	}
}

// A medium has the token of its boot. It is served while the boot is awaited, as often and
// in such parts as the BMC likes, and to nobody before and after.
func TestMediumIsServedOnlyWhileItsBootIsAwaited(t *testing.T) {
	s := newServer(t)
	one, two, other := inband.Boot{Host: "h1", ID: "b1"}, inband.Boot{Host: "h1", ID: "b2"}, inband.Boot{Host: "h2", ID: "b1"}
	statuses := func(b inband.Boot) map[int]bool {
		got := map[int]bool{}
		for name := range files {
			path := strings.TrimPrefix(s.url(b, name), s.cfg.URL)
			for range 2 {
				got[get(t, s, path).StatusCode] = true
				if part := get(t, s, path, "Range", "bytes=0-0").StatusCode; part != http.StatusPartialContent {
					got[part] = true
				}
			}
			r := httptest.NewRequest(http.MethodHead, path, nil)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			got[w.Code] = true
		}
		return got
	}
	check := func(when string, b inband.Boot, want int) {
		t.Helper()
		if got := statuses(b); len(got) != 1 || !got[want] {
			t.Errorf("%s, the files of %s answer %v, want %d", when, b, got, want)
		}
	}
	check("before the controller has looked at the host", one, http.StatusServiceUnavailable)
	s.Open(one)
	check("while it is awaited", one, http.StatusOK)
	check("while another boot is awaited", two, http.StatusNotFound)
	check("while another host boots", other, http.StatusServiceUnavailable)
	s.Open(two)
	check("after the next boot has begun", one, http.StatusNotFound)
	check("while it is awaited", two, http.StatusOK)
	s.Close("h1")
	check("after the agent is up", two, http.StatusNotFound)
	s.Forget("h1")
	check("after the host is gone", two, http.StatusServiceUnavailable)

	s.cfg.Public = "spare"
	check("of a boot that nobody expects", inband.Boot{Host: "h1", ID: "spare"}, http.StatusOK)
	s.Close("h1")
	check("of a boot that nobody expects", inband.Boot{Host: "h1", ID: "spare"}, http.StatusOK)
	check("after the agent is up", two, http.StatusNotFound)
}

// Some BMCs hide the query of the URL that they show: it is the boot's medium all the same.
func TestMediumIsKnownWithoutItsToken(t *testing.T) {
	s := newServer(t)
	s.cfg.Secure = "https://127.0.0.1:3"
	b := inband.Boot{Host: "h1", ID: "b1"}
	for _, url := range s.Media(b) {
		bare, token, _ := strings.Cut(url, "?")
		if !strings.Contains(token, s.cfg.Key.Signature(mediaPurpose, b)) || strings.Contains(bare, s.cfg.Key.Signature(mediaPurpose, b)) {
			t.Errorf("%s: want the token in the query alone", url)
		}
		if !strings.HasSuffix(url, ".iso") || !strings.HasSuffix(bare, ".iso") {
			t.Errorf("%s does not end as an ISO's URL does: some BMCs refuse it", url)
		}
		for _, shown := range []string{url, bare, bare + "?...", bare + "?"} {
			if !s.IsMedia(b, shown) {
				t.Errorf("IsMedia(%s, %s) = false", b, shown)
			}
			if s.IsMedia(inband.Boot{Host: "h1", ID: "b2"}, shown) {
				t.Errorf("IsMedia of another boot with %s = true", shown)
			}
		}
	}
	for _, foreign := range []string{"", "http://127.0.0.1:1/boot/h1_b1/agent.iso2", "http://127.0.0.1:9/boot/h1_b1/agent.iso"} {
		if s.IsMedia(b, foreign) {
			t.Errorf("IsMedia(%s, %q) = true", b, foreign)
		}
	}
}

// BMCs that fetch by HTTPS alone find the same medium there.
func TestMediumHasAnAddressByHTTPS(t *testing.T) {
	s := newServer(t)
	b := inband.Boot{Host: "h1", ID: "b1"}
	if got := s.Media(b); len(got) != 1 || got[0] != s.ISO(b) {
		t.Errorf("Media() = %q without HTTPS, want %q alone", got, s.ISO(b))
	}
	if s.Ours("/boot/x") {
		t.Error("Ours(/boot/x): without an address everything would be ours")
	}
	s.cfg.Secure = "https://127.0.0.1:3"
	got := s.Media(b)
	if len(got) != 2 || got[0] != s.ISO(b) || strings.TrimPrefix(got[1], s.cfg.Secure) != strings.TrimPrefix(got[0], s.cfg.URL) {
		t.Fatalf("Media() = %q, want the same path at %s and %s", got, s.cfg.URL, s.cfg.Secure)
	}
	for _, url := range got {
		if !s.Ours(url) {
			t.Errorf("Ours(%s) = false", url)
		}
	}
}

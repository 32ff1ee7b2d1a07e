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
	good := strings.TrimPrefix(s.ISO(inband.Boot{Host: "h1", ID: "b1"}), "http://127.0.0.1:1")
	for _, path := range []string{
		strings.Replace(good, "h1_b1", "h2_b1", 1),
		"/boot/" + s.cfg.Key.Sign("agent", inband.Boot{Host: "h1", ID: "b1"}) + "/agent.iso", // signed for another purpose
		strings.TrimSuffix(good, "/agent.iso"),
		"/", "/boot/", "/boot/../etc/passwd",
	} {
		if got := get(t, s, path).StatusCode; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, got)
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

package lab

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// TestChartsAreServedBesideTheImages requests paths as they stand from the lab's server of
// images and charts.
func TestChartsAreServedBesideTheImages(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	get := func(with []string, path string) (int, string) {
		t.Helper()
		w := &Lab{cfg: Config{Dir: dir, Settings: Settings{Hosts: 1, Speed: "max", Kube: true, With: with}, Log: slog.New(slog.DiscardHandler)}, clock: clock.NewJumping(time.Unix(0, 0))}
		w.ports.Images = "127.0.0.1:1"
		want := ""
		if with != nil {
			want = "http://127.0.0.1:1/charts/"
		}
		if got := w.ChartsURL(); got != want {
			t.Errorf("with %q: URL %q, want %q", with, got, want)
		}
		h, err := w.withCharts(&images.Server{Dir: filepath.Join(dir, ImagesDir)})
		if err != nil {
			t.Fatal(err)
		}
		rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://lab/", nil)
		req.URL.Path = path
		h.ServeHTTP(rec, req)
		text, err := io.ReadAll(rec.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		return rec.Code, string(text)
	}
	if _, err := images.Ensure(filepath.Join(dir, ImagesDir)); err != nil {
		t.Fatal(err)
	}
	hoc := []string{config.HOC}
	for _, tt := range []struct {
		with []string
		path string
		code int
		text string // text that the response contains
	}{
		{hoc, "/charts/index.yaml", http.StatusOK, "settings-1.0.0.tgz"},
		{hoc, "/charts/web-1.0.0.tgz", http.StatusOK, ""},
		{hoc, "/images/" + DemoImage + ".sha256", http.StatusOK, DemoImage},
		{hoc, "/charts/../secret", http.StatusNotFound, ""},
		{hoc, "/charts/../images/" + DemoImage, http.StatusNotFound, ""},
		{hoc, "/images/../charts/index.yaml", http.StatusNotFound, ""},
		{hoc, "/charts/" + dir + "/secret", http.StatusNotFound, ""},
		{hoc, "/charts", http.StatusNotFound, ""},
		{nil, "/charts/index.yaml", http.StatusNotFound, ""},
		{nil, "/images/" + DemoImage + ".sha256", http.StatusOK, DemoImage},
	} {
		if code, text := get(tt.with, tt.path); code != tt.code || !strings.Contains(text, tt.text) {
			t.Errorf("with %q: GET %s = %d, want %d and %q", tt.with, tt.path, code, tt.code, tt.text)
		}
	}
}

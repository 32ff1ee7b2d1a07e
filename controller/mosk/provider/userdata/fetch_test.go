package userdata

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// The script installs the file of the URL that has the digest, and leaves one that is there. A
// failure names the URL and both digests, and leaves nothing.
func TestFetchScript(t *testing.T) {
	prerequisites.Need(t, "curl")
	const program = "#!/bin/sh\necho agent\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/it's here":
			_, _ = w.Write([]byte(program))
		case "/moved":
			http.Redirect(w, r, "/it's%20here", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	sum, other := lcm.Sum([]byte(program)), strings.Repeat("5a", 32)
	for _, tt := range []struct {
		name, url, sum, was string
		want                []string // in the message; nil: the program is installed
	}{
		{name: "right", url: "/it's%20here", sum: sum},
		{name: "redirected", url: "/moved", sum: sum},
		{name: "installed", url: "/none", sum: other, was: program},
		{name: "another file", url: "/moved", sum: other, want: []string{"/moved has the SHA-256 " + sum + ", and the release names " + other}},
		{name: "no file", url: "/none", sum: sum, want: []string{"404", "/none is not downloaded"}},
	} {
		dir := t.TempDir()
		at, script := filepath.Join(dir, "lab-agent"), filepath.Join(dir, "fetch")
		if err := os.WriteFile(script, []byte(strings.ReplaceAll(FetchScript, Program, at)), 0o700); err != nil {
			t.Fatal(err)
		}
		if tt.was != "" {
			if err := os.WriteFile(at, []byte(tt.was), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", script, web.URL+tt.url, tt.sum)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if (err != nil) != (tt.want != nil) {
			t.Errorf("%s: %v, %s", tt.name, err, out)
		}
		for _, part := range tt.want {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s: the message is %q, want %s", tt.name, out, part)
			}
		}
		got, err := os.ReadFile(at)
		if tt.want == nil && string(got) != program || tt.want != nil && err == nil {
			t.Errorf("%s: the program is %q, %v", tt.name, got, err)
		}
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s: the program has the mode %v", tt.name, info.Mode())
		}
		if _, err := os.Stat(at + ".new"); err == nil {
			t.Errorf("%s: the download stays", tt.name)
		}
	}
}

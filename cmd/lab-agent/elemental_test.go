//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/version"
)

// The commands of the Elemental agent register and install a server whose files are below a
// scratch root, with the same flags and under the provider's name for the program.
func TestElementalCommands(t *testing.T) {
	var mu sync.Mutex
	var requests []string
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.Method)
		switch {
		case r.Method == http.MethodGet:
			_, _ = w.Write([]byte(`{"config":{"elemental":{"install":{"device":"/dev/sda"},"registration":{"uri":"https://lab.example/r","token":"n"},"agent":{"osPlugin":"dummy","hostname":{"useExisting":true}}}}}`))
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		case len(requests) == 2:
			http.Error(w, "no host", http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	t.Cleanup(api.Close)
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/hostname"), []byte("box\n"), 0o644)
	write(t, filepath.Join(root, "etc/ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}), 0o644)
	write(t, filepath.Join(root, "seed.yaml"), []byte("registration: {uri: '"+api.URL+"/r', caCert: /etc/ca.crt, token: t}\nagent: {osPlugin: /x/dummy.so}\n"), 0o600)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(t.TempDir(), "elemental-agent")
	if err := os.Symlink(self, alias); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), alias, "register", "--install", "--debug", "--config", "/seed.yaml", "--root", root)
	c.Env = append(os.Environ(), mainEnv+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("elemental-agent register --install = %v: %s", err, out)
	}
	if got := strings.Join(requests, " "); got != "GET PATCH POST PATCH PATCH PATCH PATCH PATCH GET PATCH" {
		t.Errorf("requests = %s", got)
	}
	for name, want := range map[string]string{"install.yaml": "device: /dev/sda\n", "hostname": "box\n"} {
		if b, err := os.ReadFile(filepath.Join(root, "var/lib/elemental/agent", name)); err != nil || string(b) != want {
			t.Errorf("%s = %q, %v, want %q", name, b, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "var/lib/elemental/agent/private.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private.key = %v, %v, want mode 0600", info, err)
	}
}

func TestElementalCommandRefuses(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "sim.yaml"), []byte("registration: {uri: 'https://lab.example/r'}\n"), 0o600)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "etc/elemental/agent/config.yaml: no such file"},
		{[]string{"run", "--config", "/sim.yaml"}, "elemental.so\" is not built in: use one of dummy"},
		{[]string{"register", "now"}, `takes no argument "now"`},
		{[]string{"install", "--install"}, "unknown flag"},
	} {
		c := command()
		c.SetArgs(append([]string{"elemental", "--root", root}, tt.args...))
		var out bytes.Buffer
		c.SetErr(&out)
		if err := c.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab-agent elemental %q = %v, want %q", tt.args, err, tt.want)
		}
	}
}

// The version is that of the program, under both of its names.
func TestElementalVersion(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(t.TempDir(), "elemental-agent")
	if err := os.Symlink(self, alias); err != nil {
		t.Fatal(err)
	}
	want := "elemental-agent " + version.Read().Version + "\n"
	for _, args := range [][]string{{self, "elemental", "version"}, {alias, "version"}} {
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Env = append(os.Environ(), mainEnv+"=1")
		if out, err := c.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%q = %q, %v, want %q", args[1:], out, err, want)
		}
	}
	c := command()
	c.SetArgs([]string{"elemental", "version", "now"})
	c.SetErr(new(bytes.Buffer))
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `"now"`) {
		t.Errorf("lab-agent elemental version now = %v, want an error that names the argument", err)
	}
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/lcm"
)

// statement H23: the command runs the agent below a scratch root, whose items run on this
// machine; a second one on the same root is refused.
func TestLCMCommand(t *testing.T) {
	root := t.TempDir()
	done := make(chan string, 1)
	object := map[string]any{
		"metadata": map[string]any{"name": "worker-0", "namespace": "default"},
		"spec": map[string]any{"type": "worker", "lcmType": "k0s", "stateItems": []any{map[string]any{
			"runner": "bash", "name": "a", "version": "v1", "phase": "deploy", "params": map[string]any{"script": "echo done >" + root + "/made"},
		}}},
	}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		if r.Method == http.MethodPatch {
			b, _ := io.ReadAll(r.Body)
			var patch struct{ Status map[string]any }
			if err := json.Unmarshal(b, &patch); err != nil {
				t.Error(err)
			}
			if items, ok := patch.Status["stateItemStatuses"].(map[string]any); ok {
				if s, _ := items["a"].(map[string]any); s["finishedAt"] != nil {
					select {
					case done <- string(b):
					default:
					}
				}
			}
		}
		_ = json.NewEncoder(w).Encode(object)
	}))
	for name, text := range map[string]string{
		"lcm.yaml": "server: " + api.URL + "\ncaFile: /etc/lab-agent/ca.crt\ntokenFile: /etc/lab-agent/token\nnamespace: default\nmachine: none\n",
		"ca.crt":   string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})), "token": "t\n",
	} {
		at := filepath.Join(root, "etc/lab-agent", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(ctx context.Context, args ...string) (string, error) {
		var out bytes.Buffer
		c := command()
		c.SetArgs(append([]string{"lcm"}, args...))
		c.SetOut(&out)
		c.SetErr(&out)
		err := c.ExecuteContext(ctx)
		return out.String(), err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, err := run(ctx, "--root", root, "--machine", "worker-0")
		if err != nil {
			t.Errorf("lab-agent lcm = %v: %s", err, out)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		api.Close()
	})
	if got := <-done; !strings.Contains(got, `"exitCode":0`) {
		t.Errorf("status of the item = %s, want exit code 0", got)
	}
	if b, err := os.ReadFile(filepath.Join(root, "made")); err != nil || string(b) != "done\n" {
		t.Errorf("file of the item = %q, %v", b, err)
	}
	if _, err := run(t.Context(), "--root", root); err == nil || !strings.Contains(err.Error(), "another LCM agent runs on this system") {
		t.Errorf("a second agent = %v, want a refusal", err)
	}
}

func TestLCMCommandRefuses(t *testing.T) {
	empty := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--root", empty}, `server "": give the https URL`},
		{[]string{"--root", filepath.Join(empty, "none")}, "no such file"},
		{[]string{"worker-0"}, `takes no argument "worker-0"`},
		{[]string{"--masheen", "a"}, "unknown flag"},
	} {
		c := command()
		c.SetArgs(append([]string{"lcm"}, tt.args...))
		c.SetErr(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab-agent lcm %q = %v, want %q", tt.args, err, tt.want)
		}
	}
	var out bytes.Buffer
	c := command()
	c.SetArgs([]string{"lcm", "--print-unit"})
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil || out.String() != lcm.Unit {
		t.Errorf("lab-agent lcm --print-unit = %v, %q", err, out.String())
	}
}

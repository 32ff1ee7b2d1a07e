//go:build linux

package main

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/metalab-dev/metalab/agent/lcm"
)

// mainEnv makes the test program be lab-agent.
const mainEnv = "METALAB_TEST_LAB_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// statement H41: the process of the agent becomes the program that has replaced it, with the
// same arguments.
func TestUpgradedAgentStartsTheNewProgram(t *testing.T) {
	root := t.TempDir()
	next := []byte("#!/bin/sh\n[ \"$1\" = --version ] || echo \"$@\" >" + root + "/next\n")
	object := map[string]any{
		"metadata": map[string]any{"name": "worker-0", "namespace": "default"},
	}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(object)
		}
	}))
	t.Cleanup(api.Close)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(next) }))
	t.Cleanup(web.Close)
	object["spec"] = map[string]any{"agentConfig": map[string]any{"version": "v2", "downloadURL": web.URL, "sha256": lcm.Sum(next)}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(root, "usr/local/bin/lab-agent")
	write(t, program, old, 0o755)
	write(t, filepath.Join(root, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}), 0o644)
	write(t, filepath.Join(root, "token"), []byte("t\n"), 0o600)
	args := "lcm --root " + root + " --server " + api.URL + " --ca-file /ca.crt --token-file /token --namespace default --machine worker-0"
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exec "+program+" "+args)
	c.Env = append(os.Environ(), mainEnv+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("the process = %v: %s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(root, "next")); err != nil || string(got) != args+"\n" {
		t.Errorf("the new program has got %q, %v, want %q", got, err, args)
	}
	if got, err := os.ReadFile(program); err != nil || string(got) != string(next) {
		t.Errorf("the program has %d bytes, %v, want the new one", len(got), err)
	}
}

func write(t *testing.T, name string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		t.Fatal(err)
	}
}

package agent_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent"
	"github.com/metalab-dev/metalab/agent/job"
)

func TestKeyIsTheSameUntilItsFileIsGone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "run", "agent.key")
	load := func() ed25519.PrivateKey {
		t.Helper()
		key, err := agent.LoadKey(name)
		if err != nil {
			t.Fatalf("LoadKey: %v", err)
		}
		return key
	}
	one := load()
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v, want mode 0600", st.Mode(), err)
	}
	if st, err := os.Stat(filepath.Dir(name)); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the key's directory: %v, %v, want mode 0700", st.Mode(), err)
	}
	if !load().Equal(one) {
		t.Error("LoadKey again = another key")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if load().Equal(one) {
		t.Error("LoadKey after the file was removed = the same key")
	}
	for _, bad := range []string{"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.LoadKey(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("LoadKey of %q = %v, want an error that names the file", bad, err)
		}
	}
}

// All requests of an agent show its key. An agent that is restarted shows the key that it
// is given, and one that is given none a new one.
func TestAgentIdentifiesItselfByItsKey(t *testing.T) {
	key, err := agent.LoadKey(filepath.Join(t.TempDir(), "agent.key"))
	if err != nil {
		t.Fatal(err)
	}
	c := startController(t, "")
	for _, local := range []ed25519.PrivateKey{key, key, nil, nil} {
		c.mu.Lock()
		c.jobs = []job.Job{{ID: "j", Kind: job.Inventory}}
		c.mu.Unlock()
		n := bootWith(t, c.media(), func(x *agent.Config) { x.Key = local })
		<-c.final
		n.stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) != 3 {
		t.Errorf("4 agents, of which 2 with one key and 2 without, have used keys %v, want 3", c.keys)
	}
}

package lcm

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// demand makes a program the agent of the machine.
func demand(url string, program []byte) func(*lcmv1.LCMMachine) {
	return func(m *lcmv1.LCMMachine) {
		m.Spec.AgentConfig = &lcmv1.AgentConfig{Version: "v0.3.0-400", DownloadURL: url, SHA256: Sum(program), Args: []string{"--poll", "2m"}}
	}
}

// statement H41: the agent checks the SHA-256, replaces its program and ends for it; the
// new one reports the version.
func TestUpgrade(t *testing.T) {
	f, s := newAPI(), newServer(t)
	program := []byte("#!/bin/sh\necho lab-agent v0.3.0-400\n")
	web := files(t, map[string][]byte{"/agent": program})
	s.write(t, "/usr/local/bin/lab-agent", "old", 0o755)
	f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
	f.change(demand(web.URL+"/agent", program))
	c := config(f, s)
	r := start(t, c)
	upgraded := new(UpgradedError)
	if err := <-r.done; !errors.As(err, &upgraded) {
		t.Fatalf("Run = %v, want an UpgradedError", err)
	}
	if got := s.read(t, c.Program); got != string(program) {
		t.Errorf("the program is %q", got)
	}
	if names, err := s.ReadDir("/usr/local/bin"); err != nil || len(names) != 1 {
		t.Errorf("beside the program: %q, %v", names, err)
	}
	if args, err := Args(s); err != nil || !cmp.Equal(args, []string{"--poll", "2m"}) || !cmp.Equal(upgraded.Args, args) {
		t.Errorf("Args = %q, %v", args, err)
	}
	if m := f.machine(); m.Status.AgentVersion != "v0.3.0-300" || m.Status.LCMAgentUpgradeStatus.FinishedAt != nil {
		t.Errorf("before the start of the new agent: version %q, %+v", m.Status.AgentVersion, m.Status.LCMAgentUpgradeStatus)
	}
	c.Version, c.SHA256 = "a build of a developer", upgraded.SHA256
	start(t, c)
	patience.Await(t, "the item runs", func() bool { return f.statuses()["a"] == "0 after 1" })
	m := f.machine()
	if u := m.Status.LCMAgentUpgradeStatus; m.Status.AgentVersion != "v0.3.0-400" || u.Error != "" || u.Attempt != 1 || u.FinishedAt == nil {
		t.Errorf("version %q, upgrade status %+v, want v0.3.0-400 and finished", m.Status.AgentVersion, u)
	}
}

// statement H41: a program with another SHA-256, of a server that is not trusted, or one
// that does not run is not installed. The reason is reported, and the old agent works on.
func TestUpgradeThatFails(t *testing.T) {
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	program := []byte("#!/bin/sh\necho broken; exit 3\n")
	web := files(t, map[string][]byte{"/agent": program})
	for _, tt := range []struct {
		name, url string
		program   []byte
		want      string
	}{
		{"sum", web.URL + "/agent", []byte("other"), "hashes are not the same: got '" + Sum(program)},
		{"x509", untrusted.URL, program, "x509: certificate signed by unknown authority"},
		{"does not run", web.URL + "/agent", program, "does not run: --version ends with code 3: broken"},
		{"no URL", "agent", program, "use a URL of HTTP or HTTPS"},
	} {
		f, s := newAPI(), newServer(t)
		s.write(t, "/usr/local/bin/lab-agent", "old", 0o755)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		f.change(demand(tt.url, tt.program))
		start(t, config(f, s))
		patience.Await(t, tt.name+": the item runs", func() bool { return f.statuses()["a"] == "0 after 1" })
		m := f.machine()
		if u := m.Status.LCMAgentUpgradeStatus; u == nil || !strings.Contains(u.Error, tt.want) || u.Attempt != 1 || u.FinishedAt == nil {
			t.Errorf("%s: upgrade status %+v, want %q", tt.name, u, tt.want)
		}
		if got := s.read(t, "/usr/local/bin/lab-agent"); got != "old" || m.Status.AgentVersion != "v0.3.0-300" {
			t.Errorf("%s: the program is %q, version %q", tt.name, got, m.Status.AgentVersion)
		}
	}
}

// statement H41: an upgrade that has failed is tried again with growing delays, and at once
// when agentConfig changes.
func TestUpgradeIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith())
		f.change(demand("nowhere", nil))
		start(t, config(f, s))
		attempts := func(want int) {
			t.Helper()
			if got := f.machine().Status.LCMAgentUpgradeStatus.Attempt; got != want {
				t.Errorf("%d attempts, want %d", got, want)
			}
		}
		pass(0)
		attempts(1)
		pass(time.Minute)
		attempts(2)
		pass(5 * time.Second)
		attempts(2)
		f.change(demand("elsewhere", nil))
		pass(0)
		attempts(1)
	})
}

// A program that its server cannot run is not installed: the old agent works on and says why.
func TestUpgradeThatTheServerRefuses(t *testing.T) {
	f, s := newAPI(), newServer(t)
	program := []byte("#!/bin/sh\necho another\n")
	web := files(t, map[string][]byte{"/agent": program})
	s.write(t, "/usr/local/bin/lab-agent", "old", 0o755)
	f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
	f.change(demand(web.URL+"/agent", program))
	c := config(f, s)
	c.Accept = func(p []byte) error { return fmt.Errorf("no place for %d bytes", len(p)) }
	start(t, c)
	patience.Await(t, "the item runs", func() bool { return f.statuses()["a"] == "0 after 1" })
	if u := f.machine().Status.LCMAgentUpgradeStatus; u == nil || u.Error != fmt.Sprintf("no place for %d bytes", len(program)) {
		t.Errorf("upgrade status %+v", u)
	}
	if got := s.read(t, "/usr/local/bin/lab-agent"); got != "old" {
		t.Errorf("the program is %q", got)
	}
}

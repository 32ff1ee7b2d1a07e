package lcm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// tokenUntil is a token that expires at a time.
func tokenUntil(at time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"exp":%d}`, at.Unix())) + "." + part("signature")
}

// The agent replaces a token that expires soon by the one of status.tokenSecret.
func TestTokenIsRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		first, second := tokenUntil(time.Now().Add(2*time.Hour)), tokenUntil(time.Now().Add(24*time.Hour))
		f.token = first
		s.write(t, "/etc/lab-agent/token", first, 0o600)
		f.change(machineWith())
		f.change(func(m *lcmv1.LCMMachine) { m.Status.TokenSecret = "worker-0-token" })
		f.secret("worker-0-token", map[string]string{"token": first}) // not renewed yet
		r := start(t, config(f, s))
		pass(59 * time.Minute)
		if n := f.count("GET " + secretsPath); n != 0 {
			t.Errorf("the Secret was read %d times while the token is valid for more than an hour", n)
		}
		f.secret("worker-0-token", map[string]string{"token": second})
		f.mu.Lock()
		f.next = second
		f.mu.Unlock()
		pass(5 * time.Minute)
		if got := s.read(t, "/etc/lab-agent/token"); got != second+"\n" {
			t.Errorf("the file has %q, want the new token", got)
		}
		f.mu.Lock()
		f.token = second
		f.mu.Unlock()
		f.change(func(m *lcmv1.LCMMachine) {
			m.Spec.StateItems = []lcmv1.LCMStateItem{script("a", ":", lcmv1.PhaseDeploy)}
		})
		pass(time.Hour)
		check(t, f, map[string]string{"a": "0 after 1"})
		if strings.Contains(r.log.String(), "level=ERROR") {
			t.Errorf("the log has errors: %s", r.log)
		}
		f.leaks(t, second)
	})
}

// An agent whose token has expired says what to do, and goes on with a new token in the
// file. What it executed meanwhile is not lost.
func TestExpiredToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.token = tokenUntil(time.Now())
		s.write(t, "/etc/lab-agent/token", f.token, 0o600)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		f.refuse = nil
		r := start(t, config(f, s))
		pass(0)
		f.mu.Lock()
		f.token = "rotated"
		f.mu.Unlock()
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.StateItems[0].Params["script"] = "true" })
		pass(time.Hour)
		if !strings.Contains(r.log.String(), "the token is valid until 2000-01-01T00:00:00Z at most: write a new token of the agent's service account to /etc/lab-agent/token") {
			t.Errorf("the log does not say what to do: %s", r.log)
		}
		if n := strings.Count(r.log.String(), "the agent tries again"); n != 1 {
			t.Errorf("the error was logged %d times, want once", n)
		}
		s.write(t, "/etc/lab-agent/token", "rotated\n", 0o600)
		pass(time.Minute)
		if n := len(s.commands()); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
		check(t, f, map[string]string{"a": "0 after 1"})
	})
}

// The agent trusts the authority of its file alone, and reads a file that was replaced.
func TestCertificateAuthority(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
	web := httptest.NewTLSServer(f)
	t.Cleanup(web.Close) // after the agent has ended its watch
	c := config(f, s)
	c.API, c.Server = nil, web.URL
	client := newClient(c.Account, s, nil)
	defer client.Close()
	if _, err := client.machine(t.Context()); err == nil || !strings.Contains(err.Error(), "caFile") {
		t.Errorf("without the file: %v", err)
	}
	s.write(t, c.CAFile, "no certificate", 0o644)
	if _, err := client.machine(t.Context()); err == nil || !strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Errorf("without a certificate: %v", err)
	}
	s.write(t, c.CAFile, otherAuthority(t), 0o644)
	if _, err := client.machine(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("with another authority: %v", err)
	}
	s.write(t, c.CAFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})), 0o644)
	if m, err := client.machine(t.Context()); err != nil || m.Name != "worker-0" {
		t.Errorf("with the replaced file: %+v, %v", m, err)
	}
	start(t, c)
	patience.Await(t, "the item runs", func() bool { return f.statuses()["a"] == "0 after 1" })
}

// Two agents on one LCMMachine: the first goes on, the other does nothing and says what to
// do.
func TestTwoAgentsOnOneMachine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s, other := newAPI(), newServer(t), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		start(t, config(f, s))
		pass(0)
		second := config(f, other)
		second.Hardware = hardware("0c:00:00:00:07:01", "192.0.2.8")
		f.change(func(m *lcmv1.LCMMachine) { m.Spec.SSHAuthorizedKeys = []string{"ssh-ed25519 AAAA"} })
		r := start(t, second)
		pass(time.Hour)
		if len(s.commands()) != 1 || len(other.commands()) != 0 || other.read(t, keysFile) != "" {
			t.Errorf("%d and %d commands, keys of the second %q: want those of the first agent alone", len(s.commands()), len(other.commands()), other.read(t, keysFile))
		}
		if want := "LCMMachine default/worker-0 is that of another server (worker-0, NICs 0c:00:00:00:00:01, 0c:00:00:00:00:ff)"; !strings.Contains(r.log.String(), want) {
			t.Errorf("the log has not %q: %s", want, r.log)
		}
	})
}

// A server that replaces another goes on when the report of that one is cleared.
func TestReplacedServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s, other := newAPI(), newServer(t), newServer(t)
		f.change(machineWith(script("a", ":", lcmv1.PhaseDeploy)))
		first := start(t, config(f, s))
		pass(0)
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
		c := config(f, other)
		c.Hardware = hardware("0c:00:00:00:07:01", "192.0.2.8")
		start(t, c)
		pass(time.Hour)
		if got := f.machine().Status.Addresses[0].Address; got != "192.0.2.7" {
			t.Errorf("address = %s, want the first server's still", got)
		}
		f.change(func(m *lcmv1.LCMMachine) { m.Status.HostInfo = nil })
		pass(0)
		if got := f.machine().Status.Addresses[0].Address; got != "192.0.2.8" {
			t.Errorf("address = %s, want the second server's", got)
		}
	})
}

// A controller that writes between the first look and the first report is no error.
func TestFirstReportAfterAConflict(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		f.change(machineWith())
		conflicts := 0
		f.refuse = func(r *http.Request) int {
			if r.Method == http.MethodPatch && conflicts < 3 {
				conflicts++
				return http.StatusConflict
			}
			return 0
		}
		r := start(t, config(f, s))
		pass(0)
		if f.machine().Status.HostInfo == nil || r.log.String() != "" {
			t.Errorf("after %d conflicts: status %+v, log %s", conflicts, f.machine().Status, r.log)
		}
	})
}

// Two agents that report for the first time at once: one write is refused.
func TestFirstReportsDoNotOverwriteEachOther(t *testing.T) {
	f, s, other := newAPI(), newServer(t), newServer(t)
	f.change(machineWith())
	second := newAgent(t, f, other)
	second.Hardware = hardware("0c:00:00:00:07:01", "192.0.2.8")
	first := newAgent(t, f, s)
	first.reread, second.reread = true, true
	m, err := first.api.machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*agent{first, second} {
		if err := a.readHost(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.claimed(m); err != nil { // neither has reported
			t.Fatal(err)
		}
	}
	if _, err := first.writeStatus(t.Context(), m, lcmv1.Components{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.writeStatus(t.Context(), m, lcmv1.Components{}); !kubeapi.HasStatus(err, 409) {
		t.Errorf("the second report = %v, want 409", err)
	}
}

// otherAuthority returns a certificate that signs no server of the tests.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

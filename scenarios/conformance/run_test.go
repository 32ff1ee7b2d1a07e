package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/clientclock"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// pattern are the checks of the frame.
var pattern = []string{"NET-001", "ROOT-001", "AUTH-001", "SYS-001", "PWR-001"}

func execute(t *testing.T, conf conformance.Config, names ...string) (map[string]conformance.Result, *conformance.BMC) {
	t.Helper()
	b, err := conformance.Open(conf)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := conformance.Select(names)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]conformance.Result{}
	ctx := t.Context()
	if c, ok := conf.Clock.(*clientclock.Clock); ok {
		ctx = c.Trace(ctx)
	}
	for _, r := range b.Execute(ctx, checks) {
		all[r.ID] = r
	}
	return all, b
}

func target(l *racktest.Rack) conformance.Config {
	h := l.First()
	user, password := l.Credentials(h)
	return conformance.Config{URL: h.URL(), Username: user, Password: password, CAs: l.CAs(), Rate: 10000}
}

func TestGenericEmulatorPasses(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	got, _ := execute(t, target(l), pattern...)
	for _, id := range pattern {
		if r := got[id]; r.Verdict != conformance.Pass || len(r.Evidence) == 0 {
			t.Errorf("%s: %s %q with evidence %v, want pass", id, r.Verdict, r.Reason, r.Evidence)
		}
	}
}

// A wrong password fails AUTH-001, and what needs it is skipped with its ID.
func TestPrerequisiteSkipsWithItsID(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	conf := target(l)
	conf.Password = "wrong-password"
	got, _ := execute(t, conf, pattern...)
	want := map[string]string{"NET-001": "pass", "ROOT-001": "pass", "AUTH-001": "fail", "SYS-001": "skip", "PWR-001": "skip"}
	for id, verdict := range want {
		if string(got[id].Verdict) != verdict {
			t.Errorf("%s: %s %q, want %s", id, got[id].Verdict, got[id].Reason, verdict)
		}
	}
	if r := got["SYS-001"]; r.Reason != "after AUTH-001 (fail)" {
		t.Errorf("SYS-001 is skipped for %q, want AUTH-001's failure", r.Reason)
	}
}

// Nobody at the address is an error, not a failure of the BMC.
func TestUnreachableBMCIsAnError(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	got, _ := execute(t, conformance.Config{URL: dead.URL}, "NET-001")
	if r := got["NET-001"]; r.Verdict != conformance.Broken {
		t.Errorf("NET-001: %s %q, want error", r.Verdict, r.Reason)
	}
}

// A certificate that nobody trusts ends a run with the flags that help.
func TestUntrustedCertificateNamesItsFlags(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // drops the errors of the handshakes
	s.StartTLS()
	defer s.Close()
	got, _ := execute(t, conformance.Config{URL: s.URL}, "NET-001")
	if r := got["NET-001"]; r.Verdict != conformance.Broken || !strings.Contains(r.Reason, capture.Remedy) {
		t.Errorf("NET-001: %s %q, want an error with %q", r.Verdict, r.Reason, capture.Remedy)
	}
}

// Whatever a BMC answers, each check ends in a verdict.
func TestHostileAnswersEndInVerdicts(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"wrong types": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"v1":7,"Systems":[],"Members":{"a":1},"Links":"x"}`)
		},
		"null":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `null`) },
		"array": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[1,2]`) },
		"10 MB": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"`+strings.Repeat("x", 10<<20)+`"`) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			fmt.Fprint(w, `{}`)
		},
		"redirects":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"two bodies":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{} {}`) },
		"resets":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"deep":         func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("[", 1<<20)) },
		"endless":      endless(func(n int) string { return fmt.Sprintf("/redfish/v1/Systems?$skip=%d", n) }),
		"loop":         endless(func(int) string { return "/redfish/v1/Systems" }),
		"other server": endless(func(int) string { return "http://192.0.2.1/redfish/v1/Systems" }),
		"slow bytes": func(w http.ResponseWriter, r *http.Request) {
			for fmt.Fprint(w, " "); ; w.(http.Flusher).Flush() {
				select {
				case <-time.After(10 * time.Millisecond):
					fmt.Fprint(w, " ")
				case <-r.Context().Done():
					return
				}
			}
		},
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client leaves
				answer(w, r)
			}))
			defer s.Close()
			ctx := patience.Within(t, 90*time.Second)
			b, err := conformance.Open(conformance.Config{URL: s.URL, Username: "root", Password: "calvin", Patience: 100 * time.Millisecond, Rate: 1e6, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			all := conformance.Checks()
			for i := range all {
				all[i].After = nil // each check meets the answer
			}
			results := b.Execute(ctx, all)
			if len(results) != len(all) {
				t.Fatalf("%d results of %d checks", len(results), len(all))
			}
			for _, r := range results {
				if r.Verdict == "" || strings.Contains(r.Reason, "panicked") {
					t.Errorf("%s: verdict %q, %s", r.ID, r.Verdict, r.Reason)
				}
			}
		})
	}
}

// endless answers collections that do not end.
func endless(next func(int) string) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		n := int(requests.Add(1))
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Systems":                map[string]string{"@odata.id": "/redfish/v1/Systems"},
			"Members":                []map[string]string{{"@odata.id": fmt.Sprintf("/redfish/v1/Systems/%d", n)}},
			"Members@odata.nextLink": next(n),
		})
	}
}

// silence hears no DHCP.
type silence struct{}

func (silence) Discover(ctx context.Context, _ []net.HardwareAddr) (net.HardwareAddr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A time limit that is shorter than a boot ends in a verdict on the BMC, not in an error of
// the tool. The wait is in the lab's time, the limit of a check in real time.
func TestShortTimeLimitEndsInAVerdict(t *testing.T) {
	b := newBench(t, "generic", conformance.Disruptive)
	b.conf.DHCP, b.conf.Timeout = silence{}, 2*time.Minute
	r := b.run("BOOT-010")["BOOT-010"]
	_, in, _ := strings.Cut(r.Reason, "] in ")
	waited, err := time.ParseDuration(in)
	if r.Verdict != conformance.Fail || !strings.Contains(r.Reason, "no DHCP DISCOVER") || err != nil || waited <= 0 || waited >= b.conf.Timeout {
		t.Errorf("BOOT-010: %s %q, want fail: no DHCP DISCOVER in less than %v", r.Verdict, r.Reason, b.conf.Timeout)
	}
}

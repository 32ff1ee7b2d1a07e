package inband

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/agent/job"
)

func newServer(t *testing.T) (*Server, *testclock.FakePassiveClock, *[]string) {
	t.Helper()
	var changes []string
	clk := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	s, err := New(Config{Key: make(Key, KeySize), URL: "https://127.0.0.1:1", Clock: clk, Changed: func(h string) { changes = append(changes, h) }})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s, clk, &changes
}

func post(t *testing.T, s *Server, path, token string, body any) (int, string) {
	t.Helper()
	return postAs(t, s, "agent", path, token, body)
}

// showKey gives a request the client certificate of an agent.
func showKey(r *http.Request, agent string) {
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{keyOf(agent)}}
}

// key returns the fingerprint of an agent's key.
func key(agent string) string { return job.Fingerprint(keyOf(agent)) }

func keyOf(agent string) *x509.Certificate {
	return &x509.Certificate{RawSubjectPublicKeyInfo: []byte(agent)}
}

// postAs posts as an agent, which has none when its name is "".
func postAs(t *testing.T, s *Server, agent, path, token string, body any) (int, string) {
	t.Helper()
	b, ok := body.(string)
	if !ok {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		b = string(raw)
	}
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewBufferString(b))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if agent != "" {
		showKey(r, agent)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func reportTo(id string) string { return fmt.Sprintf(job.ReportPath, id) }

func TestJobsAreLeasedInOrderAndReported(t *testing.T) {
	s, _, changes := newServer(t)
	b := Boot{Host: "h1", ID: "b1"}
	token := s.Media(b).Token
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusServiceUnavailable {
		t.Errorf("lease before the boot is expected = %d, want 503", code)
	}
	if st := s.Expect(b, ""); st.Up {
		t.Errorf("Expect = %+v before the agent came up", st)
	}
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
		t.Errorf("lease without a job = %d, want 204", code)
	}
	s.Confirm(b, key("agent"))
	for _, id := range []string{"one", "two", "one"} {
		if err := s.Offer(b, job.Job{ID: id, Kind: job.Clean}); err != nil {
			t.Fatalf("Offer(%s): %v", id, err)
		}
	}
	for _, id := range []string{"one", "two"} {
		code, body := post(t, s, job.LeasePath, token, job.Lease{})
		if code != http.StatusOK || !strings.Contains(body, id) {
			t.Fatalf("lease = %d %s, want job %s", code, body, id)
		}
		if code, _ := post(t, s, reportTo(id), token, job.Report{State: job.Running, Percent: 5}); code != http.StatusNoContent {
			t.Fatalf("report running = %d", code)
		}
		if code, _ := post(t, s, reportTo(id), token, job.Report{State: job.Done}); code != http.StatusNoContent {
			t.Fatalf("report done = %d", code)
		}
	}
	if code, _ := post(t, s, reportTo("one"), token, job.Report{State: job.Failed, Error: "late"}); code != http.StatusNoContent {
		t.Errorf("a late report = %d, want 204", code)
	}
	if st := s.Expect(b, ""); !st.Up || st.Jobs["one"].State != job.Done || st.Jobs["two"].State != job.Done {
		t.Errorf("Expect = %+v, want both jobs done", st)
	}
	if len(*changes) < 5 {
		t.Errorf("%d calls of Changed, want 5: agent up, and each job running and done", len(*changes))
	}
}

func TestOnlyTheTokenOfTheCurrentBootIsValid(t *testing.T) {
	s, _, _ := newServer(t)
	one, two, other := Boot{"h1", "b1"}, Boot{"h1", "b2"}, Boot{"h2", "b1"}
	s.Expect(one, "")
	s.Expect(two, "")
	s.Expect(other, "")
	stranger, err := New(Config{Key: bytes.Repeat([]byte{7}, KeySize), URL: "https://127.0.0.1:1", Clock: testclock.NewFakePassiveClock(time.Unix(0, 0))})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"none":              {"", http.StatusUnauthorized},
		"garbage":           {"x", http.StatusUnauthorized},
		"another key's":     {stranger.Media(two).Token, http.StatusUnauthorized},
		"an earlier boot's": {s.Media(one).Token, http.StatusForbidden},
		"the boot's own":    {s.Media(two).Token, http.StatusNoContent},
	} {
		if code, _ := post(t, s, job.LeasePath, tt.token, job.Lease{}); code != tt.want {
			t.Errorf("lease with %s token = %d, want %d", name, code, tt.want)
		}
	}
	if err := s.Offer(two, job.Job{ID: "j"}); err != nil {
		t.Fatal(err)
	}
	post(t, s, reportTo("j"), s.Media(other).Token, job.Report{State: job.Done})
	if got := s.Expect(two, "").Jobs["j"].State; got != "" {
		t.Errorf("a report of another host's agent changed the job's state to %s", got)
	}
	if err := s.Offer(one, job.Job{ID: "k"}); err == nil {
		t.Error("Offer to an earlier boot = nil error")
	}
	s.Forget("h1")
	if code, _ := post(t, s, job.LeasePath, s.Media(two).Token, job.Lease{}); code != http.StatusServiceUnavailable {
		t.Errorf("lease after Forget = %d, want 503", code)
	}
}

// After a restart the controller does not know which jobs it has offered. An agent that
// works on one is asked neither to stop nor to start again.
func TestJobFromBeforeARestartGoesOn(t *testing.T) {
	s, _, _ := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b, key("agent"))
	token := s.Media(b).Token
	if code, _ := post(t, s, reportTo("j"), token, job.Report{State: job.Running, Percent: 40}); code != http.StatusNoContent {
		t.Errorf("report of a job that is not known yet = %d, want 204", code)
	}
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
		t.Errorf("lease before an offer = %d, want 204", code)
	}
	if err := s.Offer(b, job.Job{ID: "j", Kind: job.Clean}); err != nil {
		t.Fatal(err)
	}
	if got := s.Expect(b, "").Jobs["j"]; got.State != job.Running || got.Percent != 40 {
		t.Errorf("the job is %+v", got)
	}
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusOK {
		t.Errorf("lease = %d, want the job: an agent that asks for work is not working on it", code)
	}
	post(t, s, reportTo("j"), token, job.Report{State: job.Done})
	if got := s.Expect(b, "").Jobs["j"].State; got != job.Done {
		t.Errorf("the job is %s, want done", got)
	}
	for i := range 2 * maxJobs {
		code, _ := post(t, s, reportTo(fmt.Sprint(i)), token, job.Report{State: job.Running})
		if want := map[bool]int{true: http.StatusNoContent, false: http.StatusGone}[i < maxJobs-1]; code != want {
			t.Fatalf("report of job %d = %d, want %d", i, code, want)
		}
	}
	if code, _ := post(t, s, reportTo(strings.Repeat("x", maxID+1)), token, job.Report{State: job.Running}); code != http.StatusGone {
		t.Errorf("report of a job with a long name = %d, want 410", code)
	}
}

func TestExpectedIsTheTimeSinceTheFirstCallForABoot(t *testing.T) {
	s, clk, _ := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b, "")
	clk.SetTime(time.Unix(1060, 0))
	if st := s.Expect(b, ""); st.Expected != time.Minute {
		t.Errorf("Expected = %v, want 1m", st.Expected)
	}
}

func TestReportWithAnInvalidBodyIsAnError(t *testing.T) {
	s, _, _ := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b, "")
	s.Expect(b, key("agent"))
	for body, want := range map[string]int{
		"":                    http.StatusBadRequest,
		"{":                   http.StatusBadRequest,
		`{"state":"dancing"}`: http.StatusBadRequest,
		`{"error":"` + strings.Repeat("x", job.MaxBody) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		if code, _ := post(t, s, reportTo("j"), s.Media(b).Token, body); code != want {
			t.Errorf("report %.20q = %d, want %d", body, code, want)
		}
	}
}

func TestParseBootOfInvalidTextReturnsError(t *testing.T) {
	for _, s := range []string{"", "_", "a_", "_b", "a", "a_b_c", "a/b_c", "a_.."} {
		if b, err := ParseBoot(s); err == nil {
			t.Errorf("ParseBoot(%q) = %v, want an error", s, b)
		}
	}
}

// A request without the token of a current boot is answered before its body.
func TestRefusedRequestIsAnsweredBeforeItsBody(t *testing.T) {
	s, _, _ := newServer(t)
	old, current := Boot{"h", "b1"}, Boot{"h", "b2"}
	s.Expect(current, "")
	for _, path := range []string{job.LeasePath, reportTo("j")} {
		for token, want := range map[string]int{
			"": http.StatusUnauthorized, "x": http.StatusUnauthorized,
			s.Media(old).Token: http.StatusForbidden, s.Media(Boot{"other", "b"}).Token: http.StatusServiceUnavailable,
		} {
			body := new(watchedBody)
			r := httptest.NewRequest(http.MethodPost, path, body)
			r.ContentLength = 100
			r.Header.Set("Authorization", "Bearer "+token)
			showKey(r, "agent")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != want || body.read || w.Header().Get("Connection") != "close" { // net/http reads the body of a connection that goes on
				t.Errorf("POST %s with token %q = %d, body read %t, Connection %q, want %d before the body", path, token, w.Code, body.read, w.Header().Get("Connection"), want)
			}
		}
		body := new(watchedBody)
		r := httptest.NewRequest(http.MethodPost, path, body)
		r.Header.Set("Authorization", "Bearer "+s.Media(current).Token)
		showKey(r, "agent")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if !body.read || w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "" {
			t.Errorf("POST %s with a body that comes too slowly = %d, body read %t, want 408", path, w.Code, body.read)
		}
	}
}

// watchedBody is the body of a request that knows whether it was read. It comes too slowly.
type watchedBody struct{ read bool }

// Read implements io.Reader.
func (b *watchedBody) Read([]byte) (int, error) {
	b.read = true
	return 0, os.ErrDeadlineExceeded
}

// The first agent that leases with the token of a boot medium is bound to the boot. Every
// other agent is refused, and reported once.
func TestTokenIsBoundToItsFirstAgent(t *testing.T) {
	s, clk, changes := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b, "")
	token := s.Media(b).Token
	if code, _ := postAs(t, s, "", job.LeasePath, token, job.Lease{}); code != http.StatusUnauthorized {
		t.Errorf("lease without a key = %d, want 401", code)
	}
	if st := s.Expect(b, ""); st.Up || st.Key != "" || st.Refused {
		t.Errorf("Expect = %+v after a lease without a key, want no agent", st)
	}
	if code, _ := postAs(t, s, "first", job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
		t.Errorf("lease = %d, want 204", code)
	}
	s.Confirm(b, key("first"))
	if err := s.Offer(b, job.Job{ID: "j", Kind: job.Write, Write: &job.WriteSpec{URL: "secret"}}); err != nil {
		t.Fatal(err)
	}
	*changes = nil
	clk.SetTime(time.Unix(1060, 0))
	for range 2 {
		for _, path := range []string{job.LeasePath, reportTo("j"), reportTo("k")} {
			for _, agent := range []string{"second", "third"} {
				if code, body := postAs(t, s, agent, path, token, job.Report{State: job.Done}); code != http.StatusForbidden || strings.Contains(body, "secret") {
					t.Errorf("POST %s of the %s agent = %d %s, want 403", path, agent, code, body)
				}
			}
		}
	}
	if want := []string{"h", "h"}; !slices.Equal(*changes, want) {
		t.Errorf("Changed was called with %v, want %v: once for each refused agent", *changes, want)
	}
	var want []Refusal
	for _, agent := range []string{"second", "third"} {
		want = append(want, Refusal{Boot: "b", Key: key(agent), From: "192.0.2.1", Bound: key("first")})
	}
	if got := s.Refusals("h"); !slices.Equal(got, want) {
		t.Errorf("Refusals = %+v, want %+v", got, want)
	}
	if got := s.Refusals("h"); len(got) != 0 {
		t.Errorf("Refusals again = %+v, want none", got)
	}
	st := s.Expect(b, key("first"))
	if !st.Up || st.Key != key("first") || !st.Refused || st.Silent != time.Minute || len(st.Jobs) != 1 || st.Jobs["j"].State != "" {
		t.Errorf("Expect = %+v, want the first agent, silent for a minute, and its job open", st)
	}
	if code, body := postAs(t, s, "first", job.LeasePath, token, job.Lease{}); code != http.StatusOK || !strings.Contains(body, "secret") {
		t.Errorf("lease of the first agent = %d %s, want its job", code, body)
	}
	for i := range 2 * maxRefused {
		postAs(t, s, fmt.Sprint("stranger ", i), job.LeasePath, token, job.Lease{})
	}
	if n := len(s.Refusals("h")); n != maxRefused-2 {
		t.Errorf("%d more refusals, want %d: they are bounded", n, maxRefused-2)
	}
}

// A binding that is not stored is lost with the process: until it is, there is no job.
func TestNoJobIsLeasedBeforeTheBindingIsStored(t *testing.T) {
	s, _, _ := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b, "")
	token := s.Media(b).Token
	if err := s.Offer(b, job.Job{ID: "j", Kind: job.Clean}); err != nil {
		t.Fatal(err)
	}
	for _, confirm := range []func(){
		func() {},
		func() { s.Confirm(b, key("other")) },
		func() { s.Confirm(Boot{"h", "c"}, key("agent")) },
	} {
		confirm()
		if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
			t.Errorf("lease before Confirm = %d, want 204", code)
		}
		if code, _ := post(t, s, reportTo("j"), token, job.Report{State: job.Done}); code != http.StatusServiceUnavailable {
			t.Errorf("report before Confirm = %d, want 503", code)
		}
	}
	s.Confirm(b, key("agent"))
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusOK {
		t.Errorf("lease after Confirm = %d, want 200", code)
	}
}

// After a restart of the controller the token is still bound to its first agent, and the
// agent is known although it has not asked yet.
func TestStoredBindingIsValidAfterARestart(t *testing.T) {
	s, _, _ := newServer(t)
	b := Boot{"h", "b"}
	token := s.Media(b).Token
	if st := s.Expect(b, key("first")); st.Up || st.Key != key("first") {
		t.Errorf("Expect = %+v, want a bound agent that is not up", st)
	}
	if code, _ := postAs(t, s, "second", job.LeasePath, token, job.Lease{}); code != http.StatusForbidden {
		t.Errorf("lease of the second agent = %d, want 403", code)
	}
	if code, _ := postAs(t, s, "first", reportTo("j"), token, job.Report{State: job.Running}); code != http.StatusNoContent {
		t.Errorf("report of the first agent = %d, want 204", code)
	}
	s.Release(Boot{"h", "c"})
	if st := s.Expect(b, ""); st.Key != key("first") {
		t.Errorf("Expect = %+v after Release of another boot", st)
	}
	s.Release(b)
	if st := s.Expect(b, ""); st.Up || st.Key != "" {
		t.Errorf("Expect = %+v after Release, want no agent", st)
	}
	if code, _ := postAs(t, s, "second", job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
		t.Errorf("lease of another agent after Release = %d, want 204", code)
	}
}

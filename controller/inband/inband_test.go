package inband

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	if st := s.Expect(b); st.Up {
		t.Errorf("Expect = %+v before the agent came up", st)
	}
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusNoContent {
		t.Errorf("lease without a job = %d, want 204", code)
	}
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
	if st := s.Expect(b); !st.Up || st.Jobs["one"].State != job.Done || st.Jobs["two"].State != job.Done {
		t.Errorf("Expect = %+v, want both jobs done", st)
	}
	if len(*changes) < 5 {
		t.Errorf("%d calls of Changed, want 5: agent up, and each job running and done", len(*changes))
	}
}

func TestOnlyTheTokenOfTheCurrentBootIsValid(t *testing.T) {
	s, _, _ := newServer(t)
	one, two, other := Boot{"h1", "b1"}, Boot{"h1", "b2"}, Boot{"h2", "b1"}
	s.Expect(one)
	s.Expect(two)
	s.Expect(other)
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
	if got := s.Expect(two).Jobs["j"].State; got != "" {
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
	s.Expect(b)
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
	if got := s.Expect(b).Jobs["j"]; got.State != job.Running || got.Percent != 40 {
		t.Errorf("the job is %+v", got)
	}
	if code, _ := post(t, s, job.LeasePath, token, job.Lease{}); code != http.StatusOK {
		t.Errorf("lease = %d, want the job: an agent that asks for work is not working on it", code)
	}
	post(t, s, reportTo("j"), token, job.Report{State: job.Done})
	if got := s.Expect(b).Jobs["j"].State; got != job.Done {
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
	s.Expect(b)
	clk.SetTime(time.Unix(1060, 0))
	if st := s.Expect(b); st.Expected != time.Minute {
		t.Errorf("Expected = %v, want 1m", st.Expected)
	}
}

func TestReportWithAnInvalidBodyIsAnError(t *testing.T) {
	s, _, _ := newServer(t)
	b := Boot{"h", "b"}
	s.Expect(b)
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

package network

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// deadlineRecorder is a response with a connection that has read deadlines.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

// SetReadDeadline is for http.ResponseController.
func (d *deadlineRecorder) SetReadDeadline(t time.Time) error {
	d.deadlines = append(d.deadlines, t)
	return nil
}

// An upload may take any time at the pace: the deadline moves with the bytes, and ends with
// the body.
func TestBodyDeadlineMovesWithTheBytes(t *testing.T) {
	p := BodyPace{Bytes: 8, Per: time.Hour}
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	atEnd := 0
	h := p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		small := make([]byte, 4)
		for want := 1; ; { // 20 bytes in steps of 4
			n, err := r.Body.Read(small)
			if err != nil {
				break
			}
			if want += map[bool]int{true: 1}[len(w.deadlines) > want]; n != 4 || len(w.deadlines) != want {
				t.Errorf("%d bytes, %d deadlines, want 4 and %d", n, len(w.deadlines), want)
			}
		}
		atEnd = len(w.deadlines)
	}))
	before := clock.Wall()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 20))))
	if len(w.deadlines) != 4 || atEnd != 4 {
		t.Fatalf("deadlines %v, want one for each of 3 intervals, and none at the end", w.deadlines)
	}
	for _, d := range w.deadlines[:3] {
		if d.Before(before.Add(p.Per)) || d.After(clock.Wall().Add(p.Per)) {
			t.Errorf("deadline %v, want an hour from now", d)
		}
	}
	if !w.deadlines[3].IsZero() {
		t.Errorf("deadline %v after the body, want none", w.deadlines[3])
	}
}

func TestRequestWithoutBodyHasNoBodyDeadline(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	h := BodyPace{}.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if len(w.deadlines) != 0 {
		t.Errorf("deadlines %v, want none", w.deadlines)
	}
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
	if len(w.deadlines) != 1 || w.deadlines[0].Before(clock.Wall()) {
		t.Errorf("deadlines %v with a body, want the default's", w.deadlines)
	}
}

// The handler sees a client that stops sending as a deadline that has passed, and one that
// has sent everything not at all, however long the handler works.
func TestSlowClientIsCut(t *testing.T) {
	p := BodyPace{Bytes: 8, Per: 50 * time.Millisecond}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			read, later := make(chan error, 2), make(chan struct{})
			s := httptest.NewUnstartedServer(p.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				read <- err
				if err != nil {
					w.WriteHeader(http.StatusRequestTimeout)
					return
				}
				select {
				case <-r.Context().Done():
					read <- r.Context().Err()
				case <-later:
					read <- nil
				}
			})))
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			cut := func() {
				t.Helper()
				body, hold := io.Pipe()
				defer hold.Close()
				go hold.Write([]byte("x")) // and never the rest
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
				if err != nil {
					t.Fatal(err)
				}
				if resp, err := s.Client().Do(r); err == nil {
					resp.Body.Close()
				}
				if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Read of a body that does not come = %v, want %v", err, os.ErrDeadlineExceeded)
				}
			}
			cut()
			answered := make(chan error)
			go func() {
				resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader(strings.Repeat("x", 100)))
				if err == nil {
					err = resp.Body.Close()
				}
				answered <- err
			}()
			if err := <-read; err != nil {
				t.Errorf("Read of a whole body = %v, want no error", err)
			}
			for range 3 { // each takes the time of a deadline
				cut()
			}
			close(later)
			if err := <-read; err != nil {
				t.Errorf("the context of a request whose body was read = %v, want no error", err)
			}
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}

package breaker

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server answers each request of one cluster after delay; less than 0 is never.
type server struct {
	header, body time.Duration
	asked        int
}

func wait(req *http.Request, d time.Duration) error {
	after := make(<-chan time.Time)
	if d >= 0 {
		after = time.After(d)
	}
	select {
	case <-after:
		return nil
	case <-req.Context().Done():
		return req.Context().Err()
	}
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked++
	if err := wait(req, s.header); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(readFunc(func(p []byte) (int, error) {
		if err := wait(req, s.body); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}))}, nil
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// api is the API of a cluster behind the breakers.
type api struct {
	*server
	through http.RoundTripper
}

func newAPI(b *Breakers, namespace, name string) *api {
	a := &api{server: new(server)}
	c := new(rest.Config)
	b.Wrap(c, client.ObjectKey{Namespace: namespace, Name: name})
	a.through = c.WrapTransport(a.server)
	return a
}

// get asks the API, and returns how long it took.
func (a *api) get(t *testing.T, query string) (time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.1/api?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.through.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	return time.Since(start), err
}

func TestSlowAPIsHoldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(Breakers)
		good, bad, late, other := newAPI(b, "a", "good"), newAPI(b, "a", "bad"), newAPI(b, "a", "late"), newAPI(b, "b", "other")
		for _, x := range []*api{good, other} {
			if _, err := x.get(t, ""); err != nil {
				t.Fatal(err)
			}
		}
		bad.header, late.body = -1, -1
		if took, err := bad.get(t, ""); took != Limit || err == nil || !strings.Contains(err.Error(), "a/bad has not answered within 15s") {
			t.Errorf("a server that never answers took %s: %v, want %s and its name", took, err, Limit)
		}
		// The next hour: each asks each second.
		var held time.Duration
		for end := time.Now().Add(time.Hour); time.Now().Before(end); <-time.After(time.Second) {
			for _, x := range []*api{bad, late} {
				took, _ := x.get(t, "")
				held += took
			}
			for _, x := range []*api{good, other} {
				if took, err := x.get(t, ""); took != 0 || err != nil {
					t.Fatalf("another API took %s: %v", took, err)
				}
			}
		}
		if held > 10*time.Minute || late.asked == 0 {
			t.Errorf("APIs that never answer held their callers for %s in an hour, and the second one was asked %d times", held, late.asked)
		}
		// One that answers again is asked at the end of the pause, at the latest.
		bad.header = time.Second
		<-time.After(lastPause)
		if _, err := bad.get(t, ""); err != nil {
			t.Errorf("an API that answers again: %v", err)
		}
		if _, err := bad.get(t, ""); err != nil {
			t.Errorf("its second request: %v", err)
		}
	})
}

func TestOneTrialAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(Breakers)
		first, second := newAPI(b, "a", "first"), newAPI(b, "a", "second")
		first.header = -1
		if _, err := first.get(t, ""); err == nil {
			t.Fatal("there was an answer")
		}
		if _, err := second.get(t, ""); !errors.As(err, new(*PausedError)) || !strings.Contains(err.Error(), "a/second is not asked for 30s: an API of namespace a") {
			t.Errorf("in the pause: %v", err)
		}
		<-time.After(namespacePause)
		go func() { _, _ = first.get(t, "") }()
		synctest.Wait()
		if _, err := second.get(t, ""); !errors.As(err, new(*PausedError)) || !strings.Contains(err.Error(), "while another one of namespace a is") {
			t.Errorf("beside a trial: %v", err)
		}
		<-time.After(Limit + namespacePause)
		if _, err := second.get(t, ""); err != nil {
			t.Errorf("after the second pause: %v", err)
		}
	})
}

// An API that answers now and then is none that answers.
func TestAlternatingAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAPI(new(Breakers), "a", "x")
		var held time.Duration
		for end := time.Now().Add(time.Hour); time.Now().Before(end); <-time.After(time.Second) {
			if x.header = 0; x.asked%2 == 1 {
				x.header = -1
			}
			took, _ := x.get(t, "")
			held += took
		}
		if held > 5*time.Minute {
			t.Errorf("the callers were held for %s in an hour", held)
		}
		<-time.After(lastPause + forgiven)
		x.header = 0
		if _, err := x.get(t, ""); err != nil {
			t.Fatal(err)
		}
		x.header = -1
		if _, err := x.get(t, ""); err == nil {
			t.Fatal("there was an answer")
		}
		x.header = 0
		<-time.After(namespacePause)
		if _, err := x.get(t, ""); err != nil {
			t.Errorf("after the first pause of a new beginning: %v", err)
		}
	})
}

// A watch lasts; its first byte has the limit.
func TestWatchLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAPI(new(Breakers), "a", "x")
		x.body = time.Hour
		if took, err := x.get(t, "watch=true"); took != time.Hour || err != nil {
			t.Errorf("a watch of an hour took %s: %v", took, err)
		}
		x.header = -1
		if took, err := x.get(t, "watch=true"); took != Limit || err == nil {
			t.Errorf("a watch that does not begin took %s: %v", took, err)
		}
	})
}

// A caller that gives up tells nothing about the API.
func TestAbandonedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAPI(new(Breakers), "a", "x")
		x.header = 2 * time.Second
		c := http.Client{Transport: x.through, Timeout: time.Second}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.1/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
			t.Fatal("there was an answer")
		}
		if _, err := x.get(t, ""); err != nil {
			t.Errorf("the next request: %v", err)
		}
	})
}

package faulthttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
)

const body = `{"Id":"1","PowerState":"On"}`

// faultyServer is a service over TLS with the faults of some rules.
type faultyServer struct {
	*httptest.Server
	asked    atomic.Int32 // requests that reached the service
	paused   atomic.Int64
	released atomic.Bool
	sent     chan Sent
	ended    chan struct{}
}

// Pause implements InFlight.
func (b *faultyServer) Pause(ctx context.Context, d time.Duration) error {
	b.paused.Add(int64(d))
	return ctx.Err()
}

// Release implements InFlight.
func (b *faultyServer) Release() { b.released.Store(true) }

func serve(t *testing.T, rules ...fault.Rule) *faultyServer {
	t.Helper()
	plan := new(fault.Plan)
	for _, r := range rules {
		if _, err := plan.Add(time.Time{}, r); err != nil {
			t.Fatal(err)
		}
	}
	d := plan.Decide(fault.Subject{Site: fault.Request}, time.Time{})
	b := &faultyServer{sent: make(chan Sent, 1), ended: make(chan struct{})}
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b.asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.WriteHeader(http.StatusOK)
			if r.Method != http.MethodHead {
				io.WriteString(w, body)
			}
		}
	}
	s := &Server{Next: answer(body), Stale: answer(`{"PowerState":"Off"}`), Ended: b.ended}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // a panic resets an HTTP/2 stream
			if p := recover(); p != nil {
				b.sent <- Sent{}
				panic(p)
			}
		}()
		sent := s.Serve(w, r, d, nil, b)
		select {
		case b.sent <- sent:
		default:
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// ask sends a request and returns the response and its body.
func (b *faultyServer) ask(t *testing.T, method string) (resp *http.Response, text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.URL+"/redfish/v1/Systems/1", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = b.Client().Do(req); err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return resp, string(read), err
}

func TestDecisionsShapeTheResponse(t *testing.T) {
	html := "<html>"
	tests := []struct {
		name   string
		rule   fault.Rule
		method string
		status int // 0: no response
		body   string
		fails  string // error of the request or of reading the body
		asked  int32
		sent   Sent
	}{
		{name: "delay", rule: fault.Rule{Latency: "3s"}, status: 200, body: body, asked: 1, sent: Sent{200, 28}},
		{name: "status", rule: fault.Rule{Status: 204}, status: 204, sent: Sent{204, 0}},
		{name: "HTML body", rule: fault.Rule{Status: 502, Body: &html, ContentType: "text/html"}, status: 502, body: html, sent: Sent{502, 6}},
		{name: "performed", rule: fault.Rule{Status: 200, Performed: true}, method: "POST", status: 200, body: "{}", asked: 1, sent: Sent{200, 2}},
		{name: "reset", rule: fault.Rule{Drop: fault.Reset}, method: "POST", fails: "reset by peer"},
		{name: "reset after performing", rule: fault.Rule{Drop: fault.Reset, Performed: true}, method: "POST", fails: "reset by peer", asked: 1},
		{name: "half close", rule: fault.Rule{Drop: fault.HalfClose}, method: "POST", fails: "EOF"},
		{name: "mid body", rule: fault.Rule{Drop: fault.MidBody}, method: "POST", status: 200, body: body[:14], fails: "reset by peer", asked: 1, sent: Sent{200, 14}},
		{name: "length too large", rule: fault.Rule{LengthError: 5}, status: 200, body: body, fails: "unexpected EOF", asked: 1, sent: Sent{200, 28}},
		{name: "length too small", rule: fault.Rule{LengthError: -5}, status: 200, body: body[:23], asked: 1, sent: Sent{200, 28}},
		{name: "truncated", rule: fault.Rule{Truncate: "50%"}, status: 200, body: body[:14], asked: 1, sent: Sent{200, 14}},
		{name: "patched", rule: fault.Rule{Patch: map[string]any{"PowerState": nil}}, status: 200, body: `{"Id":"1"}`, asked: 1, sent: Sent{200, 10}},
		{name: "stale", rule: fault.Rule{Stale: true}, status: 200, body: `{"PowerState":"Off"}`, asked: 1, sent: Sent{200, 20}},
		{name: "a write is not stale", rule: fault.Rule{Stale: true}, method: "POST", status: 200, body: body, asked: 1, sent: Sent{200, 28}},
		{name: "HEAD", rule: fault.Rule{InvalidJSON: true, LengthError: 3}, method: "HEAD", status: 200, asked: 1, sent: Sent{200, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := serve(t, tt.rule)
			method := tt.method
			if method == "" {
				method = "GET"
			}
			resp, text, err := b.ask(t, method)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("error = %v, want %q", err, tt.fails)
			}
			status := 0
			if resp != nil {
				status = resp.StatusCode
			}
			if status != tt.status || text != tt.body {
				t.Errorf("response = %d %s, want %d %s", status, text, tt.status, tt.body)
			}
			b.CloseClientConnections()
			if d := cmp.Diff(tt.sent, <-b.sent); d != "" {
				t.Errorf("Sent (-want +got):\n%s", d)
			}
			if got := b.asked.Load(); tt.method == "POST" && tt.fails == "" && got != tt.asked || got > 0 != (tt.asked > 0) {
				t.Errorf("the service got %d requests, want %d", got, tt.asked)
			}
		})
	}
}

func TestDelayTakesLabTime(t *testing.T) {
	b := serve(t, fault.Rule{Latency: "1s"}, fault.Rule{Latency: "2s"})
	if _, _, err := b.ask(t, "GET"); err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(b.paused.Load()); got != 3*time.Second {
		t.Errorf("paused for %v, want 3s", got)
	}
}

func TestFaultStatusHasARedfishErrorBody(t *testing.T) {
	for _, tt := range []struct {
		rule   fault.Rule
		id     string
		text   string
		header string
	}{
		{fault.Rule{Status: 503, RetryAfter: fault.Duration{Duration: 1500 * time.Millisecond}}, "Base.1.22.ServiceTemporarilyUnavailable", "The service cannot answer now. It may in 2 seconds.", "Retry-After: 2"},
		{fault.Rule{Status: 429, RetryAfter: fault.Duration{Duration: time.Minute}}, "Base.1.22.ServiceTemporarilyUnavailable", "", "Retry-After: 60"},
		{fault.Rule{Status: 401}, "Base.1.22.NoValidSession", "", `Www-Authenticate: Basic realm="Redfish"`},
		{fault.Rule{Status: 500, Message: "Out of cheese.", MessageID: "Acme.2.8.ACM0042"}, "Acme.2.8.ACM0042", "Out of cheese.", "Odata-Version: 4.0"},
		{fault.Rule{Status: 404}, "Base.1.22.ResourceMissingAtURI", "There is nothing at /redfish/v1/Systems/1.", ""},
		{fault.Rule{Status: 418}, "Base.1.22.GeneralError", "", ""},
		{fault.Rule{Status: 507}, "Base.1.22.InternalError", "", ""},
	} {
		resp, text, err := serve(t, tt.rule).ask(t, "GET")
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Error struct {
				Code     string
				Message  string
				Extended []struct{ MessageID string } `json:"@Message.ExtendedInfo"`
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		e := got.Error
		if resp.StatusCode != tt.rule.Status || e.Code != tt.id || len(e.Extended) != 1 || e.Extended[0].MessageID != tt.id || tt.text != "" && e.Message != tt.text {
			t.Errorf("%d: %d %s", tt.rule.Status, resp.StatusCode, text)
		}
		name, value, _ := strings.Cut(tt.header, ": ")
		if resp.Header.Get(name) != value {
			t.Errorf("%d: %s: %s, want %s", tt.rule.Status, name, resp.Header.Get(name), value)
		}
	}
}

func TestHangEndsWithClientOrServer(t *testing.T) {
	b := serve(t, fault.Rule{Drop: fault.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", b.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.Client().Do(req)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Do() = %v", err)
	}

	b = serve(t, fault.Rule{Drop: fault.Hang})
	go func() {
		_, _, err := b.ask(t, "POST")
		done <- err
	}()
	close(b.ended)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("Do() = %v, want a reset", err)
	}
	<-b.sent
}

// A half-closed connection still accepts what the client sends.
func TestHalfClosedConnectionIsStillRead(t *testing.T) {
	b := serve(t, fault.Rule{Drop: fault.HalfClose})
	c, err := tls.Dial("tcp", b.Listener.Addr().String(), &tls.Config{RootCAs: b.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("Read() = %v, want EOF", err)
	}
	for range 3 {
		if _, err := fmt.Fprint(c, strings.Repeat("x", 1000)); err != nil {
			t.Errorf("Write() = %v, want no error", err)
		}
	}
	select {
	case <-b.sent:
		t.Error("the server does not wait for the client")
	default:
	}
	if err := c.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-b.sent
	c.Close()
}

func TestEventStreamPassesAFaultyServer(t *testing.T) {
	plan := new(fault.Plan)
	if _, err := plan.Add(time.Time{}, fault.Rule{InvalidJSON: true}); err != nil {
		t.Fatal(err)
	}
	d := plan.Decide(fault.Subject{Site: fault.Request}, time.Time{})
	end, inFlight := make(chan struct{}), new(faultyServer)
	stream := &Server{Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": hello\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-end
	})}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := stream.Serve(w, r, d, nil, inFlight); got != (Sent{200, 9}) {
			t.Errorf("Sent = %+v", got)
		}
	}))
	defer srv.Close()
	defer close(end)
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != ": hello\n" || err != nil {
		t.Errorf("first line = %q, %v", line, err)
	}
	if !inFlight.released.Load() {
		t.Error("the clock waits for a stream")
	}
}

func TestHTTP2StreamIsReset(t *testing.T) {
	b := serve(t, fault.Rule{Drop: fault.Reset})
	b.Close()
	b2 := httptest.NewUnstartedServer(b.Config.Handler)
	b2.EnableHTTP2 = true
	b2.StartTLS()
	defer b2.Close()
	resp, err := b2.Client().Post(b2.URL, "", nil)
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "INTERNAL_ERROR") {
		t.Errorf("Post() = %v, want the stream reset", err)
	}
}

// A fault that answers 401 or 403 does not wait for the body, as the service would not.
func TestRefusalInPlaceOfTheServiceDoesNotWaitForTheBody(t *testing.T) {
	for _, status := range []int{401, 403} {
		b := serve(t, fault.Rule{Status: status})
		c, err := tls.Dial("tcp", b.Listener.Addr().String(), b.Client().Transport.(*http.Transport).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(clock.Wall().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "PATCH / HTTP/1.1\r\nHost: bmc\r\nContent-Length: 1000\r\n\r\n{")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("a fault of %d, and 1 of 1000 bytes: %v, want a response", status, err)
		}
		resp.Body.Close()
		if resp.StatusCode != status || !resp.Close {
			t.Errorf("a fault of %d, and 1 of 1000 bytes = %s, close %t, want %d and the connection's end", status, resp.Status, resp.Close, status)
		}
	}
}

func TestHeadersAreSetAndRemoved(t *testing.T) {
	b := serve(t, fault.Rule{Headers: fault.Headers{"etag": "", "odata-version": "3.0"}})
	resp, text, err := b.ask(t, "GET")
	if err != nil || text != body {
		t.Fatalf("GET = %q, %v, want %q", text, err, body)
	}
	if got := resp.Header.Values("ETag"); len(got) > 0 {
		t.Errorf("ETag = %q, want none", got)
	}
	if got := resp.Header.Get("OData-Version"); got != "3.0" {
		t.Errorf("OData-Version = %q, want 3.0", got)
	}
}

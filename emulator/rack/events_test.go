package rack_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

const subscriptions = "/redfish/v1/EventService/Subscriptions"

// listener is a subscriber that records the MessageIds of its events.
type listener struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string
	down bool
}

func listen(t *testing.T) *listener {
	l := &listener{}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct{ Events []struct{ MessageID string } }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Errorf("event: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for _, ev := range e.Events {
			l.got = append(l.got, ev.MessageID[strings.LastIndexByte(ev.MessageID, '.')+1:])
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// take returns the events that have come since the last call.
func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := l.got
	l.got = nil
	return got
}

func (l *listener) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// ask sends a request as the administrator, and returns the status, Location and
// body of the response.
func ask(t *testing.T, l *racktest.Rack, method, path, body string) (status int, location, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.First().URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(l.Credentials(l.First()))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), b.String()
}

func subscribe(t *testing.T, l *racktest.Rack, body string) string {
	t.Helper()
	status, uri, answer := ask(t, l, "POST", subscriptions, body)
	if status != 201 || uri == "" {
		t.Fatalf("POST %s %s = %d\n%s", subscriptions, body, status, answer)
	}
	l.Settle()
	return uri
}

func trusting(h *listener) rack.Config {
	pool := x509.NewCertPool()
	pool.AddCert(h.Certificate())
	return rack.Config{Media: outbound.Config{RootCAs: pool}}
}

func TestSubscriberGetsPowerEvents(t *testing.T) {
	hook := listen(t)
	l := racktest.Start(t, trusting(hook))
	subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"VerifyCertificate":true}`, hook.URL))
	hook.take()
	if err := l.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Minute)
	got := hook.take()
	for _, want := range []string{"ResourcePoweredOn", "ResourceStateChanged", "ResourceChanged"} {
		if !slices.Contains(got, want) {
			t.Errorf("got %q, want %s among them", got, want)
		}
	}
}

// A subscriber with a self-signed certificate is trusted when its subscription has
// that certificate.
func TestSubscriberIsVerifiedByItsCertificate(t *testing.T) {
	hook := listen(t)
	l := racktest.Start(t, rack.Config{Media: outbound.Config{RootCAs: x509.NewCertPool()}})
	uri := subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"VerifyCertificate":true,"DeliveryRetryPolicy":"RetryForever"}`, hook.URL))
	if got := hook.take(); len(got) != 0 {
		t.Errorf("an untrusted subscriber got %q", got)
	}
	cert, err := json.Marshal(map[string]string{
		"CertificateType": "PEM", "CertificateString": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, at, answer := ask(t, l, "POST", uri+"/Certificates", string(cert)); status != 201 || !strings.HasPrefix(at, uri+"/Certificates/") {
		t.Fatalf("POST %s/Certificates = %d\n%s", uri, status, answer)
	}
	l.Advance(30 * time.Second)
	if got := hook.take(); !slices.Contains(got, "ResourceCreated") {
		t.Errorf("got %q", got)
	}
	if status, _, answer := ask(t, l, "DELETE", uri, ""); status != 204 {
		t.Errorf("DELETE %s = %d\n%s", uri, status, answer)
	}
	if n := len(l.First().BMC().Certificates.Stores); n != 0 {
		t.Errorf("%d stores are left", n)
	}
}

// Two runs with the same commands send the same events in the same order.
func TestEventsArriveInOrder(t *testing.T) {
	run := func() []string {
		hook := listen(t)
		l := racktest.Start(t, trusting(hook))
		subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q}`, hook.URL))
		for _, kind := range []string{"On", "ForceRestart", "ForceOff"} {
			if err := l.First().Power(t.Context(), kind); err != nil {
				t.Fatal(err)
			}
			l.Advance(10 * time.Minute)
		}
		l.Stop()
		return hook.take()
	}
	if a, b := run(), run(); !slices.Equal(a, b) || len(a) < 6 {
		t.Errorf("first %q\nthen %q", a, b)
	}
}

func TestUnreachableSubscriberIsRetried(t *testing.T) {
	hook := listen(t)
	l := racktest.Start(t, trusting(hook))
	uri := subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"ResourceTypes":["SessionService"]}`, hook.URL))
	health := func() string {
		_, _, body := ask(t, l, "GET", uri, "")
		var d struct {
			Status struct{ State, Health string }
		}
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		return d.Status.State + " " + d.Status.Health
	}
	hook.setDown(true)
	ask(t, l, "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":600}`)
	l.Settle()
	if got := health(); got != "Enabled Warning" {
		t.Errorf("after a failed delivery the subscription is %s", got)
	}
	hook.setDown(false)
	l.Advance(30 * time.Second)
	if got := hook.take(); !slices.Equal(got, []string{"ResourceChanged"}) || health() != "Enabled OK" {
		t.Errorf("after the second attempt got %q, the subscription is %s", got, health())
	}
	hook.setDown(true)
	ask(t, l, "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":700}`)
	l.Settle()
	for range 3 {
		l.Advance(30 * time.Second)
	}
	if status, _, _ := ask(t, l, "GET", uri, ""); status != 404 {
		t.Errorf("after four failures the subscription answers %d, want that it was terminated", status)
	}
}

func TestSubscriptionsSurviveARestart(t *testing.T) {
	hook := listen(t)
	c := trusting(hook)
	c.Dir = t.TempDir()
	l := racktest.Start(t, c)
	uri := subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"Context":"mine","HttpHeaders":[{"X-Key":"k"}]}`, hook.URL))
	before := l.First().BMC().Subscribers.List[0]
	l.Stop()
	hook.take()

	l = racktest.Start(t, c)
	if _, _, body := ask(t, l, "GET", uri, ""); !strings.Contains(body, `"Context":"mine"`) {
		t.Errorf("after the restart %s is %s", uri, body)
	}
	if is := l.First().BMC().Subscribers.List; len(is) != 1 || is[0].ID != before.ID {
		t.Errorf("subscriptions %+v, want %+v", is, before)
	}
	if err := l.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	l.Settle()
	if got := hook.take(); len(got) == 0 {
		t.Error("no event after the restart")
	}
}

func TestHeartbeatEventsAreSent(t *testing.T) {
	hook := listen(t)
	l := racktest.Start(t, trusting(hook))
	subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"SendHeartbeat":true,"HeartbeatIntervalMinutes":5,"ResourceTypes":["Drive"]}`, hook.URL))
	for range 3 {
		l.Advance(5 * time.Minute)
	}
	if got := hook.take(); !slices.Equal(got, []string{"RedfishServiceFunctional", "RedfishServiceFunctional", "RedfishServiceFunctional"}) {
		t.Errorf("got %q", got)
	}
}

func TestMetricReportsAreSent(t *testing.T) {
	var mu sync.Mutex
	var got []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
	}))
	defer hook.Close()
	l := racktest.Start(t, rack.Config{})
	subscribe(t, l, fmt.Sprintf(`{"Protocol":"Redfish","Destination":%q,"EventFormatType":"MetricReport","Context":"mine"}`, hook.URL))
	status, at, answer := ask(t, l, "POST", "/redfish/v1/TelemetryService/MetricReportDefinitions",
		`{"Name":"power","MetricReportDefinitionType":"Periodic","Schedule":{"RecurrenceInterval":"PT60S"},"Metrics":[{"MetricId":"TotalPower"}],"ReportActions":["RedfishEvent"]}`)
	if status != 201 {
		t.Fatalf("POST MetricReportDefinitions = %d\n%s", status, answer)
	}
	l.Advance(3*time.Minute + time.Second)
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 3 || !strings.Contains(got[0], at) || !strings.Contains(got[0], "#MetricReport.v1_5_2.MetricReport") ||
		!strings.Contains(got[0], `"MetricId":"TotalPower"`) || !strings.Contains(got[0], `"Context":"mine"`) {
		t.Errorf("sent %q; want three reports of %s", got, at)
	}
}

// stream opens an event stream and returns its lines. It ends with the test.
func stream(t *testing.T, l *racktest.Rack) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", l.First().URL()+"/redfish/v1/EventService/SSE", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(l.Credentials(l.First()))
	resp, err := l.Client.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET SSE = %v, %v", resp, err)
	}
	lines := make(chan string, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(lines)
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			lines <- in.Text()
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	return lines
}

// An open stream stops neither the clock nor the end of the rack.
func TestEventStreamEndsWithTheRack(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	lines := stream(t, l)
	until := func(part string) {
		t.Helper()
		for line := range lines {
			if strings.Contains(line, part) {
				return
			}
		}
		t.Fatalf("the stream has ended without %q", part)
	}
	until(": open")
	if err := l.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Minute) // would block if the clock waited for the stream
	until("ResourcePoweredOn")
	l.Stop()
	for range lines { // until the stream ends
	}
}

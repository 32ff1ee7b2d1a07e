package redfish

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// reader reads a stream of events.
type reader struct {
	t     testing.TB
	lines *bufio.Scanner
	close func()
}

// openStream opens a stream as admin; query begins with "?" or is empty.
func openStream(t testing.TB, server *httptest.Server, query string, header ...string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+resource.StreamURI+query, nil)
	must(t, err)
	r.SetBasicAuth("admin", "adm-secret-1")
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := server.Client().Do(r)
	must(t, err)
	t.Cleanup(cancel)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("GET %s%s = %s %v\n%s", resource.StreamURI, query, resp.Status, resp.Header, body)
	}
	rd := &reader{t: t, lines: bufio.NewScanner(resp.Body), close: cancel}
	if line := rd.line(); line != ": open" {
		t.Fatalf("the stream begins with %q", line)
	}
	rd.line()
	return rd
}

func (r *reader) line() string {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("the stream has ended: %v", r.lines.Err())
	}
	return r.lines.Text()
}

// next returns the ID and the records of the next event.
func (r *reader) next() (id string, records []map[string]any) {
	r.t.Helper()
	id, found := strings.CutPrefix(r.line(), "id: ")
	data, also := strings.CutPrefix(r.line(), "data: ")
	if blank := r.line(); !found || !also || blank != "" {
		r.t.Fatalf("no event: %q %q %q", id, data, blank)
	}
	if !strings.Contains(data, `"Id":"`+id+`"`) {
		r.t.Errorf("the event with the id %s is %s", id, data)
	}
	return id, payload(r.t, []byte(data))
}

// ended waits until the stream ends.
func (r *reader) ended() {
	for r.lines.Scan() {
	}
}

func serve(t testing.TB, s http.Handler) *httptest.Server {
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return server
}

// These are the assertions of DMTF's Protocol Validator about streams.
func TestSSEDeliversEvents(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	server := serve(t, s)
	stream := openStream(t, server, "")
	first, opening := stream.next()
	if len(h.BMC().Subscribers.List) != 1 {
		t.Fatalf("subscriptions: %v", h.BMC().Subscribers.List)
	}
	id := h.BMC().Subscribers.List[0].ID
	if diff := cmp.Diff([]string{"ResourceCreated " + id}, summaries(opening)); diff != "" {
		t.Errorf("the first events (-want +got):\n%s", diff)
	}
	uri := resource.SubscriptionsURI + "/" + id
	body, _ := get(t, s, uri)
	if context, ok := body["Context"].(string); !ok || context == "" || body["SubscriptionType"] != "SSE" || body["Protocol"] != "Redfish" ||
		!strings.HasPrefix(fmt.Sprint(body["Destination"]), "redfish-sse://127.0.0.1:") {
		t.Errorf("the subscription is %v", body)
	}
	if w := call(t, s, "admin", "PATCH", uri, `{"Context":"x"}`); w.Code != 405 || strings.Contains(w.Header().Get("Allow"), "PATCH") {
		t.Errorf("%s", shape("PATCH", uri, "", w))
	}
	logIn(t, s, "reader")
	second, login := stream.next()
	if diff := cmp.Diff([]string{"SuccessfulLogin 3", "ResourceCreated 1"}, summaries(login)); diff != "" || second <= first {
		t.Errorf("event %s after %s (-want +got):\n%s", second, first, diff)
	}
	if w := call(t, s, "admin", "DELETE", uri, ""); w.Code != 204 {
		t.Errorf("%s", shape("DELETE", uri, "", w))
	}
	stream.ended()
}

func TestSSEDisconnectDeletesSubscription(t *testing.T) {
	h := newHost(t)
	left := make(chan bool, 100)
	s, err := New(Config{Rack: rack{h}, OnRequestEnd: func() { left <- true }})
	must(t, err)
	h.service = s
	server := serve(t, s)
	stream := openStream(t, server, "")
	stream.next()
	<-left // an open stream is not in flight
	stream.close()
	<-left // after the disconnect the request is in flight again, and ends
	if n := len(h.BMC().Subscribers.List); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

func TestSSEFilter(t *testing.T) {
	for _, tt := range []struct {
		filter string
		show   map[string]any // properties of the subscription
		want   []string       // the first event of the stream
	}{
		{"RegistryPrefix eq 'ResourceEvent'", map[string]any{"RegistryPrefixes": []any{"ResourceEvent"}}, nil},
		{"MessageId eq 'ResourceEvent.1.4.ResourcePoweredOn' or MessageId eq 'Base.Success'",
			map[string]any{"MessageIds": []any{"ResourceEvent.1.4.ResourcePoweredOn", "Base.Success"}}, []string{"ResourcePoweredOn 1"}},
		{"(OriginResource eq '/redfish/v1/SessionService') and (SubordinateResources eq true)",
			map[string]any{"SubordinateResources": true}, []string{"ResourceCreated 1"}},
		{"ResourceType eq 'ComputerSystem' and EventFormatType eq 'Event'", map[string]any{"ResourceTypes": []any{"ComputerSystem"}}, []string{"ResourcePoweredOn 1"}},
		{"RegistryPrefix ne 'Base' and MessageId ne 'ResourceEvent.ResourceCreated'",
			map[string]any{"ExcludeRegistryPrefixes": []any{"Base"}, "ExcludeMessageIds": []any{"ResourceEvent.ResourceCreated"}}, []string{"ResourcePoweredOn 1"}},
	} {
		h := newHost(t)
		s := newService(t, h)
		stream := openStream(t, serve(t, s), "?$filter="+strings.ReplaceAll(tt.filter, " ", "%20"))
		body, _ := get(t, s, resource.SubscriptionsURI+"/"+h.BMC().Subscribers.List[0].ID)
		for name, want := range tt.show {
			if diff := cmp.Diff(want, body[name]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.filter, name, diff)
			}
		}
		h.hear(h.powerOn())
		logIn(t, s, "reader")
		if _, got := stream.next(); tt.want != nil && !slices.Equal(summaries(got), tt.want) {
			t.Errorf("%s: events %q, want %q", tt.filter, summaries(got), tt.want)
		}
	}
}

// DMTF's Protocol Validator has assertions about metric reports in streams, but never
// makes the service send one.
func TestSSEDeliversMetricReports(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	stream := openStream(t, serve(t, s), "?$filter=EventFormatType%20eq%20'MetricReport'")
	made := call(t, s, "admin", "POST", resource.TelemetryURI+"/MetricReportDefinitions", `{"Id":"p","MetricReportDefinitionType":"Periodic",
		"Schedule":{"RecurrenceInterval":"PT1M"},"Metrics":[{"MetricId":"TotalPower"}],"ReportActions":["RedfishEvent"]}`)
	if made.Code != 201 {
		t.Fatalf("%s", shape("POST", "MetricReportDefinitions", "", made))
	}
	h.pass(90 * time.Second)
	stream.line() // the event's ID
	data, _ := strings.CutPrefix(stream.line(), "data: ")
	var body map[string]any
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	must(t, d.Decode(&body))
	if body["Id"] != "p" || pluck(t, body, "MetricValues/0/MetricId") != "TotalPower" {
		t.Errorf("event %s", data)
	}
	if _, err := openBundle(); err == nil {
		for _, bad := range newTypeCheck(t, s, new(dialect.Record)).faults(shown{uri: resource.TelemetryURI + "/MetricReports/p", body: body}) {
			t.Errorf("%s: %s", bad.path, bad.text)
		}
	}
}

func TestInvalidSSERequestIsRejected(t *testing.T) {
	s := newService(t, newHost(t))
	for _, tt := range []struct {
		query, accept string
		status        int
	}{
		{"", "application/json", 406},
		{"?$top=1", "", 501},
		{"?$filter=Bogus%20eq%20'x'", "", 400},
		{"?$filter=RegistryPrefix%20eq%20'Bogus'", "", 400},
		{"?$filter=RegistryPrefix%20eq%207", "", 400},
		{"?$filter=RegistryPrefix%20gt%20'Base'", "", 400},
		{"?$filter=RegistryPrefix%20eq%20'Base'%20or%20ResourceType%20eq%20'Drive'", "", 400},
		{"?$filter=RegistryPrefix%20eq%20'Base'%20and%20RegistryPrefix%20eq%20'Update'", "", 400},
		{"?$filter=RegistryPrefix%20ne%20'Base'%20or%20RegistryPrefix%20ne%20'Update'", "", 400},
		{"?$filter=not%20RegistryPrefix%20eq%20'Base'", "", 400},
		{"?$filter=ResourceType%20ne%20'Drive'", "", 400},
		{"?$filter=SubordinateResources%20eq%20'yes'", "", 400},
		{"?$filter=EventFormatType%20eq%20'Poem'", "", 400},
		{"?$filter=(", "", 400},
		{"?$filter=", "", 400},
		{"?includeoriginofcondition=maybe", "", 400},
	} {
		var header []string
		if tt.accept != "" {
			header = []string{"Accept", tt.accept}
		}
		w := call(t, s, "admin", "GET", resource.StreamURI+tt.query, "", header...)
		if errorOf(t, w); w.Code != tt.status {
			t.Errorf("%s; want %d", shape("GET", resource.StreamURI+tt.query, "", w), tt.status)
		}
	}
	if w := call(t, s, "", "GET", resource.StreamURI, ""); w.Code != 401 {
		t.Errorf("without login: %d", w.Code)
	}
	if w := call(t, s, "admin", "POST", resource.StreamURI, "{}"); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("%s", shape("POST", resource.StreamURI, "", w))
	}
	if w := call(t, s, "admin", "HEAD", resource.StreamURI, ""); w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s", shape("HEAD", resource.StreamURI, "", w))
	}
	if body, _ := get(t, s, resource.SubscriptionsURI); body["Members@odata.count"] != 0.0 {
		t.Errorf("%v subscriptions were made", body["Members@odata.count"])
	}
}

func TestSSELimit(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	server := serve(t, s)
	for range bmc.MaxStreams {
		openStream(t, server, "")
	}
	w := call(t, s, "admin", "GET", resource.StreamURI, "")
	if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "EventSubscriptionLimitExceeded" {
		t.Errorf("one more: %d %q", w.Code, keys)
	}
}

// A client that reconnects receives the events that it has missed, as far as they are buffered.
func TestSSEReplaysAfterLastEventID(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	server := serve(t, s)
	stream := openStream(t, server, "")
	last, _ := stream.next()
	uri := resource.SubscriptionsURI + "/" + h.BMC().Subscribers.List[0].ID
	call(t, s, "admin", "DELETE", uri, "")
	stream.ended()
	logIn(t, s, "reader") // meanwhile
	again := openStream(t, server, "?$filter=ResourceType%20eq%20'Session'", "Last-Event-ID", last)
	if _, got := again.next(); !slices.Equal(summaries(got), []string{"ResourceCreated 1"}) {
		t.Errorf("missed: %q", summaries(got))
	}
	// A future ID replays nothing, and an ID older than the buffer replays all of it.
	fresh := openStream(t, server, "", "Last-Event-ID", "999999")
	if _, got := fresh.next(); len(got) != 1 || !strings.HasPrefix(summaries(got)[0], "ResourceCreated ") {
		t.Errorf("from the future: %q", summaries(got))
	}
	for _, is := range h.BMC().Subscribers.List { // otherwise the rack drops them, which is an event, too
		call(t, s, "admin", "DELETE", resource.SubscriptionsURI+"/"+is.ID, "")
	}
	again.ended()
	fresh.ended()
	for range 2 * event.EventsRetained {
		call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", fmt.Sprintf(`{"SessionTimeout":%d}`, 100+h.bmc.State().Subscriptions.LastEventID))
	}
	old := openStream(t, server, "?$filter=ResourceType%20eq%20'SessionService'", "Last-Event-ID", last)
	newest := h.bmc.State().Subscriptions.LastEventID - 1 // without the event of this subscription
	for n := newest - event.EventsRetained + 2; n <= newest; n++ {
		if id, _ := old.next(); id != fmt.Sprint(n) {
			t.Fatalf("replayed %s, want %d", id, n)
		}
	}
}

func TestIdleSSESendsKeepAlive(t *testing.T) {
	h := newHost(t)
	c := clock.NewVirtual(h.now)
	s, err := New(Config{Rack: rack{h}, Clock: c})
	must(t, err)
	h.service = s
	t.Cleanup(s.CloseStreams)
	stream := openStream(t, serve(t, s), "?$filter=ResourceType%20eq%20'Drive'")
	for len(h.BMC().Subscribers.List) == 0 {
		t.Fatal("no subscription")
	}
	alive := make(chan string)
	go func() {
		if stream.lines.Scan() {
			alive <- stream.lines.Text()
		}
		close(alive)
	}()
	for {
		c.Advance(keepAliveInterval) // when the stream has its ticker
		select {
		case line := <-alive:
			if line != ": alive" {
				t.Errorf("an idle stream says %q", line)
			}
			return
		case <-t.Context().Done():
			return
		default:
		}
	}
}

func TestSSEEndsOnShutdown(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	stream := openStream(t, serve(t, s), "")
	s.CloseStreams()
	stream.ended()
	call(t, s, "admin", "GET", resource.StreamURI, "") // a new stream ends at once
}

func TestSSEEndsWhenEventServiceIsDisabled(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	stream := openStream(t, serve(t, s), "")
	call(t, s, "admin", "PATCH", resource.EventServiceURI, `{"ServiceEnabled":false}`)
	stream.ended()
	if w := call(t, s, "admin", "GET", resource.StreamURI, ""); w.Code != 503 {
		t.Errorf("%s", shape("GET", resource.StreamURI, "", w))
	}
}

func TestSSEEndsWhenAccountIsDeleted(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	login := base64.StdEncoding.EncodeToString([]byte("operator:op-secret-2"))
	stream := openStream(t, serve(t, s), "", "Authorization", "Basic "+login)
	account := "/redfish/v1/AccountService/Accounts/2"
	if w := call(t, s, "admin", "PATCH", account, `{"Enabled":false}`); w.Code != 200 {
		t.Fatalf("%s", shape("PATCH", account, "", w))
	}
	stream.ended()
}

func TestJournalRecordsSSEWhenItOpens(t *testing.T) {
	h := newHost(t)
	entries := make(chan Entry, 10)
	s, err := New(Config{Rack: rack{h}, Journal: func(_ context.Context, e Entry) { entries <- e }})
	must(t, err)
	h.service = s
	stream := openStream(t, serve(t, s), "")
	if e := <-entries; e.Path != resource.StreamURI || e.Status != 200 || e.User != "admin" {
		t.Errorf("journal: %+v", e)
	}
	s.CloseStreams()
	stream.ended()
	if len(entries) > 0 {
		t.Errorf("in the journal again: %+v", <-entries)
	}
}

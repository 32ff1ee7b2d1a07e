package redfish

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	redfishevent "github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// subscribeTo creates a subscription as admin and returns its URI and ID.
func subscribeTo(t testing.TB, s *Service, body string) (uri, id string) {
	t.Helper()
	w := call(t, s, "admin", "POST", resource.SubscriptionsURI, body)
	if w.Code != 201 {
		t.Fatalf("%s", shape("POST", resource.SubscriptionsURI, body, w))
	}
	uri = w.Header().Get("Location")
	return uri, strings.TrimPrefix(uri, resource.SubscriptionsURI+"/")
}

func TestSubscriptionCreateUpdateDelete(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	for _, path := range []string{resource.SubscriptionsURI, resource.SubscriptionsURI + "/Members"} {
		body := `{"Context":"mine","Protocol":"Redfish","Destination":"https://192.168.1.50/Destination1","HttpHeaders":[{"X-Key":"hidden-1"}],
			"RegistryPrefixes":["ResourceEvent"],"OriginResources":[{"@odata.id":"/redfish/v1/Systems/1"}],"SendHeartbeat":true,"DeliveryRetryPolicy":"RetryForever"}`
		w := call(t, s, "admin", "POST", path, body)
		uri := w.Header().Get("Location")
		if w.Code != 201 || !strings.HasPrefix(uri, resource.SubscriptionsURI+"/") || strings.Contains(w.Body.String(), "hidden") {
			t.Fatalf("%s", shape("POST", path, body, w))
		}
		got, _ := get(t, s, uri)
		for name, want := range map[string]any{
			"Context": "mine", "Protocol": "Redfish", "Destination": "https://192.168.1.50/Destination1", "SubscriptionType": "RedfishEvent",
			"EventFormatType": "Event", "HttpHeaders": []any{}, "VerifyCertificate": false, "DeliveryRetryPolicy": "RetryForever",
			"RegistryPrefixes": []any{"ResourceEvent"}, "SendHeartbeat": true, "HeartbeatIntervalMinutes": 60.0, "SubordinateResources": false,
		} {
			if diff := cmp.Diff(want, got[name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		patch := `{"Context":"yours","VerifyCertificate":true,"DeliveryRetryPolicy":"SuspendRetries","HttpHeaders":[{"X-Key":"hidden-2"},{"A":"b"}]}`
		if w := call(t, s, "admin", "PATCH", uri, patch); w.Code != 200 || strings.Contains(w.Body.String(), "hidden") {
			t.Fatalf("%s", shape("PATCH", uri, patch, w))
		}
		is, _ := h.bmc.Subscription(uri[strings.LastIndexByte(uri, '/')+1:])
		if diff := cmp.Diff([]bmc.Header{{Name: "A", Value: "b"}, {Name: "X-Key", Value: "hidden-2"}}, is.Headers); diff != "" || is.Context != "yours" || !is.Verify || is.Retry != bmc.Suspend {
			t.Errorf("after PATCH %+v; headers (-want +got):\n%s", is, diff)
		}
		if w := call(t, s, "admin", "DELETE", uri, ""); w.Code != 204 {
			t.Errorf("%s", shape("DELETE", uri, "", w))
		}
		if w := call(t, s, "admin", "GET", uri, ""); w.Code != 404 {
			t.Errorf("after DELETE %s", shape("GET", uri, "", w))
		}
	}
}

func TestInvalidSubscriptionIsRejected(t *testing.T) {
	s := newService(t, newHost(t))
	for _, tt := range []struct{ name, with, key, property string }{
		{"no destination", `"Protocol":"Redfish"`, "PropertyMissing", "Destination"},
		{"no protocol", `"Destination":"https://a.test"`, "PropertyMissing", "Protocol"},
		{"another protocol", `"Destination":"https://a.test","Protocol":"FTP"`, "PropertyValueNotInList", "Protocol"},
		{"a protocol that is not spoken", `"Destination":"https://a.test","Protocol":"SNMPv3"`, "PropertyValueNotInList", "Protocol"},
		{"no address", `"Protocol":"Redfish","Destination":"somewhere"`, "PropertyValueFormatError", "Destination"},
		{"no host", `"Protocol":"Redfish","Destination":"https://:443/"`, "PropertyValueFormatError", "Destination"},
		{"another scheme", `"Protocol":"Redfish","Destination":"ftp://a.test/"`, "PropertyValueFormatError", "Destination"},
		{"a number", `"Protocol":"Redfish","Destination":7`, "PropertyValueTypeError", "Destination"},
		{"a stream", `"Protocol":"Redfish","Destination":"https://a.test","SubscriptionType":"SSE"`, "PropertyValueNotInList", "SubscriptionType"},
		{"an unknown format", `"Protocol":"Redfish","Destination":"https://a.test","EventFormatType":"Poem"`, "PropertyValueNotInList", "EventFormatType"},
		{"an unknown registry", `"Protocol":"Redfish","Destination":"https://a.test","RegistryPrefixes":["Base","Bogus"]`, "PropertyValueNotInList", "RegistryPrefixes"},
		{"no array", `"Protocol":"Redfish","Destination":"https://a.test","RegistryPrefixes":"Base"`, "PropertyValueTypeError", "RegistryPrefixes"},
		{"prefix included and excluded", `"Protocol":"Redfish","Destination":"https://a.test","RegistryPrefixes":["Base"],"ExcludeRegistryPrefixes":["Base"]`, "PropertyValueConflict", "ExcludeRegistryPrefixes"},
		{"no message", `"Protocol":"Redfish","Destination":"https://a.test","MessageIds":["Success"]`, "PropertyValueFormatError", "MessageIds"},
		{"an unknown type", `"Protocol":"Redfish","Destination":"https://a.test","ResourceTypes":["Toaster"]`, "PropertyValueNotInList", "ResourceTypes"},
		{"an unknown severity", `"Protocol":"Redfish","Destination":"https://a.test","Severities":["Bad"]`, "PropertyValueNotInList", "Severities"},
		{"nothing there", `"Protocol":"Redfish","Destination":"https://a.test","OriginResources":[{"@odata.id":"/redfish/v1/Systems/9"}]`, "PropertyValueIncorrect", "OriginResources"},
		{"no resource", `"Protocol":"Redfish","Destination":"https://a.test","OriginResources":[{"@odata.id":"/etc/passwd"}]`, "PropertyValueFormatError", "OriginResources"},
		{"no link", `"Protocol":"Redfish","Destination":"https://a.test","OriginResources":["/redfish/v1/Systems/1"]`, "PropertyValueTypeError", "OriginResources"},
		{"reserved header", `"Protocol":"Redfish","Destination":"https://a.test","HttpHeaders":[{"Content-Length":"1"}]`, "PropertyValueError", "HttpHeaders"},
		{"two lines", `"Protocol":"Redfish","Destination":"https://a.test","HttpHeaders":[{"A":"b\r\nC: d"}]`, "PropertyValueError", "HttpHeaders"},
		{"no time", `"Protocol":"Redfish","Destination":"https://a.test","SendHeartbeat":true,"HeartbeatIntervalMinutes":0`, "PropertyValueOutOfRange", "HeartbeatIntervalMinutes"},
		{"heartbeat interval without heartbeat", `"Protocol":"Redfish","Destination":"https://a.test","HeartbeatIntervalMinutes":5`, "PropertyValueConflict", "HeartbeatIntervalMinutes"},
		{"an unknown policy", `"Protocol":"Redfish","Destination":"https://a.test","DeliveryRetryPolicy":"Never"`, "PropertyValueNotInList", "DeliveryRetryPolicy"},
		{"an unknown property", `"Protocol":"Redfish","Destination":"https://a.test","Bogus":1`, "PropertyUnknown", "Bogus"},
	} {
		w := call(t, s, "admin", "POST", resource.SubscriptionsURI, "{"+tt.with+"}")
		keys, infos := errorOf(t, w)
		if w.Code != 400 || keys[0] != tt.key || !slices.ContainsFunc(infos[0].Related, func(p string) bool { return strings.HasPrefix(p, "#/"+tt.property) }) {
			t.Errorf("%s: %s %q about %q, want %s about %s", tt.name, w.Result().Status, keys, infos[0].Related, tt.key, tt.property)
		}
	}
	if w := call(t, s, "", "POST", resource.SubscriptionsURI, `{"Protocol":"Redfish","Destination":"https://a.test"}`); w.Code != 401 {
		t.Errorf("without login: %d", w.Code)
	}
	if w := call(t, s, "reader", "POST", resource.SubscriptionsURI, `{"Protocol":"Redfish","Destination":"https://a.test"}`); w.Code != 403 {
		t.Errorf("as a reader: %d", w.Code)
	}
	if body, _ := get(t, s, resource.SubscriptionsURI); body["Members@odata.count"] != 0.0 {
		t.Errorf("%v subscriptions were made", body["Members@odata.count"])
	}
}

func TestSubscriptionIsOwnedByItsCreator(t *testing.T) {
	s := newService(t, newHost(t))
	mine := call(t, s, "operator", "POST", resource.SubscriptionsURI, `{"Protocol":"Redfish","Destination":"https://a.test"}`).Header().Get("Location")
	others, _ := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://b.test"}`)
	for uri, want := range map[string]int{mine: 204, others: 403} {
		if w := call(t, s, "operator", "DELETE", uri, ""); w.Code != want {
			t.Errorf("%s; want %d", shape("DELETE", uri, "", w), want)
		}
	}
}

func TestSubscriptionLimit(t *testing.T) {
	s := newService(t, newHost(t))
	for range bmc.MaxSubscriptions {
		subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test"}`)
	}
	w := call(t, s, "admin", "POST", resource.SubscriptionsURI, `{"Protocol":"Redfish","Destination":"https://a.test"}`)
	if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "EventSubscriptionLimitExceeded" {
		t.Errorf("one more: %d %q", w.Code, keys)
	}
}

// powerOn returns the event that the BMC receives when its machine is switched on.
func (h *host) powerOn() event.Note {
	return event.Note{At: h.now, Kind: event.PowerOn, Subject: event.Subject{Part: event.System}}
}

// posted returns the records of the events to post to a subscription since its last
// call, and checks them against the schema.
func posted(t testing.TB, h *host, id string) (out []map[string]any) {
	t.Helper()
	for _, l := range h.posted {
		if l.Subscription == id {
			out = append(out, payload(t, l.Body)...)
		}
	}
	h.posted = slices.DeleteFunc(h.posted, func(l redfishevent.Delivery) bool { return l.Subscription == id })
	return out
}

// An OriginOfCondition, and one that is a link alone.
var (
	anyOrigin    = regexp.MustCompile(`"OriginOfCondition":\{`)
	linkedOrigin = regexp.MustCompile(`"OriginOfCondition":\{"@odata.id":"[^"]*"\}`)
)

// payload returns the records of an event. The text of DSP2046 requires complete
// resources in OriginOfCondition; its schema does not allow them.
func payload(t testing.TB, body []byte) (out []map[string]any) {
	t.Helper()
	complete := len(anyOrigin.FindAll(body, -1)) > len(linkedOrigin.FindAll(body, -1))
	if _, err := openBundle(); err == nil && !complete {
		theSchemas().check(t, "event", redfishevent.EventSchema, body)
	}
	var e struct{ Events []map[string]any }
	must(t, json.Unmarshal(body, &e))
	for i, r := range e.Events {
		if r["MemberId"] != fmt.Sprint(i) {
			t.Errorf("record %d has the MemberId %v", i, r["MemberId"])
		}
	}
	return e.Events
}

// summaries returns the records in short: message, severity, and the end of the origin.
func summaries(records []map[string]any) []string {
	var out []string
	for _, r := range records {
		id, _ := r["MessageId"].(string)
		origin, _ := r["OriginOfCondition"].(map[string]any)
		uri, _ := origin["@odata.id"].(string)
		_, key := resource.Unversioned(id)
		out = append(out, key+" "+uri[strings.LastIndexByte(uri, '/')+1:])
	}
	return out
}

func TestEventsAreDelivered(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test","Context":"mine"}`)
	first := posted(t, h, id)
	if diff := cmp.Diff([]string{"ResourceCreated " + id}, summaries(first)); diff != "" {
		t.Errorf("events of the creation of the subscription (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name string
		do   func()
		want []string
	}{
		{"power", func() { must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn})) }, []string{"ResourceStateChanged 1", "ResourceChanged 1"}},
		{"note", func() { h.hear(h.powerOn()) }, []string{"ResourcePoweredOn 1"}},
		{"setting", func() {
			call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":600}`)
		}, []string{"ResourceChanged SessionService"}},
		{"nothing", func() { call(t, s, "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":600}`) }, nil},
		{"login", func() { logIn(t, s, "reader") }, []string{"ResourceCreated 1"}},
		{"logout", func() { call(t, s, "admin", "DELETE", sessions+"/1", "") }, []string{"ResourceRemoved 1"}},
		{"media", func() {
			call(t, s, "admin", "POST", sys+"/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", `{"Image":"http://images.test/a.iso"}`)
		}, []string{"ResourceChanged Cd"}},
		{"job", func() { begin(t, h, bmc.Request{}) }, []string{"ResourceCreated 1"}},
	} {
		tt.do()
		got := summaries(posted(t, h, id))
		for _, want := range tt.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: events %q do not contain %q", tt.name, got, want)
			}
		}
		if len(tt.want) == 0 && len(got) > 0 {
			t.Errorf("%s: events %q", tt.name, got)
		}
	}
}

func TestEventRecordProperties(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test","Context":"mine"}`)
	posted(t, h, id)
	h.pass(90 * time.Minute)
	posted(t, h, id)
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	body := h.posted[len(h.posted)-1].Body
	if !strings.Contains(string(body), `"Context":"mine"`) {
		t.Errorf("the event lacks the context: %s", body)
	}
	seen := map[any]bool{}
	for _, r := range posted(t, h, id) {
		if seen[r["EventId"]] {
			t.Errorf("two records with the EventId %v", r["EventId"])
		}
		seen[r["EventId"]] = true
		if r["MessageSeverity"] != "OK" || r["Severity"] != "OK" || r["EventGroupId"] == nil {
			t.Errorf("record %v", r)
		}
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(r["EventTimestamp"])); err != nil || !at.Equal(h.now) {
			t.Errorf("EventTimestamp %v, want %v", r["EventTimestamp"], h.now)
		}
		general := strings.HasSuffix(fmt.Sprint(r["MessageId"]), ".ResourceChanged")
		if of := r["OriginOfCondition"].(map[string]any)["@odata.id"]; of == sys && (r["SpecificEventExistsInGroup"] == true) != general {
			t.Errorf("SpecificEventExistsInGroup of %v is %v", r["MessageId"], r["SpecificEventExistsInGroup"])
		}
	}
	logIn(t, s, "admin")
	posted(t, h, id)
	call(t, s, "admin", "DELETE", sessions+"/1", "")
	if r := posted(t, h, id)[0]; r["OriginOfConditionUnavailable"] != true {
		t.Errorf("of what is gone: %v", r)
	}
}

func TestSubscriptionFiltersSelectEvents(t *testing.T) {
	for _, tt := range []struct {
		filter string
		want   []string // keys of the records of a power-on and a login
	}{
		{`"Severities":["Critical"]`, nil},
		{`"Severities":["OK"],"ResourceTypes":["Session"]`, []string{"ResourceCreated"}},
		{`"RegistryPrefixes":["TaskEvent"]`, nil},
		{`"MessageIds":["ResourceEvent.ResourcePoweredOn"]`, []string{"ResourcePoweredOn"}},
		{`"MessageIds":["ResourceEvent.9.9.ResourcePoweredOn"],"RegistryPrefixes":["TaskEvent"]`, []string{"ResourcePoweredOn"}},
		{`"ExcludeMessageIds":["ResourceEvent.1.0.ResourceChanged","ResourceEvent.ResourceCreated"]`, []string{"ResourcePoweredOn", "SuccessfulLogin"}},
		{`"ExcludeRegistryPrefixes":["ResourceEvent","AccountSecurity"]`, nil},
		{`"RegistryPrefixes":["AccountSecurity"]`, []string{"SuccessfulLogin"}},
		{`"OriginResources":[{"@odata.id":"/redfish/v1/SessionService"}]`, nil},
		{`"OriginResources":[{"@odata.id":"/redfish/v1/SessionService"}],"SubordinateResources":true`, []string{"ResourceCreated"}},
		{`"EventTypes":["ResourceAdded"]`, []string{"ResourceCreated"}},
		{`"EventFormatType":"MetricReport"`, nil},
	} {
		h := newHost(t)
		s := newService(t, h)
		_, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test",`+tt.filter+`}`)
		h.posted = nil
		h.hear(h.powerOn())
		logIn(t, s, "reader")
		var got []string
		for _, r := range summaries(posted(t, h, id)) {
			key, _, _ := strings.Cut(r, " ")
			got = append(got, key)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", tt.filter, diff)
		}
	}
}

// The event includes the resource, unless the subscriber may not read it.
func TestIncludeOriginOfCondition(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	body := `{"Protocol":"Redfish","Destination":"https://a.test","IncludeOriginOfCondition":true,"MessageIds":["ResourceEvent.ResourceCreated","ResourceEvent.ResourceChanged"]}`
	w := call(t, s, "operator", "POST", resource.SubscriptionsURI, body)
	id := strings.TrimPrefix(w.Header().Get("Location"), resource.SubscriptionsURI+"/")
	h.posted = nil
	logIn(t, s, "admin")
	if got := posted(t, h, id)[0]["OriginOfCondition"].(map[string]any); len(got) != 1 {
		t.Errorf("an operator receives another user's session: %v", got)
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	if got := posted(t, h, id)[0]["OriginOfCondition"].(map[string]any); got["PowerState"] != "PoweringOn" || got["@odata.id"] != sys {
		t.Errorf("the system is not in the event: %v", got)
	}
}

func TestSubmitTestEvent(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test"}`)
	_, deaf := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://b.test","Severities":["Critical"],"RegistryPrefixes":["Base"]}`)
	h.posted = nil
	submit := resource.EventServiceURI + "/Actions/EventService.SubmitTestEvent"
	complete := map[string]any{
		"MessageId": "Base.1.0.Success", "EventGroupId": 7.0, "EventId": "my-id", "EventTimestamp": "2030-01-02T03:04:05+06:00", "EventType": "Alert",
		"Message": "Hello", "MessageArgs": []any{"a", "b"}, "MessageSeverity": "Warning", "OriginOfCondition": sys, "Severity": "Warning",
	}
	body, err := json.Marshal(complete)
	must(t, err)
	if w := call(t, s, "admin", "POST", submit, string(body)); w.Code != 204 {
		t.Fatalf("%s", shape("POST", submit, string(body), w))
	}
	complete["OriginOfCondition"], complete["MemberId"] = map[string]any{"@odata.id": sys}, "0"
	if diff := cmp.Diff([]map[string]any{complete}, posted(t, h, id)); diff != "" {
		t.Errorf("test event (-want +got):\n%s", diff)
	}
	if got := posted(t, h, deaf); got != nil {
		t.Errorf("a subscription receives an event that its filter excludes: %v", got)
	}
	call(t, s, "admin", "POST", submit, `{"MessageId":"Base.1.0.Success"}`)
	got := posted(t, h, id)[0]
	delete(got, "EventId")
	if diff := cmp.Diff(map[string]any{"MessageId": "Base.1.0.Success", "MemberId": "0", "EventType": "Other"}, got); diff != "" {
		t.Errorf("a test event without parameters (-want +got):\n%s", diff)
	}
	for _, bad := range []struct{ body, key, parameter string }{
		{`{}`, "ActionParameterMissing", "MessageId"},
		{`{"MessageId":"hello"}`, "ActionParameterValueFormatError", "MessageId"},
		{`{"MessageId":"Base.1.0.Success","EventType":"Party"}`, "ActionParameterValueNotInList", "EventType"},
		{`{"MessageId":"Base.1.0.Success","EventTimestamp":"today"}`, "ActionParameterValueFormatError", "EventTimestamp"},
		{`{"MessageId":"Base.1.0.Success","EventGroupId":-1}`, "ActionParameterValueOutOfRange", "EventGroupId"},
		{`{"MessageId":"Base.1.0.Success","OriginOfCondition":"/x"}`, "ActionParameterValueFormatError", "OriginOfCondition"},
		{`{"MessageId":"Base.1.0.Success","MessageArgs":[1]}`, "ActionParameterValueTypeError", "MessageArgs"},
	} {
		w := call(t, s, "admin", "POST", submit, bad.body)
		if keys, infos := errorOf(t, w); w.Code != 400 || keys[0] != bad.key || !strings.HasPrefix(infos[0].Related[0], "#/"+bad.parameter) {
			t.Errorf("%s; want %s", shape("POST", submit, bad.body, w), bad.key)
		}
	}
	if w := call(t, s, "admin", "POST", resource.EventServiceURI+"/Actions/EventService.TestEventSubscription", ""); w.Code != 204 || summaries(posted(t, h, id))[0] != "TestMessage " {
		t.Errorf("%s", shape("POST", "TestEventSubscription", "", w))
	}
	if w := call(t, s, "operator", "POST", submit, string(body)); w.Code != 403 {
		t.Errorf("as an operator: %d", w.Code)
	}
}

func TestSubscriptionSuspendAndResume(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	uri, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test"}`)
	state := func() any {
		body, _ := get(t, s, uri)
		return body["Status"].(map[string]any)["State"]
	}
	if w := call(t, s, "admin", "POST", uri+"/Actions/EventDestination.SuspendSubscription", ""); w.Code != 204 || state() != "Disabled" {
		t.Errorf("%s; state %v", shape("POST", "Suspend", "", w), state())
	}
	if is, _ := h.bmc.Subscription(id); !is.Suspended {
		t.Errorf("%+v is not suspended", is)
	}
	resume := uri + "/Actions/EventDestination.ResumeSubscription"
	if w := call(t, s, "admin", "POST", resume, `{"DeliverBufferedEventDuration":"1h"}`); w.Code != 400 {
		t.Errorf("%s", shape("POST", resume, "1h", w))
	}
	if w := call(t, s, "admin", "POST", resume, `{"DeliverBufferedEventDuration":"PT0S"}`); w.Code != 204 || state() != "Enabled" {
		t.Errorf("%s; state %v", shape("POST", resume, "", w), state())
	}
}

func TestEventServicePatch(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	w := call(t, s, "admin", "PATCH", resource.EventServiceURI, `{"DeliveryRetryAttempts":5,"DeliveryRetryIntervalSeconds":10}`)
	if a := h.BMC().Subscribers; w.Code != 200 || a.Attempts != 5 || a.Interval != 10*time.Second {
		t.Errorf("%s; %d attempts every %s", shape("PATCH", resource.EventServiceURI, "", w), a.Attempts, a.Interval)
	}
	for _, bad := range []string{`{"DeliveryRetryAttempts":-1}`, `{"DeliveryRetryIntervalSeconds":0}`, `{"ServiceEnabled":"no"}`} {
		if w := call(t, s, "admin", "PATCH", resource.EventServiceURI, bad); w.Code != 400 {
			t.Errorf("%s", shape("PATCH", resource.EventServiceURI, bad, w))
		}
	}
	_, id := subscribeTo(t, s, `{"Protocol":"Redfish","Destination":"https://a.test"}`)
	call(t, s, "admin", "PATCH", resource.EventServiceURI, `{"ServiceEnabled":false}`)
	h.posted = nil
	logIn(t, s, "admin")
	if got := posted(t, h, id); got != nil {
		t.Errorf("while the service is disabled, events %v are sent", got)
	}
	w = call(t, s, "admin", "POST", resource.SubscriptionsURI, `{"Protocol":"Redfish","Destination":"https://b.test"}`)
	if keys, _ := errorOf(t, w); w.Code != 503 || keys[0] != "ServiceDisabled" {
		t.Errorf("%s", shape("POST", resource.SubscriptionsURI, "", w))
	}
	call(t, s, "admin", "PATCH", resource.EventServiceURI, `{"ServiceEnabled":true}`)
	logIn(t, s, "admin")
	if got := posted(t, h, id); got == nil {
		t.Error("after the service is enabled again, no event is sent")
	}
}

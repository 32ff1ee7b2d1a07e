package resource

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Values of EventDestination.EventFormatType (DSP2046).
const (
	EventFormat  = "Event"
	ReportFormat = "MetricReport"
)

func (v View) subscription() bmc.Subscription {
	s, _ := Subscription(v.BMC, v.IDs["subscription"])
	return s
}

func isActorsSubscription(v View, who Actor) bool { return v.subscription().Owner == who.Account }

// refusesStreamPatch refuses PATCH to the subscription of a server-sent event
// stream. Clients can only delete it.
func refusesStreamPatch(v View, method string) bool {
	return method == http.MethodPatch && v.subscription().Stream
}

func eventDestination(v View) Object {
	s := v.subscription()
	o := Object{
		"Name": "Event Subscription " + s.ID, "Destination": RedactURI(s.Destination), "Context": s.Context,
		"Protocol": "Redfish", "SubscriptionType": "RedfishEvent", "EventFormatType": EventFormat,
		"IncludeOriginOfCondition": s.IncludeOriginOfCondition, "Status": subscriptionStatus(s),
	}
	if s.Reports {
		o["EventFormatType"] = ReportFormat
	}
	f := s.Filter
	for name, all := range map[string][]string{
		"RegistryPrefixes": f.Registries, "ExcludeRegistryPrefixes": f.NotRegistries, "MessageIds": f.Messages,
		"ExcludeMessageIds": f.NotMessages, "ResourceTypes": f.Types, "EventTypes": f.Kinds, "Severities": f.Severities,
	} {
		if len(all) > 0 {
			o[name] = all
		}
	}
	if len(f.Origins) > 0 {
		o["OriginResources"], o["OriginResources@odata.count"] = refs(f.Origins...), len(f.Origins)
		o["SubordinateResources"] = f.Subordinate
	}
	if len(f.Reports) > 0 {
		o["MetricReportDefinitions"], o["MetricReportDefinitions@odata.count"] = refs(f.Reports...), len(f.Reports)
	}
	if s.Stream {
		o["SubscriptionType"] = "SSE"
		return o
	}
	o["DeliveryRetryPolicy"], o["VerifyCertificate"] = string(s.Retry), s.Verify
	o["HttpHeaders"] = []Object{} // never shown (DSP2046, EventDestination.HttpHeaders)
	if s.Heartbeat > 0 {
		o["SendHeartbeat"], o["HeartbeatIntervalMinutes"] = true, int(s.Heartbeat/time.Minute)
	}
	return o
}

// subscriptionStatus returns the Status of a subscription. A suspended
// subscription is Disabled; Health is not OK while deliveries fail.
func subscriptionStatus(s bmc.Subscription) Object {
	o := status("Enabled")
	if s.Suspended {
		o["State"] = "Disabled"
	}
	switch {
	case s.Failures > 0 && s.Suspended:
		o["Health"] = "Critical"
	case s.Failures > 0:
		o["Health"] = "Warning"
	}
	return o
}

// Inputs of both POST and PATCH.
var (
	contextInput = Input{Name: "Context", Kind: Text, nullable: true}
	// Some clients send one object with all headers, against DSP2046
	// (gofish 0.22, schemas/eventdestination.go).
	headersInput = Input{Name: "HttpHeaders", Kind: Array, Max: 32, Secret: true, nullable: true, AcceptsSingle: true, Of: []Input{{Kind: StringMap, form: isHeader}}}
	retryInput   = Input{Name: "DeliveryRetryPolicy", Kind: Text, Allowed: func(View) []string { return Texts(bmc.Retries) }}
	verifyInput  = Input{Name: "VerifyCertificate", Kind: Boolean}
)

// subscriptionCreate creates a subscription to events that the service POSTs to
// a destination (DSP0266, "Eventing").
var subscriptionCreate = create{
	maxMembers: func(View) int { return bmc.MaxSubscriptions + bmc.MaxStreams },
	Inputs: []Input{
		{Name: "Destination", Kind: Text, Required: true, form: isDestination},
		{Name: "Protocol", Kind: Text, Required: true, Allowed: OneOf("Redfish")},
		{Name: "SubscriptionType", Kind: Text, Allowed: OneOf("RedfishEvent")},
		{Name: "EventFormatType", Kind: Text, Allowed: eventFormats},
		{Name: "Name", Kind: Text}, {Name: "Description", Kind: Text}, {Name: "Id", Kind: Text}, // ignored: the service assigns it
		contextInput, headersInput, retryInput, verifyInput,
		optionalArray("RegistryPrefixes", Input{Kind: Text, Allowed: RegistryPrefixes}),
		optionalArray("ExcludeRegistryPrefixes", Input{Kind: Text, Allowed: RegistryPrefixes}),
		optionalArray("MessageIds", Input{Kind: Text, form: IsMessage}),
		optionalArray("ExcludeMessageIds", Input{Kind: Text, form: IsMessage}),
		optionalArray("ResourceTypes", Input{Kind: Text, Allowed: EventResourceTypes}),
		optionalArray("EventTypes", Input{Kind: Text, Allowed: OneOf(EventTypes...)}),
		optionalArray("Severities", Input{Kind: Text, Allowed: severityNames}),
		optionalArray("OriginResources", Input{Kind: Link, form: IsResource}),
		optionalArray("MetricReportDefinitions", Input{Kind: Link, form: IsResource}),
		{Name: "SubordinateResources", Kind: Boolean},
		{Name: "IncludeOriginOfCondition", Kind: Boolean},
		{Name: "SendHeartbeat", Kind: Boolean},
		{Name: "HeartbeatIntervalMinutes", Kind: Integer, Min: 1, Max: 65535},
	},
	Apply: subscribe,
}

// optionalArray returns the input of a nullable array.
func optionalArray(name string, each Input) Input {
	return Input{Name: name, Kind: Array, nullable: true, Of: []Input{each}}
}

// isDestination reports whether a string is an HTTP or HTTPS URL that events can
// be posted to.
func isDestination(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && u.Hostname() != "" && u.Opaque == "" && slices.Contains([]string{"http", "https"}, u.Scheme)
}

// IsMessage reports whether a MessageId, with or without a version, belongs to
// one of the service's registries.
func IsMessage(id string) bool {
	registry, key := Unversioned(id)
	return slices.Contains(RegistryPrefixes(View{}), registry) && key != "" && key != id
}

// isHeader reports whether a "name: value" string is a header that a
// subscription may add. The headers of the connection are reserved.
func isHeader(line string) bool {
	name, content, _ := strings.Cut(line, ": ")
	token := strings.Trim(name, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	reserved := []string{"connection", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding", "upgrade"}
	return name != "" && token == "" && !strings.ContainsAny(content, "\r\n\x00") && !slices.Contains(reserved, strings.ToLower(name))
}

func subscribe(ctx context.Context, c Call) (Result, error) {
	set := c.Values
	s := bmc.Subscription{
		Destination: Value(set, "Destination", ""), Context: Value(set, "Context", ""), Owner: c.Actor.Account,
		Reports: Value(set, "EventFormatType", EventFormat) == ReportFormat, IncludeOriginOfCondition: Value(set, "IncludeOriginOfCondition", false),
		Headers: sentHeaders(set), Verify: Value(set, "VerifyCertificate", false), Retry: bmc.Retry(Value(set, "DeliveryRetryPolicy", "")),
		Filter: bmc.Filter{
			Registries: sentStrings(set, "RegistryPrefixes"), NotRegistries: sentStrings(set, "ExcludeRegistryPrefixes"),
			Messages: sentStrings(set, "MessageIds"), NotMessages: sentStrings(set, "ExcludeMessageIds"),
			Types: sentStrings(set, "ResourceTypes"), Kinds: sentStrings(set, "EventTypes"), Severities: sentStrings(set, "Severities"),
			Origins: sentStrings(set, "OriginResources"), Subordinate: Value(set, "SubordinateResources", false),
			Reports: sentStrings(set, "MetricReportDefinitions"),
		},
	}
	for _, pair := range [][2]string{{"RegistryPrefixes", "ExcludeRegistryPrefixes"}, {"MessageIds", "ExcludeMessageIds"}} {
		if both := sentStrings(set, pair[1]); slices.ContainsFunc(sentStrings(set, pair[0]), func(x string) bool { return slices.Contains(both, x) }) {
			return Result{}, Reject(http.StatusBadRequest, message.PropertyValueConflict.With(pair[1], pair[0]).About("#/"+pair[1]))
		}
	}
	for _, name := range []string{"OriginResources", "MetricReportDefinitions"} {
		for _, uri := range sentStrings(set, name) {
			if m := c.View.Tree.Find(&url.URL{Path: uri}); m == nil || m.Schema == "" || !m.exists(TakeSnapshot(c.Host)) {
				return Result{}, Reject(http.StatusBadRequest, message.PropertyValueIncorrect.With(name, uri).About("#/"+name))
			}
		}
	}
	minutes := Value(set, "HeartbeatIntervalMinutes", int64(0))
	switch beats := Value(set, "SendHeartbeat", false); {
	case minutes > 0 && !beats:
		return Result{}, Reject(http.StatusBadRequest, message.PropertyValueConflict.With("HeartbeatIntervalMinutes", "SendHeartbeat").About("#/HeartbeatIntervalMinutes"))
	case beats && minutes == 0:
		minutes = 60
	}
	s.Heartbeat = time.Duration(minutes) * time.Minute
	if c.View.BMC.Subscribers.Off {
		return Result{}, Reject(http.StatusServiceUnavailable, message.ServiceDisabled.With(EventServiceURI))
	}
	evs, err := c.Host.ApplyBMC(ctx, bmc.Subscribe{Subscription: s})
	return Result{ID: SubscriptionID(evs)}, err
}

// SubscriptionID returns the ID of the subscription in the events of a command;
// "" if there is none.
func SubscriptionID(evs []bmc.Event) string {
	for _, ev := range evs {
		if ev, ok := ev.(bmc.Subscribed); ok {
			return ev.Subscription.ID
		}
	}
	return ""
}

// sentStrings returns the elements of an array of strings or links that a client
// sent, without duplicates.
func sentStrings(set Values, name string) []string {
	var out []string
	for _, x := range Value(set, name, []any(nil)) {
		if s, ok := x.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// sentHeaders returns the HttpHeaders that a client sent, sorted by name.
func sentHeaders(set Values) []bmc.Header {
	var out []bmc.Header
	for _, x := range Value(set, "HttpHeaders", []any(nil)) {
		all, _ := x.(map[string]string)
		for name, content := range all {
			out = append(out, bmc.Header{Name: name, Value: content})
		}
	}
	slices.SortFunc(out, func(a, b bmc.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

var subscriptionPatch = Patch{
	Inputs: []Input{contextInput, headersInput, retryInput, verifyInput},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		do := bmc.ChangeSubscription{ID: c.View.IDs["subscription"]}
		if _, ok := c.Values["Context"]; ok {
			do.Context = new(Value(c.Values, "Context", ""))
		}
		if _, ok := c.Values["HttpHeaders"]; ok {
			do.Headers = new(sentHeaders(c.Values))
		}
		if retry, ok := c.Values["DeliveryRetryPolicy"].(string); ok {
			do.Retry = new(bmc.Retry(retry))
		}
		if verify, ok := c.Values["VerifyCertificate"].(bool); ok {
			do.Verify = new(verify)
		}
		_, err := c.Host.ApplyBMC(ctx, do)
		return Result{}, err
	},
}

// unsubscribe deletes a subscription. That closes its server-sent event stream,
// if it has one (DSP0266, "Server-sent events").
func unsubscribe(ctx context.Context, c Call) (Result, error) {
	_, err := c.Host.ApplyBMC(ctx, bmc.Unsubscribe{ID: c.View.IDs["subscription"]})
	return Result{}, err
}

// notStream reports whether a subscription can be suspended; the subscription of
// a stream cannot.
func notStream(v View) bool { return !v.subscription().Stream }

// defaultBuffered is the age of the oldest missed event that ResumeSubscription
// delivers when the client does not send DeliverBufferedEventDuration.
const defaultBuffered = 24 * time.Hour

var subscriptionActions = []Action{
	{
		Name: "EventDestination.SuspendSubscription", when: notStream,
		Apply: func(ctx context.Context, c Call) (Result, error) {
			_, err := c.Host.ApplyBMC(ctx, bmc.SuspendSubscription{ID: c.View.IDs["subscription"]})
			return Result{}, err
		},
	},
	{
		Name: "EventDestination.ResumeSubscription", when: notStream,
		Inputs: []Input{{Name: "DeliverBufferedEventDuration", Kind: Text, form: func(s string) bool { _, ok := parseDuration(s); return ok }}},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			buffered := defaultBuffered
			if d, ok := parseDuration(Value(c.Values, "DeliverBufferedEventDuration", "")); ok {
				buffered = d
			}
			_, err := c.Host.ApplyBMC(ctx, bmc.ResumeSubscription{ID: c.View.IDs["subscription"], Buffered: buffered})
			return Result{}, err
		},
	},
}

// Values of Event.EventType (DSP2046). They are deprecated but required.
const (
	StatusChange    = "StatusChange"
	ResourceUpdated = "ResourceUpdated"
	ResourceAdded   = "ResourceAdded"
	ResourceRemoved = "ResourceRemoved"
	Alert           = "Alert"
	Other           = "Other"
)

// EventTypes are all values of Event.EventType.
var EventTypes = []string{StatusChange, ResourceUpdated, ResourceAdded, ResourceRemoved, Alert, Other}

// Subscription returns the subscription with an ID from a view of the BMC.
func Subscription(b *bmc.View, id string) (bmc.Subscription, bool) {
	for _, s := range b.Subscribers.List {
		if s.ID == id {
			return s, true
		}
	}
	return bmc.Subscription{}, false
}

// Unversioned splits a MessageId and ignores its version: "Base.1.0.Success" and
// "Base.Success" give "Base" and "Success".
func Unversioned(id string) (registry, key string) {
	registry, _, _ = strings.Cut(id, ".")
	return registry, id[strings.LastIndexByte(id, '.')+1:]
}

package redfish

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
	eventFormat  = "Event"
	reportFormat = "MetricReport"
)

func (v view) subscription() bmc.Subscription {
	s, _ := subscription(v.b, v.ids["subscription"])
	return s
}

func ownSubscription(v view, who actor) bool { return v.subscription().Owner == who.account }

// streamsArePlain: a stream can be closed, and that is all.
func streamsArePlain(v view, method string) bool {
	return method == http.MethodPatch && v.subscription().Stream
}

func eventDestination(v view) object {
	s := v.subscription()
	o := object{
		"Name": "Event Subscription " + s.ID, "Destination": withoutPassword(s.Destination), "Context": s.Context,
		"Protocol": "Redfish", "SubscriptionType": "RedfishEvent", "EventFormatType": eventFormat,
		"IncludeOriginOfCondition": s.IncludeOriginOfCondition, "Status": subscriptionStatus(s),
	}
	if s.Reports {
		o["EventFormatType"] = reportFormat
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
	o["HttpHeaders"] = []object{} // never shown (DSP2046, EventDestination.HttpHeaders)
	if s.Heartbeat > 0 {
		o["SendHeartbeat"], o["HeartbeatIntervalMinutes"] = true, int(s.Heartbeat/time.Minute)
	}
	return o
}

// subscriptionStatus tells a suspended subscription, and one whose events do
// not get through.
func subscriptionStatus(s bmc.Subscription) object {
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

// Inputs that a new subscription and a change of it have in common.
var (
	contextInput = input{name: "Context", kind: text, nullable: true}
	// Clients that know DSP2046 by hearsay send one object with all headers
	// (gofish 0.22, schemas/eventdestination.go).
	headersInput = input{name: "HttpHeaders", kind: array, max: 32, secret: true, nullable: true, lone: true, of: []input{{kind: named, form: isHeader}}}
	retryInput   = input{name: "DeliveryRetryPolicy", kind: text, values: func(view) []string { return texts(bmc.Retries) }}
	verifyInput  = input{name: "VerifyCertificate", kind: boolean}
)

// subscriptionCreate is a subscription to events that are posted (DSP0266,
// "Eventing").
var subscriptionCreate = create{
	most: func(view) int { return bmc.MaxSubscriptions + bmc.MaxStreams },
	inputs: []input{
		{name: "Destination", kind: text, required: true, form: isDestination},
		{name: "Protocol", kind: text, values: oneOf("Redfish")},
		{name: "SubscriptionType", kind: text, values: oneOf("RedfishEvent")},
		{name: "EventFormatType", kind: text, values: eventFormats},
		{name: "Name", kind: text}, {name: "Description", kind: text}, {name: "Id", kind: text}, // the service names it
		contextInput, headersInput, retryInput, verifyInput,
		some("RegistryPrefixes", input{kind: text, values: registryPrefixes}),
		some("ExcludeRegistryPrefixes", input{kind: text, values: registryPrefixes}),
		some("MessageIds", input{kind: text, form: isMessage}),
		some("ExcludeMessageIds", input{kind: text, form: isMessage}),
		some("ResourceTypes", input{kind: text, values: resourceTypes}),
		some("EventTypes", input{kind: text, values: oneOf(eventTypes...)}),
		some("Severities", input{kind: text, values: severityNames}),
		some("OriginResources", input{kind: link, form: isResource}),
		some("MetricReportDefinitions", input{kind: link, form: isResource}),
		{name: "SubordinateResources", kind: boolean},
		{name: "IncludeOriginOfCondition", kind: boolean},
		{name: "SendHeartbeat", kind: boolean},
		{name: "HeartbeatIntervalMinutes", kind: integer, min: 1, max: 65535},
	},
	apply: subscribe,
}

func some(name string, each input) input {
	return input{name: name, kind: array, nullable: true, of: []input{each}}
}

// isDestination says whether events can be posted to an address.
func isDestination(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && u.Hostname() != "" && u.Opaque == "" && slices.Contains([]string{"http", "https"}, u.Scheme)
}

// isMessage says whether a text names a message of a registry that the service
// speaks, with or without the registry's version.
func isMessage(id string) bool {
	registry, key := unversioned(id)
	return slices.Contains(registryPrefixes(view{}), registry) && key != "" && key != id
}

// isHeader says whether a text is a header that may be sent along: those of the
// connection are the service's own.
func isHeader(line string) bool {
	name, content, _ := strings.Cut(line, ": ")
	token := strings.Trim(name, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	own := []string{"connection", "content-length", "content-type", "host", "te", "trailer", "transfer-encoding", "upgrade"}
	return name != "" && token == "" && !strings.ContainsAny(content, "\r\n\x00") && !slices.Contains(own, strings.ToLower(name))
}

func subscribe(ctx context.Context, c operation) (reply, error) {
	set := c.set
	s := bmc.Subscription{
		Destination: value(set, "Destination", ""), Context: value(set, "Context", ""), Owner: c.who.account,
		Reports: value(set, "EventFormatType", eventFormat) == reportFormat, IncludeOriginOfCondition: value(set, "IncludeOriginOfCondition", false),
		Headers: headers(set), Verify: value(set, "VerifyCertificate", false), Retry: bmc.Retry(value(set, "DeliveryRetryPolicy", "")),
		Filter: bmc.Filter{
			Registries: chosen(set, "RegistryPrefixes"), NotRegistries: chosen(set, "ExcludeRegistryPrefixes"),
			Messages: chosen(set, "MessageIds"), NotMessages: chosen(set, "ExcludeMessageIds"),
			Types: chosen(set, "ResourceTypes"), Kinds: chosen(set, "EventTypes"), Severities: chosen(set, "Severities"),
			Origins: chosen(set, "OriginResources"), Subordinate: value(set, "SubordinateResources", false),
			Reports: chosen(set, "MetricReportDefinitions"),
		},
	}
	for _, pair := range [][2]string{{"RegistryPrefixes", "ExcludeRegistryPrefixes"}, {"MessageIds", "ExcludeMessageIds"}} {
		if both := chosen(set, pair[1]); slices.ContainsFunc(chosen(set, pair[0]), func(x string) bool { return slices.Contains(both, x) }) {
			return reply{}, decline(http.StatusBadRequest, message.PropertyValueConflict.With(pair[1], pair[0]).About("#/"+pair[1]))
		}
	}
	for _, name := range []string{"OriginResources", "MetricReportDefinitions"} {
		for _, uri := range chosen(set, name) {
			if m := c.view.tree.find(&url.URL{Path: uri}); m == nil || m.schema == "" || !m.exists(look(c.host)) {
				return reply{}, decline(http.StatusBadRequest, message.PropertyValueIncorrect.With(name, uri).About("#/"+name))
			}
		}
	}
	minutes := value(set, "HeartbeatIntervalMinutes", int64(0))
	switch beats := value(set, "SendHeartbeat", false); {
	case minutes > 0 && !beats:
		return reply{}, decline(http.StatusBadRequest, message.PropertyValueConflict.With("HeartbeatIntervalMinutes", "SendHeartbeat").About("#/HeartbeatIntervalMinutes"))
	case beats && minutes == 0:
		minutes = 60
	}
	s.Heartbeat = time.Duration(minutes) * time.Minute
	if c.view.b.Subscribers.Off {
		return reply{}, decline(http.StatusServiceUnavailable, message.ServiceDisabled.With(eventServiceURI))
	}
	evs, err := c.host.ApplyBMC(ctx, bmc.Subscribe{Subscription: s})
	return reply{id: subscribed(evs)}, err
}

// subscribed is the ID of the subscription that a command has made.
func subscribed(evs []bmc.Event) string {
	for _, ev := range evs {
		if ev, ok := ev.(bmc.Subscribed); ok {
			return ev.Subscription.ID
		}
	}
	return ""
}

// chosen are the elements of an array of text or links that a client sent.
func chosen(set values, name string) []string {
	var out []string
	for _, x := range value(set, name, []any(nil)) {
		if s, ok := x.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// headers are those that a client wants to be sent, by name.
func headers(set values) []bmc.Header {
	var out []bmc.Header
	for _, x := range value(set, "HttpHeaders", []any(nil)) {
		all, _ := x.(map[string]string)
		for name, content := range all {
			out = append(out, bmc.Header{Name: name, Value: content})
		}
	}
	slices.SortFunc(out, func(a, b bmc.Header) int { return strings.Compare(a.Name, b.Name) })
	return out
}

var subscriptionPatch = patch{
	inputs: []input{contextInput, headersInput, retryInput, verifyInput},
	apply: func(ctx context.Context, c operation) (reply, error) {
		do := bmc.ChangeSubscription{ID: c.view.ids["subscription"]}
		if _, ok := c.set["Context"]; ok {
			do.Context = new(value(c.set, "Context", ""))
		}
		if _, ok := c.set["HttpHeaders"]; ok {
			do.Headers = new(headers(c.set))
		}
		if retry, ok := c.set["DeliveryRetryPolicy"].(string); ok {
			do.Retry = new(bmc.Retry(retry))
		}
		if verify, ok := c.set["VerifyCertificate"].(bool); ok {
			do.Verify = new(verify)
		}
		_, err := c.host.ApplyBMC(ctx, do)
		return reply{}, err
	},
}

// unsubscribe ends a subscription; a stream is closed with it (DSP0266,
// "Server-sent events").
func unsubscribe(ctx context.Context, c operation) (reply, error) {
	_, err := c.host.ApplyBMC(ctx, bmc.Unsubscribe{ID: c.view.ids["subscription"]})
	return reply{}, err
}

// notStream says whether a subscription can be suspended.
func notStream(v view) bool { return !v.subscription().Stream }

// defaultBuffered is how far back a subscription is told of what it has missed
// when who resumes it does not say.
const defaultBuffered = 24 * time.Hour

var subscriptionActions = []action{
	{
		name: "EventDestination.SuspendSubscription", when: notStream,
		apply: func(ctx context.Context, c operation) (reply, error) {
			_, err := c.host.ApplyBMC(ctx, bmc.SuspendSubscription{ID: c.view.ids["subscription"]})
			return reply{}, err
		},
	},
	{
		name: "EventDestination.ResumeSubscription", when: notStream,
		inputs: []input{{name: "DeliverBufferedEventDuration", kind: text, form: func(s string) bool { _, ok := duration(s); return ok }}},
		apply: func(ctx context.Context, c operation) (reply, error) {
			buffered := defaultBuffered
			if d, ok := duration(value(c.set, "DeliverBufferedEventDuration", "")); ok {
				buffered = d
			}
			_, err := c.host.ApplyBMC(ctx, bmc.ResumeSubscription{ID: c.view.ids["subscription"], Buffered: buffered})
			return reply{}, err
		},
	},
}

// Values of Event.EventType (DSP2046). They are deprecated but required.
const (
	statusChange    = "StatusChange"
	resourceUpdated = "ResourceUpdated"
	resourceAdded   = "ResourceAdded"
	resourceRemoved = "ResourceRemoved"
	alert           = "Alert"
	other           = "Other"
)

var eventTypes = []string{statusChange, resourceUpdated, resourceAdded, resourceRemoved, alert, other}

// subscription is a subscription as a view shows it.
func subscription(b *bmc.View, id string) (bmc.Subscription, bool) {
	for _, s := range b.Subscribers.List {
		if s.ID == id {
			return s, true
		}
	}
	return bmc.Subscription{}, false
}

// unversioned takes a MessageId apart, whose version does not count:
// "Base.1.0.Success" and "Base.Success" are of Base, Success.
func unversioned(id string) (registry, key string) {
	registry, _, _ = strings.Cut(id, ".")
	return registry, id[strings.LastIndexByte(id, '.')+1:]
}

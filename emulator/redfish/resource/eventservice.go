package resource

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// URIs of the event service, its subscriptions and its server-sent event stream.
const (
	EventServiceURI  = "/redfish/v1/EventService"
	SubscriptionsURI = EventServiceURI + "/Subscriptions"
	StreamURI        = EventServiceURI + "/SSE"
)

func eventRows() []Row {
	return []Row{
		{URI: EventServiceURI, Schema: "EventService.v1_12_0", DependsOn: partSubscribers | partClock, Read: eventService,
			Patch: &eventServicePatch, Actions: eventServiceActions},
		{URI: SubscriptionsURI, Schema: "EventDestinationCollection", DependsOn: partSubscribers,
			collectionName: "Event Subscriptions", memberVariable: "subscription", Create: &subscriptionCreate},
		{URI: SubscriptionsURI + "/{subscription}", Schema: "EventDestination.v1_16_0", DependsOn: partSubscribers,
			Read: eventDestination, BelongsTo: isActorsSubscription, Refuses: refusesStreamPatch, Patch: &subscriptionPatch, Remove: unsubscribe,
			NoEvents: true, Actions: subscriptionActions},
		{URI: StreamURI, Privileges: managerPrivileges, Link: "-", Raw: noBody, Response: EventStreamResponse},
	}
}

func eventService(v View) Object {
	a := v.BMC.Subscribers
	o := Object{
		"Name": "Event Service", "ServiceEnabled": !a.Off, "Status": status("Enabled"),
		"DeliveryRetryAttempts": a.Attempts, "DeliveryRetryIntervalSeconds": int(a.Interval / time.Second),
		"EventFormatTypes": eventFormats(v), "EventTypesForSubscription": EventTypes,
		"RegistryPrefixes": RegistryPrefixes(v), "ResourceTypes": EventResourceTypes(v), "Severities": severityNames(v),
		"ExcludeMessageId": true, "ExcludeRegistryPrefix": true, "IncludeOriginOfConditionSupported": true,
		"OriginResourcesSupported": true, "SubordinateResourcesSupported": true,
		"ServerSentEventUri": StreamURI, "SSEIncludeOriginOfConditionSupported": true,
		"SSEFilterPropertiesSupported": Object{
			"EventFormatType": true, "EventType": true, "MessageId": true, "MetricReportDefinition": true, "OriginResource": true,
			"RegistryPrefix": true, "ResourceType": true, "SubordinateResources": true,
		},
	}
	if a.Off {
		o["Status"] = status("Disabled")
	}
	return o
}

func eventFormats(View) []string  { return []string{EventFormat, ReportFormat} }
func severityNames(View) []string { return []string{"OK", "Warning", "Critical"} }

// RegistryPrefixes returns the prefixes of all message registries of the
// service. Events can carry messages of each.
func RegistryPrefixes(View) []string {
	var out []string
	for _, r := range message.Registries {
		out = append(out, r.Prefix)
	}
	slices.Sort(out)
	return out
}

// EventResourceTypes returns the resource types that events can originate from.
func EventResourceTypes(v View) []string {
	var out []string
	for _, schema := range v.Tree.Schemas {
		if name := TypeName(schema); !strings.HasSuffix(name, "Collection") {
			out = append(out, name)
		}
	}
	return out
}

var eventServicePatch = Patch{
	Inputs: []Input{
		{Name: "ServiceEnabled", Kind: Boolean},
		{Name: "DeliveryRetryAttempts", Kind: Integer, Max: 1000},
		{Name: "DeliveryRetryIntervalSeconds", Kind: Integer, Min: 1, Max: 86400},
	},
	Apply: func(ctx context.Context, c Call) (Result, error) {
		var set bmc.SetDelivery
		if on, ok := c.Values["ServiceEnabled"].(bool); ok {
			set.Off = new(!on)
		}
		if n, ok := c.Values["DeliveryRetryAttempts"].(int64); ok {
			set.Attempts = new(int(n))
		}
		if n, ok := c.Values["DeliveryRetryIntervalSeconds"].(int64); ok {
			set.Interval = new(time.Duration(n) * time.Second)
		}
		_, err := c.Host.ApplyBMC(ctx, set)
		return Result{}, err
	},
}

// messageIDForm matches a DSP0266 MessageId ("MessageId format").
var messageIDForm = regexp.MustCompile(`^[A-Za-z0-9]+\.[0-9]+\.[0-9]+\.[A-Za-z0-9.]+$`)

var eventServiceActions = []Action{
	{
		Name: "EventService.SubmitTestEvent",
		Inputs: []Input{
			{Name: "MessageId", Kind: Text, Required: true, form: messageIDForm.MatchString},
			{Name: "EventGroupId", Kind: Integer, Min: 0, Max: 1<<53 - 1},
			{Name: "EventId", Kind: Text},
			{Name: "EventTimestamp", Kind: Text, form: isTime},
			{Name: "EventType", Kind: Text, Allowed: OneOf(EventTypes...)},
			{Name: "Message", Kind: Text},
			{Name: "MessageArgs", Kind: Array, Of: []Input{{Kind: Text}}},
			{Name: "MessageSeverity", Kind: Text, Allowed: severityNames},
			{Name: "OriginOfCondition", Kind: Text, form: IsResource},
			{Name: "Severity", Kind: Text, Allowed: severityNames},
		},
		Apply: func(ctx context.Context, c Call) (Result, error) {
			return Result{}, submitTestEvent(ctx, c, c.Values)
		},
	},
	{
		Name: "EventService.TestEventSubscription",
		Apply: func(ctx context.Context, c Call) (Result, error) {
			m := message.TestMessage.With()
			return Result{}, submitTestEvent(ctx, c, Values{
				"MessageId": c.View.MessageVersions().ID(m), "Message": m.Text, "MessageSeverity": string(m.Severity), "Severity": string(m.Severity),
				"EventTimestamp": c.View.Local(c.Host.Now().Add(c.View.BMC.Clock.Skew())),
			})
		},
	},
}

// submitTestEvent sends a test event to the subscribers. It rejects the request
// while the service is disabled.
func submitTestEvent(ctx context.Context, c Call, fields Values) error {
	if c.View.BMC.Subscribers.Off {
		return Reject(http.StatusServiceUnavailable, message.ServiceDisabled.With(EventServiceURI))
	}
	_, err := c.Host.ApplyBMC(ctx, bmc.SubmitTestEvent{Fields: fields})
	return err
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// IsResource reports whether a string has the form of a Redfish resource URI.
func IsResource(s string) bool {
	return s == "/redfish/v1" || strings.HasPrefix(s, "/redfish/v1/") && !strings.ContainsAny(s, " ?\"<>\\^`{|}")
}

// noBody returns the empty body of HEAD for the URI at which GET opens an event
// stream.
func noBody(View) (MediaType, []byte) { return EventStreamType, nil }

package redfish

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

const (
	eventServiceURI  = "/redfish/v1/EventService"
	subscriptionsURI = eventServiceURI + "/Subscriptions"
	streamURI        = eventServiceURI + "/SSE"
)

func eventRows() []resource {
	return []resource{
		{uri: eventServiceURI, schema: "EventService.v1_12_0", shows: PartSubscribers | PartClock, read: eventService,
			patch: &eventServicePatch, actions: eventServiceActions},
		{uri: subscriptionsURI, schema: "EventDestinationCollection", shows: PartSubscribers,
			name: "Event Subscriptions", of: "subscription", create: &subscriptionCreate},
		{uri: subscriptionsURI + "/{subscription}", schema: "EventDestination.v1_16_0", shows: PartSubscribers,
			read: eventDestination, own: ownSubscription, spares: streamsArePlain, patch: &subscriptionPatch, remove: unsubscribe,
			untold: true, actions: subscriptionActions},
		{uri: streamURI, needs: ofManager, link: "-", raw: noBody, answer: eventStream},
	}
}

func eventService(v view) object {
	a := v.b.Subscribers
	o := object{
		"Name": "Event Service", "ServiceEnabled": !a.Off, "Status": status("Enabled"),
		"DeliveryRetryAttempts": a.Attempts, "DeliveryRetryIntervalSeconds": int(a.Interval / time.Second),
		"EventFormatTypes": eventFormats(v), "EventTypesForSubscription": eventTypes,
		"RegistryPrefixes": registryPrefixes(v), "ResourceTypes": resourceTypes(v), "Severities": severityNames(v),
		"ExcludeMessageId": true, "ExcludeRegistryPrefix": true, "IncludeOriginOfConditionSupported": true,
		"OriginResourcesSupported": true, "SubordinateResourcesSupported": true,
		"ServerSentEventUri": streamURI, "SSEIncludeOriginOfConditionSupported": true,
		"SSEFilterPropertiesSupported": object{
			"EventFormatType": true, "EventType": true, "MessageId": true, "MetricReportDefinition": true, "OriginResource": true,
			"RegistryPrefix": true, "ResourceType": true, "SubordinateResources": true,
		},
	}
	if a.Off {
		o["Status"] = status("Disabled")
	}
	return o
}

func eventFormats(view) []string  { return []string{eventFormat, reportFormat} }
func severityNames(view) []string { return []string{"OK", "Warning", "Critical"} }

// registryPrefixes are the registries whose messages events can carry: all that
// the service speaks.
func registryPrefixes(view) []string {
	var out []string
	for _, r := range message.Registries {
		out = append(out, r.Prefix)
	}
	slices.Sort(out)
	return out
}

// resourceTypes are the types of resource that events can come from.
func resourceTypes(v view) []string {
	var out []string
	for _, schema := range v.tree.schemas {
		if name := typeName(schema); !strings.HasSuffix(name, "Collection") {
			out = append(out, name)
		}
	}
	return out
}

var eventServicePatch = patch{
	inputs: []input{
		{name: "ServiceEnabled", kind: boolean},
		{name: "DeliveryRetryAttempts", kind: integer, max: 1000},
		{name: "DeliveryRetryIntervalSeconds", kind: integer, min: 1, max: 86400},
	},
	apply: func(ctx context.Context, c operation) (reply, error) {
		var set bmc.SetDelivery
		if on, ok := c.set["ServiceEnabled"].(bool); ok {
			set.Off = new(!on)
		}
		if n, ok := c.set["DeliveryRetryAttempts"].(int64); ok {
			set.Attempts = new(int(n))
		}
		if n, ok := c.set["DeliveryRetryIntervalSeconds"].(int64); ok {
			set.Interval = new(time.Duration(n) * time.Second)
		}
		_, err := c.host.ApplyBMC(ctx, set)
		return reply{}, err
	},
}

// messageIDForm are of the form that DSP0266 gives them ("MessageId format").
var messageIDForm = regexp.MustCompile(`^[A-Za-z0-9]+\.[0-9]+\.[0-9]+\.[A-Za-z0-9.]+$`)

var eventServiceActions = []action{
	{
		name: "EventService.SubmitTestEvent",
		inputs: []input{
			{name: "MessageId", kind: text, required: true, form: messageIDForm.MatchString},
			{name: "EventGroupId", kind: integer, min: 0, max: 1<<53 - 1},
			{name: "EventId", kind: text},
			{name: "EventTimestamp", kind: text, form: isTime},
			{name: "EventType", kind: text, values: oneOf(eventTypes...)},
			{name: "Message", kind: text},
			{name: "MessageArgs", kind: array, of: []input{{kind: text}}},
			{name: "MessageSeverity", kind: text, values: severityNames},
			{name: "OriginOfCondition", kind: text, form: isResource},
			{name: "Severity", kind: text, values: severityNames},
		},
		apply: func(ctx context.Context, c operation) (reply, error) {
			return reply{}, announce(ctx, c, c.set)
		},
	},
	{
		name: "EventService.TestEventSubscription",
		apply: func(ctx context.Context, c operation) (reply, error) {
			m := message.TestMessage.With()
			return reply{}, announce(ctx, c, values{
				"MessageId": c.view.spoken().ID(m), "Message": m.Text, "MessageSeverity": string(m.Severity), "Severity": string(m.Severity),
				"EventTimestamp": c.view.local(c.host.Now().Add(c.view.b.Clock.Skew())),
			})
		},
	},
}

// announce has a made-up event told, which takes a service that tells any.
func announce(ctx context.Context, c operation, fields values) error {
	if c.view.b.Subscribers.Off {
		return decline(http.StatusServiceUnavailable, message.ServiceDisabled.With(eventServiceURI))
	}
	_, err := c.host.ApplyBMC(ctx, bmc.SubmitTestEvent{Fields: fields})
	return err
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func isResource(s string) bool {
	return s == "/redfish/v1" || strings.HasPrefix(s, "/redfish/v1/") && !strings.ContainsAny(s, " ?\"<>\\^`{|}")
}

// noBody is what a HEAD finds where a GET opens a stream.
func noBody(view) (mime, []byte) { return streamType, nil }

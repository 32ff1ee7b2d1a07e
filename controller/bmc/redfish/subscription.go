package redfish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// eventDestination holds the properties that the driver reads of an
// EventDestination.
type eventDestination struct {
	URI         string `json:"@odata.id"`
	ID          string `json:"Id"`
	Destination string `json:"Destination"`
	Context     string `json:"Context"`
	Type        string `json:"SubscriptionType"`
}

// subscriptionsURI returns the URI of the event service's collection of
// subscriptions.
func (c *client) subscriptionsURI(ctx context.Context, verb string) (string, error) {
	c.mu.Lock()
	service := c.root.Events.ID
	c.mu.Unlock()
	if service == "" {
		return "", unsupported(verb, "it has no event service")
	}
	var s struct {
		Enabled       *bool `json:"ServiceEnabled"`
		Subscriptions link  `json:"Subscriptions"`
	}
	if _, err := c.get(ctx, service, &s); err != nil {
		return "", err
	}
	if s.Subscriptions.ID == "" {
		return "", unsupported(verb, "its event service takes no subscriptions")
	}
	return s.Subscriptions.ID, nil
}

// Subscriptions lists the subscriptions except event streams (SSE), which end with
// their connection.
func (c *client) Subscriptions(ctx context.Context) ([]bmc.Subscription, error) {
	collection, err := c.subscriptionsURI(ctx, "Subscriptions")
	if err != nil {
		return nil, err
	}
	uris, err := c.members(ctx, collection)
	if err != nil {
		return nil, err
	}
	var all []bmc.Subscription
	for _, uri := range uris {
		var d eventDestination
		if _, err := c.get(ctx, uri, &d); isNotFound(err) {
			continue // deleted since the collection was read
		} else if err != nil {
			return nil, err
		}
		if d.Type == "SSE" {
			continue
		}
		all = append(all, bmc.Subscription{ID: lastSegment(uri), Destination: d.Destination, Context: d.Context})
	}
	return all, nil
}

// lastSegment returns the last segment of a resource's URI, which Subscriptions
// and Unsubscribe use as its ID; almost always it is the resource's Id.
func lastSegment(uri string) string { return path.Base(strings.TrimRight(localPath(uri), "/")) }

// Subscribe creates a subscription. Services differ on which properties they
// require beside the destination and the protocol, and refuse before they act:
// each refusal of the properties leads to the next set.
func (c *client) Subscribe(ctx context.Context, s bmc.Subscription) (string, error) {
	collection, err := c.subscriptionsURI(ctx, "Subscribe")
	if err != nil {
		return "", err
	}
	var first error
	for _, more := range []map[string]any{
		{},
		// iDRAC 8 and 9 up to firmware 3, iLO 4 and 5 require the deprecated
		// EventTypes (DSP2046, EventDestination 1.5).
		{"EventTypes": []string{"Alert"}},
		{"SubscriptionType": "RedfishEvent", "EventFormatType": "Event"},
	} {
		body := map[string]any{"Destination": s.Destination, "Protocol": "Redfish", "Context": s.Context}
		for k, v := range more {
			body[k] = v
		}
		if len(s.Headers) > 0 {
			headers := []map[string]string{}
			for _, h := range s.Headers {
				headers = append(headers, map[string]string{h.Name: h.Value})
			}
			body["HttpHeaders"] = headers
		}
		a, err := c.do(ctx, http.MethodPost, collection, body, nil)
		if err == nil {
			return c.newSubscriptionID(ctx, collection, a, s)
		}
		if first == nil {
			first = c.redactHeaders(err, s.Headers)
		}
		if !refusesProperties(err) {
			break
		}
	}
	return "", first
}

// refusesProperties reports whether a 400 is about the properties of the request,
// or gives no cause.
func refusesProperties(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.status == http.StatusBadRequest &&
		(e.has("PropertyMissing", "CreateFailedMissingReqProperties", "PropertyUnknown", "PropertyNotWritable", "PropertyValueTypeError") ||
			!slices.ContainsFunc(e.ids, func(id string) bool { return id != "" && id != "GeneralError" }))
}

// redactHeaders removes the values of the subscriber's HTTP headers from an error,
// because some services repeat them. They may hold the receiver's secrets.
func (c *client) redactHeaders(err error, headers []bmc.Header) error {
	e := new(statusError)
	if !errors.As(err, &e) {
		return err
	}
	for _, h := range headers {
		if h.Value != "" {
			e.text = strings.ReplaceAll(e.text, h.Value, "…")
		}
	}
	return err
}

// newSubscriptionID returns the ID of the subscription that a response has
// created.
func (c *client) newSubscriptionID(ctx context.Context, collection string, a response, s bmc.Subscription) (string, error) {
	var d eventDestination
	_ = decode(a.body, &d) // a 201 may have no body
	for _, uri := range []string{a.header.Get("Location"), d.URI} {
		if uri != "" && lastSegment(uri) != "" {
			return lastSegment(uri), nil
		}
	}
	// The response names neither: choose the newest that matches.
	uris, err := c.members(ctx, collection)
	if err != nil {
		return "", err
	}
	for _, uri := range slices.Backward(uris) {
		var d eventDestination
		if _, err := c.get(ctx, uri, &d); err == nil && d.Destination == s.Destination && d.Context == s.Context {
			return lastSegment(uri), nil
		}
	}
	return "", fmt.Errorf("redfish: subscribe: the BMC accepted it, and does not show it")
}

// Unsubscribe deletes a subscription. It returns no error if there is none.
func (c *client) Unsubscribe(ctx context.Context, id string) error {
	collection, err := c.subscriptionsURI(ctx, "Unsubscribe")
	if err != nil {
		return err
	}
	uri := strings.TrimRight(collection, "/") + "/" + id
	_, err = c.deleteResource(ctx, uri, nil)
	if isNotFound(err) {
		return nil
	}
	return err
}

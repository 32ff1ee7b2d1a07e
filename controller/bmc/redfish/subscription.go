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

// destination is what the driver reads of an EventDestination.
type destination struct {
	URI         string `json:"@odata.id"`
	ID          string `json:"Id"`
	Destination string `json:"Destination"`
	Context     string `json:"Context"`
	Type        string `json:"SubscriptionType"`
}

// subscriptions is the collection of the event service.
func (c *client) subscriptions(ctx context.Context, verb string) (string, error) {
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

// Subscriptions lists the subscriptions, but for streams: those live as long as
// the connection of who reads them.
func (c *client) Subscriptions(ctx context.Context) ([]bmc.Subscription, error) {
	collection, err := c.subscriptions(ctx, "Subscriptions")
	if err != nil {
		return nil, err
	}
	uris, err := c.members(ctx, collection)
	if err != nil {
		return nil, err
	}
	var all []bmc.Subscription
	for _, uri := range uris {
		var d destination
		if _, err := c.get(ctx, uri, &d); notFound(err) {
			continue // it has ended meanwhile
		} else if err != nil {
			return nil, err
		}
		if d.Type == "SSE" {
			continue
		}
		all = append(all, bmc.Subscription{ID: idOf(uri), Destination: d.Destination, Context: d.Context})
	}
	return all, nil
}

// idOf is the last part of a resource's URI, by which Subscriptions and
// Unsubscribe know it; almost always it is the resource's Id.
func idOf(uri string) string { return path.Base(strings.TrimRight(local(uri), "/")) }

// Subscribe makes a subscription. Services differ on what they require beside the
// destination and the protocol, and refuse before they act: so more is said
// when less is refused for its properties.
func (c *client) Subscribe(ctx context.Context, s bmc.Subscription) (string, error) {
	collection, err := c.subscriptions(ctx, "Subscribe")
	if err != nil {
		return "", err
	}
	var first error
	for _, more := range []map[string]any{
		{},
		// iDRAC 8 and 9 up to firmware 3, iLO 4 and 5: "EventTypes" is required,
		// though deprecated (DSP2046, EventDestination 1.5).
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
			return c.subscribed(ctx, collection, a, s)
		}
		if first == nil {
			first = c.withoutHeaders(err, s.Headers)
		}
		if !aboutProperties(err) {
			break
		}
	}
	return "", first
}

// aboutProperties reports whether a 400 asks for other properties.
func aboutProperties(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.status == http.StatusBadRequest &&
		(e.has("PropertyMissing", "CreateFailedMissingReqProperties", "PropertyUnknown", "PropertyNotWritable", "PropertyValueTypeError") ||
			!slices.ContainsFunc(e.ids, func(id string) bool { return id != "" && id != "GeneralError" }))
}

// withoutHeaders keeps what a subscriber's headers hold out of an error, which
// some services repeat: they are for the receiver's eyes alone.
func (c *client) withoutHeaders(err error, headers []bmc.Header) error {
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

// subscribed finds out what a new subscription is called.
func (c *client) subscribed(ctx context.Context, collection string, a answer, s bmc.Subscription) (string, error) {
	var d destination
	_ = decode(a.body, &d) // a 201 may have no body
	for _, uri := range []string{a.header.Get("Location"), d.URI} {
		if uri != "" && idOf(uri) != "" {
			return idOf(uri), nil
		}
	}
	// It tells nothing: the latest of those that look so.
	uris, err := c.members(ctx, collection)
	if err != nil {
		return "", err
	}
	for _, uri := range slices.Backward(uris) {
		var d destination
		if _, err := c.get(ctx, uri, &d); err == nil && d.Destination == s.Destination && d.Context == s.Context {
			return idOf(uri), nil
		}
	}
	return "", fmt.Errorf("redfish: subscribe: the BMC accepted it, and does not show it")
}

// Unsubscribe ends a subscription.
func (c *client) Unsubscribe(ctx context.Context, id string) error {
	collection, err := c.subscriptions(ctx, "Unsubscribe")
	if err != nil {
		return err
	}
	uri := strings.TrimRight(collection, "/") + "/" + id
	_, err = c.remove(ctx, uri, nil)
	if notFound(err) {
		return nil
	}
	return err
}

package bmc

import "context"

// Subscriber is a Client that subscribes to the BMC's events. Every Client of a
// Pool implements it; its methods return an UnsupportedError if the BMC has no
// event service.
type Subscriber interface {
	// Subscriptions lists all subscriptions, including those of other clients.
	// Headers are empty: BMCs do not show them.
	Subscriptions(ctx context.Context) ([]Subscription, error)
	// Subscribe creates a subscription, even if an equal one exists, and returns
	// the BMC's ID of it.
	Subscribe(ctx context.Context, s Subscription) (id string, err error)
	// Unsubscribe deletes a subscription. A missing one is no error.
	Unsubscribe(ctx context.Context, id string) error
}

// Subscription is a receiver of the BMC's events.
type Subscription struct {
	ID          string   // the BMC's ID
	Destination string   // URL
	Context     string   // chosen by the subscriber and sent with each event
	Headers     []Header // sent with each event; they may hold secrets
}

// Header is an HTTP header.
type Header struct{ Name, Value string }

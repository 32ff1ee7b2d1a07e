package bmc

import "context"

// Subscriber is a Client whose BMC posts its events to who has subscribed to
// them. Every Client of a Pool is one; where the BMC has no such thing its methods
// fail with an UnsupportedError.
type Subscriber interface {
	// Subscriptions lists those that are there, whoever made them. Headers are
	// left out: BMCs do not show them.
	Subscriptions(ctx context.Context) ([]Subscription, error)
	// Subscribe makes one more and returns the BMC's ID of it, also where the
	// same is there already.
	Subscribe(ctx context.Context, s Subscription) (id string, err error)
	// Unsubscribe ends one; one that is not there is no error.
	Unsubscribe(ctx context.Context, id string) error
}

// Subscription is somebody to whom a BMC posts its events.
type Subscription struct {
	ID          string   // the BMC's
	Destination string   // URL
	Context     string   // the subscriber's own, sent along
	Headers     []Header // sent along; they may hold secrets
}

// Header is a header of HTTP.
type Header struct{ Name, Value string }

package redfish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The topics that the driver records workarounds under.
const (
	topicETag           = "ETag"
	topicBootOverride   = "boot override"
	topicPersistentBoot = "persistent boot override"
	topicBootTarget     = "boot from virtual media"
	topicHTTPBoot       = "boot by HTTP"
	topicMediaSlot      = "virtual media slot"
	topicInsertMedia    = "virtual media"
	topicMediaProtocol  = "virtual media by"
	topicMediaDetached  = "virtual media detached"
	topicPower          = "power"
	topicReset          = "reset"
)

// variant is one of several requests that have the same effect.
type variant struct {
	name string
	try  func() (response, error)
}

// tryVariants runs the variants until one is not refused: first the one recorded
// for this BMC, then the others in order. refused reports whether an error means
// that the next variant may succeed; any other error ends the search. The variant
// that succeeds is recorded. When all are refused, the error is that of the first
// one tried.
func (c *client) tryVariants(topic string, variants []variant, refused func(error) bool) (response, error) {
	known := c.workarounds.Variant(topic)
	var (
		first error
		tried bool
	)
	try := func(v variant) (response, error, bool) {
		a, err := v.try()
		if err == nil {
			c.workarounds.Record(bmc.Workaround{Topic: topic, Variant: v.name, Nonstandard: v.name != variants[0].name})
			return a, nil, true
		}
		if !tried {
			first, tried = err, true
		}
		return a, err, !refused(err)
	}
	for _, v := range variants {
		if v.name == known {
			if a, err, done := try(v); done {
				return a, err
			}
		}
	}
	for _, v := range variants {
		if v.name != known {
			if a, err, done := try(v); done {
				return a, err
			}
		}
	}
	return response{}, first
}

const (
	// busyLimit bounds how long one request is repeated while the BMC is busy.
	// Longer waits, such as for the end of a POST, are left to the caller.
	busyLimit   = 30 * time.Second
	busyWait    = 2 * time.Second
	maxBusyWait = 8 * time.Second
)

// retryBusy repeats a request while the BMC answers bmc.ErrBusy, for at most
// busyLimit.
func (c *client) retryBusy(ctx context.Context, do func() (response, error)) (response, error) {
	began := c.clock.Now()
	for wait := busyWait; ; wait = min(2*wait, maxBusyWait) {
		a, err := do()
		if !errors.Is(err, bmc.ErrBusy) || c.clock.Since(began)+wait > busyLimit {
			return a, err
		}
		if e := c.sleep(ctx, wait); e != nil {
			return a, fmt.Errorf("%w: %w", err, e)
		}
	}
}

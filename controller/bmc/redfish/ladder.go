package redfish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// What lessons are about.
const (
	aboutTags     = "ETag"
	aboutBoot     = "boot override"
	aboutStanding = "boot override for good"
	aboutTarget   = "boot from virtual media"
	aboutURL      = "boot by HTTP"
	aboutSlot     = "virtual media slot"
	aboutInsert   = "virtual media"
	aboutProtocol = "virtual media by"
	aboutDetached = "virtual media detached"
	aboutLogin    = "login"
	aboutPower    = "power"
	aboutReset    = "reset"
)

// way is one of several ways to do the same.
type way struct {
	name string
	do   func() (answer, error)
}

// climb does something in the first way that is not refused: that which was
// found to be the right one for this BMC, then the others in their order. When
// all are refused, the error is that of the first one tried.
func (c *client) climb(topic string, ways []way, refused func(error) bool) (answer, error) {
	known := c.lessons.Way(topic)
	var (
		first error
		tried bool
	)
	try := func(w way) (answer, error, bool) {
		a, err := w.do()
		if err == nil {
			c.lessons.Learn(bmc.Lesson{Topic: topic, Way: w.name, Odd: w.name != ways[0].name})
			return a, nil, true
		}
		if !tried {
			first, tried = err, true
		}
		return a, err, !refused(err)
	}
	for _, w := range ways {
		if w.name == known {
			if a, err, done := try(w); done {
				return a, err
			}
		}
	}
	for _, w := range ways {
		if w.name != known {
			if a, err, done := try(w); done {
				return a, err
			}
		}
	}
	return answer{}, first
}

const (
	// busyLimit is how long a request waits for a BMC that is busy. What takes
	// longer, such as a POST, is its caller's to wait for.
	busyLimit    = 30 * time.Second
	busyWait     = 2 * time.Second
	busyWaitMost = 8 * time.Second
)

// patiently does something until the BMC does not answer that it is busy.
func (c *client) patiently(ctx context.Context, do func() (answer, error)) (answer, error) {
	began := c.clock.Now()
	for wait := busyWait; ; wait = min(2*wait, busyWaitMost) {
		a, err := do()
		if !errors.Is(err, bmc.ErrBusy) || c.clock.Since(began)+wait > busyLimit {
			return a, err
		}
		if e := c.sleep(ctx, wait); e != nil {
			return a, fmt.Errorf("%w: %w", err, e)
		}
	}
}

// Package clientclock is a lab's clock for tests of programs that wait between their requests to
// the lab's servers.
package clientclock

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// Clock is a lab's clock as that of a program that waits between its requests: a wait lets the
// lab jump to its end. From there, and from a response on, the lab does not jump until the next
// request has left (see Trace): on a busy machine the program may need more time for that than the
// lab takes for silence.
type Clock struct {
	k8sclock.RealClock
	lab *clock.Clock

	mu    sync.Mutex
	leave func() // ends the work in flight since the last wait or response; nil: none
}

// New returns the clock of one client.
func New(lab *clock.Clock) *Clock { return &Clock{lab: lab} }

// Now returns the lab's time.
func (c *Clock) Now() time.Time { return c.lab.Now() }

// Since returns the lab's time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.lab.Since(t) }

// maxHold is how long the lab waits for a request after a wait: there may be none.
const maxHold = 50 * time.Millisecond

// After begins a wait.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.release()
	out := make(chan time.Time, 1)
	c.lab.AfterFunc(d, func() { // it is in flight until it returns
		c.hold()
		out <- c.lab.Now()
	})
	return out
}

// Trace returns a context for the client's requests.
func (c *Clock) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: c.hold,
		WroteRequest:         func(httptrace.WroteRequestInfo) { c.release() },
	})
}

// hold keeps the lab from jumping until release, or for maxHold.
func (c *Clock) hold() {
	leave := c.lab.Enter()
	time.AfterFunc(maxHold, leave)
	c.mu.Lock()
	before := c.leave
	c.leave = leave
	c.mu.Unlock()
	if before != nil {
		before()
	}
}

// release ends what hold has begun.
func (c *Clock) release() {
	c.mu.Lock()
	leave := c.leave
	c.leave = nil
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
}

package redfish

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/redfish/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const (
	// keepAliveInterval is the time between the comments that keep a stream alive, in
	// client time.
	keepAliveInterval = time.Minute
	// streamWriteTimeout is how long a client may take to read an event that does not
	// fit into the buffers on the way, in real time.
	streamWriteTimeout = 5 * time.Second
)

// stream sends events as they happen, until the client disconnects, the subscription
// is deleted or the service ends (DSP0266, "Server-sent events"). The subscription
// exists as long as the stream. No change of a host waits for a stream: the stream
// reads from the host's buffer and ends when it falls too far behind.
func (x *request) stream(resource.View) {
	if a := x.r.Header["Accept"]; len(a) > 0 && !accepts(a, resource.EventStreamType) {
		x.sendError(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept"))
		return
	}
	sub, ok := x.streamSubscription()
	if !ok {
		return
	}
	if x.r.Method == http.MethodHead {
		x.startStream()
		return
	}
	if x.host.BMC().Subscribers.Off {
		x.sendError(http.StatusServiceUnavailable, message.ServiceDisabled.With(resource.EventServiceURI))
		return
	}
	sub.Stream, sub.Owner, sub.Context = true, x.actor.Account, "Server-sent events"
	sub.Destination = "redfish-sse://" + x.r.RemoteAddr
	buffer := x.s.events.Buffer(x.host) // before the subscription, so that the stream misses no event
	evs, err := x.host.ApplyBMC(x.context(), bmc.Subscribe{Subscription: sub})
	if err != nil {
		x.fail(err)
		return
	}
	sub.ID = resource.SubscriptionID(evs)
	x.streamEvents(buffer, &sub)
	x.startInFlight()
	// The subscription ends with the stream, whatever ended that. An error means that
	// it was deleted before.
	_, _ = x.host.ApplyBMC(context.WithoutCancel(x.r.Context()), bmc.Unsubscribe{ID: sub.ID})
}

// streamSubscription returns the subscription that the query parameters describe. When
// they are invalid, it sends the error response and returns false.
func (x *request) streamSubscription() (bmc.Subscription, bool) {
	var sub bmc.Subscription
	filter, includeOrigin, err := streamQuery(x.r.URL.RawQuery)
	if err != nil {
		x.sendQueryError(err)
		return sub, false
	}
	sub.IncludeOriginOfCondition = includeOrigin
	if err := applyFilter(&sub, filter, x.match.Tree); err != nil {
		x.sendQueryError(err)
		return sub, false
	}
	return sub, true
}

// streamEvents writes events until the stream ends. The request is not in flight
// meanwhile.
func (x *request) streamEvents(buffer *event.Buffer, to *bmc.Subscription) {
	cursor := buffer.Before(to.ID)
	number, _, _ := strings.Cut(x.r.Header.Get("Last-Event-ID"), ".")
	if last, err := strconv.ParseUint(number, 10, 64); err == nil {
		cursor = min(cursor, last) // the events that the client has missed come first
	}
	x.startStream()
	if !x.writeToStream(": open\n\n") {
		return
	}
	x.writeJournal()
	x.endInFlight()
	var keepAlive <-chan time.Time
	if x.s.clock != nil {
		t := x.s.clock.NewClientTicker(keepAliveInterval)
		defer t.Stop()
		keepAlive = t.C()
	}
	for first := true; ; first = false {
		all, lost, added := buffer.After(cursor)
		if lost && !first {
			x.s.log.Warn("stream dropped: its client does not keep up", "bmc", localAddress(x.r), "subscription", to.ID)
			return
		}
		for i := range all {
			cursor = all[i].Number
			for n, body := range x.s.events.Payloads(&all[i], to) {
				id := strconv.FormatUint(cursor, 10)
				if n > 0 { // several reports of one event have different IDs
					id += "." + strconv.Itoa(n)
				}
				if !x.writeToStream("id: " + id + "\ndata: " + string(body) + "\n\n") {
					return
				}
			}
		}
		if !x.mayStream(to) {
			return
		}
		select {
		case <-added:
		case <-keepAlive:
			if !x.writeToStream(": alive\n\n") {
				return
			}
		case <-x.r.Context().Done():
			return
		case <-x.s.events.Closed():
			return
		}
	}
}

// mayStream reports whether a stream may go on: its subscription exists, and its
// owner's account exists and is enabled. The end of the session does not end the stream:
// while a stream is open its client has no reason to use the session.
func (x *request) mayStream(to *bmc.Subscription) bool {
	b := x.host.BMC()
	_, exists := resource.Subscription(b, to.ID)
	owner := resource.Find(b.Accounts, to.Owner, func(a bmc.Account) string { return a.ID })
	return exists && owner.Enabled
}

// startStream sends the headers of a stream.
func (x *request) startStream() {
	h := x.w.Header()
	h["Content-Type"], h["Allow"] = []string{string(resource.EventStreamType)}, x.match.Allow
	h["X-Accel-Buffering"] = []string{"no"} // keeps proxies from buffering the stream
	x.status = http.StatusOK
	x.w.WriteHeader(x.status)
}

// writeToStream writes text to a stream. It returns false when the client is gone or
// does not read within streamWriteTimeout.
func (x *request) writeToStream(text string) bool {
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(clock.Wall().Add(streamWriteTimeout)) // a writer without deadlines, as in tests, does not block
	if _, err := x.w.Write([]byte(text)); err != nil {
		return false
	}
	return c.Flush() == nil
}

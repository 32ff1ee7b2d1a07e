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
	// signOfLife is how long a stream is silent at most, in lab time.
	signOfLife = time.Minute
	// slowest is how long, in real time, a client may take to read an event
	// that does not fit into the buffers on the way.
	slowest = 5 * time.Second
)

// stream answers with events as they happen, until the client goes, the
// subscription is deleted or the service ends (DSP0266, "Server-sent events").
// The subscription is there as long as the stream is. Nothing waits for a
// stream: it reads from the host's buffer, and has to keep up.
func (x *request) stream(resource.View) {
	if a := x.r.Header["Accept"]; len(a) > 0 && !accepts(a, resource.EventStreamType) {
		x.refuse(http.StatusNotAcceptable, message.HeaderInvalid.With("Accept"))
		return
	}
	want, ok := x.streamSubscription()
	if !ok {
		return
	}
	if x.r.Method == http.MethodHead {
		x.startStream()
		return
	}
	if x.host.BMC().Subscribers.Off {
		x.refuse(http.StatusServiceUnavailable, message.ServiceDisabled.With(resource.EventServiceURI))
		return
	}
	want.Stream, want.Owner, want.Context = true, x.actor.Account, "Server-sent events"
	want.Destination = "redfish-sse://" + x.r.RemoteAddr
	buffer := x.s.events.Buffer(x.host) // before the subscription, so that the stream misses no event
	evs, err := x.host.ApplyBMC(x.context(), bmc.Subscribe{Subscription: want})
	if err != nil {
		x.fail(err)
		return
	}
	want.ID = resource.SubscriptionID(evs)
	x.streamEvents(buffer, &want)
	x.enter()
	// Whatever ended the stream, the subscription ends with it; it may have
	// ended before.
	_, _ = x.host.ApplyBMC(context.WithoutCancel(x.r.Context()), bmc.Unsubscribe{ID: want.ID})
}

// streamSubscription is the subscription that the query asks for; false when it was refused.
func (x *request) streamSubscription() (bmc.Subscription, bool) {
	var want bmc.Subscription
	f, whole, err := streamQuery(x.r.URL.RawQuery)
	if err != nil {
		x.refuseQuery(err)
		return want, false
	}
	want.IncludeOriginOfCondition = whole
	if err := narrow(&want, f, x.match.Tree); err != nil {
		x.refuseQuery(err)
		return want, false
	}
	return want, true
}

// streamEvents writes events until there is a reason to end.
func (x *request) streamEvents(buffer *event.Buffer, to *bmc.Subscription) {
	cursor := buffer.Before(to.ID)
	number, _, _ := strings.Cut(x.r.Header.Get("Last-Event-ID"), ".")
	if last, err := strconv.ParseUint(number, 10, 64); err == nil {
		cursor = min(cursor, last) // what it has missed comes first
	}
	x.startStream()
	if !x.writeToStream(": open\n\n") {
		return
	}
	x.writeJournal()
	x.leave()
	var life <-chan time.Time
	if x.s.clock != nil {
		t := x.s.clock.NewTicker(signOfLife)
		defer t.Stop()
		life = t.C()
	}
	for first := true; ; first = false {
		all, lost, added := buffer.After(cursor)
		if lost && !first {
			x.s.log.Warn("stream dropped: its client does not keep up", "bmc", local(x.r), "subscription", to.ID)
			return
		}
		for i := range all {
			cursor = all[i].Number
			for n, body := range x.s.events.Payloads(&all[i], to) {
				id := strconv.FormatUint(cursor, 10)
				if n > 0 { // of several reports, each has an id of its own
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
		case <-life:
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

// mayStream says whether a stream may go on: its subscription is there, and its
// owner's account is. A session that ends does not end it: while a stream is
// open its client has no reason to use the session.
func (x *request) mayStream(to *bmc.Subscription) bool {
	b := x.host.BMC()
	_, there := resource.Subscription(b, to.ID)
	owner := resource.Find(b.Accounts, to.Owner, func(a bmc.Account) string { return a.ID })
	return there && owner.Enabled
}

// startStream sends the headers of a stream.
func (x *request) startStream() {
	h := x.w.Header()
	h["Content-Type"], h["Allow"] = []string{string(resource.EventStreamType)}, x.match.Allow
	h["X-Accel-Buffering"] = []string{"no"} // proxies shall pass it on at once
	x.status = http.StatusOK
	x.w.WriteHeader(x.status)
}

// writeToStream writes to a stream; false when the client is gone, or does not read.
func (x *request) writeToStream(text string) bool {
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(clock.Wall().Add(slowest)) // a writer without deadlines does not wait either
	if _, err := x.w.Write([]byte(text)); err != nil {
		return false
	}
	return c.Flush() == nil
}

// CloseStreams ends all streams, and lets no further one live: the service ends.
func (s *Service) CloseStreams() { s.events.Close() }

// Notify tells the subscribers of a host what has happened to it: those with a
// stream at once, for the others the events to be posted are returned. It must
// be called step by step in their order.
func (s *Service) Notify(h resource.Host, st event.Change) []event.Delivery {
	return s.events.Notify(h, st)
}

package event

import (
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// EventsRetained is the number of events of one host that a Buffer holds: a
// stream that lags further behind is dropped, and a client that reconnects with
// an older Last-Event-ID misses events.
const EventsRetained = 64

// Buffer holds the latest events of one host, and wakes the event streams when
// there is a new one. It does not wait for a stream: one that lags more than
// EventsRetained events behind has lost some.
type Buffer struct {
	mu     sync.Mutex
	events []Notification // oldest first
	newest uint64         // number of the newest event
	added  chan struct{}  // closed when an event is added
}

func newBuffer() *Buffer { return &Buffer{added: make(chan struct{})} }

// add appends an event, drops the oldest when the buffer is full, and wakes the
// streams.
func (b *Buffer) add(n Notification) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) == EventsRetained {
		b.events = append(b.events[:0:0], b.events[1:]...)
	}
	b.events = append(b.events, n)
	b.newest = n.Number
	close(b.added)
	b.added = make(chan struct{})
}

// After returns the events that follow the one with a number; lost reports
// whether the buffer has dropped some of them. The channel added is closed when
// there is another event.
func (b *Buffer) After(number uint64) (events []Notification, lost bool, added <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.events {
		if b.events[i].Number > number {
			return b.events[i:len(b.events):len(b.events)], i == 0 && b.events[0].Number > number+1 && len(b.events) == EventsRetained, b.added
		}
	}
	return nil, false, b.added
}

// Before returns the number that precedes the event in which a subscription was
// created, so that After returns that event first. It returns the number of the
// newest event when no event in the buffer created the subscription.
func (b *Buffer) Before(subscriptionID string) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range slices.Backward(b.events) {
		if n.subscribed == subscriptionID {
			return n.Number - 1
		}
	}
	return b.newest
}

// buffers holds the buffer of each host that has, or had, an event stream.
type buffers struct {
	mu     sync.Mutex
	byHost map[resource.Host]*Buffer
}

// find returns the buffer of a host; nil when the host has had no event stream.
func (b *buffers) find(h resource.Host) *Buffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byHost[h]
}

// open returns the buffer of a host, and creates it for the host's first event
// stream.
func (b *buffers) open(h resource.Host) *Buffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byHost[h] == nil {
		b.byHost[h] = newBuffer()
	}
	return b.byHost[h]
}

// Package event makes the Redfish events of what happens to hosts, and keeps the
// last of them for streams.
package event

import (
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// EventsRetained are as many events of a host as a stream may lag behind, and as a
// client that comes back is told of.
const EventsRetained = 64

// Feed keeps the last events of one host, and wakes the streams that tell them.
// A stream that lags too far behind has missed some: it is not waited for.
type Feed struct {
	mu     sync.Mutex
	last   []Notification // oldest first
	number uint64         // of the newest
	News   chan struct{}  // closed when there is something new
}

// hubs are those of the hosts that have, or had, a stream.
type hubs struct {
	mu     sync.Mutex
	of     map[resource.Host]*Feed
	Closed chan struct{} // when the streams have to end
	once   sync.Once
}

// Get is the hub of a host; open is for one that has had no stream so far.
func (h *hubs) Get(host resource.Host, open bool) *Feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.of[host]
	if u == nil && open {
		u = &Feed{News: NewNews()}
		h.of[host] = u
	}
	return u
}

func NewNews() chan struct{} { return make(chan struct{}) }

// Add keeps an event and wakes the streams.
func (u *Feed) Add(t Notification) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == EventsRetained {
		u.last = append(u.last[:0:0], u.last[1:]...)
	}
	u.last = append(u.last, t)
	u.number = t.Number
	close(u.News)
	u.News = NewNews()
}

// After is what comes after the event with a number, and whether something of
// it is missing. When there is nothing, news tells that there is.
func (u *Feed) After(number uint64) (all []Notification, lost bool, news <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.last {
		if u.last[i].Number > number {
			return u.last[i:len(u.last):len(u.last)], i == 0 && u.last[0].Number > number+1 && len(u.last) == EventsRetained, u.News
		}
	}
	return nil, false, u.News
}

// Notifier tells subscribers what happens to hosts. It is safe for concurrent use.
type Notifier struct {
	tree     *resource.Tree
	vendors  *vendor.Vendors
	renderer *render.Renderer
	Hubs     hubs
}

// NewNotifier returns Events.
func NewNotifier(t *resource.Tree, v *vendor.Vendors, r *render.Renderer) *Notifier {
	return &Notifier{tree: t, vendors: v, renderer: r, Hubs: hubs{of: map[resource.Host]*Feed{}, Closed: make(chan struct{})}}
}

// Notify tells the subscribers of a host what has happened to it: those with a
// stream at once, for the others the events to be posted are returned. It must
// be called step by step in their order.
func (s *Notifier) Notify(h resource.Host, st Change) []Delivery {
	u := s.Hubs.Get(h, false)
	if u == nil && len(st.BMC.Subscribers.List) == 0 {
		return nil
	}
	t := Notification{Number: st.Number, opens: resource.SubscriptionID(st.Events), at: &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: st.Machine, BMC: st.BMC, Now: st.At}}
	if !st.BMC.Subscribers.Off {
		t.records = s.records(h, st)
		for _, ev := range st.Events {
			if r, ok := ev.(machine.MetricReportReady); ok {
				t.reports = append(t.reports, r.Report)
			}
		}
	}
	if u != nil {
		u.Add(t)
	}
	var out []Delivery
	for i := range st.BMC.Subscribers.List {
		to := &st.BMC.Subscribers.List[i]
		if to.Stream {
			continue
		}
		for _, body := range s.Payloads(&t, to) {
			out = append(out, Delivery{Subscription: to.ID, At: st.At, Body: body})
		}
	}
	return out
}

// Close ends all streams, and lets no further one live.
func (s *Notifier) Close() {
	s.Hubs.once.Do(func() { close(s.Hubs.Closed) })
}

// Opened is the number of the event before the one that tells of a new
// subscription, or of the newest when none does.
func (u *Feed) Opened(id string) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range slices.Backward(u.last) {
		if t.opens == id {
			return t.Number - 1
		}
	}
	return u.number
}

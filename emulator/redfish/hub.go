// Package event makes the Redfish events of what happens to hosts, and keeps the
// last of them for streams.
package redfish

import (
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// keptEvents are as many events of a host as a stream may lag behind, and as a
// client that comes back is told of.
const keptEvents = 64

// hub keeps the last events of one host, and wakes the streams that tell them.
// A stream that lags too far behind has missed some: it is not waited for.
type hub struct {
	mu     sync.Mutex
	last   []happening   // oldest first
	number uint64        // of the newest
	news   chan struct{} // closed when there is something new
}

// hubs are those of the hosts that have, or had, a stream.
type hubs struct {
	mu     sync.Mutex
	of     map[Host]*hub
	closed chan struct{} // when the streams have to end
	once   sync.Once
}

// get is the hub of a host; open is for one that has had no stream so far.
func (h *hubs) get(host Host, open bool) *hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.of[host]
	if u == nil && open {
		u = &hub{news: newNews()}
		h.of[host] = u
	}
	return u
}

func newNews() chan struct{} { return make(chan struct{}) }

// add keeps an event and wakes the streams.
func (u *hub) add(t happening) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == keptEvents {
		u.last = append(u.last[:0:0], u.last[1:]...)
	}
	u.last = append(u.last, t)
	u.number = t.number
	close(u.news)
	u.news = newNews()
}

// after is what comes after the event with a number, and whether something of
// it is missing. When there is nothing, news tells that there is.
func (u *hub) after(number uint64) (all []happening, lost bool, news <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.last {
		if u.last[i].number > number {
			return u.last[i:len(u.last):len(u.last)], i == 0 && u.last[0].number > number+1 && len(u.last) == keptEvents, u.news
		}
	}
	return nil, false, u.news
}

// Events tells subscribers what happens to hosts. It is safe for concurrent use.
type Events struct {
	tree     *Tree
	vendors  *Vendors
	renderer *Renderer
	hubs     hubs
}

// NewEvents returns Events.
func NewEvents(t *Tree, v *Vendors, r *Renderer) *Events {
	return &Events{tree: t, vendors: v, renderer: r, hubs: hubs{of: map[Host]*hub{}, closed: make(chan struct{})}}
}

// Tell tells the subscribers of a host what has happened to it: those with a
// stream at once, for the others the events to be posted are returned. It must
// be called step by step in their order.
func (s *Events) Tell(h Host, st Step) []Letter {
	u := s.hubs.get(h, false)
	if u == nil && len(st.BMC.Subscribers.List) == 0 {
		return nil
	}
	t := happening{number: st.Number, opens: subscribed(st.Events), at: &snapshot{h: h, d: h.Dialect(), m: st.Machine, b: st.BMC, now: st.At}}
	if !st.BMC.Subscribers.Off {
		t.records = s.records(h, st)
		for _, ev := range st.Events {
			if r, ok := ev.(machine.MetricReportReady); ok {
				t.reports = append(t.reports, r.Report)
			}
		}
	}
	if u != nil {
		u.add(t)
	}
	var out []Letter
	for i := range st.BMC.Subscribers.List {
		to := &st.BMC.Subscribers.List[i]
		if to.Stream {
			continue
		}
		for _, body := range s.payloads(&t, to) {
			out = append(out, Letter{Subscription: to.ID, At: st.At, Body: body})
		}
	}
	return out
}

// Close ends all streams, and lets no further one live.
func (s *Events) Close() {
	s.hubs.once.Do(func() { close(s.hubs.closed) })
}

// opened is the number of the event before the one that tells of a new
// subscription, or of the newest when none does.
func (u *hub) opened(id string) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range slices.Backward(u.last) {
		if t.opens == id {
			return t.number - 1
		}
	}
	return u.number
}

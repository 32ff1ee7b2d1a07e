// Package event makes the Redfish events of changes to a host (DSP0266,
// "Eventing"): it turns a change into event records, selects the records of each
// subscription by its filters, encodes the bodies, and buffers the latest events
// for event streams. It sends nothing: the rack posts the deliveries, and package
// redfish writes the streams.
package event

import (
	"sync"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Notifier makes the events of hosts for their subscribers. It is safe for
// concurrent use.
type Notifier struct {
	tree      *resource.Tree
	vendors   *vendor.Vendors
	renderer  *render.Renderer
	buffers   buffers
	closed    chan struct{}
	closeOnce sync.Once
}

// NewNotifier returns a Notifier for hosts that have the resources of a tree.
func NewNotifier(t *resource.Tree, v *vendor.Vendors, r *render.Renderer) *Notifier {
	return &Notifier{tree: t, vendors: v, renderer: r, buffers: buffers{byHost: map[resource.Host]*Buffer{}}, closed: make(chan struct{})}
}

// Buffer returns the event buffer of a host. From then on it receives each event
// of the host, so a stream opens it before it subscribes.
func (s *Notifier) Buffer(h resource.Host) *Buffer { return s.buffers.open(h) }

// Close ends all event streams, and each that is opened afterwards.
func (s *Notifier) Close() { s.closeOnce.Do(func() { close(s.closed) }) }

// Closed returns a channel that is closed when event streams have to end.
func (s *Notifier) Closed() <-chan struct{} { return s.closed }

// Notify adds the event of a change to the buffer of the host's streams, and
// returns the deliveries to subscribers with a destination. The changes of a host
// must be passed one at a time and in their order.
func (s *Notifier) Notify(h resource.Host, c Change) []Delivery {
	buffer := s.buffers.find(h)
	if buffer == nil && len(c.BMC.Subscribers.List) == 0 {
		return nil
	}
	n := Notification{Number: c.Number, subscribed: resource.SubscriptionID(c.Events), at: &resource.Snapshot{Host: h, Dialect: h.Dialect(), Machine: c.Machine, BMC: c.BMC, Now: c.At}}
	if !c.BMC.Subscribers.Off {
		n.records = s.records(h, c)
		for _, ev := range c.Events {
			if r, ok := ev.(machine.MetricReportReady); ok {
				n.reports = append(n.reports, r.Report)
			}
		}
	}
	if buffer != nil {
		buffer.add(n)
	}
	var out []Delivery
	for i := range c.BMC.Subscribers.List {
		to := &c.BMC.Subscribers.List[i]
		if to.Stream {
			continue
		}
		for _, body := range s.Payloads(&n, to) {
			out = append(out, Delivery{Subscription: to.ID, At: c.At, Body: body})
		}
	}
	return out
}

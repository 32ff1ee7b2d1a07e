package rack

import (
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/faults"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
)

// openFaults opens the rack's fault rules; replace says that the rack file has other
// rules than the last time.
func (l *Rack) openFaults(replace bool) (err error) {
	var names []string
	for _, h := range l.hosts {
		names = append(names, h.Name())
	}
	l.faults, err = faults.Open(faults.Config{
		Seed: l.definition.Seed, Rules: l.definition.Faults, Replace: replace, BMCs: names,
		Clock: l.clock, Store: faultStore{l}, Journal: l.journal, Log: l.log,
		Disconnect: l.connections.Reset,
		EndTask: func(t faults.HeldTask) error {
			h := l.byName[t.Host]
			if h == nil {
				return nil
			}
			return l.untilStored(func() error { return h.endHeldTask(t) })
		},
	})
	return err
}

// Faults lists the fault rules with their hits.
func (l *Rack) Faults() []fault.Listed { return l.faults.List() }

// AddFault adds a fault rule. It returns the rule with its ID when it is stored and
// in force.
func (l *Rack) AddFault(r fault.Rule) (fault.Rule, error) { return l.faults.Add(r) }

// RemoveFault removes a fault rule. Its error is fault.ErrUnknown when there is none
// with that ID.
func (l *Rack) RemoveFault(id string) error { return l.faults.Remove(id) }

// Waiting returns how many responses a fault delays now. They are sent when time
// goes on.
func (l *Rack) Waiting() int { return l.faults.Delayed() }

// Offline reports whether a fault rule keeps the BMC off the network.
func (h *Host) Offline() bool { return h.rack.faults.Offline(h.Name()) }

// datagramFault implements ipmi.Config.DatagramFault.
func (l *Rack) datagramFault(h ipmi.Host, way string) fault.Decision {
	return l.faults.Datagram(h.Name(), way)
}

// commandFault implements ipmi.Config.CommandFault.
func (l *Rack) commandFault(h ipmi.Host, netFn, cmd byte) fault.Decision {
	return l.faults.Command(h.Name(), netFn, cmd)
}

// recordFaulted counts a request that a rule has hit, and writes it into the
// journal.
func (l *Rack) recordFaulted(bmc int, e journal.Entry) {
	l.metrics.count(bmc, l.hosts[bmc].Dialect().Name, e.Method, e.Status, e.Took.Duration, e.In, e.Out)
	l.journal.Add(e)
}

// endHeldTask gives the BMC the end of a task that a rule withheld from it.
func (h *Host) endHeldTask(t faults.HeldTask) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.begin()
	t.Done.At = st.now
	st.released = []machine.Event{t.Done}
	return h.commit(st)
}

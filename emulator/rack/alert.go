package rack

import (
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
)

// alert sends an alert of a host's BMC, from the BMC's first address.
func (l *Rack) alert(h ipmi.Host, t ipmi.Trap) {
	x := outbound.Trap{
		Sender: h, To: t.To, Packet: t.Packet, Sequence: t.Sequence, Acknowledged: t.Acknowledged, Attempts: t.Attempts, Interval: t.Interval, Done: t.Done,
	}
	if all := h.BMC().Addresses(); len(all) > 0 {
		x.From = all[0]
	}
	l.trapper.Send(x)
}

// acknowledgeAlert notes that the receiver of an alert has acknowledged it.
func (l *Rack) acknowledgeAlert(h ipmi.Host, sequence uint16) { l.trapper.Acknowledge(h, sequence) }

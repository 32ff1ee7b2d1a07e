package lab

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

var errDown = errors.New("the BMC went down")

// Reach says how a BMC can be reached.
type Reach string

// The ways. Whatever speaks for a BMC asks Host.Reach before it answers.
const (
	Reachable Reach = "reachable"
	// Starting means that connections come about and services are not ready.
	Starting Reach = "starting"
	// Gone means that connections are reset and datagrams are not answered.
	Gone Reach = "gone"
)

// Reach says how the BMC can be reached now: as far as it is in its life, and
// no rule of what goes wrong keeps it from the network.
func (h *Host) Reach() Reach {
	switch l := h.BMC().Life; {
	case !l.Reachable() || h.Offline():
		return Gone
	case !l.Serves():
		return Starting
	}
	return Reachable
}

// follow does what events of the BMC ask for in the world: media that are
// ejected are removed, and who goes down has no connections and does no work.
// It holds h.mu.
func (h *Host) follow(evs []event.Event) {
	for _, ev := range evs {
		switch ev := ev.(type) {
		case bmc.MediaEjected:
			h.ejected(ev.Slot)
		case bmc.JobDue:
			h.carryOut(ev.Job)
		case bmc.LifeChanged:
			if ev.Phase == bmc.Offline || ev.Phase == bmc.NoPower {
				for _, cancel := range h.carried {
					cancel(errDown)
				}
				h.lab.conns.dropAt(h.index, ev.Phase == bmc.Offline, func(netip.AddrPort) bool { return true })
			}
		}
	}
}

// moved opens the doors of a BMC as its settings have them now, and resets the
// connections through those that are no more. It holds h.mu.
func (h *Host) moved() {
	for _, d := range h.lab.allDoors() {
		if err := d.set(h.index, h.BMC()); err != nil {
			h.lab.log.Error("BMC cannot be where it shall", "host", h.Name(), "err", err)
		}
	}
	h.lab.conns.dropAt(h.index, true, func(at netip.AddrPort) bool {
		x, ok := h.lab.doors.find(at)
		return !ok || x.host != h.index
	})
}

// connKey is where the connection of a request is, in its context.
type connKey struct{}

// withConn tells requests their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if of := bmcConnOf(c); of != nil {
		return context.WithValue(ctx, connKey{}, of)
	}
	return ctx
}

// bmcConnOf is the connection to a BMC below others.
func bmcConnOf(c net.Conn) *bmcConn {
	for {
		switch is := c.(type) {
		case *bmcConn:
			return is
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			return nil
		}
	}
}

// connOf is the connection of a request; nil when it did not come over one.
func connOf(ctx context.Context) *bmcConn {
	c, _ := ctx.Value(connKey{}).(*bmcConn)
	return c
}

// connState follows what the server does on a connection.
func connState(c net.Conn, s http.ConnState) {
	if s != http.StateIdle {
		return
	}
	if of := bmcConnOf(c); of != nil {
		of.answered()
	}
}

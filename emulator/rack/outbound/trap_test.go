package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// station receives traps.
type station struct {
	*net.UDPConn
	t *testing.T
}

func newStation(t *testing.T) station {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return station{c, t}
}

func (s station) port() uint16 { return s.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// next returns the next trap, and its source address.
func (s station) next() (string, netip.Addr) {
	s.t.Helper()
	if err := s.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	b := make([]byte, 100)
	n, from, err := s.ReadFromUDPAddrPort(b)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b[:n]), from.Addr().Unmap()
}

// none checks that no trap has come: datagrams on this computer arrive at once.
func (s station) none() {
	s.t.Helper()
	if err := s.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		s.t.Fatal(err)
	}
	if n, _, err := s.ReadFromUDPAddrPort(make([]byte, 100)); err == nil {
		s.t.Errorf("%d bytes came", n)
	}
}

var here, bmc1 = netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.64.0.1")

// outcome collects the results of a trap.
type outcome chan bool

func (c outcome) done(came bool) { c <- came }

func TestTrapsAreSent(t *testing.T) {
	s, c := newStation(t), clock.NewVirtual(origin)
	x := NewTrapper(TrapConfig{Clock: c, Port: s.port()})
	defer x.Stop()
	end := make(outcome, 1)
	x.Send(Trap{Sender: 1, From: bmc1, To: here, Packet: []byte("hot"), Attempts: 2, Interval: 3 * time.Second, Done: end.done})
	for n := range 2 {
		if text, from := s.next(); text != "hot" || from != bmc1 {
			t.Errorf("time %d: %q from %v", n+1, text, from)
		}
		if n == 0 {
			if err := c.Walk(t.Context(), 2*time.Second); err != nil {
				t.Fatal(err)
			}
			s.none()
		}
		if err := c.Walk(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if !<-end {
		t.Error("it has not come")
	}
	if err := c.Walk(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	s.none()
}

func TestTrapsAreAcknowledged(t *testing.T) {
	for _, comes := range []bool{true, false} {
		s, c := newStation(t), clock.NewVirtual(origin)
		x := NewTrapper(TrapConfig{Clock: c, Port: s.port()})
		end := make(outcome, 2)
		x.Send(Trap{Sender: 1, From: bmc1, To: here, Packet: []byte("hot"), Sequence: 7, Acknowledged: true, Attempts: 3, Interval: 3 * time.Second, Done: end.done})
		x.Send(Trap{Sender: 1, From: bmc1, To: here, Packet: []byte("twin"), Sequence: 7, Acknowledged: true, Attempts: 1, Done: func(came bool) {
			if came {
				t.Error("a trap with the number of another has come")
			}
		}})
		s.next()
		x.Acknowledge(2, 7) // this and the next acknowledge other traps
		x.Acknowledge(1, 8)
		if err := c.Walk(t.Context(), 3*time.Second); err != nil {
			t.Fatal(err)
		}
		s.next()
		if comes {
			x.Acknowledge(1, 7)
		} else {
			if err := c.Walk(t.Context(), 3*time.Second); err != nil {
				t.Fatal(err)
			}
			s.next()
		}
		if err := c.Walk(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		s.none()
		if got := <-end; got != comes {
			t.Errorf("acknowledged: %t, outcome: %t", comes, got)
		}
		x.Stop()
		if len(end) != 0 {
			t.Error("Done was called twice")
		}
	}
}

func TestTrapsOutsideLoopbackAreNotSent(t *testing.T) {
	s, c := newStation(t), clock.NewVirtual(origin)
	x := NewTrapper(TrapConfig{Clock: c, Port: s.port(), MaxPending: 2})
	end := make(outcome, 9)
	send := func(to netip.Addr, n uint16) {
		x.Send(Trap{Sender: 1, From: bmc1, To: to, Packet: []byte(fmt.Sprint(n)), Sequence: n, Acknowledged: true, Attempts: 1, Interval: time.Hour, Done: end.done})
	}
	send(netip.MustParseAddr("192.0.2.1"), 1)
	if <-end {
		t.Error("a trap has left this computer")
	}
	for n := range uint16(3) {
		send(here, 2+n)
	}
	if <-end {
		t.Error("one too many has come")
	}
	x.Stop()
	send(here, 9)
	if <-end {
		t.Error("one has come after the end")
	}
}

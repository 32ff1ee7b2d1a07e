package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
)

// Usual ports of IPMI, chosen as those of HTTPS are.
const (
	ipmiPort = 623
	ipmiAlt  = 6230
)

// receiveBuffer is how much may wait in a socket that all BMCs share, in bytes:
// the datagrams of a thousand clients that begin at the same time. The kernel
// gives less where it is told to.
const receiveBuffer = 4 << 20

// datagrams is a UDP socket that BMCs answer on.
type datagrams struct {
	*net.UDPConn
	at netip.AddrPort // of one BMC's own; else unspecified, with the port
}

var _ ipmi.Socket = (*datagrams)(nil)

// listenMail opens what IPMI of the BMCs is on, which are where web says.
func listenMail(ctx context.Context, web plan, spec string, last uint16) ([]*datagrams, plan, error) {
	p := web
	if !p.own {
		// TCP and UDP have ports of their own: a BMC has the same of both.
		socks, err := mailRow(ctx, p)
		if err != nil {
			return nil, plan{}, fmt.Errorf("lab: %d UDP ports in a row for IPMI of the BMCs: %w: use other ports with --listen ADDRESS:FIRSTPORT", p.hosts, err)
		}
		return socks, p, nil
	}
	ports := []uint16{last}
	switch {
	case last != 0 && strings.HasSuffix(spec, ":0"):
		ports = append(ports, 0) // any will do, but that one is known
	case last != 0:
	case spec == "":
		ports = []uint16{ipmiPort}
		for i := range altPorts {
			ports = append(ports, uint16(ipmiAlt+i))
		}
	}
	var err error
	for _, p.first = range ports {
		var sock *datagrams
		if sock, err = mailOnLoopback(ctx, p.first); err == nil {
			p.first = sock.at.Port()
			return []*datagrams{sock}, p, nil
		}
		if !taken(err) {
			break
		}
	}
	if len(ports) == 1 && taken(err) {
		return nil, plan{}, fmt.Errorf("lab: UDP port %d, at which IPMI of the BMCs shall be: %w: end what holds it, or %s", ports[0], err, alternative)
	}
	return nil, plan{}, fmt.Errorf("lab: no UDP port for IPMI up to %d is free: %w: %s", ports[len(ports)-1], err, alternative)
}

// mailOnLoopback opens one socket for BMCs that each have their own address.
func mailOnLoopback(ctx context.Context, port uint16) (*datagrams, error) {
	var refused error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) {
			if refused = bindToDevice(int(fd), loopback); refused == nil {
				refused = tellReached(int(fd))
			}
		})
		if err != nil {
			return err
		}
		return refused
	}}
	c, err := lc.ListenPacket(ctx, "udp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return nil, err
	}
	return newDatagrams(c.(*net.UDPConn)), nil
}

func newDatagrams(c *net.UDPConn) *datagrams {
	_ = c.SetReadBuffer(receiveBuffer) // less will do
	return &datagrams{UDPConn: c, at: c.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// mailRow opens a socket for each BMC.
func mailRow(ctx context.Context, p plan) (socks []*datagrams, err error) {
	for i := range p.hosts {
		c, err := new(net.ListenConfig).ListenPacket(ctx, "udp", p.address(i).String())
		if err != nil {
			for _, sock := range socks {
				_ = sock.Close() // there is an error to tell already
			}
			return nil, err
		}
		socks = append(socks, &datagrams{UDPConn: c.(*net.UDPConn), at: p.address(i)})
	}
	return socks, nil
}

// listenDatagrams opens a socket that is one BMC's own.
func listenDatagrams(at netip.AddrPort) (io.Closer, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	return &datagrams{UDPConn: c, at: at}, nil
}

// Receive implements ipmi.Socket.
func (d *datagrams) Receive(b []byte) (n int, from, at netip.AddrPort, err error) {
	if !d.at.Addr().IsUnspecified() {
		n, from, err = d.ReadFromUDPAddrPort(b)
		return n, from, d.at, err
	}
	var told [reachedSize]byte
	for {
		n, m, _, from, err := d.ReadMsgUDPAddrPort(b, told[:])
		if err != nil {
			return 0, from, d.at, err
		}
		if addr, ok := reached(told[:m]); ok {
			return n, from, netip.AddrPortFrom(addr, d.at.Port()), nil
		}
	}
}

// Send implements ipmi.Socket.
func (d *datagrams) Send(b []byte, to, from netip.AddrPort) error {
	if !d.at.Addr().IsUnspecified() {
		_, err := d.WriteToUDPAddrPort(b, to)
		return err
	}
	var tell [reachedSize]byte
	_, _, err := d.WriteMsgUDPAddrPort(b, answerFrom(tell[:], from.Addr()), to)
	return err
}

// mailDoors are those of IPMI.
func mailDoors(host int, v *bmc.View) map[netip.AddrPort]door {
	n, out := v.Network(), map[netip.AddrPort]door{}
	for _, addr := range v.Addresses() {
		if n.IPMI.On {
			out[netip.AddrPortFrom(addr, n.IPMI.Port)] = door{host: host}
		}
	}
	return out
}

// IPMIAt implements ipmi.Rack: a BMC that is down, or that something keeps from
// the network, is silent, and so is one that comes with IPMI switched off.
func (l *Lab) IPMIAt(at netip.AddrPort) (ipmi.Host, bool) {
	x, ok := l.mail.find(at)
	if !ok || l.hosts[x.host].Reach() != Reachable {
		return nil, false
	}
	h := l.hosts[x.host]
	if v := h.BMC(); v.Net == nil && !v.Spec.Network.IPMI.On { // nobody has moved its doors, which say the rest
		return nil, false
	}
	return h, true
}

// IPMI is where the BMC's IPMI service is; false when it is switched off.
func (h *Host) IPMI() (netip.AddrPort, bool) {
	v := h.BMC()
	all, n := v.Addresses(), v.Network()
	if len(all) == 0 || !n.IPMI.On {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(all[0], n.IPMI.Port), true
}

// allDoors are those of TCP and of UDP.
func (l *Lab) allDoors() []*doors { return []*doors{&l.doors, &l.mail} }

// free says whether a BMC can have the doors that its settings ask for.
func (l *Lab) free(host int, v *bmc.View) error {
	for _, d := range l.allDoors() {
		if err := d.free(host, v); err != nil {
			return err
		}
	}
	return nil
}

// commanded writes a command into the journal.
func (l *Lab) commanded(e ipmi.Entry) {
	name := e.Command
	if name == "" {
		name = fmt.Sprintf("%02X/%02X", e.NetFn, e.Cmd)
	}
	entry := journal.Entry{
		At: e.At, Host: e.Host.Name(), Kind: journal.Request, From: e.From.Addr().Unmap().String(), Method: "IPMI", Path: name,
		Status: int(e.Code), User: e.User,
	}
	entry.Took.Duration = e.Took
	if e.Session != 0 {
		entry.Session = fmt.Sprint(e.Session) // IDs are chance
	}
	l.journal.Add(entry)
}

// strays says what goes wrong with a datagram on its way.
func (l *Lab) strays(h ipmi.Host, way string) fault.Decision {
	if !l.asks(fault.Datagram) {
		return fault.Decision{}
	}
	return l.decide(fault.Subject{Site: fault.Datagram, BMC: h.Name(), Method: way})
}

// troubles says what goes wrong with a command.
func (l *Lab) troubles(h ipmi.Host, fn, cmd byte) fault.Decision {
	if !l.asks(fault.Command) {
		return fault.Decision{}
	}
	return l.decide(fault.Subject{Site: fault.Command, BMC: h.Name(), Path: fmt.Sprintf("/ipmi/%02X/%02X", fn, cmd)})
}

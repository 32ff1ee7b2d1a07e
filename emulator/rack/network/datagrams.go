package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// receiveBuffer is how many bytes may wait in a UDP socket that all BMCs share:
// the datagrams of a thousand clients that start at the same time. The kernel
// grants less when its limit is lower.
const receiveBuffer = 4 << 20

// Datagrams is a UDP socket that one BMC or all BMCs answer on. It implements
// ipmi.Socket.
type Datagrams struct {
	*net.UDPConn
	at netip.AddrPort // address of the one BMC; unspecified address when all BMCs share the socket
}

// ListenIPMI opens the UDP sockets for IPMI of the BMCs, at the addresses that
// the plan of the web services gives them. The spec is that of rack.Config.Listen;
// last is the first port that the rack used the last time, or 0.
func ListenIPMI(ctx context.Context, web Plan, spec string, last uint16) ([]*Datagrams, Plan, error) {
	p := web
	if !p.loopbackAddresses {
		// TCP and UDP ports are independent: a BMC has the same number for both.
		socks, err := ipmiRow(ctx, p)
		if err != nil {
			return nil, Plan{}, fmt.Errorf("%d UDP ports in a row for IPMI of the BMCs: %w: use other ports with --listen ADDRESS:FIRSTPORT", p.hosts, err)
		}
		return socks, p, nil
	}
	ports := []uint16{p.first} // the number that the spec gives the web services
	switch {
	case strings.HasSuffix(spec, ":0"): // any port will do, but clients know the last one
		ports = []uint16{0}
		if last != 0 {
			ports = []uint16{last, 0}
		}
	case last != 0:
		ports = []uint16{last}
	case spec == "":
		ports = []uint16{ipmiPort}
		for i := range altPorts {
			ports = append(ports, uint16(ipmiAlt+i))
		}
	}
	var err error
	for _, p.first = range ports {
		var sock *Datagrams
		if sock, err = ipmiLoopback(ctx, p.first); err == nil {
			p.first = sock.at.Port()
			return []*Datagrams{sock}, p, nil
		}
		if !portUnavailable(err) {
			break
		}
	}
	if len(ports) == 1 && portUnavailable(err) {
		return nil, Plan{}, fmt.Errorf("UDP port %d for IPMI of the BMCs: %w: stop the program that uses it, or %s", ports[0], err, alternative)
	}
	return nil, Plan{}, fmt.Errorf("no UDP port for IPMI up to %d is free: %w: %s", ports[len(ports)-1], err, alternative)
}

// ipmiLoopback opens one socket for BMCs that each have their own loopback
// address.
func ipmiLoopback(ctx context.Context, port uint16) (*Datagrams, error) {
	var refused error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) {
			if refused = bindToDevice(int(fd), Loopback); refused == nil {
				refused = reportDestination(int(fd))
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
	udp := c.(*net.UDPConn)
	_ = udp.SetReadBuffer(receiveBuffer) // a smaller buffer works too
	return &Datagrams{UDPConn: udp, at: udp.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

// ipmiRow opens a socket for each BMC.
func ipmiRow(ctx context.Context, p Plan) (socks []*Datagrams, err error) {
	for i := range p.hosts {
		c, err := new(net.ListenConfig).ListenPacket(ctx, "udp", p.Address(i).String())
		if err != nil {
			for _, sock := range socks {
				_ = sock.Close() // the listen error is returned instead
			}
			return nil, err
		}
		socks = append(socks, &Datagrams{UDPConn: c.(*net.UDPConn), at: p.Address(i)})
	}
	return socks, nil
}

// Receive reads one datagram into b. It returns its length, the client that sent
// it, and the BMC address that it was sent to.
func (d *Datagrams) Receive(b []byte) (n int, from, at netip.AddrPort, err error) {
	if !d.at.Addr().IsUnspecified() {
		n, from, err = d.ReadFromUDPAddrPort(b)
		return n, from, d.at, err
	}
	var control [controlSize]byte
	for {
		n, m, _, from, err := d.ReadMsgUDPAddrPort(b, control[:])
		if err != nil {
			return 0, from, d.at, err
		}
		if addr, ok := parseDestination(control[:m]); ok {
			return n, from, netip.AddrPortFrom(addr, d.at.Port()), nil
		}
	}
}

// Send sends a datagram to a client from the address of a BMC.
func (d *Datagrams) Send(b []byte, to, from netip.AddrPort) error {
	if !d.at.Addr().IsUnspecified() {
		_, err := d.WriteToUDPAddrPort(b, to)
		return err
	}
	var control [controlSize]byte
	_, _, err := d.WriteMsgUDPAddrPort(b, encodeSource(control[:], from.Addr()), to)
	return err
}

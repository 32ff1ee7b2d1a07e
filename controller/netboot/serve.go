package netboot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Ports are the addresses on which DHCP and TFTP listen. Port 0 means any free port. Real
// firmware uses the standard ports only: 67, 4011 and 69.
type Ports struct {
	DHCP  netip.AddrPort
	Proxy netip.AddrPort // second port of a proxy (PXE 2.1, §2.2.3); none when it is not valid
	TFTP  netip.AddrPort
	// Device is the network device that DHCP is bound to; "" means none.
	Device string
}

// StandardPorts returns the ports that real firmware uses, on all addresses.
func StandardPorts() Ports {
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }
	return Ports{DHCP: at(dhcpv4.ServerPort), Proxy: at(4011), TFTP: at(69)}
}

// Sockets are the open sockets of DHCP and TFTP.
type Sockets struct {
	DHCP, Proxy, TFTP *net.UDPConn // Proxy may be nil
}

// Listen opens the sockets.
func (p Ports) Listen(ctx context.Context) (_ *Sockets, err error) {
	s := &Sockets{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	for _, row := range []struct {
		name    string
		address netip.AddrPort
		device  string
		into    **net.UDPConn
	}{{"DHCP", p.DHCP, p.Device, &s.DHCP}, {"proxy DHCP", p.Proxy, p.Device, &s.Proxy}, {"TFTP", p.TFTP, "", &s.TFTP}} {
		if !row.address.IsValid() && row.into == &s.Proxy {
			continue
		}
		lc := net.ListenConfig{Control: bindTo(row.device)}
		c, err := lc.ListenPacket(ctx, "udp4", row.address.String())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		*row.into = c.(*net.UDPConn)
	}
	return s, nil
}

// Close closes the sockets.
func (s *Sockets) Close() {
	for _, c := range []*net.UDPConn{s.DHCP, s.Proxy, s.TFTP} {
		if c != nil {
			c.Close()
		}
	}
}

// Serve answers DHCP and TFTP requests until ctx ends or a socket fails, and closes the
// sockets. It returns the cause.
func (s *Server) Serve(ctx context.Context, on *Sockets) error {
	if s.cfg.Net == nil {
		on.Close()
		return errors.New("Net is nil: there is no network to serve")
	}
	files := s.newTFTP()
	var wg sync.WaitGroup
	fail := make(chan error, 3)
	for _, c := range []*net.UDPConn{on.DHCP, on.Proxy} {
		if c != nil {
			wg.Go(func() { fail <- s.serveDHCP(c) })
		}
	}
	wg.Go(func() { fail <- files.Serve(on.TFTP) })
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-fail:
	}
	// Close the sockets first: the TFTP server may not have registered its socket yet.
	on.Close()
	files.Shutdown()
	wg.Wait()
	return err
}

// maxDatagram, in bytes, is more than a client may send by the standards. A longer
// datagram is truncated and does not parse.
const maxDatagram = 4096

// serveDHCP answers messages one after the other until the socket is closed.
func (s *Server) serveDHCP(c *net.UDPConn) error {
	b := make([]byte, maxDatagram)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return fmt.Errorf("DHCP: %w", err)
		}
		answer, to := s.datagram(b[:n], from)
		if answer == nil {
			continue
		}
		// After an error the client repeats its message, as after a lost datagram.
		_, _ = c.WriteToUDPAddrPort(answer, to)
	}
}

// datagram returns the answer to a datagram and its destination; the answer is nil when
// there is none.
func (s *Server) datagram(b []byte, from netip.AddrPort) (answer []byte, to netip.AddrPort) {
	if s.cfg.Enter != nil {
		defer s.cfg.Enter()()
	}
	m, err := dhcpv4.FromBytes(b)
	if err != nil {
		return nil, to
	}
	reply, e := s.dhcp(m)
	if s.cfg.OnDHCP != nil {
		s.cfg.OnDHCP(e)
	}
	if reply == nil {
		return nil, to
	}
	return reply.ToBytes(), destination(m, from)
}

// destination returns the address for the answer (RFC 2131, §4.1): the relay's, else the
// sender's, else broadcast, because a client without an address cannot be reached
// otherwise.
func destination(m *dhcpv4.DHCPv4, from netip.AddrPort) netip.AddrPort {
	if relay, ok := netip.AddrFromSlice(m.GatewayIPAddr.To4()); ok && !relay.IsUnspecified() {
		return netip.AddrPortFrom(relay, dhcpv4.ServerPort)
	}
	if !from.Addr().IsUnspecified() {
		return from
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), dhcpv4.ClientPort)
}

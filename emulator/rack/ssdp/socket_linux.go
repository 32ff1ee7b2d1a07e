package ssdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// deviceSocket is a socket that receives from one network device only. Since Linux
// 5.7 this needs no privilege.
type deviceSocket struct{ *net.UDPConn }

func listen(ctx context.Context, device string, port uint16) (socket, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if failed := c.Control(func(fd uintptr) {
			err = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), // sockets of other devices have the same port
				unix.BindToDevice(int(fd), device),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1),
			)
		}); failed != nil {
			return failed
		}
		return err
	}}
	pc, err := lc.ListenPacket(ctx, "udp4", fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		return nil, err
	}
	s := deviceSocket{pc.(*net.UDPConn)}
	if err := s.join(dev.Index); err != nil {
		return nil, errors.Join(fmt.Errorf("join %v: %w", Group.Addr(), err), s.Close())
	}
	return s, nil
}

// join joins the multicast group on the device.
func (s deviceSocket) join(device int) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: Group.Addr().As4(), Ifindex: int32(device)})
	}); failed != nil {
		return failed
	}
	return err
}

func (s deviceSocket) read(b []byte) (n int, from netip.AddrPort, to netip.Addr, err error) {
	beside := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
	n, besides, _, from, err := s.ReadMsgUDPAddrPort(b, beside)
	if err != nil {
		return 0, from, to, err
	}
	messages, err := unix.ParseSocketControlMessage(beside[:besides])
	if err != nil {
		return 0, from, to, err
	}
	for _, m := range messages {
		// in_pktinfo (ip(7)): ipi_ifindex, ipi_spec_dst, ipi_addr; the last is
		// the destination in the header.
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo {
			return n, from, netip.AddrFrom4([4]byte(m.Data[8:12])), nil
		}
	}
	return 0, from, to, errors.New("where the datagram went is not known")
}

func (s deviceSocket) write(b []byte, to netip.AddrPort, from netip.Addr) error {
	beside := unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: from.As4()})
	_, _, err := s.WriteMsgUDPAddrPort(b, beside, to)
	return err
}

package network

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// bindToDevice makes a socket receive from one network device only. Since Linux
// 5.7 this needs no privilege.
func bindToDevice(fd int, device string) error { return unix.BindToDevice(fd, device) }

// controlSize is the size in bytes of the buffer for the control message of a
// datagram (cmsg(3)).
const controlSize = 32

// reportDestination makes a socket report the address that each datagram was
// sent to.
func reportDestination(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
}

// parseDestination reads the address that a datagram was sent to from its control
// messages.
func parseDestination(control []byte) (netip.Addr, bool) {
	for len(control) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return netip.Addr{}, false
		}
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo {
			return netip.AddrFrom4([4]byte(data[8:12])), true // ipi_addr, ip(7)
		}
		control = rest
	}
	return netip.Addr{}, false
}

// encodeSource writes the control message that makes the kernel send a datagram
// from an address. It writes into b, which has controlSize bytes.
func encodeSource(b []byte, from netip.Addr) []byte {
	h := unix.Cmsghdr{Level: unix.IPPROTO_IP, Type: unix.IP_PKTINFO}
	h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
	n, err := binary.Encode(b, binary.NativeEndian, h)
	if err != nil {
		return nil
	}
	addr := from.Unmap().As4()
	copy(b[n+4:], addr[:]) // ipi_spec_dst
	return b[:unix.CmsgSpace(unix.SizeofInet4Pktinfo)]
}

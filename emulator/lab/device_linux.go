package lab

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// bindToDevice makes a socket hear of one device alone. Since Linux 5.7 it
// needs no privilege.
func bindToDevice(fd int, device string) error { return unix.BindToDevice(fd, device) }

// reachedSize is that of what is told of a datagram beside it, in bytes.
const reachedSize = 32

// tellReached makes a socket tell which address a datagram was sent to.
func tellReached(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1) }

// reached reads that.
func reached(told []byte) (netip.Addr, bool) {
	for len(told) > 0 {
		h, data, rest, err := unix.ParseOneSocketControlMessage(told)
		if err != nil {
			return netip.Addr{}, false
		}
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo {
			return netip.AddrFrom4([4]byte(data[8:12])), true // ipi_addr, ip(7)
		}
		told = rest
	}
	return netip.Addr{}, false
}

// answerFrom says beside a datagram which address it is to be sent from. It
// writes into b, of reachedSize.
func answerFrom(b []byte, from netip.Addr) []byte {
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

package sys

import (
	"context"
	"net"

	"golang.org/x/sys/unix"
)

const (
	pollMilliseconds = 250 // milliseconds between two checks of ctx
	maxFrame         = 9216
)

// nearest is the destination of LLDP frames, a group address that bridges do not
// forward (IEEE 802.1AB, §7.1).
var nearest = [8]byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// ReceiveFrames implements FrameReceiver with packet sockets (packet(7)), which
// need CAP_NET_RAW. It skips interfaces that it cannot open. Some NICs do not pass
// on LLDP frames, because their firmware handles them (Intel's 700 series by
// default).
func (Linux) ReceiveFrames(ctx context.Context, etherType uint16, nics []string) map[string][]byte {
	heard := map[string][]byte{}
	var polled []unix.PollFd
	var names []string
	defer func() {
		for _, p := range polled {
			unix.Close(int(p.Fd))
		}
	}()
	for _, name := range nics {
		if fd, err := packetSocket(name, etherType); err == nil {
			polled, names = append(polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}), append(names, name)
		}
	}
	frame := make([]byte, maxFrame)
	for len(heard) < len(names) && ctx.Err() == nil {
		if _, err := unix.Poll(polled, pollMilliseconds); err != nil && err != unix.EINTR {
			return heard
		}
		for i, p := range polled {
			if p.Revents == 0 {
				continue
			}
			n, _, err := unix.Recvfrom(int(p.Fd), frame, unix.MSG_DONTWAIT)
			switch {
			case err == nil && heard[names[i]] == nil:
				heard[names[i]] = append([]byte{}, frame[:n]...)
			case err == nil, err == unix.EAGAIN, err == unix.EINTR:
			default: // the interface is down
				polled[i].Events = 0
			}
		}
	}
	return heard
}

// packetSocket returns a socket that receives the frames of an EtherType on one
// interface.
func packetSocket(name string, etherType uint16) (int, error) {
	ifc, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	network := etherType<<8 | etherType>>8
	// Without a protocol the socket receives nothing before it is bound to the
	// interface.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	group := unix.PacketMreq{Ifindex: int32(ifc.Index), Type: unix.PACKET_MR_MULTICAST, Alen: 6, Address: nearest}
	_ = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &group) // the loopback device has no groups
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: network, Ifindex: ifc.Index}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

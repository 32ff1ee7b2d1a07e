package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/cmd/usage"
)

// dhcpListener hears the DHCP DISCOVER of network boots on an interface. It answers
// none.
type dhcpListener struct {
	conn net.PacketConn
}

// listenDHCP opens the port of DHCP servers on an interface, beside one that may be
// open already. It needs CAP_NET_BIND_SERVICE and CAP_NET_RAW.
func listenDHCP(ctx context.Context, name string) (*dhcpListener, error) {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil, usage.New(fmt.Errorf("--dhcp %s: %w", name, err))
	}
	listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.BindToDevice(int(fd), name))
		})
		return errors.Join(err, failed)
	}}
	conn, err := listen.ListenPacket(ctx, "udp4", ":67")
	if err != nil {
		return nil, fmt.Errorf("--dhcp %s: %w", name, err)
	}
	return &dhcpListener{conn}, nil
}

func (d *dhcpListener) close() { d.conn.Close() }

// Discover implements conformance.DHCPListener.
func (d *dhcpListener) Discover(ctx context.Context, macs []net.HardwareAddr) (net.HardwareAddr, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			_ = d.conn.SetReadDeadline(time.Time{}) // for the next call
		}
	}()
	for b := make([]byte, 2048); ; {
		n, _, err := d.conn.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		mac := discoverOf(b[:n])
		if mac != nil && (len(macs) == 0 || slices.ContainsFunc(macs, func(m net.HardwareAddr) bool { return bytes.Equal(m, mac) })) {
			return mac, nil
		}
	}
}

// discoverOf returns the hardware address of a DHCPDISCOVER (RFC 2131, §2; RFC 2132,
// §9.6), or nil for any other packet.
func discoverOf(b []byte) net.HardwareAddr {
	const fixed = 240 // with the magic cookie
	if len(b) < fixed || b[0] != 1 || b[2] != 6 || !bytes.Equal(b[236:240], []byte{99, 130, 83, 99}) {
		return nil
	}
	for options := b[fixed:]; len(options) > 1 && options[0] != 255; {
		if options[0] == 0 { // a pad has no length
			options = options[1:]
			continue
		}
		length := int(options[1])
		if len(options) < 2+length {
			return nil
		}
		if options[0] == 53 && length == 1 && options[2] == 1 {
			return slices.Clone(net.HardwareAddr(b[28:34]))
		}
		options = options[2+length:]
	}
	return nil
}

// Package ssdp answers searches for Redfish services on a network (DSP0266,
// "Discovery"; UPnP Device Architecture 1.1, §1.3). One socket answers for all
// services. The package knows addresses and UUIDs only, and sends no announcements.
package ssdp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// Group is the multicast address of searches.
var Group = netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 255, 255, 250}), Port)

// Port is the UDP port of SSDP.
const Port = 1900

// Loopback is the default device.
const Loopback = "lo"

// Service is a Redfish service that a search can find.
type Service struct {
	UUID string // ServiceRoot.UUID
	URL  string // URL of the service root
	At   netip.Addr
}

// Config says what a Responder answers to, and with what.
type Config struct {
	// Device is the network device on which searches arrive; "" means Loopback.
	Device string
	// Port is the socket's port; 0 means the constant Port.
	Port uint16
	// Services yields the services at an address, or all services for the zero
	// address.
	Services func(at netip.Addr) iter.Seq[Service]
	Log      *slog.Logger // nil: none
}

// Responder answers searches.
type Responder struct {
	conn     socket
	services func(at netip.Addr) iter.Seq[Service]
	log      *slog.Logger
	pause    *clock.Clock // real time
}

// socket is a UDP socket that reports the destination of datagrams and can choose
// their source.
type socket interface {
	read(b []byte) (n int, from netip.AddrPort, to netip.Addr, err error)
	write(b []byte, to netip.AddrPort, from netip.Addr) error
	io.Closer
}

// New opens the socket of a Responder.
func New(ctx context.Context, c Config) (*Responder, error) {
	if c.Services == nil {
		return nil, errors.New("ssdp: Config.Services: must not be nil")
	}
	if c.Device == "" {
		c.Device = Loopback
	}
	if c.Port == 0 {
		c.Port = Port
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	conn, err := listen(ctx, c.Device, c.Port)
	if err != nil {
		return nil, fmt.Errorf("ssdp: device %s, port %d: %w", c.Device, c.Port, err)
	}
	return &Responder{conn: conn, services: c.Services, log: c.Log, pause: clock.NewWall()}, nil
}

// Close closes the socket when Serve does not run.
func (r *Responder) Close() error { return r.conn.Close() }

const (
	maxSearch = 2048 // bytes
	// Responses are sent in bursts of this size: more would overflow the receive
	// buffer of the client.
	burst      = 64
	burstPause = 10 * time.Millisecond
)

// Serve answers searches until ctx ends.
func (r *Responder) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pausing sync.WaitGroup
	defer pausing.Wait()
	defer cancel()
	pausing.Go(func() { _ = r.pause.Run(ctx) }) // returns when ctx ends
	stop := context.AfterFunc(ctx, func() { _ = r.conn.Close() })
	defer stop()
	b := make([]byte, maxSearch)
	for {
		n, from, to, err := r.conn.read(b)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("ssdp: %w", err)
		case err != nil: // an error of one datagram
			r.log.Debug("search not read", "err", err)
			continue
		}
		target, ok := parse(b[:n])
		if !ok {
			continue
		}
		if to.IsMulticast() {
			to = netip.Addr{}
		}
		if err := r.answer(ctx, target, from, to); err != nil {
			r.log.Debug("search not answered", "from", from, "err", err)
		}
	}
}

// answer sends the client a response for each service.
func (r *Responder) answer(ctx context.Context, target string, from netip.AddrPort, at netip.Addr) error {
	sent := 0
	for s := range r.services(at) {
		if err := r.conn.write(answer(s, target), from, s.At); err != nil {
			return err
		}
		if sent++; sent%burst != 0 {
			continue
		}
		t := r.pause.NewTimer(burstPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C():
		}
	}
	return nil
}

// Search targets.
const (
	redfish = "urn:dmtf-org:service:redfish-rest:1"
	all     = "ssdp:all"
	root    = "upnp:rootdevice"
)

// parse returns the target of a search; false when the datagram is no search for a
// Redfish service.
func parse(b []byte) (target string, ok bool) {
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(b)))
	line, err := in.ReadLine()
	if err != nil || line != "M-SEARCH * HTTP/1.1" {
		return "", false
	}
	h, err := in.ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) || h.Get("Man") != `"ssdp:discover"` {
		return "", false
	}
	target = h.Get("St")
	switch target {
	case all, root, redfish:
		return target, true
	}
	// A target may name the minor version of the protocol; all services here have
	// that one or a later one.
	minor, ok := strings.CutPrefix(target, redfish+":")
	return target, ok && minor != "" && strings.Trim(minor, "0123456789") == ""
}

// answer returns the response to a search (DSP0266, "M-SEARCH response").
func answer(s Service, target string) []byte {
	if target == all {
		target = redfish
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nCACHE-CONTROL:max-age=1800\r\nST:%s\r\nUSN:uuid:%s::%s\r\nAL:%s\r\nEXT:\r\n\r\n", target, s.UUID, target, s.URL)
}

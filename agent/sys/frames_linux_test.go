package sys_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// The test sends frames of an experimental EtherType (IEEE 802, 0x88b5) to the
// loopback device repeatedly, because it does not know when the listener is ready.
func TestLinuxReceivesFrames(t *testing.T) {
	const experiment = 0x88b5
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skipf("no loopback device: %v", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("packet sockets take CAP_NET_RAW: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	frame := append([]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, "news"...)
	ctx := patience.Within(t, time.Minute)
	heard := make(chan map[string][]byte)
	go func() { heard <- sys.Linux{}.ReceiveFrames(ctx, experiment, []string{"lo", "no-such"}) }()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: lo.Index, Halen: 6}); err != nil {
			t.Skipf("the loopback device takes no frames here: %v", err)
		}
		select {
		case got := <-heard:
			if !bytes.Equal(got["lo"], frame) || len(got) != 1 {
				t.Errorf("heard %q, want the frame on lo", got)
			}
			return
		case <-again.C:
		}
	}
}

func TestLinuxStopsReceivingWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := (sys.Linux{}).ReceiveFrames(ctx, 0x88b6, []string{"lo"}); len(got) > 0 {
		t.Errorf("heard %q", got)
	}
}

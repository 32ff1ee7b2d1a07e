package racktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// Ports for tests are in a range that the system gives to nobody who asks for any
// port (Linux begins at 32768), and that FreeIPMI 1.6.10 accepts: it takes no port
// above 32767.
const (
	firstTestPort = 20000
	lastTestPort  = 32767
	// PortsInRow is how many ports a test gets.
	PortsInRow = 10
)

// Ports returns the first of PortsInRow TCP and UDP ports in a row, counted up,
// which no other test gets until t has ended, in no process of this computer. A rack
// that a test stops and starts finds its ports free again.
func Ports(t testing.TB) uint16 {
	t.Helper()
	rows := (lastTestPort + 1 - firstTestPort) / PortsInRow
	for i := range rows {
		first := firstTestPort + (os.Getpid()+i)%rows*PortsInRow
		release, err := TryHold(fmt.Sprint(first))
		if err != nil {
			t.Fatal(err)
		}
		if release == nil {
			continue
		}
		t.Cleanup(release)
		if rowIsFree(t, first) {
			return uint16(first)
		}
	}
	t.Fatalf("no %d free ports in a row from %d to %d", PortsInRow, firstTestPort, lastTestPort)
	return 0
}

// TryHold holds a name of a port until release is called: meanwhile no other test holds it,
// in no process of this computer, whether anything listens there or not. It returns nil when
// another test holds the name.
func TryHold(name string) (release func(), err error) {
	dir := filepath.Join(os.TempDir(), "metalab-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil //nolint:nilnil // documented
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// HoldSSDP waits for port 1900 of the loopback device, and holds it until release is called.
// Sockets of several racks can have that port at the same time, and each then answers the
// searches of all tests. It returns an error when another program has the port.
func HoldSSDP(ctx context.Context) (release func(), err error) {
	err = patience.Until(ctx, patience.Limit(), func(context.Context) (bool, string, error) {
		release, err = TryHold("ssdp")
		return release != nil, "another test has it", err
	})
	if err != nil {
		return nil, fmt.Errorf("port %d: %w", ssdp.Port, err)
	}
	// Without SO_REUSEADDR, which the sockets of racks have, a bind fails for any other socket.
	c, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", fmt.Sprintf("127.0.0.1:%d", ssdp.Port))
	if err != nil {
		release()
		return nil, fmt.Errorf("another program has port %d: %w", ssdp.Port, err)
	}
	return release, c.Close()
}

// rowIsFree reports whether no program has one of the ports.
func rowIsFree(t testing.TB, first int) bool {
	t.Helper()
	for port := first; port < first+PortsInRow; port++ {
		at := fmt.Sprintf("0.0.0.0:%d", port)
		tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", at)
		if err != nil {
			return false
		}
		_ = tcp.Close()
		udp, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", at)
		if err != nil {
			return false
		}
		_ = udp.Close()
	}
	return true
}

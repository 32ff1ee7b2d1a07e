package labtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
// which no other test gets until t has ended, in no process of this computer. A lab
// that a test stops and starts finds its ports free again.
func Ports(t testing.TB) uint16 {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "metalab-test-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	rows := (lastTestPort + 1 - firstTestPort) / PortsInRow
	for i := range rows {
		first := firstTestPort + (os.Getpid()+i)%rows*PortsInRow
		if reserve(t, filepath.Join(dir, fmt.Sprint(first))) && rowIsFree(t, first) {
			return uint16(first)
		}
	}
	t.Fatalf("no %d free ports in a row from %d to %d", PortsInRow, firstTestPort, lastTestPort)
	return 0
}

// reserve locks a file until t ends, and reports false when another test has it.
func reserve(t testing.TB, name string) bool {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return false
	}
	t.Cleanup(func() { _ = f.Close() })
	return true
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

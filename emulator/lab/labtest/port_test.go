package labtest

import (
	"fmt"
	"net"
	"testing"
)

// Two tests never have a port in common, even when neither listens yet.
func TestPortsAreOfOneTestUntilItEnds(t *testing.T) {
	taken := map[uint16]bool{}
	for range 20 {
		first := Ports(t)
		if taken[first] {
			t.Fatalf("Ports() = %d twice", first)
		}
		taken[first] = true
	}
	var first uint16
	t.Run("that ends", func(t *testing.T) { first = Ports(t) })
	for port := first; port < first+PortsInRow; port++ {
		if taken[port] {
			t.Errorf("port %d is of two tests", port)
		}
	}
	t.Run("the next", func(t *testing.T) {
		if again := Ports(t); again != first {
			t.Errorf("Ports() = %d after the test that had %d has ended", again, first)
		}
	})
}

// Ports that another program listens at are skipped.
func TestPortsInUseAreSkipped(t *testing.T) {
	var first uint16
	t.Run("that ends", func(t *testing.T) { first = Ports(t) })
	c, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", fmt.Sprintf("0.0.0.0:%d", first+PortsInRow-1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := Ports(t); got == first {
		t.Errorf("Ports() = %d, whose last UDP port is in use", got)
	}
}

package racktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
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

func TestNameIsHeldByOneTest(t *testing.T) {
	name := fmt.Sprint(t.Name(), Ports(t))
	release, err := TryHold(name)
	if release == nil || err != nil {
		t.Fatalf("TryHold() of a name that nobody holds = nil %t, %v", release == nil, err)
	}
	if again, err := TryHold(name); again != nil || err != nil {
		t.Errorf("TryHold() of a held name = nil %t, %v; want true, none", again == nil, err)
	}
	release()
	again, err := TryHold(name)
	if again == nil || err != nil {
		t.Fatalf("TryHold() after release = nil %t, %v", again == nil, err)
	}
	again()
}

// Racks with SSDP wait for each other instead of answering each other's searches.
func TestSSDPIsHeldByOneTest(t *testing.T) {
	release, err := HoldSSDP(t.Context())
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := HoldSSDP(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another test has it") {
		t.Errorf("HoldSSDP() while it is held = %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		release, err := HoldSSDP(t.Context())
		if err == nil {
			release()
		}
		waiting <- err
	}()
	release()
	if err := <-waiting; err != nil {
		t.Errorf("HoldSSDP() after release = %v", err)
	}
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

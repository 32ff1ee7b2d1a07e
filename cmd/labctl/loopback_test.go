package main

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestALabNeedsALoopbackThatIsUp(t *testing.T) {
	eth := net.Interface{Name: "eth0", Flags: net.FlagUp}
	for _, tt := range []struct {
		all []net.Interface
		err error
		ok  bool
	}{
		{all: []net.Interface{eth, {Name: "lo", Flags: net.FlagLoopback | net.FlagUp}}, ok: true},
		{all: []net.Interface{eth, {Name: "lo", Flags: net.FlagLoopback}}},
		{all: []net.Interface{eth}},
		{err: errors.New("not permitted"), ok: true},
	} {
		if err := checkLoopback(tt.all, tt.err); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "ip link set lo up") {
			t.Errorf("checkLoopback(%v, %v) = %v, want ok %t", tt.all, tt.err, err, tt.ok)
		}
	}
	if err := checkLoopback(net.Interfaces()); err != nil {
		t.Errorf("this computer: %v", err)
	}
}

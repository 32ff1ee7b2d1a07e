package lab

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// portsOf returns the ports that a lab keeps, by the names of their fields.
func portsOf(t *testing.T, p ports) map[string]netip.AddrPort {
	t.Helper()
	out := map[string]netip.AddrPort{}
	for f, v := range reflect.ValueOf(p).Fields() {
		if v.String() != "" {
			out[f.Name] = netip.MustParseAddrPort(v.String())
		}
	}
	return out
}

// A lab keeps no port that the system gives to connections: a neighbour would get it while the lab
// is stopped. One that another program has got nevertheless is replaced at the next start.
func TestLabStartsWhereItsPortsAreTaken(t *testing.T) {
	var low int
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &low)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, log := t.TempDir(), new(strings.Builder)
	c := Config{Dir: dir, Settings: Settings{Hosts: 1, Speed: "max", Kube: true}, Listen: AnyPort, Log: slog.New(slog.NewTextHandler(log, nil))}
	start := func() map[string]netip.AddrPort {
		t.Helper()
		l, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Stop(); err != nil {
			t.Fatal(err)
		}
		p, err := loadPorts(dir)
		if err != nil {
			t.Fatal(err)
		}
		return portsOf(t, p)
	}
	first := start()
	for name, at := range first {
		if at.Port() == 0 {
			continue // a service that this lab doesn't have
		}
		if int(at.Port()) >= low {
			t.Errorf("port of %s is %d, which the system may give to a connection (from %d)", name, at.Port(), low)
		}
		taken, err := net.Listen("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
	}
	for name, at := range start() {
		if at.Port() != 0 && at == first[name] {
			t.Errorf("%s is at %s, which another program has", name, at)
		}
		if first[name].Port() != 0 && !strings.Contains(log.String(), "address="+first[name].String()) {
			t.Errorf("the log doesn't warn of the address of %s:\n%s", name, log)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, portsFile)); err != nil {
		t.Error(err)
	}
}

// Controllers that start again in a lab that runs wait for a port that another program has got
// meanwhile, since servers use it at the moment.
func TestControllersWaitForTheirPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, quiet := taken.Addr().String(), slog.New(slog.DiscardHandler)
	l, err := listenPatiently(t.Context(), 0, address, quiet)
	if err != nil || l.Addr().String() == address {
		t.Fatalf("listen without patience = %v, %v", l, err)
	}
	l.Close()
	got, began := make(chan string), make(chan struct{})
	go func() {
		close(began)
		l, err := listenPatiently(context.WithoutCancel(t.Context()), portPatience, address, quiet)
		if err != nil {
			got <- err.Error()
			return
		}
		defer l.Close()
		got <- l.Addr().String()
	}()
	<-began
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if at := <-got; at != address {
		t.Errorf("listen = %s once %s is free", at, address)
	}
}

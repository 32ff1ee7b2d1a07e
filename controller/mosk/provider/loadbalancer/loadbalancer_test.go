package loadbalancer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// rack are control machines with an API each, which answers with the machine's name and
// what it was sent, and clients of their load balancer.
type rack struct {
	*Forwarders
	t         testing.TB
	end       func() // ends the forwarders
	addresses map[string]string
	down      sync.Map // machines that answer nothing
	calls     atomic.Int32
}

func start(t testing.TB, machines ...string) *rack {
	t.Helper()
	r := &rack{t: t, addresses: map[string]string{}}
	for _, name := range machines {
		l := listen(t)
		r.addresses[name] = l.Addr().String()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					_, _ = io.WriteString(c, name+" ") // an error ends the copy, too
					_, _ = io.Copy(c, c)
				}()
			}
		}()
	}
	var err error
	r.Forwarders, err = New(Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Dial: func(ctx context.Context, b Backend) (net.Conn, error) {
		r.calls.Add(1)
		if _, down := r.down.Load(b.Machine); down {
			return nil, errors.New("connection refused")
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", r.addresses[b.Machine])
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.end)
	return r
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// ready makes these machines, and no others, the backends.
func (r *rack) ready(machines ...string) {
	r.t.Helper()
	var all []Backend
	for _, name := range machines {
		all = append(all, Backend{Namespace: "lab", Machine: name, Address: "10.0.0.5"})
	}
	if err := r.Apply(r.t.Context(), "lab/c1", "127.0.0.2", all); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rack) connect() net.Conn {
	r.t.Helper()
	var d net.Dialer
	c, err := d.DialContext(r.t.Context(), "tcp", r.Address("lab/c1"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends a text, ends its own direction, and returns what comes back; "" when the
// connection was closed.
func exchange(c net.Conn) string {
	_, _ = io.WriteString(c, "hello") // a connection that is closed shows when it is read
	_ = c.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(c)
	if err != nil {
		return ""
	}
	return string(b)
}

// TestConnectionsReachReadyMachinesAlone counts which machines 12 connections reach.
func TestConnectionsReachReadyMachinesAlone(t *testing.T) {
	r := start(t, "c-0", "c-1", "c-2")
	count := func() map[string]int {
		out := map[string]int{}
		for range 12 {
			out[exchange(r.connect())]++
		}
		return out
	}
	r.ready()
	if got := count(); got[""] != 12 || r.calls.Load() != 0 {
		t.Errorf("without a Ready machine: %v, %d calls", got, r.calls.Load())
	}
	r.ready("c-0", "c-2")
	if got := count(); got["c-0 hello"] != 6 || got["c-2 hello"] != 6 {
		t.Errorf("with c-0 and c-2: %v", got)
	}
	r.ready("c-1")
	if got := count(); got["c-1 hello"] != 12 {
		t.Errorf("with c-1: %v", got)
	}
	r.ready("c-1", "c-2")
	r.down.Store("c-1", true)
	if got := count(); got["c-2 hello"] != 12 {
		t.Errorf("c-1 answers nothing: %v", got)
	}
}

// A connection that has ended makes room: a load balancer serves more than its limit, one
// after another.
func TestEndedConnectionsMakeRoom(t *testing.T) {
	r := start(t, "c-0")
	r.ready("c-0")
	for i := range maxConnections + 1 {
		c := r.connect()
		if got := exchange(c); got != "c-0 hello" {
			t.Fatalf("connection %d got %q, want the machine's answer", i+1, got)
		}
		c.Close()
	}
}

// A connection ends when its machine is not Ready any more; others go on.
func TestConnectionEndsWithItsBackend(t *testing.T) {
	r := start(t, "c-0", "c-1")
	r.ready("c-0", "c-1")
	open := map[string]net.Conn{}
	for range 2 {
		c, name := r.connect(), make([]byte, len("c-0 "))
		if _, err := io.ReadFull(c, name); err != nil {
			t.Fatal(err)
		}
		open[strings.TrimSpace(string(name))] = c
	}
	if len(open) != 2 {
		t.Fatalf("two connections have reached %v", open)
	}
	r.ready("c-1")
	if b, err := io.ReadAll(open["c-0"]); len(b) > 0 {
		t.Errorf("the connection to c-0 goes on: %q, %v", b, err)
	}
	if got := exchange(open["c-1"]); got != "hello" {
		t.Errorf("the connection to c-1 got %q", got)
	}
}

func TestAddressesOfLoadBalancers(t *testing.T) {
	r := start(t, "c-0")
	var mistake *AddressError
	for _, host := range []string{"10.0.0.1", "balancer.example", "", "0.0.0.0", "::1"} {
		if err := r.Apply(t.Context(), "lab/c1", host, nil); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "give an IP address of 127.0.0.0/8") {
			t.Errorf("Apply(%q) = %v", host, err)
		}
	}
	if a := r.Address("lab/c1"); a != "" {
		t.Errorf("it listens on %s", a)
	}
	r.ready("c-0")
	first := r.Address("lab/c1")
	c := r.connect()
	if err := r.Apply(t.Context(), "lab/c1", "127.0.0.3", nil); err != nil {
		t.Fatal(err)
	}
	if now := r.Address("lab/c1"); !strings.HasPrefix(first, "127.0.0.2:") || !strings.HasPrefix(now, "127.0.0.3:") {
		t.Errorf("it listens on %s, then on %s", first, now)
	}
	if err := refused(t, first); err == nil {
		t.Errorf("%s still accepts connections", first)
	}
	_, _ = io.ReadAll(c) // returns: the move has ended it
	last := r.Address("lab/c1")
	r.end()
	if err := refused(t, last); err == nil {
		t.Errorf("%s accepts connections after the end", last)
	}
	if err := r.Apply(t.Context(), "lab/c1", "127.0.0.3", nil); err == nil {
		t.Error("a load balancer begins after the end")
	}
}

// refused returns the error of a connection to an address.
func refused(t *testing.T, address string) error {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

// A port that another program has is an error, until it is free.
func TestPortThatIsTaken(t *testing.T) {
	taken := listen(t)
	port := netip.MustParseAddrPort(taken.Addr().String()).Port()
	f, err := New(Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Port: port, Dial: func(context.Context, Backend) (net.Conn, error) { return nil, net.ErrClosed }})
	if err != nil {
		t.Fatal(err)
	}
	var mistake *AddressError
	if err := f.Apply(t.Context(), "lab/c1", "127.0.0.1", nil); err == nil || errors.As(err, &mistake) {
		t.Errorf("Apply = %v, want that the address is in use", err)
	}
	taken.Close()
	if err := f.Apply(t.Context(), "lab/c1", "127.0.0.1", nil); err != nil {
		t.Errorf("Apply = %v once the port is free", err)
	}
	f.Remove("lab/c1")
	if err := refused(t, taken.Addr().String()); err == nil {
		t.Error("a removed load balancer accepts connections")
	}
}

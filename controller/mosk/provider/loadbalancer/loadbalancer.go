// Package loadbalancer forwards TCP connections to the Kubernetes APIs of control machines. Each
// Cluster has one address, where a connection reaches one of its backends: those that were
// Ready when they were given, in turn. It knows no object of Kubernetes, and does not find
// out by itself which machine is Ready.
package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// APIPort is the port of the Kubernetes API of a cluster, on control machines and load
// balancers. It is in no public text.
const APIPort = 6443

// Backend is a control machine.
type Backend struct {
	Namespace, Machine string
	Host               string // name of its BareMetalHost
	Address            string // IP address that its agent reports
}

// Config configures Forwarders.
type Config struct {
	// Networks contain the addresses that may be used.
	Networks []netip.Prefix
	Port     uint16 // port at all addresses; 0 means any that is free
	// Dial connects to the API of a machine.
	Dial func(context.Context, Backend) (net.Conn, error)
}

const (
	dialTimeout    = 5 * time.Second // in real time
	maxConnections = 1024            // connections of one Cluster; more are closed at once
)

// Forwarders are the load balancers of Clusters. They are safe for concurrent use.
type Forwarders struct {
	cfg   Config
	group sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	forwarders map[string]*forwarder // by Cluster
}

// New returns Forwarders that listen nowhere, or an error when a required field of c is nil.
func New(c Config) (*Forwarders, error) {
	if c.Dial == nil || len(c.Networks) == 0 {
		return nil, errors.New("loadbalancer: Config.Dial is nil, or Config.Networks is empty")
	}
	return &Forwarders{cfg: c, forwarders: map[string]*forwarder{}}, nil
}

// Run returns when ctx has ended, and all connections and listeners are closed.
func (f *Forwarders) Run(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	f.closed = true
	for cluster, x := range f.forwarders {
		x.close()
		delete(f.forwarders, cluster)
	}
	f.mu.Unlock()
	f.group.Wait()
	return nil
}

// AddressError is an address that no load balancer can have.
type AddressError struct{ text string }

// Error implements error.
func (e *AddressError) Error() string { return e.text }

// Apply makes the load balancer of a Cluster listen on an IP address, and forward new
// connections to the backends. Connections to others end. Its error is an *AddressError, or
// of the system, when another program has the port.
func (f *Forwarders) Apply(ctx context.Context, cluster, host string, backends []Backend) error {
	address, err := f.check(host)
	if err != nil {
		f.Remove(cluster)
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errors.New("loadbalancer: the forwarders are closed")
	}
	x := f.forwarders[cluster]
	if x != nil && x.host != address {
		x.close()
		delete(f.forwarders, cluster)
		x = nil
	}
	if x == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(address.String(), strconv.Itoa(int(f.cfg.Port))))
		if err != nil {
			return err
		}
		serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // until Remove or the end of Run
		x = &forwarder{host: address, listener: l, stop: stop, dial: f.cfg.Dial, connections: map[*connection]bool{}}
		f.forwarders[cluster] = x
		f.group.Go(func() { x.serve(serving) })
	}
	x.set(backends)
	return nil
}

func (f *Forwarders) check(host string) (netip.Addr, error) {
	a, err := netip.ParseAddr(host)
	if err == nil && slices.ContainsFunc(f.cfg.Networks, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return a, nil
	}
	var all []string
	for _, p := range f.cfg.Networks {
		all = append(all, p.String())
	}
	return a, &AddressError{fmt.Sprintf("%q: give an IP address of %s", host, strings.Join(all, ", "))}
}

// Remove ends the load balancer of a Cluster, and its connections.
func (f *Forwarders) Remove(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.forwarders[cluster]; x != nil {
		x.close()
		delete(f.forwarders, cluster)
	}
}

// Holder returns the Cluster whose load balancer has an IP address, "" for none.
func (f *Forwarders) Holder(host string) string {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for cluster, x := range f.forwarders {
		if x.host == address { // no second one can listen there
			return cluster
		}
	}
	return ""
}

// Address returns where the load balancer of a Cluster listens, "" for nowhere.
func (f *Forwarders) Address(cluster string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.forwarders[cluster]; x != nil {
		return x.listener.Addr().String()
	}
	return ""
}

package bmc_test

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// counted counts how often the clients of a fake are opened and closed.
type counted struct {
	*bmctest.Fake
	opened, closed atomic.Int32
}

func (f *counted) Open(ctx context.Context, c bmc.Config) (bmc.Client, error) {
	client, err := f.Fake.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	f.opened.Add(1)
	return &countedClient{Client: client, closed: &f.closed}, nil
}

type countedClient struct {
	bmc.Client
	closed *atomic.Int32
}

func (c *countedClient) Close() { c.closed.Add(1) }

func (f *counted) want(t *testing.T, when string, opened, closed int32) {
	t.Helper()
	if o, c := f.opened.Load(), f.closed.Load(); o != opened || c != closed {
		t.Errorf("%d clients opened and %d closed %s, want %d and %d", o, c, when, opened, closed)
	}
}

func newPool(t *testing.T) (*bmc.Pool, *counted, *bmctest.Clock, bmc.Config) {
	t.Helper()
	address, err := bmc.ParseAddress("redfish://bmc.example/redfish/v1/Systems/1")
	if err != nil {
		t.Fatal(err)
	}
	config := bmc.Config{Address: address, Credentials: bmc.Credentials{Username: "admin", Password: "one"}}
	f := &counted{Fake: &bmctest.Fake{Credentials: config.Credentials}}
	clock := &bmctest.Clock{}
	p := &bmc.Pool{Drivers: map[string]bmc.Open{"redfish": f.Open}, Clock: clock}
	t.Cleanup(p.Close)
	return p, f, clock, config
}

func get(t *testing.T, p *bmc.Pool, c bmc.Config) bmc.Client {
	t.Helper()
	client, err := p.Get(t.Context(), c)
	if err != nil {
		t.Fatalf("Get(%s) error = %v", c.Address, err)
	}
	return client
}

func TestPoolShares(t *testing.T) {
	p, f, _, config := newPool(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c, err := p.Get(t.Context(), config)
			if err != nil {
				t.Errorf("Get() error = %v", err)
				return
			}
			defer c.Close() // which is the pool's
			if _, err := c.System(t.Context()); err != nil {
				t.Errorf("System() error = %v", err)
			}
		})
	}
	wg.Wait()
	f.want(t, "by eight callers", 1, 0)

	other := config
	other.Insecure = true
	get(t, p, other)
	f.want(t, "after another without verification", 2, 0)
	other = config
	other.RootCAs = x509.NewCertPool()
	get(t, p, other)
	f.want(t, "after another with other roots", 3, 0)
	other = config
	other.Address.Path = ""
	get(t, p, other)
	f.want(t, "after another system", 4, 0)
	p.Close()
	f.want(t, "after Close", 4, 4)
	if _, err := p.Get(t.Context(), config); err == nil {
		t.Error("Get() error = nil after Close")
	}
	f.want(t, "after a Get after Close", 4, 4)
}

func TestPoolCredentials(t *testing.T) {
	p, f, _, config := newPool(t)
	old := get(t, p, config)
	f.SetCredentials(bmc.Credentials{Username: "admin", Password: "two"})

	// The BMC refuses the client: the pool drops it, and does not keep what
	// cannot be opened.
	if _, err := old.System(t.Context()); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("System() error = %v, want ErrUnauthorized", err)
	}
	f.want(t, "after a refusal", 1, 1)
	if _, err := p.Get(t.Context(), config); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("Get() error = %v, want ErrUnauthorized", err)
	}

	config.Credentials.Password = "two"
	get(t, p, config)
	f.want(t, "with the right password", 2, 1)
	// The holder of a client that the pool has dropped does it no harm.
	if _, err := old.System(t.Context()); !errors.Is(err, bmc.ErrUnauthorized) {
		t.Errorf("System() error = %v, want ErrUnauthorized", err)
	}
	get(t, p, config)
	f.want(t, "after a late refusal", 2, 1)

	f.SetCredentials(bmc.Credentials{}) // takes both
	config.Credentials.Password = "three"
	get(t, p, config)
	f.want(t, "after a change of password", 3, 2)
}

func TestPoolIdle(t *testing.T) {
	p, f, clock, config := newPool(t)
	c := get(t, p, config)
	other := config
	other.Address.Host = "other.example"
	get(t, p, other)
	clock.Sleep(9 * time.Minute)
	if err := c.SetPower(t.Context(), bmc.PowerOn); err != nil { // in use
		t.Errorf("SetPower() error = %v", err)
	}
	clock.Sleep(2 * time.Minute)
	get(t, p, config)
	f.want(t, "when the other one is idle", 2, 1)
	get(t, p, other)
	f.want(t, "when the other one is asked for again", 3, 1)
}

func TestPoolErrors(t *testing.T) {
	p, f, _, config := newPool(t)
	ipmi := config
	ipmi.Address.Driver = "ipmi"
	if _, err := p.Get(t.Context(), ipmi); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Get() without a driver: error = %v, want ErrUnsupported", err)
	}

	// A caller that waits for the login of another can give up, and so can the one
	// that logs in.
	arrived, resume := f.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := p.Get(ctx, config)
			failed <- err
		}()
	}
	<-arrived
	cancel()
	for range 2 {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Get(), cancelled, error = %v", err)
		}
	}
	resume()
	get(t, p, config)
	f.want(t, "after two that gave up", 1, 0)
}

// All methods of a pooled client reach the BMC.
func TestPoolForwards(t *testing.T) {
	p, f, _, config := newPool(t)
	c := get(t, p, config)
	ctx := t.Context()
	if err := errors.Join(c.SetBoot(ctx, bmc.Boot{Device: bmc.BootCD}), c.InsertMedia(ctx, "http://images.example/a.iso")); err != nil {
		t.Fatal(err)
	}
	s, err := c.System(ctx)
	m, e := c.Media(ctx)
	if err != nil || e != nil || s.Boot.Device != bmc.BootCD || m.Image != "http://images.example/a.iso" {
		t.Errorf("System(), Media() = %+v, %+v, %v, %v", s, m, err, e)
	}
	if err := c.EjectMedia(ctx); err != nil {
		t.Errorf("EjectMedia() error = %v", err)
	}
	if got := len(f.Calls()); got != 6 { // with Open
		t.Errorf("the BMC saw %d calls, want 6: %v", got, f.Calls())
	}
}

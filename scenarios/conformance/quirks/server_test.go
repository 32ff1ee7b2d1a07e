package quirks

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	k8sclock "k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/ipmi"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	simbmc "github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// testServer is a server whose BMC has a quirk, and a pool of drivers for it.
type testServer struct {
	*testing.T
	lab        *racktest.Rack
	server     *rack.Host
	pool       *bmc.Pool
	config     bmc.Config
	httpFiles  string // URL of a server of images
	httpsFiles string // URL of a server of images with TLS
	// retryFor is how long, in the lab's time, an operation is retried for which the
	// BMC is not ready, as a controller does.
	retryFor      time.Duration
	slowResponses bool            // responses take lab time, which the test must advance
	boots         *racktest.Boots // the sources from which the server has booted
}

func newBench(t *testing.T, profile, quirk string) *testServer {
	t.Helper()
	b := &testServer{T: t, boots: racktest.NewBoots(t), retryFor: 15 * time.Minute}
	r := rackfile.Default(1)
	r.Hosts[0].Profile = profile
	if quirk != "" {
		r.Hosts[0].Quirks = []string{quirk}
	}
	var roots *x509.CertPool
	b.httpFiles, b.httpsFiles, roots = racktest.ServeImages(t)
	b.slowResponses = strings.HasPrefix(quirk, "slow-")
	b.lab = racktest.Start(t, rack.Config{Rack: &r, Events: b.boots.Answer, Media: outbound.Config{RootCAs: roots}})
	b.server = b.lab.First()
	scheme := "redfish-virtualmedia"
	b.pool = &bmc.Pool{Drivers: map[string]bmc.Open{"redfish": redfish.Open, "ipmi": ipmi.Open}, Clock: labClock{b.lab}}
	t.Cleanup(b.pool.Close)
	at := strings.Replace(strings.Replace(b.server.URL(), "https:", scheme+":", 1), "http:", scheme+"+http:", 1)
	if strings.HasPrefix(quirk, "ipmi-") {
		udp, on := b.server.IPMI()
		if !on { // nobody is there
			udp, b.retryFor = b.server.Address(), 0
		}
		at = "ipmi://" + udp.String()
	}
	address, err := bmc.ParseAddress(at)
	if err != nil {
		t.Fatal(err)
	}
	user, password := b.lab.Credentials(b.server)
	b.config = bmc.Config{
		Address: address, Credentials: bmc.Credentials{Username: user, Password: password},
		RootCAs: b.lab.CAs(), Clock: labClock{b.lab},
	}
	return b
}

// retry runs work with a client from the pool until it does not fail with
// ErrUnreachable, or retryFor is over.
func (b *testServer) retry(work func(c bmc.Client) error) error {
	b.Helper()
	for began := b.lab.Clock().Now(); ; {
		c, err := b.pool.Get(b.Context(), b.config)
		if err == nil {
			err = b.advanceWhile(func() error { return work(c) })
		}
		if !errors.Is(err, bmc.ErrUnreachable) || b.lab.Clock().Since(began) >= b.retryFor {
			return err
		}
		b.lab.Advance(10 * time.Second)
	}
}

// advanceWhile runs work, and advances the clock while it waits for a response.
func (b *testServer) advanceWhile(work func() error) error {
	if !b.slowResponses {
		return work()
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Millisecond):
			if b.lab.Waiting() > 0 {
				b.lab.Advance(time.Second)
			}
		}
	}
}

// failLogins attempts logins with a wrong password.
func (b *testServer) failLogins(times int, from string) {
	for range times {
		b.server.Login(simbmc.Credentials{Name: b.config.Credentials.Username, Password: "no", To: simbmc.ForRedfish, From: from})
	}
}

// until reads the system until it is as wanted.
func (b *testServer) until(what string, is func(bmc.System) bool) error {
	b.Helper()
	var last bmc.System
	for range 120 {
		err := b.retry(func(c bmc.Client) (err error) { last, err = c.System(b.Context()); return err })
		if err != nil {
			return err
		}
		if is(last) {
			return nil
		}
		b.lab.Advance(10 * time.Second)
	}
	return errors.New("the system is never " + what)
}

// power performs a power action and waits for a power state.
func (b *testServer) power(a bmc.PowerAction, want bmc.Power) error {
	b.Helper()
	if err := b.retry(func(c bmc.Client) error { return c.SetPower(b.Context(), a) }); err != nil {
		return err
	}
	return b.until(string(want), func(s bmc.System) bool { return s.Power == want })
}

// start performs a power action and returns what the system has booted from.
func (b *testServer) start(a bmc.PowerAction) (machine.SourceKind, error) {
	b.Helper()
	before := len(b.boots.Sources())
	var err error
	for range 2 { // as controllers do whose agent does not come up
		if err := b.power(a, bmc.On); err != nil {
			return "", err
		}
		if err = b.until("running", func(bmc.System) bool { return len(b.boots.Sources()) > before }); err == nil {
			return b.boots.Sources()[before], nil
		}
	}
	return "", err
}

// labClock is the lab's clock for a driver: a wait advances it.
type labClock struct{ lab *racktest.Rack }

var _ k8sclock.Clock = labClock{}

func (c labClock) Now() time.Time                         { return c.lab.Clock().Now() }
func (c labClock) Since(t time.Time) time.Duration        { return c.lab.Clock().Since(t) }
func (c labClock) Sleep(d time.Duration)                  { c.lab.Advance(d) }
func (c labClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }
func (c labClock) Tick(d time.Duration) <-chan time.Time  { return c.After(d) }

func (c labClock) NewTimer(d time.Duration) k8sclock.Timer {
	c.lab.Advance(d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return expiredTimer(fired)
}

// expiredTimer is a timer that has fired.
type expiredTimer chan time.Time

func (o expiredTimer) C() <-chan time.Time      { return o }
func (o expiredTimer) Stop() bool               { return false }
func (o expiredTimer) Reset(time.Duration) bool { panic("no driver does that") }

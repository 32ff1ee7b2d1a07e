package agent_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/metalab-dev/metalab/agent"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

const token = "token-of-this-boot"

// controller is the server side of the contract in package job.
type controller struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	jobs     []job.Job // the first is offered until its final report has arrived
	leases   int
	keys     []string // fingerprints of the keys that have been used, in order
	reports  map[string][]job.Report
	onLease  func(n int, w http.ResponseWriter) (answered bool)
	onReport func(id string, r job.Report, w http.ResponseWriter) (answered bool)
	final    chan string // IDs of jobs whose final report has arrived
	conns    sync.WaitGroup
}

// startController listens on addr, or on any port if it is empty.
func startController(t *testing.T, addr string, jobs ...job.Job) *controller {
	t.Helper()
	c := &controller{t: t, jobs: jobs, reports: map[string][]job.Report{}, final: make(chan string, 100)}
	c.Server = httptest.NewUnstartedServer(c)
	if addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Listener.Close()
		c.Listener = l
	}
	c.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			c.conns.Add(1)
		case http.StateClosed:
			c.conns.Done()
		}
	}
	c.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func (c *controller) media() job.Media {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	return job.Media{Server: c.URL, CA: string(ca), Token: token, Boot: "boot-1"}
}

func (c *controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer "+token {
		c.t.Errorf("%s %s with Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	if len(r.TLS.PeerCertificates) != 1 {
		c.t.Errorf("%s %s with %d client certificates, want the agent's", r.Method, r.URL, len(r.TLS.PeerCertificates))
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent has disconnected
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := job.Fingerprint(r.TLS.PeerCertificates[0]); !slices.Contains(c.keys, key) {
		c.keys = append(c.keys, key)
	}
	if r.URL.Path == job.LeasePath {
		c.lease(w, body)
		return
	}
	id := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/v1/jobs/"), "/report")
	var report job.Report
	if err := json.Unmarshal(body, &report); err != nil {
		c.t.Errorf("report %q: %v", body, err)
	}
	c.report(w, id, report)
}

func (c *controller) lease(w http.ResponseWriter, body []byte) {
	var l job.Lease
	if err := json.Unmarshal(body, &l); err != nil || l.Agent == "" {
		c.t.Errorf("lease %q: %v; want the agent's version", body, err)
	}
	c.leases++
	switch {
	case c.onLease != nil && c.onLease(c.leases-1, w):
	case len(c.jobs) == 0:
		w.WriteHeader(http.StatusNoContent)
	default:
		if err := json.NewEncoder(w).Encode(c.jobs[0]); err != nil {
			c.t.Errorf("job %s: %v", c.jobs[0].ID, err)
		}
	}
}

func (c *controller) report(w http.ResponseWriter, id string, r job.Report) {
	if c.onReport != nil && c.onReport(id, r, w) {
		return
	}
	c.reports[id] = append(c.reports[id], r)
	if r.State != job.Running {
		if len(c.jobs) > 0 && c.jobs[0].ID == id {
			c.jobs = c.jobs[1:]
		}
		c.final <- id
	}
	w.WriteHeader(http.StatusNoContent)
}

// last returns the final report of a job.
func (c *controller) last(id string) job.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.reports[id]
	if len(all) == 0 {
		return job.Report{}
	}
	return all[len(all)-1]
}

// wait waits for the final reports of jobs, in order.
func (c *controller) wait(ids ...string) {
	c.t.Helper()
	for _, want := range ids {
		select {
		case got := <-c.final:
			if got != want {
				c.t.Fatalf("final report of job %s, want that of %s", got, want)
			}
		case <-c.t.Context().Done():
		}
	}
}

// lab is a fake clock that jumps to each timer when nothing is in flight, like the
// emulator's. It records how long the agent waited.
type lab struct {
	*clocktesting.FakeClock
	mu     sync.Mutex
	flying int
	idle   *sync.Cond // signals changes of flying and waits
	timers chan time.Duration
	waits  []time.Duration
}

func newLab() *lab {
	l := &lab{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0)), timers: make(chan time.Duration, 100)}
	l.idle = sync.NewCond(&l.mu)
	return l
}

func (l *lab) NewTimer(d time.Duration) clock.Timer {
	l.mu.Lock()
	if l.flying == 0 {
		panic("a timer was made while nothing is in flight: the clock may have jumped")
	}
	l.waits = append(l.waits, d)
	l.idle.Broadcast()
	l.mu.Unlock()
	t := l.FakeClock.NewTimer(d)
	l.timers <- d
	return t
}

func (l *lab) enter() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flying--
		l.idle.Broadcast()
	})
}

// run steps the clock until ctx ends.
func (l *lab) run(ctx context.Context) {
	defer context.AfterFunc(ctx, l.idle.Broadcast)()
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-l.timers:
			l.mu.Lock()
			for l.flying > 0 && ctx.Err() == nil {
				l.idle.Wait()
			}
			l.mu.Unlock()
			l.Step(d)
		}
	}
}

// await returns when the agent has begun its n-th wait.
func (l *lab) await(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waits) < n {
		l.idle.Wait()
	}
}

// waited returns the agent's waits.
func (l *lab) waited() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.waits...)
}

// strangerCA returns a certificate that has signed nothing in the test.
func strangerCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// node is a server with one disk.
type node struct {
	disk   *systest.Memory
	system *systest.System
	clock  *lab
	stop   context.CancelFunc
	done   chan error
}

// boot runs an agent on a new server.
func boot(t *testing.T, m job.Media) *node { return bootWith(t, m, func(*agent.Config) {}) }

// bootWith runs an agent with a changed configuration.
func bootWith(t *testing.T, m job.Media, change func(*agent.Config)) *node {
	t.Helper()
	n := &node{disk: systest.NewMemory(16 << 20), clock: newLab(), done: make(chan error, 1)}
	if _, err := n.disk.WriteAt(bytes.Repeat([]byte{0xdb}, 16<<20), 0); err != nil {
		t.Fatal(err)
	}
	n.system = systest.New(systest.Machine{
		Hostname: "node-1", Serial: "ABC1234",
		Disks: []systest.Disk{{Kind: systest.SATA, Size: n.disk.Size(), Serial: "S1", Open: func() (sys.Block, error) { return n.disk, nil }}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var clockRuns sync.WaitGroup
	clockRuns.Go(func() { n.clock.run(ctx) })
	config := agent.Config{
		Media: m, System: n.system, Clock: n.clock, Enter: n.clock.enter,
		Log: slog.New(slog.DiscardHandler),
	}
	change(&config)
	go func() { n.done <- agent.Run(ctx, config) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-n.done; err != nil {
			t.Errorf("Run = %v", err)
		}
		clockRuns.Wait()
	})
	t.Cleanup(n.stop)
	return n
}

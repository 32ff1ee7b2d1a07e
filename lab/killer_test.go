package lab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// killer kills the controllers of a lab at random points in the lives of its hosts, and
// starts others. The points are counted for each host: before and after each write to the
// Kubernetes API and each command to the BMC, at each step of the agent, and at each
// request for the image. After a kill, writes and commands of the killed controllers fail.
type killer struct {
	lab    *Lab
	killed chan struct{} // holds one

	mu   sync.Mutex
	dead bool
	// restarted is closed when there are controllers again.
	restarted chan struct{}
	counting  bool                 // no kills: the points of a life are counted
	plans     map[string]*killPlan // by the names of object and server, and by BMC address
	byServer  []*killPlan          // in the order of the servers
	kills     int
}

// killPlan holds the points of a host at which the controllers are killed.
type killPlan struct {
	object         string // name
	way            int    // in or out, as in batch.live
	points         int    // counted since begin
	duringDownload bool   // the controllers are also killed in the middle of the image
	baseline       [2]int // points of each way in a life without a kill
	killPoints     []int  // points at which the controllers are killed, in order

	images int                        // downloads of the image
	jobs   map[string]map[string]bool // IDs of the jobs that the agent has begun, by kind
}

var errKilled = errors.New("the controller was killed")

// newKiller returns a killer. The Config of its lab has to include log and imageServer;
// take wraps the clients of the Kubernetes API and of the BMCs.
func newKiller() *killer {
	return &killer{killed: make(chan struct{}, 1), plans: map[string]*killPlan{}}
}

// wrapClients wraps the clients of a lab that has no controllers yet.
func (m *killer) wrapClients(t *testing.T, l *Lab, objects []string) {
	t.Helper()
	m.lab = l
	for i, h := range l.Hosts() {
		address, err := bmc.ParseAddress(h.BMCAddress)
		if err != nil {
			t.Fatal(err)
		}
		f := &killPlan{object: objects[i], jobs: map[string]map[string]bool{}}
		m.byServer = append(m.byServer, f)
		for _, name := range []string{objects[i], h.Name, address.Host} {
			m.plans[name] = f
		}
	}
	l.kube.api = rest.CopyConfig(l.kube.api)
	l.kube.api.Wrap(m.api)
	l.drivers = manager.BMCs().Drivers
	for scheme, open := range l.drivers {
		l.drivers[scheme] = m.bmc(open)
	}
}

// run starts controllers, and starts others after each kill, until ctx ends.
func (m *killer) run(ctx context.Context) error {
	for {
		m.mu.Lock()
		m.dead = false
		m.mu.Unlock()
		if err := m.lab.StartControllers(ctx); err != nil && ctx.Err() == nil && !m.controllersDead() {
			return err
		}
		m.signalRestart()
		select {
		case <-ctx.Done():
			return nil
		case <-m.killed: // possibly during their start
			m.lab.KillControllers()
		}
	}
}

// signalRestart closes restarted, unless the new controllers have been killed already.
func (m *killer) signalRestart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restarted != nil && !m.dead {
		close(m.restarted)
		m.restarted = nil
	}
}

func (m *killer) controllersDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// begin begins the way in or the way out of all hosts. The controllers are killed one to
// maxKills times at points of each host, which its seed determines. Without seeds begin
// plans no kills, and the points of the way are counted.
func (m *killer) begin(way int, seeds []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, f := range m.byServer {
		f.way, f.points, f.killPoints = way, 0, nil
		if seeds == nil {
			f.baseline[way] = 0
			continue
		}
		chance := rand.New(rand.NewPCG(seeds[i], uint64(way)))
		for range 1 + chance.IntN(maxKills) {
			f.killPoints = append(f.killPoints, 1+chance.IntN(f.baseline[way]))
		}
		slices.Sort(f.killPoints)
		f.duringDownload = seeds[i]%4 == 0 && way == 0
	}
	m.counting = seeds == nil
}

const maxKills = 5

// killCount returns the number of kills so far.
func (m *killer) killCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kills
}

// step counts a point of a host; f is nil when the point belongs to none. It kills the
// controllers when the plan says so, and returns errKilled while none run.
func (m *killer) step(f *killPlan) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	if f == nil {
		return nil
	}
	f.points++
	if m.counting {
		f.baseline[f.way] = f.points
	}
	if len(f.killPoints) == 0 || f.points < f.killPoints[0] {
		return nil
	}
	f.killPoints = f.killPoints[1:]
	return m.kill()
}

// kill kills the controllers. The caller holds m.mu.
func (m *killer) kill() error {
	m.kills++
	m.dead = true
	if m.restarted == nil { // else downloads wait since an earlier kill
		m.restarted = make(chan struct{})
	}
	m.killed <- struct{}{}
	return errKilled
}

// call makes a call between two points: the controllers may be killed before the call,
// or after it but before they get its result.
func (m *killer) call(f *killPlan, call func() error) error {
	if err := m.step(f); err != nil {
		return err
	}
	err := call()
	if died := m.step(f); died != nil {
		return died
	}
	return err
}

// planIn returns the plan of the host whose name is in a text, nil when none is.
func (m *killer) planIn(text []byte) *killPlan {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plans[string(objectName.Find(text))]
}

var objectName = regexp.MustCompile(`host-[0-9]{2}`)

// recordJob records a job that an agent has begun.
func (m *killer) recordJob(f *killPlan, kind, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.jobs[kind] == nil {
		f.jobs[kind] = map[string]bool{}
	}
	f.jobs[kind][id] = true
}

// takeCounts returns the number of downloads of the image for a host, and of its jobs by kind,
// since the last call.
func (m *killer) takeCounts(object string) (downloads int, jobs map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.plans[object]
	jobs = map[string]int{}
	for kind, ids := range f.jobs {
		jobs[kind] = len(ids)
	}
	downloads, f.images, f.jobs = f.images, 0, map[string]map[string]bool{}
	return downloads, jobs
}

// api wraps the transport of the Kubernetes API: each write goes through call.
func (m *killer) api(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (resp *http.Response, err error) {
		if req.Method == http.MethodGet {
			return next.RoundTrip(req)
		}
		f := m.planIn([]byte(req.URL.Path))
		if f == nil && req.Body != nil { // a creation: the name is in the body
			b, err := io.ReadAll(req.Body)
			req.Body.Close()
			if err != nil {
				return nil, err
			}
			f, req.Body = m.planIn(b), io.NopCloser(bytes.NewReader(b))
		}
		err = m.call(f, func() error {
			resp, err = next.RoundTrip(req)
			return err
		})
		if err != nil && resp != nil {
			resp.Body.Close()
			resp = nil
		}
		return resp, err
	})
}

// bmc wraps a driver: each command to a BMC goes through call.
func (m *killer) bmc(open bmc.Open) bmc.Open {
	return func(ctx context.Context, c bmc.Config) (bmc.Client, error) {
		client, err := open(ctx, c)
		if err != nil {
			return nil, err
		}
		mortal := killingClient{Client: client, m: m, f: m.planOf(c.Address.Host)}
		more, can := client.(fullClient)
		if !can {
			return mortal, nil
		}
		return struct {
			killingClient
			bmc.Setup
			bmc.Updater
			bmc.Storer
			bmc.Subscriber
		}{mortal, more, more, more, more}, nil
	}
}

func (m *killer) planOf(name string) *killPlan {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plans[name]
}

// fullClient is a client with all optional interfaces.
type fullClient interface {
	bmc.Setup
	bmc.Updater
	bmc.Storer
	bmc.Subscriber
}

type killingClient struct {
	bmc.Client
	m *killer
	f *killPlan
}

func (c killingClient) SetPower(ctx context.Context, a bmc.PowerAction) error {
	return c.m.call(c.f, func() error { return c.Client.SetPower(ctx, a) })
}

func (c killingClient) SetBoot(ctx context.Context, b bmc.Boot) error {
	return c.m.call(c.f, func() error { return c.Client.SetBoot(ctx, b) })
}

func (c killingClient) InsertMedia(ctx context.Context, urls ...string) error {
	return c.m.call(c.f, func() error { return c.Client.InsertMedia(ctx, urls...) })
}

func (c killingClient) EjectMedia(ctx context.Context) error {
	return c.m.call(c.f, func() error { return c.Client.EjectMedia(ctx) })
}

// imageServer wraps the image server: each download is a point of its host. A download
// during which the controllers are killed continues after others have been started.
func (m *killer) imageServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := m.planIn([]byte(r.URL.RawQuery))
		if f == nil || r.Method != http.MethodGet || r.URL.Path != images.PathPrefix+DemoImage {
			next.ServeHTTP(w, r)
			return
		}
		_ = m.step(f) // the server is not a controller: it goes on
		next.ServeHTTP(&download{ResponseWriter: w, m: m, f: f, ctx: r.Context(), half: 1 << 20}, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		f.images++
	})
}

// download is the response to a request for an image.
type download struct {
	http.ResponseWriter
	m    *killer
	f    *killPlan
	ctx  context.Context
	half int // bytes to its middle
}

func (d *download) Write(b []byte) (int, error) {
	if d.half -= len(b); d.half <= 0 {
		if restarted := d.m.killDuringDownload(d.f); restarted != nil {
			select {
			case <-restarted:
			case <-d.ctx.Done():
				return 0, d.ctx.Err()
			}
		}
	}
	return d.ResponseWriter.Write(b)
}

// killDuringDownload kills the controllers in the middle of a download if the plan says so.
// It returns a channel that is closed after the restart, nil when there is nothing to wait
// for.
func (m *killer) killDuringDownload(f *killPlan) (restarted <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !f.duringDownload {
		return nil
	}
	f.duringDownload = false
	if !m.dead {
		_ = m.kill()
	}
	return m.restarted
}

// log returns the logger of a lab, which gets the steps of agents.
func (m *killer) log() *slog.Logger { return slog.New(agentSteps{m: m}) }

// agentSteps is a slog.Handler with the attributes that it has got so far.
type agentSteps struct {
	m                  *killer
	machine, job, kind string
}

// steps are the log messages of an agent that count as points: the first after it has got
// a job, the last before it reports the job done.
var steps = map[string]bool{"registered with the controller": true, "job started": true, "job goes on": true, "job done": true}

func (h agentSteps) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h agentSteps) Handle(_ context.Context, r slog.Record) error {
	f := h.m.planOf(h.machine)
	if f == nil || !steps[r.Message] {
		return nil
	}
	if r.Message == "job started" {
		h.m.recordJob(f, h.kind, h.job)
	}
	_ = h.m.step(f) // the agent is not killed
	return nil
}

func (h agentSteps) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if into, ok := map[string]*string{"machine": &h.machine, "job": &h.job, "kind": &h.kind}[a.Key]; ok {
			*into = a.Value.String()
		}
	}
	return h
}

func (h agentSteps) WithGroup(string) slog.Handler { return h }

package world

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

// mortality kills the controllers of a world whenever one of its hosts has come
// to a point that was drawn for it, and starts others. Points are counted, for
// each host by itself: before and after each write to the Kubernetes API and each
// command to the BMC, at each step of the agent, and at each request for the
// image. Who is dead writes nothing more and commands nothing more.
type mortality struct {
	world  *World
	killed chan struct{} // holds one

	mu   sync.Mutex
	dead bool
	// reborn is closed when there are controllers again.
	reborn chan struct{}
	calm   bool             // nobody dies
	fates  map[string]*fate // by object, server and address of the BMC
	each   []*fate          // in the order of the servers
	kills  int
}

// fate is what is to come over the controllers on a host's account, and what has.
type fate struct {
	object string // name
	way    int
	points int    // of this way, so far
	midway bool   // they are killed in the middle of the image, too
	calm   [2]int // of each way, without a death
	due    []int  // points at which they are killed, the next first

	images int                        // downloads
	jobs   map[string]map[string]bool // IDs of those that the agent has begun, by kind
}

var errKilled = errors.New("the controller is dead")

// newMortality stands between the controllers of a world and all that they
// touch; what is the world's own has to be told of it in its Config: see log and
// imageServer.
func newMortality() *mortality {
	return &mortality{killed: make(chan struct{}, 1), fates: map[string]*fate{}}
}

// take takes the controllers of a world that has none yet into its hands.
func (m *mortality) take(t *testing.T, w *World, objects []string) {
	t.Helper()
	m.world = w
	for i, h := range w.Hosts() {
		address, err := bmc.ParseAddress(h.BMCAddress)
		if err != nil {
			t.Fatal(err)
		}
		f := &fate{object: objects[i], jobs: map[string]map[string]bool{}}
		m.each = append(m.each, f)
		for _, name := range []string{objects[i], h.Name, address.Host} {
			m.fates[name] = f
		}
	}
	w.kube.api = rest.CopyConfig(w.kube.api)
	w.kube.api.Wrap(m.api)
	w.drivers = manager.BMCs().Drivers
	for scheme, open := range w.drivers {
		w.drivers[scheme] = m.bmc(open)
	}
}

// reign starts controllers, and others whenever they are killed, until ctx ends.
func (m *mortality) reign(ctx context.Context) error {
	for {
		m.mu.Lock()
		m.dead = false
		m.mu.Unlock()
		if err := m.world.StartControllers(ctx); err != nil && !m.died() {
			return err
		}
		m.up()
		select {
		case <-ctx.Done():
			return nil
		case <-m.killed: // some die as they come up
			m.world.KillControllers()
		}
	}
}

// up tells who waits that controllers live, if they still do.
func (m *mortality) up() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reborn != nil && !m.dead {
		close(m.reborn)
		m.reborn = nil
	}
}

func (m *mortality) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// begin begins a way that all hosts go, on which the controllers are killed one
// to maxKills times on account of each, as its seed has it. Without seeds they
// live, and the points are counted that such a way has.
func (m *mortality) begin(way int, seeds []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, f := range m.each {
		f.way, f.points, f.due = way, 0, nil
		if seeds == nil {
			f.calm[way] = 0
			continue
		}
		chance := rand.New(rand.NewPCG(seeds[i], uint64(way)))
		for range 1 + chance.IntN(maxKills) {
			f.due = append(f.due, 1+chance.IntN(f.calm[way]))
		}
		slices.Sort(f.due)
		f.midway = seeds[i]%4 == 0 && way == 0
	}
	m.calm = seeds == nil
}

const maxKills = 5

// deaths are those so far.
func (m *mortality) deaths() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kills
}

// step is a point of a host, or of none. It fails when the controllers are dead.
func (m *mortality) step(f *fate) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	if f == nil {
		return nil
	}
	f.points++
	if m.calm {
		f.calm[f.way] = f.points
	}
	if len(f.due) == 0 || f.points < f.due[0] {
		return nil
	}
	f.due = f.due[1:]
	return m.kill()
}

// kill is for who holds m.mu.
func (m *mortality) kill() error {
	m.kills++
	m.dead = true
	if m.reborn == nil { // else some wait since another death
		m.reborn = make(chan struct{})
	}
	m.killed <- struct{}{}
	return errKilled
}

// around makes a call, or the controllers die before it, or before they learn
// what came of it.
func (m *mortality) around(f *fate, call func() error) error {
	if err := m.step(f); err != nil {
		return err
	}
	err := call()
	if died := m.step(f); died != nil {
		return died
	}
	return err
}

// of finds the host that a text names.
func (m *mortality) of(text []byte) *fate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fates[string(objectName.Find(text))]
}

var objectName = regexp.MustCompile(`host-[0-9]{2}`)

// begun notes a job that an agent has been given.
func (m *mortality) begun(f *fate, kind, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.jobs[kind] == nil {
		f.jobs[kind] = map[string]bool{}
	}
	f.jobs[kind][id] = true
}

// done are the downloads of the image for a host, and its jobs by kind, since
// they were last asked for.
func (m *mortality) done(object string) (downloads int, jobs map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fates[object]
	jobs = map[string]int{}
	for kind, ids := range f.jobs {
		jobs[kind] = len(ids)
	}
	downloads, f.images, f.jobs = f.images, 0, map[string]map[string]bool{}
	return downloads, jobs
}

// api watches what is written to the Kubernetes API.
func (m *mortality) api(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (resp *http.Response, err error) {
		if req.Method == http.MethodGet {
			return next.RoundTrip(req)
		}
		f := m.of([]byte(req.URL.Path))
		if f == nil && req.Body != nil { // it is made, and has no path yet
			b, err := io.ReadAll(req.Body)
			req.Body.Close()
			if err != nil {
				return nil, err
			}
			f, req.Body = m.of(b), io.NopCloser(bytes.NewReader(b))
		}
		err = m.around(f, func() error {
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

// bmc watches what BMCs are commanded.
func (m *mortality) bmc(open bmc.Open) bmc.Open {
	return func(ctx context.Context, c bmc.Config) (bmc.Client, error) {
		client, err := open(ctx, c)
		if err != nil {
			return nil, err
		}
		mortal := mortalClient{Client: client, m: m, f: m.named(c.Address.Host)}
		more, can := client.(capable)
		if !can {
			return mortal, nil
		}
		return struct {
			mortalClient
			bmc.Setup
			bmc.Updater
			bmc.Storer
			bmc.Subscriber
		}{mortal, more, more, more, more}, nil
	}
}

func (m *mortality) named(name string) *fate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fates[name]
}

// capable is a client that can do all that clients can.
type capable interface {
	bmc.Setup
	bmc.Updater
	bmc.Storer
	bmc.Subscriber
}

type mortalClient struct {
	bmc.Client
	m *mortality
	f *fate
}

func (c mortalClient) SetPower(ctx context.Context, a bmc.PowerAction) error {
	return c.m.around(c.f, func() error { return c.Client.SetPower(ctx, a) })
}

func (c mortalClient) SetBoot(ctx context.Context, b bmc.Boot) error {
	return c.m.around(c.f, func() error { return c.Client.SetBoot(ctx, b) })
}

func (c mortalClient) InsertMedia(ctx context.Context, urls ...string) error {
	return c.m.around(c.f, func() error { return c.Client.InsertMedia(ctx, urls...) })
}

func (c mortalClient) EjectMedia(ctx context.Context) error {
	return c.m.around(c.f, func() error { return c.Client.EjectMedia(ctx) })
}

// imageServer watches who fetches the image. A download in whose middle the
// controllers die goes on when there are others.
func (m *mortality) imageServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := m.of([]byte(r.URL.RawQuery))
		if f == nil || r.Method != http.MethodGet || r.URL.Path != images.PathPrefix+DemoImage {
			next.ServeHTTP(w, r)
			return
		}
		_ = m.step(f) // the server is nobody's who dies
		next.ServeHTTP(&download{ResponseWriter: w, m: m, f: f, ctx: r.Context(), half: 1 << 20}, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		f.images++
	})
}

// download is an answer with an image.
type download struct {
	http.ResponseWriter
	m    *mortality
	f    *fate
	ctx  context.Context
	half int // bytes to its middle
}

func (d *download) Write(b []byte) (int, error) {
	if d.half -= len(b); d.half <= 0 {
		if reborn := d.m.strike(d.f); reborn != nil {
			select {
			case <-reborn:
			case <-d.ctx.Done():
				return 0, d.ctx.Err()
			}
		}
	}
	return d.ResponseWriter.Write(b)
}

// strike kills the controllers in the middle of a download, where they are to
// die there.
func (m *mortality) strike(f *fate) (reborn <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !f.midway {
		return nil
	}
	f.midway = false
	if !m.dead {
		_ = m.kill()
	}
	return m.reborn
}

// log is the log of a world, in which agents tell what they do.
func (m *mortality) log() *slog.Logger { return slog.New(agentSteps{m: m}) }

// agentSteps is a slog.Handler, with what it was told so far.
type agentSteps struct {
	m                  *mortality
	machine, job, kind string
}

// steps of an agent: the first comes after it has been given work, the last
// before it tells that it has done it.
var steps = map[string]bool{"registered with the controller": true, "job started": true, "job goes on": true, "job done": true}

func (h agentSteps) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h agentSteps) Handle(_ context.Context, r slog.Record) error {
	f := h.m.named(h.machine)
	if f == nil || !steps[r.Message] {
		return nil
	}
	if r.Message == "job started" {
		h.m.begun(f, h.kind, h.job)
	}
	_ = h.m.step(f) // the agent lives
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

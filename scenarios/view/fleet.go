package view

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// fleet is the page of a lab in several processes. Each shard serves a page of its own servers;
// this one gathers their events, adds the Kubernetes objects, which no shard has, and sends
// requests for a server to the shard that runs it.
type fleet struct {
	s *Server

	mu      sync.Mutex
	objects map[string]Object // by host
	history map[string][]Step
	changed map[string]uint64 // version of the last change of an object, by host
	version uint64            // version of the objects
}

func newFleet(s *Server) *fleet {
	return &fleet{s: s, objects: map[string]Object{}, history: map[string][]Step{}, changed: map[string]uint64{}}
}

// fleetRoutes are the paths of the page of a lab in several processes.
var fleetRoutes = []struct {
	pattern string
	do      func(f *fleet, w http.ResponseWriter, r *http.Request)
}{
	{"GET /{$}", (*fleet).page},
	{"GET /events", (*fleet).events},
	{"GET /rack.svg", (*fleet).svg},
	{"GET /hosts/{host}/objects", (*fleet).describe},
	{"GET /hosts/{host}/contents", (*fleet).forward},
	{"POST /hosts/{host}/console", (*fleet).forward},
	{"POST /hosts/{host}/actions/{action}", (*fleet).act},
}

// setObject sets the object of a host.
func (f *fleet) setObject(o Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, known := f.objects[o.Host]; known && was == o {
		return
	}
	f.history[o.Host] = addStep(f.history[o.Host], o, f.s.c.Rack.Clock().Now().UTC())
	f.objects[o.Host] = o
	f.version++
	f.changed[o.Host] = f.version
}

// object returns the object of a host and its history; the zero value when it has none.
func (f *fleet) object(host string) (Object, []Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[host], append([]Step{}, f.history[host]...)
}

// changedSince returns the hosts whose objects have changed since a version of the objects, and
// the version now.
func (f *fleet) changedSince(version uint64) (out []string, now uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version == f.version {
		return nil, version
	}
	for host, at := range f.changed {
		if at > version {
			out = append(out, host)
		}
	}
	return out, f.version
}

// withObject returns a tile with the state of the host's object.
func (f *fleet) withObject(t Tile) Tile {
	o, _ := f.object(t.Name)
	t.State, t.Role, t.Error = o.State, o.Role, o.Error
	return t
}

// first returns the index of the first server of a shard among those of the lab.
func first(s control.Shard) int {
	if s.Rack.Part == nil {
		return 0
	}
	return s.Rack.Part.First
}

// offline is the BMC of a tile whose shard does not run.
const offline = control.Offline

// absent returns the tiles of a shard that does not run.
func absent(s control.Shard) (out []Tile) {
	for i, h := range s.Rack.Each() {
		out = append(out, Tile{Index: first(s) + i, Name: h.Name, Rack: h.Rack, Profile: h.Profile, BMC: offline})
	}
	return out
}

// shardOf returns the shard that has a host.
func (f *fleet) shardOf(host string) (control.Shard, bool) {
	for _, s := range f.s.c.Shards() {
		for _, h := range s.Rack.Each() {
			if h.Name == host {
				return s, true
			}
		}
	}
	return control.Shard{}, false
}

// shard returns the shard of the host that a path names. It answers when there is none.
func (f *fleet) shard(w http.ResponseWriter, r *http.Request) (control.Shard, bool) {
	s, ok := f.shardOf(r.PathValue("host"))
	if !ok {
		http.Error(w, "there is no host "+r.PathValue("host"), http.StatusNotFound)
	}
	return s, ok
}

// shardPage is the page of a shard.
type shardPage struct {
	at    *url.URL
	token string
}

// pageOf returns the page of a shard that runs.
func pageOf(ctx context.Context, s control.Shard) (shardPage, error) {
	if s.Client == nil {
		return shardPage{}, fmt.Errorf("%s does not run: %s", s.Name, s.Off)
	}
	st, err := s.Client.Status(ctx)
	if err != nil {
		return shardPage{}, fmt.Errorf("%s does not answer: %w", s.Name, err)
	}
	link, err := url.Parse(st.View)
	if err != nil || link.Host == "" {
		return shardPage{}, fmt.Errorf("%s has no page", s.Name)
	}
	return shardPage{at: &url.URL{Scheme: link.Scheme, Host: link.Host}, token: link.Query().Get("token")}, nil
}

// shardHTTP connects to the pages of shards, which are on loopback.
var shardHTTP = &http.Transport{DisableCompression: true}

// authorize makes a request one of this program: the cookie is of another page, and the token
// is the shard's.
func (p shardPage) authorize(h http.Header) {
	for _, name := range []string{"Cookie", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Fetch-User"} {
		h.Del(name)
	}
	h.Set("Authorization", "Bearer "+p.token)
}

// forward sends a request for a host to the page of its shard.
func (f *fleet) forward(w http.ResponseWriter, r *http.Request) {
	s, ok := f.shard(w, r)
	if !ok {
		return
	}
	p, err := pageOf(r.Context(), s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(p.at)
			p.authorize(q.Out.Header)
		},
		Transport: shardHTTP,
		ModifyResponse: func(resp *http.Response) error { // this page has set its own
			for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"} {
				resp.Header.Del(name)
			}
			return nil
		},
		ErrorLog: slog.NewLogLogger(f.s.c.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, s.Name+" does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// act performs an action by the control API of the lab, which sends it to the host's shard.
func (f *fleet) act(w http.ResponseWriter, r *http.Request) {
	if _, ok := f.shard(w, r); ok {
		f.s.actOn(w, r, r.PathValue("host"))
	}
}

// describe answers with the Kubernetes objects of a host.
func (f *fleet) describe(w http.ResponseWriter, r *http.Request) {
	if _, ok := f.shard(w, r); ok {
		f.s.describe(w, r, r.PathValue("host"))
	}
}

// name returns the name of the lab.
func (f *fleet) name() string {
	for _, s := range f.s.c.Shards() {
		return s.Rack.Name
	}
	return f.s.c.Rack.Definition().Name
}

// page answers with the page.
func (f *fleet) page(w http.ResponseWriter, _ *http.Request) { render(w, f.name(), "", f.s.c.Log) }

// svg answers with the racks as an image for reports.
func (f *fleet) svg(w http.ResponseWriter, r *http.Request) {
	f.s.drawSVG(w, r, f.name(), func() []Tile { return f.tiles(r.Context()) })
}

// tiles returns the tiles of all servers. Those of a shard that does not answer are offline.
func (f *fleet) tiles(ctx context.Context) (out []Tile) {
	shards := f.s.c.Shards()
	found := make([][]Tile, len(shards))
	var all sync.WaitGroup
	for i, s := range shards {
		all.Go(func() {
			err := readEvents(ctx, s, url.Values{}, "", func(e shardEvent) error {
				if e.kind != "tiles" {
					return nil
				}
				var err error
				if found[i], err = e.tiles(); err != nil {
					return err
				}
				return errTiles
			})
			if !errors.Is(err, errTiles) {
				f.s.c.Log.Debug("no tiles of a shard", "shard", s.Name, "err", err)
				found[i] = absent(s)
			}
		})
	}
	all.Wait()
	for _, some := range found {
		for _, t := range some {
			out = append(out, f.withObject(t))
		}
	}
	return out
}

// errTiles ends reading when the tiles are there.
var errTiles = errors.New("the tiles are there")

// shardEvent is an event of the page of a shard.
type shardEvent struct {
	shard control.Shard
	kind  string
	id    string
	data  []byte
	ended bool // the stream has ended; there is no event
}

// readEvents calls do with each event of a shard's page, until do returns an error or the stream
// ends.
func readEvents(ctx context.Context, s control.Shard, q url.Values, last string, do func(shardEvent) error) error {
	p, err := pageOf(ctx, s)
	if err != nil {
		return err
	}
	at := *p.at
	at.Path, at.RawQuery = "/events", q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	p.authorize(r.Header)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := shardHTTP.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the page of %s answers %s", s.Name, resp.Status)
	}
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	e := shardEvent{shard: s}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(string(bytes.TrimSuffix(line, []byte("\n"))), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = []byte(value)
		case "":
			if err := do(e); err != nil {
				return err
			}
			e = shardEvent{shard: s}
		}
	}
}

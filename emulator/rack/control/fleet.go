package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// Shard is a part of a lab in several processes.
type Shard struct {
	Name string
	// Rack is the definition of its hosts.
	Rack rackfile.Lab
	// Client reaches its control API; nil while it does not run.
	Client *Client
	// Off says why it does not run, and what to do.
	Off string
	Dir string // its state directory on this computer; "" elsewhere
}

// FleetConfig configures the control API of a lab in several processes.
type FleetConfig struct {
	Dir string // state directory of the lab, for the socket
	// Shards returns all shards in the order of their hosts, with those that do not run.
	Shards func() []Shard
	// Scale, if not nil, changes how many shards run.
	Scale func(ctx context.Context, shards int) error
	// Info, if not nil, returns the status of the parts of the lab that are not in shards.
	Info func() Status
	// Down stops the lab and returns at once. Without it, requests to stop the lab are
	// refused.
	Down func()
	Log  *slog.Logger // nil: none
}

// fleet answers the control API for shards: a request for a host goes to the shard that
// runs it, and one for the lab to all of them.
type fleet struct {
	c FleetConfig
	s *Server

	mu    sync.Mutex
	names map[string]map[string]bool // names of hosts, by shard
}

// NewFleet opens the socket of a lab in several processes.
func NewFleet(c FleetConfig) (*Server, error) {
	s := fleetServer(c)
	return s, s.listen(c.Dir)
}

// FleetHandler returns the control API of a lab in several processes.
func FleetHandler(c FleetConfig) http.Handler { return fleetServer(c).api }

func fleetServer(c FleetConfig) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f := &fleet{c: c, s: &Server{c: Config{Log: c.Log}}, names: map[string]map[string]bool{}}
	f.s.api = f.handler()
	return f.s
}

// gathered are the paths of the API that answer with JSON and are for all shards.
var gathered = []struct {
	pattern string
	do      func(f *fleet, r *http.Request) (any, error)
}{
	{"GET /v1/status", (*fleet).status},
	{"POST /v1/down", (*fleet).down},
	{"GET /v1/hosts", (*fleet).hosts},
	{"GET /v1/rack", (*fleet).rack},
	{"PUT /v1/shards", (*fleet).scale},
	{"GET /v1/faults", (*fleet).faults},
	{"POST /v1/faults", (*fleet).addFaults},
	{"DELETE /v1/faults/{id}", (*fleet).removeFault},
	{"GET /v1/journal", (*fleet).journal},
}

func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	for _, g := range gathered {
		mux.HandleFunc(g.pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			out, err := g.do(f, r)
			f.answer(w, out, err)
		})
	}
	mux.HandleFunc("GET /v1/journal/follow", f.followJournal)
	mux.HandleFunc("POST /v1/power", f.powerAll)
	mux.HandleFunc("POST /v1/snapshot", f.saveSnapshot)
	mux.HandleFunc("GET /metrics", f.metrics)
	mux.HandleFunc("/v1/hosts/{host}", f.forward)
	mux.HandleFunc("/v1/hosts/{host}/", f.forward)
	return mux
}

func (f *fleet) answer(w http.ResponseWriter, out any, err error) {
	var refused *Refused
	switch {
	case err == nil:
		f.s.answer(w, http.StatusOK, out)
	case errors.As(err, &refused):
		f.s.answer(w, refused.Status, errorBody{err.Error()})
	case errors.Is(err, errForbidden):
		f.s.answer(w, http.StatusForbidden, errorBody{err.Error()})
	default:
		f.s.answer(w, http.StatusBadGateway, errorBody{err.Error()})
	}
}

// has reports whether a shard runs a host.
func (f *fleet) has(s Shard, host string) bool { return f.namesOf(s)[host] }

// namesOf returns the names of a shard's hosts.
func (f *fleet) namesOf(s Shard) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[s.Name] == nil {
		all := map[string]bool{}
		for _, h := range s.Rack.Each() {
			all[h.Name] = true
		}
		f.names[s.Name] = all
	}
	return f.names[s.Name]
}

// shardOf returns the shard that runs a host.
func (f *fleet) shardOf(host string) (Shard, error) {
	shards := f.c.Shards()
	for _, s := range shards {
		if f.has(s, host) {
			return s, s.running()
		}
	}
	var all []string
	for _, s := range shards {
		for _, h := range s.Rack.Each() {
			all = append(all, h.Name)
		}
	}
	return Shard{}, &Refused{http.StatusNotFound, "there is no host " + host + suggest.UseOneOf(host, all)}
}

// running returns an error while a shard does not run.
func (s Shard) running() error {
	if s.Client != nil {
		return nil
	}
	return &Refused{http.StatusServiceUnavailable, fmt.Sprintf("%s does not run: %s", s.Name, s.Off)}
}

// forward sends a request for a host to its shard.
func (f *fleet) forward(w http.ResponseWriter, r *http.Request) {
	s, err := f.shardOf(r.PathValue("host"))
	if err != nil {
		f.answer(w, nil, err)
		return
	}
	to, err := url.Parse(s.Client.base)
	if err != nil { // a client has no other
		panic(err)
	}
	proxy := httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(to) },
		Transport:     s.Client.http.Transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(f.c.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				f.answer(w, nil, fmt.Errorf("%s does not answer: %w", s.Name, err))
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// each calls do for all of the shards at the same time, and returns the results of all, with
// the errors of all.
func each[T any](shards []Shard, do func(Shard) (T, error)) ([]T, error) {
	out, errs := make([]T, len(shards)), make([]error, len(shards))
	var all sync.WaitGroup
	for i, s := range shards {
		all.Go(func() {
			if out[i], errs[i] = do(s); errs[i] != nil && len(shards) > 1 && s.Client != nil {
				errs[i] = fmt.Errorf("%s: %w", s.Name, errs[i])
			}
		})
	}
	all.Wait()
	return out, errors.Join(errs...)
}

// up returns the shards that run.
func (f *fleet) up() []Shard {
	var out []Shard
	for _, s := range f.c.Shards() {
		if s.Client != nil {
			out = append(out, s)
		}
	}
	return out
}

func (f *fleet) status(r *http.Request) (any, error) {
	var st Status
	if f.c.Info != nil {
		st = f.c.Info()
		st.PID = os.Getpid()
	}
	shards := f.c.Shards()
	all, _ := each(shards, func(s Shard) (Status, error) { // a shard that does not answer shows so
		if s.Client == nil {
			return Status{}, nil
		}
		return s.Client.Status(r.Context())
	})
	if st.State == "" {
		st.State = f.c.Dir
	}
	first := true
	for i, s := range shards {
		line := ShardStatus{Name: s.Name, Hosts: s.Rack.Len(), State: "up", PID: all[i].PID, Dir: s.Dir, View: all[i].View}
		switch {
		case s.Client == nil:
			line.State = s.Off
		case all[i].Version == "":
			line.State = "does not answer"
		default:
			if first {
				st.Time, st.Version, first = all[i].Time, all[i].Version, false
			}
			if all[i].Storage != "" && st.Storage == "" {
				st.Storage = s.Name + ": " + all[i].Storage
			}
		}
		st.Name, st.Seed, st.Hosts = s.Rack.Name, s.Rack.Seed, st.Hosts+line.Hosts
		st.Speed = string(s.Rack.Speed)
		st.Shards = append(st.Shards, line)
	}
	if first {
		st.Version = Version()
	}
	rules, _ := f.listFaults(r.Context()) // rules of the shards that answer
	st.Faults = len(rules)
	return st, nil
}

func (f *fleet) down(r *http.Request) (any, error) {
	if f.c.Down == nil {
		return nil, &refusal{errForbidden, "this lab belongs to another program, which ends it"}
	}
	out, err := f.status(r)
	context.AfterFunc(r.Context(), f.c.Down) // after the response
	return out, err
}

// rack returns the definition of all hosts, with the passwords that a shard has.
func (f *fleet) rack(r *http.Request) (any, error) {
	up := f.up()
	if len(up) == 0 {
		return nil, &Refused{http.StatusServiceUnavailable, "no shard runs"}
	}
	all, err := up[0].Client.Rack(r.Context())
	all.Part = nil
	return all, err
}

// scaleRequest is the body of a request to change how many shards run.
type scaleRequest struct {
	Shards int `json:"shards"`
}

func (f *fleet) scale(r *http.Request) (any, error) {
	var in scaleRequest
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if f.c.Scale == nil {
		return nil, &refusal{errForbidden, "the shards belong to another program, which scales them"}
	}
	if err := f.c.Scale(r.Context(), in.Shards); err != nil {
		return nil, err
	}
	return f.status(r)
}

// Scale changes how many shards run the hosts, and returns when the new ones are up.
func (c *Client) Scale(ctx context.Context, shards int) (Status, error) {
	var st Status
	err := c.do(ctx, http.MethodPut, "/v1/shards", scaleRequest{shards}, &st)
	return st, err
}

// hosts returns the hosts of all shards. Those of a shard that does not run have what the
// definition says, and are offline.
func (f *fleet) hosts(r *http.Request) (any, error) {
	shards := f.c.Shards()
	all, err := each(shards, func(s Shard) ([]Host, error) {
		if s.Client != nil {
			if hosts, err := s.Client.Hosts(r.Context()); err == nil || r.Context().Err() != nil {
				return hosts, err
			}
		}
		return s.absent(), nil
	})
	if err != nil {
		return nil, err
	}
	out := []Host{} // [] in JSON
	for _, hosts := range all {
		out = append(out, hosts...)
	}
	return out, nil
}

// absent returns the hosts of a shard that does not run.
func (s Shard) absent() []Host {
	var out []Host
	for _, h := range s.Rack.Each() {
		out = append(out, Host{Name: h.Name, Profile: h.Profile, Rack: h.Rack, Reach: Offline})
	}
	return out
}

// Offline is the reach of a host whose shard does not run.
const Offline = "offline"

// decode decodes the body of a request.
func decode(r *http.Request, v any) error {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return &Refused{http.StatusBadRequest, "the body: " + err.Error()}
	}
	return nil
}

// Package inband is the controller's side of the work that agents do on
// servers: it leases jobs to them over HTTPS and takes their reports
// (agent/job is the wire). It keeps what it knows in memory: after a restart
// the controller offers its jobs again, and agents answer from memory what they
// have done. It refuses to know what the jobs are for.
package inband

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/job"
)

// tokenPurpose keeps an agent's token apart from what else the key signs.
const tokenPurpose = "agent"

// maxJobs bounds the jobs of one boot, and maxID the ID of one that an agent
// tells of.
const (
	maxJobs = 64
	maxID   = 256
)

// Config is what a Server needs.
type Config struct {
	Key   Key
	URL   string // base URL at which agents reach this server
	CA    string // PEM that agents trust for it
	Clock clock.PassiveClock
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())
	// Changed, when set, is called when an agent of a host has come up or has
	// reported a change. It must not block.
	Changed func(host string)
}

// Server leases jobs. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu    sync.Mutex
	boots map[string]*boot // by host: the current boot
}

type boot struct {
	id       string
	expected time.Time
	seen     time.Time
	jobs     []*offered
}

// offered is a job of a boot. One that a predecessor of this process has offered
// is known by what the agent reports of it; it has no Kind until it is offered
// again.
type offered struct {
	job    job.Job
	report job.Report // State "" until the first
}

// New checks the configuration and makes a Server.
func New(c Config) (*Server, error) {
	switch {
	case len(c.Key) < KeySize:
		return nil, fmt.Errorf("inband: Key has %d bytes, need %d", len(c.Key), KeySize)
	case c.URL == "":
		return nil, errors.New("inband: URL is empty: agents would not find the controller")
	case c.Clock == nil:
		return nil, errors.New("inband: Clock is nil")
	}
	s := &Server{cfg: c, boots: map[string]*boot{}, mux: http.NewServeMux()}
	s.mux.HandleFunc("POST "+job.LeasePath, s.lease)
	s.mux.HandleFunc("POST "+fmt.Sprintf(job.ReportPath, "{id}"), s.report)
	return s, nil
}

// Media is what the boot medium tells the agent of a boot.
func (s *Server) Media(b Boot) job.Media {
	return job.Media{Server: s.cfg.URL, CA: s.cfg.CA, Token: s.cfg.Key.Sign(tokenPurpose, b), Boot: b.String()}
}

// Status is what is known of a boot's agent.
type Status struct {
	Up       bool          // the agent has asked for work
	Expected time.Duration // since Expect was first called for this boot
	Silent   time.Duration // since the agent was last heard of, when it is Up
	Jobs     map[string]job.Report
}

// Expect makes b the current boot of its host, if it is not yet, and returns
// how it stands. Tokens of the host's earlier boots are worth nothing from then
// on.
func (s *Server) Expect(b Boot) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock.Now()
	cur := s.boots[b.Host]
	if cur == nil || cur.id != b.ID {
		cur = &boot{id: b.ID, expected: now}
		s.boots[b.Host] = cur
	}
	st := Status{Up: !cur.seen.IsZero(), Expected: now.Sub(cur.expected), Jobs: map[string]job.Report{}}
	if st.Up {
		st.Silent = now.Sub(cur.seen)
	}
	for _, o := range cur.jobs {
		st.Jobs[o.job.ID] = o.report
	}
	return st
}

// Offer gives a job to the agent of the current boot b; offering a job of the
// same ID again does not begin it again. Jobs are leased in the order in which they
// were offered, one at a time.
func (s *Server) Offer(b Boot, j job.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.boots[b.Host]
	if cur == nil || cur.id != b.ID {
		return fmt.Errorf("inband: offer %s: %s is not the current boot", j.ID, b)
	}
	for _, o := range cur.jobs {
		if o.job.ID == j.ID {
			o.job = j
			return nil
		}
	}
	if len(cur.jobs) >= maxJobs {
		return fmt.Errorf("inband: offer %s: %d jobs in one boot", j.ID, maxJobs)
	}
	cur.jobs = append(cur.jobs, &offered{job: j})
	return nil
}

// Forget ends a host's current boot: its token is refused, its jobs are gone.
func (s *Server) Forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boots, host)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Enter != nil {
		defer s.cfg.Enter()()
	}
	s.mux.ServeHTTP(w, r)
}

// current is the boot that a request's token stands for; otherwise the request
// is answered. The caller holds s.mu.
func (s *Server) current(w http.ResponseWriter, r *http.Request) (Boot, *boot) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	b, err := s.cfg.Key.Verify(tokenPurpose, token)
	if !ok || err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is not ours", http.StatusUnauthorized)
		return Boot{}, nil
	}
	cur := s.boots[b.Host]
	switch {
	case cur == nil:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "nothing is known of this host yet", http.StatusServiceUnavailable)
		return Boot{}, nil
	case cur.id != b.ID:
		http.Error(w, "the token is of another boot", http.StatusForbidden)
		return Boot{}, nil
	}
	return b, cur
}

func (s *Server) lease(w http.ResponseWriter, r *http.Request) {
	var l job.Lease
	if !decode(w, r, &l) {
		return
	}
	s.mu.Lock()
	b, cur := s.current(w, r)
	if cur == nil {
		s.mu.Unlock()
		return
	}
	first := cur.seen.IsZero()
	cur.seen = s.cfg.Clock.Now()
	var next *job.Job
	for _, o := range cur.jobs {
		if o.job.Kind != "" && o.report.State != job.Done && o.report.State != job.Failed {
			next = &o.job
			break
		}
	}
	s.mu.Unlock()
	if first {
		s.changed(b.Host)
	}
	if next == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A failed write is the client's to notice: it asks again.
	_ = json.NewEncoder(w).Encode(next)
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	var rep job.Report
	if !decode(w, r, &rep) {
		return
	}
	if rep.State != job.Running && rep.State != job.Done && rep.State != job.Failed {
		http.Error(w, fmt.Sprintf("state: %q: use running, done or failed", rep.State), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	b, cur := s.current(w, r)
	if cur == nil {
		s.mu.Unlock()
		return
	}
	cur.seen = s.cfg.Clock.Now()
	var hit *offered
	for _, o := range cur.jobs {
		if o.job.ID == r.PathValue("id") {
			hit = o
		}
	}
	// An agent of this boot that works on something unknown was told to by our
	// predecessor. To call it off would be to do the work twice.
	if id := r.PathValue("id"); hit == nil && len(cur.jobs) < maxJobs && len(id) <= maxID {
		hit = &offered{job: job.Job{ID: id}}
		cur.jobs = append(cur.jobs, hit)
	}
	changed := hit != nil && hit.report.State != rep.State
	if hit != nil && hit.report.State != job.Done && hit.report.State != job.Failed { // final is final
		hit.report = rep
	}
	s.mu.Unlock()
	if hit == nil {
		http.Error(w, "the job is not wanted", http.StatusGone)
		return
	}
	if changed {
		s.changed(b.Host)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) changed(host string) {
	if s.cfg.Changed != nil {
		s.cfg.Changed(host)
	}
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, job.MaxBody))
	err := dec.Decode(into)
	if err == nil {
		return true
	}
	code := http.StatusBadRequest
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		code = http.StatusRequestEntityTooLarge
	} else if errors.Is(err, io.EOF) {
		err = errors.New("the body is empty")
	}
	http.Error(w, err.Error(), code)
	return false
}

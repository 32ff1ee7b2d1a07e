// Package inband is the server that agents on booted servers connect to: it leases jobs to
// them over HTTPS and receives their reports (agent/job defines the messages). Its state is
// in memory only: after a restart the controller offers its jobs again, and an agent
// repeats its report of a job that it has done. The package does not know what the jobs
// are for.
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

// tokenPurpose makes an agent's token different from the key's other signatures.
const tokenPurpose = "agent"

// maxJobs is the most jobs of one boot, and maxID the most bytes of a job's ID in a report.
const (
	maxJobs = 64
	maxID   = 256
)

// Config configures a Server.
type Config struct {
	Key   Key
	URL   string // base URL at which agents reach this server
	CA    string // PEM of the certificate authority that agents trust
	Clock clock.PassiveClock
	// Enter, when set, is called before each request, and its result after it. A lab's
	// virtual clock counts the work in progress this way.
	Enter func() (leave func())
	// Changed, when set, is called with the UID of a host when its agent has come up or
	// has reported another state of a job. It must not block.
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

// offered is a job of a boot. A job that a previous process has offered is known from the
// agent's report; it has no Kind until the controller offers it again.
type offered struct {
	job    job.Job
	report job.Report // State "" until the first
}

// New returns a Server, or an error when c is invalid.
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

// Media returns the configuration in the boot medium of a boot's agent.
func (s *Server) Media(b Boot) job.Media {
	return job.Media{Server: s.cfg.URL, CA: s.cfg.CA, Token: s.cfg.Key.Sign(tokenPurpose, b), Boot: b.String()}
}

// Status is the state of a boot's agent.
type Status struct {
	Up       bool          // the agent has asked for work
	Expected time.Duration // since Expect was first called for this boot
	Silent   time.Duration // since the agent's last request, when it is Up
	Jobs     map[string]job.Report
}

// Expect makes b the current boot of its host, if it is not yet, and returns the state of
// its agent. From then on the tokens of the host's earlier boots are invalid.
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

// Offer offers a job to the agent of the current boot b. Offering a job with the same ID
// again does not restart it. The agent gets its jobs one at a time, in the order of their
// first offers.
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

// Forget ends a host's current boot: it removes its jobs, and its token is invalid from
// then on.
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

// current returns the boot of a request's token. When it is not the current boot of its
// host, current answers the request with an error and returns nil. The caller holds s.mu.
func (s *Server) current(w http.ResponseWriter, r *http.Request) (Boot, *boot) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	b, err := s.cfg.Key.Verify(tokenPurpose, token)
	if !ok || err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is invalid", http.StatusUnauthorized)
		return Boot{}, nil
	}
	cur := s.boots[b.Host]
	switch {
	case cur == nil:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the controller does not know this host yet", http.StatusServiceUnavailable)
		return Boot{}, nil
	case cur.id != b.ID:
		http.Error(w, "the token belongs to an earlier boot of this host", http.StatusForbidden)
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
	// After a failed write the agent notices and asks again.
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
	// An agent of the current boot that reports an unknown job got it from a previous
	// process of the controller. To cancel the job would make the agent do it twice.
	if id := r.PathValue("id"); hit == nil && len(cur.jobs) < maxJobs && len(id) <= maxID {
		hit = &offered{job: job.Job{ID: id}}
		cur.jobs = append(cur.jobs, hit)
	}
	changed := hit != nil && hit.report.State != rep.State
	if hit != nil && hit.report.State != job.Done && hit.report.State != job.Failed { // both states are final
		hit.report = rep
	}
	s.mu.Unlock()
	if hit == nil {
		http.Error(w, "the job is unknown", http.StatusGone)
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

// Package inband is the server that agents on booted servers connect to: it leases jobs to
// them over HTTPS and receives their reports (agent/job defines the messages). Its state is
// in memory only: after a restart the controller offers its jobs again, and an agent
// repeats its report of a job that it has done. The package does not know what the jobs
// are for.
//
// The token of a boot is on its boot medium, which others may have read: a user of the
// BMC, or a machine on the provisioning network. It is good for one agent. The first agent
// that has it binds the boot to its key, and no other agent gets anything from then on. The
// caller stores the binding and says so (Confirm) before the first job is leased, so that
// the next process knows it.
package inband

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
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
	id        string
	expected  time.Time
	seen      time.Time
	key       string // fingerprint of the agent's key; "" until the first agent
	confirmed bool   // the caller has stored key
	jobs      []*offered
	refused   []Refusal
	untold    []Refusal // the refused agents that Refusals has not returned yet
}

// maxRefused bounds the refused agents of a boot that are counted apart.
const maxRefused = 8

// Refusal is an agent that had the token of a boot and was refused, because the boot is
// bound to another one.
type Refusal struct {
	Boot  string // ID
	Key   string // fingerprint of its key
	From  string // IP address
	Bound string // fingerprint of the key that the boot is bound to
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
		return nil, fmt.Errorf("Key has %d bytes, need %d", len(c.Key), KeySize)
	case c.URL == "":
		return nil, errors.New("URL is empty: agents would not find the controller")
	case c.Clock == nil:
		return nil, errors.New("Config.Clock is nil")
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
	Key      string        // fingerprint of the key that the boot is bound to; "" for none
	Refused  bool          // another agent has had the token, too
	Expected time.Duration // since Expect was first called for this boot
	Silent   time.Duration // since the agent's last request, when it is Up
	Jobs     map[string]job.Report
}

// Expect makes b the current boot of its host, if it is not yet, and returns the state of
// its agent. From then on the tokens of the host's earlier boots are invalid. bound is the
// fingerprint of the key that the boot is bound to, as the caller has stored it; "" for
// none.
func (s *Server) Expect(b Boot, bound string) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock.Now()
	cur := s.boots[b.Host]
	if cur == nil || cur.id != b.ID {
		cur = &boot{id: b.ID, expected: now}
		s.boots[b.Host] = cur
	}
	if bound != "" {
		cur.key, cur.confirmed = bound, true
	}
	st := Status{Up: !cur.seen.IsZero(), Key: cur.key, Refused: len(cur.refused) > 0, Expected: now.Sub(cur.expected), Jobs: map[string]job.Report{}}
	if st.Up {
		st.Silent = now.Sub(cur.seen)
	}
	for _, o := range cur.jobs {
		st.Jobs[o.job.ID] = o.report
	}
	return st
}

// Confirm says that the binding of b to a key is stored: its agent gets jobs from then on.
func (s *Server) Confirm(b Boot, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur := s.boots[b.Host]; cur != nil && cur.id == b.ID && cur.key == key {
		cur.confirmed = true
	}
}

// Release ends the binding of b: the caller starts the server again, and the next agent has
// another key.
func (s *Server) Release(b Boot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur := s.boots[b.Host]; cur != nil && cur.id == b.ID {
		cur.key, cur.confirmed, cur.seen = "", false, time.Time{}
	}
}

// Refusals returns the refused agents of a host's current boot, each once.
func (s *Server) Refusals(host string) []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.boots[host]
	if cur == nil {
		return nil
	}
	untold := cur.untold
	cur.untold = nil
	return untold
}

// Offer offers a job to the agent of the current boot b. Offering a job with the same ID
// again does not restart it. The agent gets its jobs one at a time, in the order of their
// first offers.
func (s *Server) Offer(b Boot, j job.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.boots[b.Host]
	if cur == nil || cur.id != b.ID {
		return fmt.Errorf("offer %s: %s is not the current boot", j.ID, b)
	}
	for _, o := range cur.jobs {
		if o.job.ID == j.ID {
			o.job = j
			return nil
		}
	}
	if len(cur.jobs) >= maxJobs {
		return fmt.Errorf("offer %s: %d jobs in one boot", j.ID, maxJobs)
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

// refusal is the answer to an agent that gets nothing.
type refusal struct {
	code       int
	text       string
	retryAfter bool
	changed    string // UID of the host that has to look at its refused agents; "" for none
}

// authorized reports whether a request is of an agent that may send it. Otherwise it
// answers the request, without reading its body.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	_, _, no := s.current(r)
	s.mu.Unlock()
	if no == nil {
		return true
	}
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		// net/http reads up to 256 KiB of a body before it sends the response of a
		// connection that goes on. HTTP/2 resets the stream instead.
		w.Header().Set("Connection", "close")
	}
	s.refuse(w, no)
	return false
}

func (s *Server) refuse(w http.ResponseWriter, no *refusal) {
	if no.changed != "" {
		s.changed(no.changed)
	}
	if no.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if no.retryAfter {
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, no.text, no.code)
}

// current returns the boot of a request's token, or the refusal when that is not the
// current boot of its host, or is bound to another agent than the client. The caller holds
// s.mu.
func (s *Server) current(r *http.Request) (Boot, *boot, *refusal) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	b, err := s.cfg.Key.Verify(tokenPurpose, token)
	if !ok || err != nil {
		return b, nil, &refusal{code: http.StatusUnauthorized, text: "the token is invalid"}
	}
	key := clientKey(r)
	if key == "" {
		return b, nil, &refusal{code: http.StatusUnauthorized, text: "an agent identifies itself by a client certificate, and there is none"}
	}
	cur := s.boots[b.Host]
	switch {
	case cur == nil:
		return b, nil, &refusal{code: http.StatusServiceUnavailable, text: "the controller does not know this host yet", retryAfter: true}
	case cur.id != b.ID:
		return b, nil, &refusal{code: http.StatusForbidden, text: "the token belongs to an earlier boot of this host"}
	case cur.key != "" && cur.key != key:
		no := &refusal{code: http.StatusForbidden, text: "the token belongs to another agent, which has used it before"}
		if cur.refuse(key, r) {
			no.changed = b.Host
		}
		return b, nil, no
	}
	return b, cur, nil
}

// refuse stores that an agent was refused, and reports whether it was the first time.
func (b *boot) refuse(key string, r *http.Request) bool {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	if len(b.refused) >= maxRefused || slices.ContainsFunc(b.refused, func(x Refusal) bool { return x.Key == key }) {
		return false
	}
	refusal := Refusal{Boot: b.id, Key: key, From: from, Bound: b.key}
	b.refused, b.untold = append(b.refused, refusal), append(b.untold, refusal)
	return true
}

// clientKey returns the fingerprint of the key of a request's client certificate, "" when
// there is none. TLS has proved that the client has the key.
func clientKey(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return job.Fingerprint(r.TLS.PeerCertificates[0])
}

func (s *Server) lease(w http.ResponseWriter, r *http.Request) {
	var l job.Lease
	if !s.authorized(w, r) || !decode(w, r, &l) {
		return
	}
	s.mu.Lock()
	b, cur, no := s.current(r) // the boot may have ended while the body came
	if no != nil {
		s.mu.Unlock()
		s.refuse(w, no)
		return
	}
	first := cur.seen.IsZero()
	cur.seen, cur.key = s.cfg.Clock.Now(), clientKey(r)
	var next *job.Job
	for _, o := range cur.jobs {
		if cur.confirmed && o.job.Kind != "" && o.report.State != job.Done && o.report.State != job.Failed {
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
	if !s.authorized(w, r) || !decode(w, r, &rep) {
		return
	}
	if rep.State != job.Running && rep.State != job.Done && rep.State != job.Failed {
		http.Error(w, fmt.Sprintf("state: %q: use running, done or failed", rep.State), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	b, cur, no := s.current(r)
	if no == nil && !cur.confirmed { // it cannot have a job
		no = &refusal{code: http.StatusServiceUnavailable, text: "the boot is not bound to this agent yet", retryAfter: true}
	}
	if no != nil {
		s.mu.Unlock()
		s.refuse(w, no)
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
	switch big := (*http.MaxBytesError)(nil); {
	case errors.As(err, &big):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		code, err = http.StatusRequestTimeout, errors.New("the body came too slowly")
	case errors.Is(err, io.EOF):
		err = errors.New("the body is empty")
	}
	http.Error(w, err.Error(), code)
	return false
}

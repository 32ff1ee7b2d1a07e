// Package netboot hands a server the agent to boot: so far as an ISO image that
// a BMC fetches over HTTP for its virtual media. The ISO is made for one boot of
// one host and carries that boot's token, so its URL is unguessable and is
// good for the current boot alone. The package does not know how a
// server is told to boot it.
package netboot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

// mediaPurpose keeps a medium's URL apart from the agent's token.
const mediaPurpose = "media"

const pathPrefix = "/boot/"

const fileName = "/agent.iso"

// Config is what a Server needs.
type Config struct {
	Key   inband.Key
	URL   string // base URL at which BMCs reach this server
	Media func(inband.Boot) job.Media
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())
}

// Server serves boot media. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg Config

	mu   sync.Mutex
	last map[string]made // by host: the ISO of its newest boot
}

type made struct {
	boot inband.Boot
	iso  []byte
}

// New checks the configuration and makes a Server.
func New(c Config) (*Server, error) {
	switch {
	case len(c.Key) < inband.KeySize:
		return nil, fmt.Errorf("netboot: Key has %d bytes, need %d", len(c.Key), inband.KeySize)
	case c.URL == "":
		return nil, errors.New("netboot: URL is empty: BMCs would not find the media")
	case c.Media == nil:
		return nil, errors.New("netboot: Media is nil")
	}
	return &Server{cfg: c, last: map[string]made{}}, nil
}

// ISO is the URL of the agent's medium for a boot. It is the same each time.
func (s *Server) ISO(b inband.Boot) string {
	return s.cfg.URL + pathPrefix + s.cfg.Key.Sign(mediaPurpose, b) + fileName
}

// Ours tells whether a URL is that of a medium of this server, for any boot.
func (s *Server) Ours(url string) bool {
	return strings.HasPrefix(url, s.cfg.URL+pathPrefix)
}

// Forget drops what is kept for a host.
func (s *Server) Forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, host)
}

// ServeHTTP implements http.Handler: GET and HEAD, with ranges, since BMCs read
// media in pieces.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Enter != nil {
		defer s.cfg.Enter()()
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	token, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, pathPrefix), fileName)
	b, err := s.cfg.Key.Verify(mediaPurpose, token)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	iso, err := s.iso(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-iso9660-image")
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(iso))
}

func (s *Server) iso(b inband.Boot) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.last[b.Host]; ok && m.boot == b {
		return m.iso, nil
	}
	config, err := json.MarshalIndent(s.cfg.Media(b), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("netboot: %s: %w", b, err)
	}
	iso, err := BuildISO(map[string][]byte{job.MediaConfigPath: config})
	if err != nil {
		return nil, err
	}
	s.last[b.Host] = made{b, iso}
	return iso, nil
}

// Package netboot hands a server the agent to boot: as an ISO image that a BMC
// fetches for its virtual media or firmware boots over HTTP, and over the
// network with DHCP (RFC 2131, PXE 2.1), TFTP and iPXE. What it hands out is made for
// one boot of one host and carries that boot's token, so its URLs are
// unguessable; DHCP names them to the NIC of that host alone, and only until
// its agent is up. The package does not know how a server is told to boot.
package netboot

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

// Purposes keep the paths of a boot apart from the agent's token and from each
// other: TFTP says its names to whoever listens.
const (
	mediaPurpose = "media"
	tftpPurpose  = "tftp"
)

const pathPrefix = "/boot/"

// Config is what a Server needs.
type Config struct {
	Key inband.Key
	URL string // base URL at which BMCs and servers reach this server
	// Secure is that of the same by HTTPS, for BMCs that fetch by nothing else;
	// "" is none.
	Secure string
	Media  func(inband.Boot) job.Media
	Image  *Image   // nil: one without a kernel, for emulated servers
	Net    *Network // the provisioning network; nil: there is none
	// Enter, when set, is called around each request; see the lab's clock.
	Enter func() (leave func())
	// OnDHCP, when set, is called after each DHCP message with its outcome. It must not
	// block.
	OnDHCP func(Exchange)
}

// Server serves boot media. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg   Config
	image *Image

	mu      sync.Mutex
	clients map[string]*client // by host
	macs    map[string]*client // those whose MAC address is known, by it
	leases  leases
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
	s := &Server{cfg: c, image: c.Image, clients: map[string]*client{}, macs: map[string]*client{}}
	if c.Net != nil {
		if err := c.Net.validate(); err != nil {
			return nil, err
		}
		s.leases = newLeases(*c.Net)
	}
	if s.image == nil {
		img, err := stubImage()
		if err != nil {
			return nil, err
		}
		s.image = img
	}
	return s, nil
}

// ISO is the URL of the agent's medium for a boot. It is the same each time.
func (s *Server) ISO(b inband.Boot) string { return s.url(b, ISOFile) }

// Media are all the URLs of the agent's medium for a boot, the first of which is
// ISO.
func (s *Server) Media(b inband.Boot) []string {
	urls := []string{s.ISO(b)}
	if s.cfg.Secure != "" {
		urls = append(urls, s.cfg.Secure+s.path(b, ISOFile))
	}
	return urls
}

// Linux are the URLs of the kernel and the first file system for a boot.
func (s *Server) Linux(b inband.Boot) (kernel, initrd string) {
	return s.url(b, KernelFile), s.url(b, InitrdFile)
}

func (s *Server) url(b inband.Boot, file string) string {
	return s.cfg.URL + s.path(b, file)
}

func (s *Server) path(b inband.Boot, file string) string {
	return pathPrefix + s.cfg.Key.Sign(mediaPurpose, b) + "/" + file
}

// Ours tells whether a URL is that of a medium of this server, for any boot.
func (s *Server) Ours(url string) bool {
	return strings.HasPrefix(url, s.cfg.URL+pathPrefix) || s.cfg.Secure != "" && strings.HasPrefix(url, s.cfg.Secure+pathPrefix)
}

// HasNetwork tells whether servers can boot from a provisioning network.
func (s *Server) HasNetwork() bool { return s.cfg.Net != nil }

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
	rest, ok := strings.CutPrefix(r.URL.Path, pathPrefix)
	token, name, _ := strings.Cut(rest, "/")
	b, err := s.cfg.Key.Verify(mediaPurpose, token)
	serve := files[name]
	if !ok || err != nil || serve.content == nil {
		http.NotFound(w, r)
		return
	}
	content, err := serve.content(s, b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", serve.kind)
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, content)
}

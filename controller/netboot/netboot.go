// Package netboot serves the agent's boot image to servers: as an ISO image that a BMC
// fetches for its virtual media or that firmware boots over HTTP, and over the network
// with DHCP (RFC 2131, PXE 2.1), TFTP and iPXE. Each image is made for one boot of one
// host and contains that boot's token, so its URLs cannot be guessed. It is served only
// while that boot is awaited: until the agent is up, and to nobody afterwards. DHCP gives
// the URLs to the NIC of that host only. NICs that no host has can be offered a seed: a
// system that configures itself. The package does not make servers boot: controller/metal3/host
// does.
package netboot

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
)

// The purposes make the signatures in the paths of HTTP and TFTP different from each
// other and from the agent's token, because TFTP sends its file names in clear text.
const (
	mediaPurpose = "media"
	tftpPurpose  = "tftp"
)

const pathPrefix = "/boot/"

// Config configures a Server.
type Config struct {
	Key inband.Key
	URL string // base URL at which BMCs and servers reach this server
	// Secure is the HTTPS base URL of the same files, for BMCs that do not fetch over
	// HTTP; "" means none.
	Secure string
	Media  func(inband.Boot) job.Media // returns the agent's configuration for a boot
	Image  *Image                      // nil means an image without a kernel, for emulated servers
	Net    *Network                    // the provisioning network; nil means none
	// Public is the ID of boots that no host ever expects: their tokens are worth nothing,
	// and their files are always served. "" means that there are none.
	Public string
	// Enter, when set, is called before each request, and its result after it. A lab's
	// virtual clock counts the work in progress this way.
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
	clients map[string]*client     // by host
	macs    map[string]*client     // by MAC address, where it is known
	open    map[string]inband.Boot // by host: the boot that is served; the zero Boot for none
	seeds   map[string]*seedOffer  // by MAC address
	leases  leases
}

// New returns a Server, or an error when c is invalid.
func New(c Config) (*Server, error) {
	switch {
	case len(c.Key) < inband.KeySize:
		return nil, fmt.Errorf("Key has %d bytes, need %d", len(c.Key), inband.KeySize)
	case c.URL == "":
		return nil, errors.New("URL is empty: BMCs would not find the media")
	case c.Media == nil:
		return nil, errors.New("Config.Media is nil")
	}
	s := &Server{cfg: c, image: c.Image, clients: map[string]*client{}, macs: map[string]*client{}, open: map[string]inband.Boot{}, seeds: map[string]*seedOffer{}}
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

// ISO returns the URL of the ISO image for a boot. It is the same at each call.
func (s *Server) ISO(b inband.Boot) string { return s.url(b, ISOFile) }

// Media returns all URLs of the ISO image for a boot: that of ISO, and the HTTPS one if
// Config.Secure is set.
func (s *Server) Media(b inband.Boot) []string {
	urls := []string{s.ISO(b)}
	if s.cfg.Secure != "" {
		urls = append(urls, s.cfg.Secure+s.path(b, ISOFile))
	}
	return urls
}

// Linux returns the URLs of the kernel and of the initrd for a boot.
func (s *Server) Linux(b inband.Boot) (kernel, initrd string) {
	return s.url(b, KernelFile), s.url(b, InitrdFile)
}

func (s *Server) url(b inband.Boot, file string) string {
	return s.cfg.URL + s.path(b, file)
}

// tokenParam is the query parameter of a URL that has the boot's signature. BMCs show the
// URL of their virtual media to every user, and some hide the query.
const tokenParam = "token"

// path returns the path and query of a file. The last parameter is for BMCs that take a URL
// for that of an image by how it ends; nobody reads it (Ironic does the same: its
// image_utils appends filename=).
func (s *Server) path(b inband.Boot, file string) string {
	return pathPrefix + b.String() + "/" + file + "?" + tokenParam + "=" + s.cfg.Key.Signature(mediaPurpose, b) + "&filename=" + file
}

// IsMedia reports whether a URL is one of those of Media, even if its query is hidden.
func (s *Server) IsMedia(b inband.Boot, url string) bool {
	path, _, _ := strings.Cut(url, "?")
	return slices.ContainsFunc(s.Media(b), func(uri string) bool {
		known, _, _ := strings.Cut(uri, "?")
		return path == known
	})
}

// Ours reports whether a URL is that of an image of this server, for any boot.
func (s *Server) Ours(url string) bool {
	return strings.HasPrefix(url, s.cfg.URL+pathPrefix) || s.cfg.Secure != "" && strings.HasPrefix(url, s.cfg.Secure+pathPrefix)
}

// HasNetwork reports whether servers can boot from a provisioning network.
func (s *Server) HasNetwork() bool { return s.cfg.Net != nil }

// ServeHTTP implements http.Handler. It supports GET and HEAD, with ranges, because BMCs
// read virtual media in parts.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Enter != nil {
		defer s.cfg.Enter()()
	}
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // else net/http reads the body, which no request here has, before it sends the response
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	b, serve, ok := s.fileOf(r.URL)
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch s.access(b) {
	case denied:
		http.NotFound(w, r)
		return
	case unknown: // until the controller has looked at the host
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the controller does not know this host yet", http.StatusServiceUnavailable)
		return
	}
	content, err := serve.content(s, b)
	if errors.Is(err, errNoFile) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", serve.kind)
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, content)
}

// fileOf returns the boot and the file that a URL names, and whether its signature is that of
// the boot.
func (s *Server) fileOf(u *url.URL) (inband.Boot, served, bool) {
	rest, ok := strings.CutPrefix(u.Path, pathPrefix)
	name, file, _ := strings.Cut(rest, "/")
	tokens := u.Query()[tokenParam]
	f := files[file]
	if !ok || f.content == nil || len(tokens) != 1 {
		return inband.Boot{}, served{}, false
	}
	b, err := s.cfg.Key.Verify(mediaPurpose, name+"."+tokens[0])
	return b, f, err == nil
}

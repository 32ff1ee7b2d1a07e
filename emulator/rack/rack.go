// Package rack runs a rack of emulated servers: it gives every BMC an address and
// every machine its deadlines and disks, stores what must survive a restart, and
// implements the Host interfaces that the Redfish and IPMI services call. The
// models below it are stepped and know none of this. The package does not know
// what a disk or an image holds, and runs nothing on a machine: its user does, when
// events report a boot.
package rack

import (
	"crypto/x509"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/exchange"
	"github.com/metalab-dev/metalab/emulator/rack/faults"
	"github.com/metalab-dev/metalab/emulator/rack/integrity"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// Config says which rack Open opens, and how.
type Config struct {
	// Dir is the state directory of the lab. It holds all that the rack must know when
	// it is opened again.
	Dir string
	// Rack is the definition of the rack. Nil takes the one that Dir holds, or one
	// default host when Dir holds no rack.
	Rack *rackfile.Lab
	// Clock is the lab's time. It must not be behind LastTime(Dir). The caller
	// runs it.
	Clock *clock.Clock
	// Profiles holds profiles/NAME.yaml for every profile that Rack names.
	// Nil takes those of Models(Dir): the rack's own and the built-in ones.
	Profiles fs.FS
	// Fsync makes every answered change survive a power cut of the computer that
	// the rack runs on. Without it a change survives the death of the process only.
	Fsync bool
	// AcceptLoss opens a rack that lacks changes which were answered: those of a log that was cut
	// or removed. Without Fsync it is opened anyway.
	AcceptLoss bool
	// Listen says where the BMCs listen:
	// "" as the rack says. When the rack leaves it open, each BMC gets its own
	// loopback address from 127.64.0.1 up, at port 443 where that is allowed, else
	// at 8443 or the next free port.
	// "lo:PORT" does the same at that port, or at any free one if PORT is 0.
	// "ADDRESS:FIRSTPORT" gives each BMC its own port of that address, from
	// FIRSTPORT up, or from any free one if that is 0.
	// The rack stores the addresses that it has chosen and takes them again the next
	// time, because clients have noted them.
	Listen string
	// Advertise is the DNS name of the address at which BMCs listen, for clients to which
	// that address is not known or does not stay the same; "" for none.
	Advertise string
	// Media configures how BMCs fetch virtual media. BMCs that verify certificates
	// trust the rack's authority and the system's. RootCAs, if not nil, replaces
	// both.
	Media outbound.Config
	// Events, if not nil, is called with what happens to machines while Serve
	// runs: in order for one host, concurrently for several. It may call the host.
	// Until it returns, the host's next event waits; nothing else does.
	Events func(h *Host, ev machine.Event)
	// Schemas, if not nil, holds the DMTF's files for the BMCs to serve: an
	// unpacked DSP8010 archive (a zip.Reader, for example), with or without the
	// registries of DSP8011.
	Schemas fs.FS
	// HTTP2 lets clients speak HTTP/2, which few BMCs do.
	HTTP2 bool
	// BodyPace is how fast clients must send the bodies of requests; zero means
	// network.DefaultBodyPace.
	BodyPace network.BodyPace
	// SSDP is the network device on which clients can search for the BMCs
	// (DSP0266, "Discovery"): "lo" for this computer only, "" for none.
	SSDP string
	// Traps is the UDP port of this computer that BMCs send their alerts to; 0 is
	// the port of SNMP traps.
	Traps uint16
	// Files are files in Dir that the caller owns. Open checks that they are as they
	// were when the rack was closed, as it does for the rack's files.
	Files []integrity.Rule
	// Space, if not nil, knows whether there is space to store changes. Serve runs it.
	Space *space.Watch
	// Journal bounds the journal.
	Journal journal.Config
	Log     *slog.Logger // nil: none
}

// Rack is a rack that is open. It is safe for concurrent use.
type Rack struct {
	dir        string
	definition rackfile.Lab
	clock      *clock.Clock
	log        *slog.Logger
	store      *store.Store
	space      *space.Watch // nil: nobody watches
	full       atomic.Bool  // the last change could not be stored for lack of space
	lock       *os.File     // lock of dir
	files      []integrity.Rule
	// unsealed means that files may have changed since their list was written.
	unsealed bool

	// Network.
	authority     *network.Authority
	tls           network.TLS
	listeners     []*network.Listener
	webEndpoints  *network.Endpoints
	ipmiSockets   []*network.Datagrams // that BMCs share
	ipmiEndpoints *network.Endpoints
	connections   network.Connections
	bodyPace      network.BodyPace
	plainConns    *network.HandedListener // connections to BMCs that speak HTTP without TLS
	advertise     string                  // DNS name for clients; "" for none
	searchable    bool                    // clients can search for the BMCs
	ssdp          *ssdp.Responder         // nil when they cannot

	// Services of the BMCs.
	service         *redfish.Service
	previousService *redfish.Service // shows hosts as they were before their last change
	ipmi            *ipmi.Service

	// What BMCs do towards other servers.
	fetcher *outbound.Fetcher
	poster  *outbound.Poster // posts events
	trapper *outbound.Trapper

	journal    *journal.Journal
	metrics    metrics
	faults     *faults.Faults
	faultyHTTP *faults.HTTP
	exchanges  exchange.Watchers
	savings    savings
	quirks     quirks

	hosts  []*Host // by index
	byName map[string]*Host

	// Deadlines of machines, and those of BMCs that somebody waits for. A clock
	// that jumps goes to the next of these.
	machines schedule
	bmcs     schedule // all deadlines of BMCs in lab time; the clock does not jump to them
	clients  schedule // deadlines in client time, likewise
	ticks    chan chan struct{}
	stopped  chan struct{} // closed when Serve takes no more ticks
	delivery eventDelivery
	// Work that is done outside of a host's steps.
	background background
	tasks      sync.WaitGroup // tasks and jobs of BMCs

	storedLag    atomic.Int64 // lag of client time, in nanoseconds, as the store has it
	releaseClock func()       // Open holds the clock until Serve runs
	closing      sync.Once
}

// Dir returns the lab's directory as an absolute path.
func (l *Rack) Dir() string { return l.dir }

// Definition returns the rack's definition, with the passwords of its accounts.
func (l *Rack) Definition() rackfile.Lab { return l.definition }

// Clock returns the lab's clock.
func (l *Rack) Clock() *clock.Clock { return l.clock }

// Journal returns the journal of requests and events since the rack was opened.
func (l *Rack) Journal() *journal.Journal { return l.journal }

// CAFile returns the file with the certificate, in PEM, of the authority that
// signs for the BMCs.
func (l *Rack) CAFile() string { return filepath.Join(l.dir, network.CACertFile) }

// CAs returns a pool with that certificate.
func (l *Rack) CAs() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(l.authority.Certificate())
	return pool
}

// Hosts returns all hosts in the order of the rack.
func (l *Rack) Hosts() []*Host { return append([]*Host(nil), l.hosts...) }

// Host returns the host with a name.
func (l *Rack) Host(name string) (*Host, bool) {
	h, ok := l.byName[name]
	return h, ok
}

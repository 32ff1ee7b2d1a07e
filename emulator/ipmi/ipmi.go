// Package ipmi speaks IPMI 2.0 over LAN for the BMCs of a rack: one Service
// answers the datagrams of all of them. What a client asks for becomes commands
// to the machine and to the BMC, and what is answered is read from the same
// views that Redfish shows: it keeps nothing itself but sessions and what else
// a real BMC loses in a restart. It owns the table of commands; it opens no
// socket, and knows neither the lab that runs it nor Redfish.
package ipmi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Host is what the service needs of one host. Views are immutable; commands
// return when their effect is stored.
type Host interface {
	Name() string
	Dialect() *dialect.Record
	Machine() *machine.View
	BMC() *bmc.View
	Now() time.Time // of the lab
	// Accounts are those of the BMC with their passwords, which RAKP needs. The
	// slice is never changed.
	Accounts() []bmc.Account
	// Key is K_g; nil when there is none.
	Key() []byte
	// Factory is the certificate that the BMC came with.
	Factory() (bmc.Own, error)
	// Login counts a login.
	Login(c bmc.Credentials) (bmc.Account, bool)
	Apply(ctx context.Context, c machine.Command) error
	ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error)
}

// Rack finds the host that a datagram is for.
type Rack interface {
	// IPMIAt is the host whose BMC speaks IPMI at an address now; false when
	// none does. Hosts are comparable, and a BMC has the same one at each call.
	IPMIAt(local netip.AddrPort) (Host, bool)
}

// Config says what a Service works on.
type Config struct {
	Rack Rack
	Log  *slog.Logger // nil: none
	// Enter, when not nil, is told of every datagram in work.
	Enter func() (leave func())
	// Journal, when not nil, is told of every command that was answered.
	Journal func(Entry)
	// Astray and Trouble, when not nil, say what goes wrong on purpose.
	// Astray is asked of each datagram, with fault.In or fault.Out, Trouble of
	// each command.
	Astray  func(h Host, way string) fault.Decision
	Trouble func(h Host, fn, cmd byte) fault.Decision
	// Clock is the time by which datagrams are late.
	Clock *clock.Clock
	// Watch, when not nil, calls changed whenever a machine's console may have
	// changed, or whether it takes characters, until stop is called. What it
	// calls does not wait.
	Watch func(h Host, changed func()) (stop func())
	// Alert, when not nil, sends an alert; it does not wait. Acknowledged is told
	// that one has come to where it went.
	Alert        func(h Host, t Trap)
	Acknowledged func(h Host, sequence uint16)
	// Later, when not nil, calls a function after some of the lab's time, and not
	// before it has returned.
	Later func(after time.Duration, do func(context.Context))
	// Rand is where session IDs and challenges come from; nil is crypto/rand.
	Rand io.Reader
}

// Entry is one command that was answered. It holds no secret and no data.
type Entry struct {
	At        time.Time // of the lab, when it was answered
	Took      time.Duration
	Host      Host
	From      netip.AddrPort
	Command   string // its name
	NetFn     byte
	Cmd       byte
	Code      Code
	User      string // "" outside of a session
	Session   uint32 // its number since the BMC came up; 0 outside
	Acts      bool
	Handshake bool // it is part of the way into a session
}

// Service serves every BMC of a rack. It is safe for concurrent use.
type Service struct {
	c        Config
	commands map[place]*command

	mu    sync.RWMutex
	sides map[Host]*side
	acts  sync.WaitGroup
	ended bool

	traps atomic.Uint32 // that were made
}

// New makes the service.
func New(c Config) (*Service, error) {
	if c.Rack == nil {
		return nil, errors.New("ipmi: Config.Rack: must not be nil")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{c: c, commands: map[place]*command{}, sides: map[Host]*side{}}
	for _, row := range commands() {
		s.commands[place{row.fn, row.cmd, row.group}] = &row
	}
	return s, nil
}

// side is what a BMC remembers of IPMI until it restarts. There is none before
// somebody has spoken IPMI with it.
type side struct {
	host  Host
	realm realm

	mu      sync.Mutex
	table   *session.Table
	busy    bool     // a command that acts has it, and does not hold mu
	waiting []parcel // that came meanwhile
	up      time.Time
	access  *bmc.Access

	holding sync.Mutex
	held    map[string]func() // by way: datagrams that others shall overtake

	scratch
}

// scratch is what commands remember: each group of commands has its own.
type scratch struct {
	selScratch
	inbox
	sdrScratch
	names   names
	acpi    acpiTold
	pef     pefScratch
	present *present // of the channel; nil: as it is kept
	info    infoScratch
	lan     lanScratch
	serial  serial
	commits commits
}

// side is that of a host.
func (s *Service) side(h Host) *side {
	s.mu.RLock()
	sd := s.sides[h]
	s.mu.RUnlock()
	if sd != nil {
		return sd
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sd = s.sides[h]; sd == nil {
		sd = &side{host: h}
		sd.realm = realm{h, sd}
		sd.fresh(s.c.Rand)
		s.sides[h] = sd
	}
	return sd
}

// fresh makes the side that of a BMC that has just come up.
func (sd *side) fresh(random io.Reader) {
	sd.table = session.New(session.Config{Open: sd.host.Dialect().IPMI.MaxSessions, Half: sd.host.Dialect().IPMI.MaxPendingLogins, Rand: random})
	sd.scratch = scratch{}
	sd.look()
}

// look notes what the sessions depend on.
func (sd *side) look() {
	v := sd.host.BMC()
	sd.up, sd.access = upSince(v), v.Access
}

func upSince(v *bmc.View) time.Time {
	if v.Life == nil {
		return time.Time{}
	}
	return v.Life.Up
}

// heed ends what a change elsewhere has ended: a restart forgets everything, an
// account that is no more, or is another, has no sessions.
func (sd *side) heed(random io.Reader) {
	v := sd.host.BMC()
	if !sd.up.Equal(upSince(v)) {
		sd.fresh(random)
		return
	}
	if sd.access == v.Access {
		return
	}
	sd.access = v.Access
	sd.table.Drop(func(s *session.Session) bool {
		is, ok := sd.realm.account(s.User.Account)
		return !ok || is.Password != s.User.Password || is.Name != s.User.Name || is.Limit < s.Limit
	})
}

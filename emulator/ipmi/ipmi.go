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
	KG() []byte
	// Factory is the certificate that the BMC came with.
	FactoryCertificate() (bmc.KeyedCertificate, error)
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
	DatagramFault func(h Host, way string) fault.Decision
	CommandFault  func(h Host, fn, cmd byte) fault.Decision
	// Clock is the time by which datagrams are late.
	Clock *clock.Clock
	// Watch, when not nil, calls changed whenever a machine's console may have
	// changed, or whether it takes characters, until stop is called. What it
	// calls does not wait.
	WatchConsole func(h Host, changed func()) (stop func())
	// Alert, when not nil, sends an alert; it does not wait. Acknowledged is told
	// that one has come to where it went.
	SendTrap         func(h Host, t Trap)
	TrapAcknowledged func(h Host, sequence uint16)
	// Later, when not nil, calls a function after some of the lab's time, and not
	// before it has returned.
	AfterFunc func(after time.Duration, do func(context.Context))
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
	Mutates   bool
	Handshake bool // it is part of the way into a session
}

// Service serves every BMC of a rack. It is safe for concurrent use.
type Service struct {
	c        Config
	commands map[commandKey]*command

	mu        sync.RWMutex
	states    map[Host]*bmcState
	mutations sync.WaitGroup
	ended     bool

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
	s := &Service{c: c, commands: map[commandKey]*command{}, states: map[Host]*bmcState{}}
	for _, row := range commands() {
		s.commands[commandKey{row.fn, row.cmd, row.group}] = &row
	}
	return s, nil
}

// bmcState is what a BMC remembers of IPMI until it restarts. There is none before
// somebody has spoken IPMI with it.
type bmcState struct {
	host Host
	auth authenticator

	mu     sync.Mutex
	table  *session.Table
	busy   bool     // a command that acts has it, and does not hold mu
	queued []packet // that came meanwhile
	up     time.Time
	access *bmc.Access

	delayedMu sync.Mutex
	delayed   map[string]func() // by way: datagrams that others shall overtake

	volatileState
}

// volatileState is what commands remember: each group of commands has its own.
type volatileState struct {
	selState
	messageQueue
	sdrState
	dcmiStrings    dcmiStrings
	acpi           acpiState
	pef            pefState
	volatileAccess *volatileAccess // of the channel; nil: as it is kept
	info           systemInfoState
	lan            lanState
	sol            solState
	writeBurst     writeBurst
}

// state is that of a host.
func (s *Service) state(h Host) *bmcState {
	s.mu.RLock()
	st := s.states[h]
	s.mu.RUnlock()
	if st != nil {
		return st
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = s.states[h]; st == nil {
		st = &bmcState{host: h}
		st.auth = authenticator{h, st}
		st.reset(s.c.Rand)
		s.states[h] = st
	}
	return st
}

// reset makes the side that of a BMC that has just come up.
func (st *bmcState) reset(random io.Reader) {
	st.table = session.New(session.Config{Open: st.host.Dialect().IPMI.MaxSessions, Half: st.host.Dialect().IPMI.MaxPendingLogins, Rand: random})
	st.volatileState = volatileState{}
	st.recordDependencies()
}

// recordDependencies notes what the sessions depend on.
func (st *bmcState) recordDependencies() {
	v := st.host.BMC()
	st.up, st.access = upSince(v), v.Access
}

func upSince(v *bmc.View) time.Time {
	if v.Life == nil {
		return time.Time{}
	}
	return v.Life.Up
}

// invalidateSessions ends what a change elsewhere has ended: a restart forgets everything, an
// account that is no more, or is another, has no sessions.
func (st *bmcState) invalidateSessions(random io.Reader) {
	v := st.host.BMC()
	if !st.up.Equal(upSince(v)) {
		st.reset(random)
		return
	}
	if st.access == v.Access {
		return
	}
	st.access = v.Access
	st.table.Drop(func(s *session.Session) bool {
		is, ok := st.auth.account(s.User.Account)
		return !ok || is.Password != s.User.Password || is.Name != s.User.Name || is.Limit < s.Limit
	})
}

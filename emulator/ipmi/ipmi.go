// Package ipmi implements IPMI 2.0 for the BMCs of a rack: one Service answers
// the datagrams of all of them. Requests become commands to the machine and to
// the BMC, and responses are read from the same views that Redfish shows. The
// package owns the command table; it stores nothing but sessions and other
// state that a real BMC loses in a restart. It opens no socket, and knows
// neither the lab that runs it nor Redfish.
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
// return after their effect is stored.
type Host interface {
	Name() string
	Dialect() *dialect.Record
	Machine() *machine.View
	BMC() *bmc.View
	Now() time.Time // lab time
	// Accounts returns the BMC's accounts with their passwords, which RAKP
	// needs. The slice is never changed.
	Accounts() []bmc.Account
	// KG returns the BMC key K_G; nil when there is none.
	KG() []byte
	// FactoryCertificate returns the certificate that the BMC came with.
	FactoryCertificate() (bmc.KeyedCertificate, error)
	// Login checks credentials and counts the login.
	Login(c bmc.Credentials) (bmc.Account, bool)
	Apply(ctx context.Context, c machine.Command) error
	ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error)
}

// Rack finds the host of a local address.
type Rack interface {
	// IPMIAt returns the host whose BMC serves IPMI at an address now; false
	// when there is none. Hosts are comparable, and a BMC has the same one in
	// every call.
	IPMIAt(local netip.AddrPort) (Host, bool)
}

// Config configures a Service.
type Config struct {
	Rack Rack
	Log  *slog.Logger // nil: none
	// Enter, when not nil, is called for every datagram; leave is called when
	// its handling has ended.
	Enter func() (leave func())
	// Journal, when not nil, is called for every command that was answered.
	Journal func(Entry)
	// DatagramFault and CommandFault, when not nil, decide on injected faults:
	// DatagramFault for each datagram, with fault.In or fault.Out, CommandFault
	// for each command.
	DatagramFault func(h Host, way string) fault.Decision
	CommandFault  func(h Host, fn, cmd byte) fault.Decision
	// Clock times datagrams that a fault delays.
	Clock *clock.Clock
	// WatchConsole, when not nil, calls changed whenever a machine's console
	// may have changed, or whether it accepts characters, until stop is called.
	// changed does not block.
	WatchConsole func(h Host, changed func()) (stop func())
	// SendTrap, when not nil, sends a trap without blocking. TrapAcknowledged
	// reports that a trap's destination has acknowledged it.
	SendTrap         func(h Host, t Trap)
	TrapAcknowledged func(h Host, sequence uint16)
	// AfterFunc, when not nil, calls do after some lab time, and never before
	// AfterFunc has returned.
	AfterFunc func(after time.Duration, do func(context.Context))
	// Rand is the source of session IDs and challenges; nil is crypto/rand.
	Rand io.Reader
}

// Entry describes one command that was answered. It holds no secret and no
// data.
type Entry struct {
	At        time.Time // lab time of the response
	Took      time.Duration
	Host      Host
	From      netip.AddrPort
	Command   string // name of the command
	NetFn     byte
	Cmd       byte
	Code      Code
	User      string // "" outside of a session
	Session   uint32 // session number since the BMC came up; 0 outside of a session
	Mutates   bool
	Handshake bool // part of session setup
}

// Service serves IPMI for every BMC of a rack. It is safe for concurrent use.
type Service struct {
	c        Config
	commands map[commandKey]*command

	mu        sync.RWMutex
	states    map[Host]*bmcState
	mutations sync.WaitGroup
	ended     bool

	traps atomic.Uint32 // traps made so far, for their sequence numbers
}

// New returns a Service that serves the rack of c.
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

// bmcState is the IPMI state of one BMC that a restart of the BMC clears. It is
// created by the first IPMI datagram.
type bmcState struct {
	host Host
	auth authenticator

	mu     sync.Mutex
	table  *session.Table
	busy   bool     // a mutating command runs, without holding mu
	queued []packet // datagrams that came while busy
	up     time.Time
	access *bmc.Access

	delayedMu sync.Mutex
	delayed   map[string]func() // by direction: the datagram that the next one shall overtake

	volatileState
}

// volatileState is what the groups of commands store until the BMC restarts.
type volatileState struct {
	selState
	messageQueue
	sdrState
	dcmiStrings    dcmiStrings
	acpi           acpiState
	pef            pefState
	volatileAccess *volatileAccess // nil: as the stored channel access says
	info           systemInfoState
	lan            lanState
	sol            solState
	writeBurst     writeBurst
}

// state returns the IPMI state of a host, which it creates when needed.
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

// reset sets the state to that of a BMC that has just come up.
func (st *bmcState) reset(random io.Reader) {
	st.table = session.New(session.Config{Open: st.host.Dialect().IPMI.MaxSessions, Pending: st.host.Dialect().IPMI.MaxPendingLogins, Rand: random})
	st.volatileState = volatileState{}
	st.recordDependencies()
}

// recordDependencies records the views that the sessions depend on.
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

// invalidateSessions ends sessions as changes elsewhere demand: a restart of
// the BMC clears all state, and an account that was deleted or changed loses
// its sessions.
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

// Package ipmi implements IPMI 2.0 for the BMCs of a rack: one Service answers
// the datagrams of all of them. It receives and sends datagrams, passes them
// through the sessions of their BMC, runs the rows of the command table of
// package command one request at a time for each BMC, and connects SOL payloads
// to the machines' consoles. It stores nothing but sessions and other state
// that a real BMC loses in a restart. It opens no socket, and knows neither the
// rack that runs it nor Redfish.
package ipmi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi/command"
)

// Host is what the service needs of one host.
type Host = command.Host

// Trap is an alert to be sent as an SNMP trap over UDP.
type Trap = command.Trap

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
	Code      command.Code
	User      string // "" outside of a session
	Session   uint32 // session number since the BMC came up; 0 outside of a session
	Mutates   bool
	Handshake bool // part of session setup
}

// Service serves IPMI for every BMC of a rack. It is safe for concurrent use.
type Service struct {
	c        Config
	commands command.Table
	alerts   *command.Alerter

	mu        sync.RWMutex
	states    map[Host]*bmcState
	mutations sync.WaitGroup
	ended     bool
}

// New returns a Service that serves the rack of c.
func New(c Config) (*Service, error) {
	if c.Rack == nil {
		return nil, errors.New("ipmi: Config.Rack: must not be nil")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		c: c, commands: command.NewTable(), states: map[Host]*bmcState{},
		alerts: &command.Alerter{Log: c.Log, SendTrap: c.SendTrap, Acknowledged: c.TrapAcknowledged, AfterFunc: c.AfterFunc},
	}, nil
}

// FilterEvents passes the log entries among evs to platform event filtering.
// Call it after each step of the host that returned events. It does not act
// itself: actions and alerts follow later, through Config.AfterFunc.
func (s *Service) FilterEvents(h Host, now time.Time, evs []bmc.Event) {
	s.alerts.FilterEvents(h, now, evs)
}

// bmcState is the IPMI state of one BMC: what its commands store, and what the
// server needs to run them. It is created by the first IPMI datagram.
type bmcState struct {
	service *Service

	mu            sync.Mutex
	command.State          // whoever holds mu, or runs the mutating command, has it
	busy          bool     // a mutating command runs, without holding mu
	queued        []packet // datagrams that came while busy
	sol           *solConnection

	delayedMu sync.Mutex
	delayed   map[string]func() // by direction: the datagram that the next one shall overtake
}

var _ command.Server = (*bmcState)(nil)

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
		st = &bmcState{service: s}
		st.State = command.State{Host: h, Commands: s.commands, Alerts: s.alerts, Server: st}
		st.Reset(s.c.Rand)
		s.states[h] = st
	}
	return st
}

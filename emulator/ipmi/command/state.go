package command

import (
	"io"
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
)

// State is the IPMI state of one BMC that a restart of the BMC clears. Whoever
// handles a request has it exclusively.
type State struct {
	Host     Host
	Commands Table
	Alerts   *Alerter
	Server   Server
	Sessions *session.Table

	up     time.Time   // the BMC's start that the state is of
	access *bmc.Access // the accounts that the sessions were last checked against
	volatileState
}

// Server is what the commands of one BMC ask of the server that runs them.
type Server interface {
	// Send sends a datagram to a client, outside of a response.
	Send(to Client, datagram []byte)
	// SOLSession returns the session that has SOL activated; nil when none has.
	SOLSession() *session.Session
	// ActivateSOL activates SOL for a session, and ends the connection that was
	// active.
	ActivateSOL(s *session.Session, c Client)
	// DeactivateSOL ends the SOL connection of a session, and tells the console
	// when notify is set. Without such a connection it does nothing.
	DeactivateSOL(s *session.Session, notify bool)
	// ConfigureSOL gives the active SOL connection the parameters that apply now.
	ConfigureSOL(parameters *bmc.SOL)
}

// Client is where a request came from: the client's address, the address of the
// BMC that it has reached, and the socket that both are of.
type Client struct {
	Addr, Local netip.AddrPort
	Socket      Sender
}

// Sender sends a datagram from a local address.
type Sender interface {
	Send(b []byte, to, from netip.AddrPort) error
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

// Reset sets the state to that of a BMC that has just come up. random is the
// source of session IDs and challenges; nil is crypto/rand.
func (st *State) Reset(random io.Reader) {
	limits := &st.Host.Dialect().IPMI
	st.Sessions = session.New(session.Config{Open: limits.MaxSessions, Pending: limits.MaxPendingLogins, Rand: random})
	st.volatileState = volatileState{}
	v := st.Host.BMC()
	st.up, st.access = upSince(v), v.Access
}

func upSince(v *bmc.View) time.Time {
	if v.Life == nil {
		return time.Time{}
	}
	return v.Life.Up
}

// InvalidateSessions ends sessions as changes elsewhere demand: a restart of
// the BMC clears all state, and an account that was deleted or changed loses
// its sessions.
func (st *State) InvalidateSessions(random io.Reader) {
	v := st.Host.BMC()
	if !st.up.Equal(upSince(v)) {
		st.Reset(random)
		return
	}
	if st.access == v.Access {
		return
	}
	st.access = v.Access
	auth := authenticator{st}
	st.Sessions.Drop(func(s *session.Session) bool {
		is, ok := auth.account(s.User.Account)
		return !ok || is.Password != s.User.Password || is.Name != s.User.Name || is.Limit < s.Limit
	})
}

// Authenticator returns what decides who may log in at the BMC.
func (st *State) Authenticator() session.FaultyAuthenticator { return authenticator{st} }

// Traffic returns the counters of the BMC's datagrams.
func (st *State) Traffic() *Traffic { return &st.lan.traffic }

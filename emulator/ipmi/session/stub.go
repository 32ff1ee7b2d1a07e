// To be replaced by the worker of this package: the names that the engine uses.

package session

import (
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"io"
	"iter"
	"net/netip"
	"time"
)

type Realm interface {
	GUID() [16]byte
	KG() []byte
	Suites() []Suite
	AuthTypes() wire.AuthTypes
	Limit() wire.Privilege
	User(name string, role wire.Privilege, byName bool) (User, bool)
	Admit(u User, proved bool, from netip.AddrPort) bool
}
type Suite struct {
	ID    byte
	Limit wire.Privilege
}
type User struct {
	ID                      byte
	Account, Name, Password string
	Limit                   wire.Privilege
}
type Config struct {
	Open, Half int
	Idle       time.Duration
	Rand       io.Reader
}
type Table struct{}

func New(c Config) *Table { return &Table{} }

type Frame struct{}
type Received struct {
	Reply   []byte
	Session *Session
	Payload wire.PayloadType
	Body    []byte
	Frame   Frame
}

func (t *Table) Receive(now time.Time, from netip.AddrPort, packet, out []byte, r Realm) Received {
	return Received{}
}
func (t *Table) Seal(now time.Time, out []byte, f Frame, p wire.PayloadType, body []byte) []byte {
	return nil
}
func (t *Table) Find(id uint32) *Session          { return nil }
func (t *Table) All() iter.Seq[*Session]          { return nil }
func (t *Table) Close(id uint32) bool             { return false }
func (t *Table) Drop(func(*Session) bool)         {}
func (t *Table) Advance(now time.Time) []*Session { return nil }
func (t *Table) Most() byte                       { return 0 }
func (t *Table) Challenge(now time.Time, from netip.AddrPort, auth byte, name []byte, r Realm) (uint32, [16]byte, byte) {
	return 0, [16]byte{}, 0
}

type Activated struct {
	Auth         byte
	ID, Sequence uint32
	Limit        wire.Privilege
}

func (t *Table) Activate(now time.Time, from netip.AddrPort, s *Session, data []byte, r Realm) (Activated, byte) {
	return Activated{}, 0
}

type Session struct {
	ID, Console      uint32
	Handle           byte
	User             User
	Limit, Privilege wire.Privilege
	From             netip.AddrPort
	Suite            byte
	V15              bool
	Begun, Used      time.Time
}

func (s *Session) Repeat(b []byte) ([]byte, bool) { return nil, false }
func (s *Session) Remember(a, b []byte)           {}

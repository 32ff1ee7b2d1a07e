package command

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/fixtures"
)

// The accounts of every BMC under test: one per role.
var accounts = []bmc.Account{
	{ID: "1", Name: "admin", Password: "adm-secret-1", Role: bmc.Administrator, Enabled: true},
	{ID: "2", Name: "operator", Password: "op-secret-2", Role: bmc.Operator, Enabled: true},
	{ID: "3", Name: "reader", Password: "read-secret-3", Role: bmc.ReadOnly, Enabled: true},
	{ID: "4", Name: "gone", Password: "gone-secret-4", Role: bmc.Administrator},
}

// host is a Host with a real machine and a real BMC, whose clock advances only
// when a test sets it.
type host struct {
	mu        sync.Mutex
	d         *dialect.Record
	now       time.Time
	clientLag time.Duration // lag of client time behind now
	machine   *machine.Machine
	bmc       *bmc.BMC
	mv        *machine.View
	bv        *bmc.View
	fail      error // returned by Apply and ApplyBMC when not nil
	boots     bool  // the first boot source that is tried holds an operating system
	state     *State
	server    *server
}

var _ Host = (*host)(nil)

// server is a Server that sends nothing and whose SOL connections have no
// console.
type server struct {
	state *State
	sol   *session.Session // the session that has SOL activated
}

func (s *server) Send(Client, []byte) {}

func (s *server) SOLSession() *session.Session {
	if s.sol != nil && s.state.Sessions.Find(s.sol.ID) != s.sol {
		s.sol = nil
	}
	return s.sol
}

func (s *server) ActivateSOL(sess *session.Session, _ Client) { s.sol = sess }

func (s *server) DeactivateSOL(sess *session.Session, _ bool) {
	if s.sol == sess {
		s.sol = nil
	}
}

func (s *server) ConfigureSOL(*bmc.SOL) {}

func newHost(t testing.TB) *host {
	t.Helper()
	return newHostOf(t, "generic")
}

// newHostOf returns a host with a built-in profile.
func newHostOf(t testing.TB, profile string) *host {
	t.Helper()
	p := profileOf(t, profile)
	d := generic.Record
	must(t, d.Validate())
	m, err := machine.New(p, machine.NewIdentity(7, 0, "node-0", p), nil)
	must(t, err)
	h := &host{d: &d, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), machine: m, bmc: bmc.New(&d.BMC, accounts, nil)}
	h.changed()
	h.server = &server{}
	h.state = &State{Host: h, Commands: NewTable(), Alerts: &Alerter{Log: slog.New(slog.DiscardHandler)}, Server: h.server}
	h.server.state = h.state
	h.state.Reset(nil)
	return h
}

var profiles sync.Map // by name

// profileOf returns a built-in profile, which is parsed once, as in a rack.
func profileOf(t testing.TB, name string) *machine.Profile {
	t.Helper()
	if p, ok := profiles.Load(name); ok {
		return p.(*machine.Profile)
	}
	raw, err := fixtures.Profiles.ReadFile("profiles/" + name + ".yaml")
	must(t, err)
	p, err := machine.ParseProfile("profile.yaml", raw)
	must(t, err)
	must(t, p.Equip(func(name string) ([]byte, error) { return fixtures.Profiles.ReadFile("registries/" + name + ".yaml") }))
	profiles.Store(name, p)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *host) locked() func() { h.mu.Lock(); return h.mu.Unlock }

// changed publishes the views, as a rack does at the end of a step.
func (h *host) changed() {
	mv, bv := h.machine.View(), h.bmc.View()
	h.mv, h.bv = &mv, &bv
}

func (h *host) Name() string { return "node-0" }

func (h *host) Dialect() *dialect.Record { return h.d }

func (h *host) Machine() *machine.View { defer h.locked()(); return h.mv }

func (h *host) BMC() *bmc.View { defer h.locked()(); return h.bv }

func (h *host) Now() time.Time { defer h.locked()(); return h.now }

func (h *host) ClientNow() time.Time { return h.Now().Add(-h.clientLag) }

func (h *host) Accounts() []bmc.Account { defer h.locked()(); return h.bmc.State().Access.Accounts }

// FactoryCertificate returns a certificate whose bytes are not X.509: commands
// only hash them.
func (h *host) FactoryCertificate() (bmc.KeyedCertificate, error) {
	return bmc.KeyedCertificate{Certificate: bmc.Certificate{ID: "1", Chain: [][]byte{[]byte("of the factory")}}}, nil
}

func (h *host) KG() []byte { defer h.locked()(); return h.bmc.KG() }

func (h *host) Login(c bmc.Credentials) (bmc.Account, bool) {
	defer h.locked()()
	v := h.bmc.Login(c)
	if v.Record != nil {
		if _, err := h.bmc.Apply(h.now, v.Record); err != nil {
			panic(err)
		}
		h.changed()
	}
	return v.Account, v.OK
}

func (h *host) Apply(_ context.Context, c machine.Command) error {
	defer h.locked()()
	if h.fail != nil {
		return h.fail
	}
	evs, err := h.machine.Apply(h.now, c)
	h.bmc.ObserveMachine(h.now, evs)
	h.changed()
	return err
}

func (h *host) ApplyBMC(_ context.Context, c bmc.Command) ([]bmc.Event, error) {
	defer h.locked()()
	if h.fail != nil {
		return nil, h.fail
	}
	evs, err := h.bmc.Apply(h.now, c)
	h.changed()
	return evs, err
}

// observe passes events of the machine to the BMC.
func (h *host) observe(evs ...event.Event) {
	defer h.locked()()
	h.bmc.ObserveMachine(h.now, evs)
	h.changed()
}

// do applies a machine command as if it had not come over IPMI.
func (h *host) do(t testing.TB, c machine.Command) {
	t.Helper()
	must(t, h.Apply(t.Context(), c))
}

// advance advances the clock by d, deadline by deadline. Boot sources that are
// tried are not bootable, unless h.boots.
func (h *host) advance(d time.Duration) {
	defer h.locked()()
	for end := h.now.Add(d); ; {
		h.now = end
		if at, ok := h.machine.Deadline(); ok && at.Before(end) {
			h.now = at
		}
		h.handleEvents(h.machine.Advance(h.now))
		if h.now.Equal(end) {
			break
		}
	}
	h.bmc.Advance(h.now)
	h.changed()
}

// handleEvents passes events to the BMC, and answers boot attempts as a rack
// does.
func (h *host) handleEvents(evs []machine.Event) {
	for len(evs) > 0 {
		ev := evs[0]
		evs = evs[1:]
		h.bmc.ObserveMachine(h.now, []machine.Event{ev})
		tried, ok := ev.(machine.BootAttempted)
		if !ok {
			continue
		}
		var answer machine.Command = machine.NotBootable{Boot: tried.Boot, Source: tried.Source}
		if h.boots {
			answer = machine.Loaded{Boot: tried.Boot, Source: tried.Source, Name: "disk"}
		}
		more, err := h.machine.Apply(h.now, answer)
		if err != nil {
			panic(err)
		}
		evs = append(evs, more...)
	}
}

// running boots the machine until its operating system runs.
func (h *host) running(t testing.TB) *host {
	t.Helper()
	h.boots = true
	h.do(t, machine.Reset{Kind: machine.ResetOn})
	h.advance(time.Hour)
	if is := h.Machine().Phase; is != machine.Running {
		t.Fatalf("an hour after power on the machine is %s", is)
	}
	return h
}

// ask executes a request of an administrator and returns the response. data is
// as on the wire: that of network function Group begins with the defining body.
func ask(t testing.TB, h *host, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte) {
	t.Helper()
	return askAs(t, h, wire.Administrator, fn, cmd, data...)
}

// system stands for the system interface in place of a privilege level.
const system wire.Privilege = 0xff

// askAs is ask with another privilege level of the session; 0: without a
// session.
func askAs(t testing.TB, h *host, who wire.Privilege, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte) {
	t.Helper()
	code, out, _ := askMore(t, h, who, 0, fn, cmd, data...)
	return code, out
}

// askMore is askAs with a responder LUN; it also returns the messages that follow
// the response.
func askMore(t testing.TB, h *host, who wire.Privilege, lun byte, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte, [][]byte) {
	t.Helper()
	h.state.InvalidateSessions(nil)
	req := wire.Request{To: bmcAddress, ToLUN: lun, NetFn: fn, From: 0x81, Seq: 1, Cmd: cmd, Data: data}
	x := New(t.Context(), h.state, h.Now(), req)
	x.Client = Client{Addr: netip.MustParseAddrPort("127.0.0.1:40000"), Local: netip.MustParseAddrPort("127.64.0.1:623")}
	x.inBand = who == system
	var err error
	x.Message, err = req.AppendBinary(nil)
	must(t, err)
	if who == system {
		x.Session = systemSession()
	} else if who > 0 {
		u := session.User{ID: 2, Account: "1", Name: "admin", Limit: wire.Administrator}
		x.Session = &session.Session{ID: 0x02a1b2c3, Console: 0xa0a2a3a4, Handle: 1, User: u, Limit: wire.Administrator, Privilege: who, From: x.Client.Addr}
	}
	code := x.Execute(x.Row())
	if x.After != nil {
		x.After()
	}
	return code, x.out, x.FollowUps
}

// exchanges are requests of one command and their responses, in order.
type exchanges []struct {
	name string
	data string // data of the request, in hex
	code Code
	want string // data of the response, in hex
}

// try sends the requests as an administrator, and compares the responses.
func (all exchanges) try(t *testing.T, h *host, fn wire.NetFn, cmd byte) {
	t.Helper()
	for _, e := range all {
		code, got := ask(t, h, fn, cmd, unhex(t, e.data)...)
		if code != e.code || !bytes.Equal(got, unhex(t, e.want)) {
			t.Errorf("%s: %02x/%02x [%s] = %02X [%s], want %02X [%s]", e.name, byte(fn), cmd, e.data, byte(code), tohex(got), byte(e.code), e.want)
		}
	}
}

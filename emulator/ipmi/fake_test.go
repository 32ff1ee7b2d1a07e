package ipmi

import (
	"bytes"
	"context"
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

// host is a Host on a real machine and a real BMC, with a clock that stands
// until a test moves it. It is a Rack, too: there is nobody else at any address.
type host struct {
	mu      sync.Mutex
	d       *dialect.Record
	now     time.Time
	machine *machine.Machine
	bmc     *bmc.BMC
	mv      *machine.View
	bv      *bmc.View
	fail    error // of every Apply
	boots   bool  // the first source that is tried holds a system
	service *Service
}

var (
	_ Host = (*host)(nil)
	_ Rack = (*host)(nil)
)

func newHost(t testing.TB) *host {
	t.Helper()
	return newHostOf(t, "generic")
}

// newHostOf is a host of a built-in profile.
func newHostOf(t testing.TB, profile string) *host {
	t.Helper()
	p := profileOf(t, profile)
	d := generic.Record
	must(t, d.Validate())
	m, err := machine.New(p, machine.NewIdentity(7, 0, "node-0", p), nil)
	must(t, err)
	h := &host{d: &d, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), machine: m, bmc: bmc.New(&d.BMC, accounts, nil)}
	h.service, err = New(Config{Rack: h})
	must(t, err)
	h.changed()
	return h
}

var profiles sync.Map // by name

// profileOf is a built-in profile, which is parsed once, as in a lab.
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

// changed ends a step: it is seen.
func (h *host) changed() {
	mv, bv := h.machine.View(), h.bmc.View()
	h.mv, h.bv = &mv, &bv
}

func (h *host) IPMIAt(netip.AddrPort) (Host, bool) { return h, true }

func (h *host) Name() string { return "node-0" }

func (h *host) Dialect() *dialect.Record { return h.d }

func (h *host) Machine() *machine.View { defer h.locked()(); return h.mv }

func (h *host) BMC() *bmc.View { defer h.locked()(); return h.bv }

func (h *host) Now() time.Time { defer h.locked()(); return h.now }

func (h *host) Accounts() []bmc.Account { defer h.locked()(); return h.bmc.State().Access.Accounts }

// FactoryCertificate is a certificate of which nobody reads more than its bytes.
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

// hear has the BMC hear what happens to its machine.
func (h *host) hear(evs ...event.Event) {
	defer h.locked()()
	h.bmc.ObserveMachine(h.now, evs)
	h.changed()
}

// do carries out a command that no client of IPMI has sent.
func (h *host) do(t testing.TB, c machine.Command) {
	t.Helper()
	must(t, h.Apply(t.Context(), c))
}

// pass lets time go by, from one thing that happens to the next. Boot sources
// that are tried turn out not bootable, unless h.boots.
func (h *host) pass(d time.Duration) {
	defer h.locked()()
	for end := h.now.Add(d); ; {
		h.now = end
		if at, ok := h.machine.Deadline(); ok && at.Before(end) {
			h.now = at
		}
		h.happen(h.machine.Advance(h.now))
		if h.now.Equal(end) {
			break
		}
	}
	h.bmc.Advance(h.now)
	h.changed()
}

// happen does what the world does when events come.
func (h *host) happen(evs []machine.Event) {
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

// running brings the machine up.
func (h *host) running(t testing.TB) *host {
	t.Helper()
	h.boots = true
	h.do(t, machine.Reset{Kind: machine.ResetOn})
	h.pass(time.Hour)
	if is := h.Machine().Phase; is != machine.Running {
		t.Fatalf("an hour after power on the machine is %s", is)
	}
	return h
}

// ask is what an administrator's request is answered with. data is as it goes
// over the wire: that of fn Group begins with the group.
func ask(t testing.TB, h *host, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte) {
	t.Helper()
	return askAs(t, h, wire.Administrator, fn, cmd, data...)
}

// system asks over the system interface.
const system wire.Privilege = 0xff

// askAs is ask in a session of a privilege; 0: outside of any.
func askAs(t testing.TB, h *host, who wire.Privilege, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte) {
	t.Helper()
	code, out, _ := askMore(t, h, who, 0, fn, cmd, data...)
	return code, out
}

// askMore is askAs at a LUN, and what follows the answer, too.
func askMore(t testing.TB, h *host, who wire.Privilege, lun byte, fn wire.NetFn, cmd byte, data ...byte) (Code, []byte, [][]byte) {
	t.Helper()
	sd := h.service.state(h)
	sd.mu.Lock()
	defer sd.mu.Unlock()
	sd.invalidateSessions(nil)
	x := &request{
		ctx: t.Context(), service: h.service, host: h, state: sd, now: h.Now(), fn: fn, cmd: cmd, lun: lun, data: data, source: 0x81,
		from: netip.MustParseAddrPort("127.0.0.1:40000"), local: netip.MustParseAddrPort("127.64.0.1:623"), inBand: who == system,
	}
	req := wire.Request{To: bmcAddress, ToLUN: lun, NetFn: fn, From: x.source, Seq: 1, Cmd: cmd, Data: data}
	var err error
	x.message, err = req.AppendBinary(nil)
	must(t, err)
	if who == system {
		x.session = systemSession()
	} else if who > 0 {
		u := session.User{ID: 2, Account: "1", Name: "admin", Limit: wire.Administrator}
		x.session = &session.Session{ID: 0x02a1b2c3, Console: 0xa0a2a3a4, Handle: 1, User: u, Limit: wire.Administrator, Privilege: who, From: x.from}
	}
	code := x.execute(h.service.lookup(sd, &req))
	if x.after != nil {
		x.after()
	}
	return code, x.out, x.followUps
}

// exchanges are requests and what each is answered with, in order.
type exchanges []struct {
	name string
	data string // of the request, in hex
	code Code
	want string // data of the answer, in hex
}

// try asks all of them of one command.
func (all exchanges) try(t *testing.T, h *host, fn wire.NetFn, cmd byte) {
	t.Helper()
	for _, e := range all {
		code, got := ask(t, h, fn, cmd, unhex(t, e.data)...)
		if code != e.code || !bytes.Equal(got, unhex(t, e.want)) {
			t.Errorf("%s: %02x/%02x [%s] = %02X [%s], want %02X [%s]", e.name, byte(fn), cmd, e.data, byte(code), tohex(got), byte(e.code), e.want)
		}
	}
}

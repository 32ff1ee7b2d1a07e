package ipmi

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/fixtures"
)

// host is a Host with a real machine and a real BMC, whose clock advances only
// when a test sets it. It is a Rack, too: the same host has every address.
type host struct {
	d       *dialect.Record
	now     time.Time
	machine *machine.Machine
	bmc     *bmc.BMC
	mv      machine.View
	bv      bmc.View
	service *Service
}

var (
	_ Host = (*host)(nil)
	_ Rack = (*host)(nil)
)

// newHost returns a host with the generic profile, and a Service that serves it.
func newHost(t testing.TB) *host {
	t.Helper()
	raw, err := fixtures.Profiles.ReadFile("profiles/generic.yaml")
	must(t, err)
	p, err := machine.ParseProfile("profile.yaml", raw)
	must(t, err)
	must(t, p.Equip(func(name string) ([]byte, error) { return fixtures.Profiles.ReadFile("registries/" + name + ".yaml") }))
	d := generic.Record
	must(t, d.Validate())
	m, err := machine.New(p, machine.NewIdentity(7, 0, "node-0", p), nil)
	must(t, err)
	h := &host{d: &d, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), machine: m, bmc: bmc.New(&d.BMC, nil, nil)}
	h.changed()
	h.service, err = New(Config{Rack: h})
	must(t, err)
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// changed publishes the views, as a rack does at the end of a step.
func (h *host) changed() { h.mv, h.bv = h.machine.View(), h.bmc.View() }

func (h *host) IPMIAt(netip.AddrPort) (Host, bool) { return h, true }

func (h *host) Name() string { return "node-0" }

func (h *host) Dialect() *dialect.Record { return h.d }

func (h *host) Machine() *machine.View { return &h.mv }

func (h *host) BMC() *bmc.View { return &h.bv }

func (h *host) Now() time.Time { return h.now }

func (h *host) ClientNow() time.Time { return h.now }

func (h *host) Accounts() []bmc.Account { return nil }

func (h *host) KG() []byte { return nil }

func (h *host) FactoryCertificate() (bmc.KeyedCertificate, error) {
	return bmc.KeyedCertificate{}, bmc.ErrNotFound
}

func (h *host) Login(bmc.Credentials) (bmc.Account, bool) { return bmc.Account{}, false }

func (h *host) Apply(_ context.Context, c machine.Command) error {
	evs, err := h.machine.Apply(h.now, c)
	h.bmc.ObserveMachine(h.now, evs)
	h.changed()
	return err
}

func (h *host) ApplyBMC(_ context.Context, c bmc.Command) ([]bmc.Event, error) {
	evs, err := h.bmc.Apply(h.now, c)
	h.changed()
	return evs, err
}

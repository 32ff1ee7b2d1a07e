package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// Host is one machine with its BMC. It is safe for concurrent use. At rest it
// has no goroutine, no timer and no open file.
type Host struct {
	lab    *Lab
	index  int
	record *dialect.Record

	mu      sync.Mutex
	machine *machine.Machine
	bmc     *bmc.BMC
	boot    *fence            // of the boot that drives are attached to; nil when none are
	fetches map[string]*fetch // by slot: images on their way

	// What services see. A change makes a new one.
	machineView atomic.Pointer[machine.View]
	bmcView     atomic.Pointer[bmc.View]

	machineDue, bmcDue deadline
}

var _ redfish.Host = (*Host)(nil)

// hostState is what the store knows of a host.
type hostState struct {
	Machine machine.State `json:"machine"`
	BMC     bmc.State     `json:"bmc"`
}

func newHost(l *Lab, r rack.Host, m model, accounts []bmc.Account, st *hostState) (*Host, error) {
	h := &Host{lab: l, index: r.Index, record: m.record}
	var ms *machine.State
	var bs *bmc.State
	if st != nil {
		ms, bs = &st.Machine, &st.BMC
	}
	var err error
	h.machine, err = machine.New(m.profile, machine.NewIdentity(l.rack.Seed, r.Index, r.Name, m.profile), ms)
	if err != nil {
		return nil, err
	}
	h.bmc = bmc.New(&m.record.BMC, accounts, bs)
	h.machineDue, h.bmcDue = deadline{host: h, pos: -1}, deadline{host: h, pos: -1}
	h.showMachine()
	h.showBMC()
	return h, nil
}

// Name is the host's name in the rack.
func (h *Host) Name() string { return h.Machine().Identity.Name }

// Index is the host's place in the rack, counted from 0.
func (h *Host) Index() int { return h.index }

// Address is where the BMC's HTTPS service is.
func (h *Host) Address() netip.AddrPort { return h.lab.plan.address(h.index) }

// URL is that service, without a path.
func (h *Host) URL() string { return "https://" + h.Address().String() }

// Dialect implements redfish.Host.
func (h *Host) Dialect() *dialect.Record { return h.record }

// Machine is the machine as it stands.
func (h *Host) Machine() *machine.View { return h.machineView.Load() }

// BMC is the BMC as it stands.
func (h *Host) BMC() *bmc.View { return h.bmcView.Load() }

// Now is the lab's time.
func (h *Host) Now() time.Time { return h.lab.clock.Now() }

// Admin is the first enabled administrator, with the password.
func (h *Host) Admin() (bmc.Account, bool) {
	return h.account(func(a bmc.Account) bool { return a.Role == bmc.Administrator && a.Enabled })
}

// Account is the account of that name, with its password.
func (h *Host) Account(name string) (bmc.Account, bool) {
	return h.account(func(a bmc.Account) bool { return a.Name == name })
}

func (h *Host) account(is func(bmc.Account) bool) (bmc.Account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.bmc.State().Accounts {
		if is(a) {
			return a, true
		}
	}
	return bmc.Account{}, false
}

// Login checks a name and a password.
func (h *Host) Login(name, password string) (bmc.Account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bmc.Login(name, password)
}

// Resume finds the session that a token stands for, and counts as its use.
func (h *Host) Resume(token string) (bmc.Session, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	overdue := h.bmcOverdue(now)
	s, ok := h.bmc.Resume(now, token)
	if overdue {
		h.showBMC()
	}
	return s, ok
}

// bmcOverdue tells whether it is time to move the BMC on.
func (h *Host) bmcOverdue(now time.Time) bool {
	at, ok := h.bmc.Deadline()
	return ok && !now.Before(at)
}

// Power resets the machine; kind is one of Redfish's ResetType.
func (h *Host) Power(ctx context.Context, kind string) error {
	return h.Apply(ctx, machine.Reset{Kind: machine.ResetKind(kind)})
}

// Apply carries out a command to the machine. When it returns, the effect is
// stored and seen, and what ran on a machine that lost its power runs no more.
func (h *Host) Apply(ctx context.Context, c machine.Command) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if h.lab.delivery.full(h) {
		return fmt.Errorf("%w: too many events of %s wait to be taken", redfish.ErrBusy, h.Name())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	was, now := h.state(), h.Now()
	evs, overdue := h.advanceMachine(now)
	more, err := h.machine.Apply(now, c)
	if err != nil && !overdue { // refused, and nothing changed
		return err
	}
	return errors.Join(err, h.settleMachine(now, was, append(evs, more...)))
}

// advanceMachine moves the machine to now; it tells whether it was time to.
func (h *Host) advanceMachine(now time.Time) (evs []machine.Event, overdue bool) {
	at, ok := h.machine.Deadline()
	return h.machine.Advance(now), ok && !now.Before(at)
}

func (h *Host) state() hostState {
	return hostState{Machine: h.machine.State(), BMC: h.bmc.State()}
}

// settleMachine makes what the machine did durable, then seen, then told. If it
// cannot be stored, it was not done.
func (h *Host) settleMachine(now time.Time, was hostState, evs []machine.Event) error {
	if err := h.save(now); err != nil {
		if m, e := machine.New(h.Machine().Profile, h.Machine().Identity, &was.Machine); e == nil {
			h.machine = m
		}
		h.schedule()
		return err
	}
	h.showMachine()
	if os := h.Machine().OS; h.boot != nil && (os == nil || os.Boot != h.boot.number) {
		h.boot.close()
		h.boot = nil
	}
	h.schedule()
	h.lab.delivery.push(h, evs)
	return nil
}

// settleBMC does the same for the BMC. One that cannot store is back where it
// was, without its sessions.
func (h *Host) settleBMC(now time.Time, was hostState) error {
	err := h.save(now)
	if err != nil {
		h.bmc = bmc.New(&h.record.BMC, nil, &was.BMC)
	}
	h.showBMC()
	h.schedule()
	return err
}

func (h *Host) save(now time.Time) error {
	err := h.lab.store.Save(now, store.Put{Kind: store.Hosts, Key: h.Name(), Value: h.state()})
	if err != nil {
		return fmt.Errorf("lab: %s: %w", h.Name(), err)
	}
	return nil
}

func (h *Host) showMachine() { h.machineView.Store(new(h.machine.View())) }
func (h *Host) showBMC()     { h.bmcView.Store(new(h.bmc.View())) }

// schedule enters the deadlines as they stand.
func (h *Host) schedule() {
	at, ok := h.machine.Deadline()
	h.lab.machines.set(&h.machineDue, at, ok)
	at, ok = h.bmc.Deadline()
	h.lab.bmcs.set(&h.bmcDue, at, ok)
}

// advance does what time has made due.
func (h *Host) advance() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, now := h.state(), h.Now()
	if h.bmcOverdue(now) {
		h.bmc.Advance(now)
		h.showBMC() // sessions are not stored
	}
	if evs, overdue := h.advanceMachine(now); overdue {
		return h.settleMachine(now, was, evs)
	}
	h.schedule()
	return nil
}

// resume is what the lab's resume does to one host; it returns the slots that
// hold an image.
func (h *Host) resume() ([]store.Slot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, now := h.state(), h.Now()
	var kept []store.Slot
	for _, s := range was.BMC.Slots {
		switch {
		case s.Image == "":
			continue
		case s.Inserted && h.imageSize(s.ID) == s.Size:
			kept = append(kept, store.Slot{Host: h.Name(), Slot: s.ID})
			continue
		}
		h.lab.log.Warn("virtual media lost in a restart", "host", h.Name(), "slot", s.ID)
		if _, err := h.bmc.Apply(now, bmc.MediaLost{Slot: s.ID, Fetch: s.Fetch}); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", h.Name(), err)
		}
		if err := h.settleBMC(now, was); err != nil {
			return nil, err
		}
	}
	switch v := h.Machine(); {
	case v.Trying != nil:
		h.lab.delivery.push(h, []machine.Event{machine.BootTried{At: now, Source: *v.Trying, Boot: v.Boots}})
	case v.Phase == machine.Running:
		h.lab.delivery.push(h, []machine.Event{machine.Started{At: now, OS: *v.OS}})
	}
	h.schedule()
	return kept, nil
}

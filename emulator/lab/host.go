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
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// Host is one machine with its BMC. It is safe for concurrent use. At rest it
// has no goroutine, no timer and no open file.
type Host struct {
	lab    *Lab
	index  int
	rack   string // "" when it stands in none
	model  model
	record atomic.Pointer[dialect.Record] // how the BMC speaks now

	mu       sync.Mutex
	machine  *machine.Machine
	disks    sync.RWMutex // held for reading while drives work, for writing while they change
	volumes  opened
	bmc      *bmc.BMC
	boot     *fence                             // of the boot that drives are attached to; nil when none are
	fetches  map[string]*fetch                  // by slot: images on their way
	carried  map[string]context.CancelCauseFunc // by job: work that no model does
	ended    bool                               // the lab ends: nothing new is begun
	watchers []*func()

	// What services see. A change makes a new one.
	machineView atomic.Pointer[machine.View]
	bmcView     atomic.Pointer[bmc.View]
	// What they saw before the last change; nil when there was none.
	machineWas atomic.Pointer[machine.View]
	bmcWas     atomic.Pointer[bmc.View]

	passes atomic.Pointer[passes] // of sessions in use; nil: of none
	own    atomic.Pointer[own]    // nil: TLS was spoken with the certificate that the BMC came with

	machineDue, bmcDue deadline
}

var (
	_ redfish.Host = (*Host)(nil)
	_ ipmi.Host    = (*Host)(nil)
)

// hostState is what the store knows of a host.
type hostState struct {
	Machine machine.State `json:"machine"`
	BMC     bmc.State     `json:"bmc"`
}

func newHost(l *Lab, r rack.Host, m model, accounts []bmc.Account, st *hostState) (*Host, error) {
	h := &Host{lab: l, index: r.Index, rack: r.Rack, model: m}
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
	l.quirks.mu.Lock()
	record, err := l.quirks.speaking(m.record, l.quirks.quirksOf(r.Name, m.quirks))
	l.quirks.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h.record.Store(record)
	h.bmc = bmc.New(&record.BMC, accounts, bs)
	h.bmc.SetNetworkDefaults(l.place(r.Index))
	h.machineDue, h.bmcDue = deadline{host: h, pos: -1}, deadline{host: h, pos: -1}
	h.show()
	return h, nil
}

// Name is the host's name in the rack.
func (h *Host) Name() string { return h.Machine().Identity.Name }

// Index is the host's place in the rack, counted from 0.
func (h *Host) Index() int { return h.index }

// Rack is the name of the rack that the host stands in; "" when it is none.
func (h *Host) Rack() string { return h.rack }

// Address is where the BMC's HTTPS service is.
func (h *Host) Address() netip.AddrPort {
	v := h.BMC()
	all := v.Addresses()
	if v.Net == nil || len(all) == 0 {
		return h.lab.doors.plan.address(h.index)
	}
	n := v.Network()
	return netip.AddrPortFrom(all[0], n.HTTPS.Port)
}

// URL is that service, without a path.
func (h *Host) URL() string { return h.Dialect().Protocol.Scheme() + "://" + h.Address().String() }

// Dialect implements redfish.Host.
func (h *Host) Dialect() *dialect.Record { return h.record.Load() }

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

// Accounts are all of them, with their passwords. The slice is never changed.
func (h *Host) Accounts() []bmc.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bmc.State().Access.Accounts
}

// KG is the key K_g of the BMC's IPMI; nil when there is none.
func (h *Host) KG() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bmc.KG()
}

func (h *Host) account(is func(bmc.Account) bool) (bmc.Account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.bmc.State().Access.Accounts {
		if is(a) {
			return a, true
		}
	}
	return bmc.Account{}, false
}

// Login checks credentials and counts those that are wrong.
func (h *Host) Login(c bmc.Credentials) (bmc.Account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.Now(); due(h.bmc, now) { // a lock may have expired
		if err := h.settle(h.step()); err != nil {
			h.lab.log.Error("login not seen to", "host", h.Name(), "err", err)
			return bmc.Account{}, false
		}
	}
	v := h.bmc.Login(c)
	if v.Record == nil {
		return v.Account, v.OK
	}
	st := h.step()
	evs, err := h.bmc.Apply(st.now, v.Record)
	st.bmc = append(st.bmc, evs...)
	if err = errors.Join(err, h.settle(st)); err != nil {
		// What is not counted was no login.
		h.lab.log.Error("login not counted", "host", h.Name(), "err", err)
		return bmc.Account{}, false
	}
	return v.Account, v.OK
}

// due tells whether it is time to move a model on.
func due(m interface{ Deadline() (time.Time, bool) }, now time.Time) bool {
	at, ok := m.Deadline()
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
	st := h.stepFor(ctx)
	more, err := h.machine.Apply(st.now, c)
	if err != nil && !st.overdue { // refused, and nothing changed
		return err
	}
	st.machine = append(st.machine, more...)
	err = errors.Join(err, h.settle(st))
	*st = step{}
	steps.Put(st) // nobody has it any longer
	return err
}

// steps are steps that are over: there is one for every request that changes
// something.
var steps = sync.Pool{New: func() any { return new(step) }}

// step is one step of a host: where it began, and what has happened in it.
type step struct {
	now     time.Time
	was, is hostState // is: when it is settled
	overdue bool      // something was to happen by itself before
	machine []machine.Event
	heard   int // of them the BMC knows already
	bmc     []bmc.Event
	freed   []machine.Event   // that were withheld from the BMC before
	trail   *bmc.AuditContext // of the request that it is for, if any
	event   uint64            // number of the event that tells it; 0: nobody listens

	room [4]store.Put // for what is to be stored: mostly no more
}

// step begins a step: what time has made due is done first. It holds h.mu.
func (h *Host) step() *step {
	st := steps.Get().(*step)
	st.now, st.was = h.Now(), h.state()
	st.overdue = due(h.machine, st.now) || due(h.bmc, st.now)
	if st.overdue {
		st.machine = h.machine.Advance(st.now)
		st.bmc = h.bmc.Advance(st.now)
	}
	return st
}

// stepFor begins a step that a request may have asked for.
func (h *Host) stepFor(ctx context.Context) *step {
	st := h.step()
	st.trail = bmc.AuditOf(ctx)
	return st
}

func (h *Host) state() hostState {
	return hostState{Machine: h.machine.State(), BMC: h.bmc.State()}
}

// settle makes what was done durable, then seen, then told. If it cannot be
// stored, it was not done. It holds h.mu.
func (h *Host) settle(st *step) error {
	release, err := h.work(st)
	defer release()
	entry := h.leaveTrail(st)
	heard := append(h.withhold(st.machine[st.heard:]), st.freed...)
	st.bmc = append(st.bmc, h.bmc.ObserveMachine(st.now, heard)...)
	h.loseBMC(st)
	st.event, _ = h.bmc.NextEvent()
	machineWas, bmcWas := h.Machine(), h.BMC()
	st.is = h.state()
	if err == nil {
		err = h.save(st)
	}
	if err != nil {
		h.machine.Restore(st.was.Machine)
		h.bmc.Restore(st.was.BMC)
		h.show()
		h.schedule()
		return err
	}
	if st.is.Machine != st.was.Machine {
		h.machineWas.Store(machineWas)
		h.machineView.Store(new(h.machine.View()))
	}
	if st.is.BMC != st.was.BMC {
		h.bmcWas.Store(bmcWas)
	}
	if entry != 0 {
		st.trail.ID = entry
	}
	h.bmcView.Store(new(h.bmc.View())) // it shows more than is stored
	h.seen(&st.was.Machine, &st.is.Machine)
	h.tidy(st)
	h.forgetImages(st.was.Machine.Firmware, st.is.Machine.Firmware)
	release()
	h.chronicle(st)
	if os := h.Machine().OS; h.boot != nil && (os == nil || os.Boot != h.boot.number) {
		h.boot.close()
		h.boot = nil
	}
	h.schedule()
	if st.is.BMC.Net != st.was.BMC.Net {
		h.moved()
	}
	h.follow(st.bmc)
	h.tell(st, machineWas, bmcWas)
	h.lab.delivery.push(h, outward(st.machine))
	return nil
}

// loseBMC tells the machine of a BMC that has gone down to restart.
func (h *Host) loseBMC(st *step) {
	for _, ev := range st.bmc {
		if l, ok := ev.(bmc.LifeChanged); !ok || l.Phase != bmc.Offline {
			continue
		}
		if _, err := h.machine.Apply(st.now, machine.BMCReset{}); err != nil {
			panic(err) // it cannot be refused
		}
	}
}

// leaveTrail writes the request that a step is for into the audit log, once, and
// returns the entry's ID; 0 when there is nothing to write.
func (h *Host) leaveTrail(st *step) uint64 {
	if st.trail == nil || st.trail.ID != 0 {
		return 0
	}
	evs, err := h.bmc.Apply(st.now, bmc.AddAuditRecord{AuditRecord: st.trail.Record})
	if err != nil {
		h.lab.log.Error("request not audited", "host", h.Name(), "err", err)
	}
	st.bmc = append(st.bmc, evs...)
	for _, ev := range evs {
		if told, ok := ev.(bmc.Audited); ok {
			return told.Entry.ID
		}
	}
	return 0 // a log that is full
}

// outward are the events that others than the BMC are told.
func outward(evs []machine.Event) []machine.Event {
	var out []machine.Event
	for _, ev := range evs {
		switch ev.(type) {
		case event.Note, event.TaskMessage, event.Boot, event.TaskRunning, event.TaskWaiting, event.TaskPaused, event.TaskDone, event.Restart, storage.Work, machine.MetricReportReady:
		default:
			out = append(out, ev)
		}
	}
	return out
}

func (h *Host) save(st *step) error {
	puts := st.is.changed(st.room[:0], h.Name(), &st.was)
	if len(puts) == 0 {
		return nil
	}
	if err := h.lab.store.Save(st.now, puts...); err != nil {
		return fmt.Errorf("lab: %s: %w", h.Name(), err)
	}
	return nil
}

// show makes what services see of the host what it is.
func (h *Host) show() {
	h.machineView.Store(new(h.machine.View()))
	h.bmcView.Store(new(h.bmc.View()))
}

// schedule enters the deadlines as they stand.
func (h *Host) schedule() {
	at, ok := h.machine.Deadline()
	if soon, awaited := h.bmc.AwaitedDeadline(); awaited && (!ok || soon.Before(at)) {
		at, ok = soon, true
	}
	h.lab.machines.set(&h.machineDue, at, ok)
	at, ok = h.bmc.Deadline()
	h.lab.bmcs.set(&h.bmcDue, at, ok)
}

// advance does what time has made due.
func (h *Host) advance() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if st := h.step(); st.overdue {
		return h.settle(st)
	}
	h.schedule()
	return nil
}

// resume is what the lab's resume does to one host; it returns the slots that
// hold an image, and the images of updates.
func (h *Host) resume() ([]store.Image, []store.Image, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := &step{now: h.Now(), was: h.state()}
	var kept []store.Image
	for _, s := range st.was.BMC.Media.Slots {
		switch {
		case s.Image == "":
			continue
		case s.Inserted && h.imageSize(s.ID) == s.Size:
			kept = append(kept, store.Image{Host: h.Name(), ID: s.ID})
			continue
		}
		h.lab.log.Warn("virtual media lost in a restart", "host", h.Name(), "slot", s.ID)
		evs, err := h.bmc.Apply(st.now, bmc.MediaFetchFailed{Slot: s.ID, Fetch: s.Fetch})
		if err != nil {
			return nil, nil, fmt.Errorf("lab: %s: %w", h.Name(), err)
		}
		st.bmc = append(st.bmc, evs...)
	}
	images := h.updates(st)
	evs, err := h.bmc.Apply(st.now, bmc.EndOrphanedTasks{Works: func(job string) bool {
		return h.machine.RunsTask(job) || h.isStuck(job)
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("lab: %s: %w", h.Name(), err)
	}
	st.bmc = append(st.bmc, evs...)
	if err := h.settle(st); err != nil {
		return nil, nil, err
	}
	switch v := h.Machine(); {
	case v.CurrentSource != nil:
		h.lab.delivery.push(h, []machine.Event{machine.BootAttempted{At: st.now, Source: *v.CurrentSource, Boot: v.Boots}})
	case v.Phase == machine.Running:
		h.lab.delivery.push(h, []machine.Event{machine.SystemStarted{At: st.now, OS: *v.OS}})
	}
	h.schedule()
	return kept, images, nil
}

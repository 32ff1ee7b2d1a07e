package rack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/emulator/redfish"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Host is one machine with its BMC. It is an actor: what changes the two models is
// a step (step.go), and its steps run one after the other under mu. Host is safe
// for concurrent use. An idle host has no goroutine, no timer and no open file.
type Host struct {
	rack     *Rack
	index    int
	rackName string // name of the rack in the data centre that it stands in; "" for none
	model    model
	record   atomic.Pointer[dialect.Record] // how the BMC behaves now

	mu       sync.Mutex // held during a step
	machine  *machine.Machine
	disks    sync.RWMutex // read-locked while drives work, locked while the set of drives changes
	volumes  openVolumes
	bmc      *bmc.BMC
	bootGate *bootGate                          // gate of the boot that drives are attached to; nil when none are
	fetches  map[string]*fetch                  // by slot: images that are being fetched
	running  map[string]context.CancelCauseFunc // by task: work that neither model does
	ended    bool                               // the rack ends: no new work begins
	watchers []*func()                          // called when the console or the power may have changed

	// Immutable views of the models, replaced when they change.
	machineView atomic.Pointer[machine.View]
	bmcView     atomic.Pointer[bmc.View]
	// Views from before the last change; nil when there was none.
	previousMachine atomic.Pointer[machine.View]
	previousBMC     atomic.Pointer[bmc.View]

	tokens       atomic.Pointer[tokenCache]   // tokens of sessions in use; nil when there are none
	installedTLS atomic.Pointer[installedTLS] // nil until TLS was spoken with an installed certificate

	machineDue, bmcDue, clientDue deadline
}

var (
	_ resource.Host = (*Host)(nil)
	_ ipmi.Host     = (*Host)(nil)
)

// hostState is what the store holds about a host.
type hostState struct {
	Machine machine.State `json:"machine"`
	BMC     bmc.State     `json:"bmc"`
}

func newHost(l *Rack, r rackfile.Host, m model, st *hostState) (*Host, error) {
	h := &Host{rack: l, index: r.Index, rackName: r.Rack, model: m}
	l.quirks.mu.Lock()
	record, err := l.quirks.recordWith(m.record, l.quirks.quirksOf(r.Name, m.quirks))
	l.quirks.mu.Unlock()
	if err != nil {
		return nil, err
	}
	h.record.Store(record)
	if h.machine, h.bmc, err = h.newModels(r.Name, st); err != nil {
		return nil, err
	}
	for _, d := range []*deadline{&h.machineDue, &h.bmcDue, &h.clientDue} {
		*d = deadline{host: h, pos: -1}
	}
	h.publish()
	return h, nil
}

// newModels returns the models of a host in their stored state; nil is that of the
// host's profile.
func (h *Host) newModels(name string, st *hostState) (*machine.Machine, *bmc.BMC, error) {
	var ms *machine.State
	var bs *bmc.State
	if st != nil {
		ms, bs = &st.Machine, &st.BMC
	}
	l, spec := h.rack, &h.record.Load().BMC
	m, err := machine.New(h.model.profile, machine.NewIdentity(l.definition.Seed, h.Number(), name, h.model.profile), ms)
	if err != nil {
		return nil, nil, err
	}
	b := bmc.New(spec, accounts(l.definition.Accounts, &h.model.record.BMC.Accounts), bs)
	b.SetNetworkDefaults(network.FactoryPlace(l.webEndpoints.Plan(), l.ipmiEndpoints.Plan(), h.index, l.searchable))
	return m, b, nil
}

// Name returns the host's name.
func (h *Host) Name() string { return h.Machine().Identity.Name }

// Index returns the host's position among those of the rack, counted from 0.
func (h *Host) Index() int { return h.index }

// Number returns the host's position in the complete rack file, of which the rack may run a
// part, counted from 0.
func (h *Host) Number() int { return h.rack.definition.First() + h.index }

// Rack returns the name of the rack that the host stands in, or "" when it stands in none.
func (h *Host) Rack() string { return h.rackName }

// Dialect implements resource.Host.
func (h *Host) Dialect() *dialect.Record { return h.record.Load() }

// Machine returns the current view of the machine.
func (h *Host) Machine() *machine.View { return h.machineView.Load() }

// BMC returns the current view of the BMC.
func (h *Host) BMC() *bmc.View { return h.bmcView.Load() }

// Now returns the lab's time.
func (h *Host) Now() time.Time { return h.rack.clock.Now() }

// ClientNow returns the client time (see package clock).
func (h *Host) ClientNow() time.Time { return h.rack.clock.ClientNow() }

// Admin returns the first enabled administrator, with the password.
func (h *Host) Admin() (bmc.Account, bool) {
	return h.account(func(a bmc.Account) bool { return a.Role == bmc.Administrator && a.Enabled })
}

// Account returns the account with a name, and its password.
func (h *Host) Account(name string) (bmc.Account, bool) {
	return h.account(func(a bmc.Account) bool { return a.Name == name })
}

// Accounts returns all accounts with their passwords. The caller must not change
// the slice.
func (h *Host) Accounts() []bmc.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bmc.State().Access.Accounts
}

// KG returns the BMC key K_g of IPMI (IPMI v2.0 rev 1.1, §13.31), or nil when none
// is set.
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

// Login checks credentials, and counts a failed attempt in the BMC.
func (h *Host) Login(c bmc.Credentials) (bmc.Account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if due(h.bmc, h.Now(), h.ClientNow()) { // an account may no longer be locked
		if err := h.commit(h.begin()); err != nil && !errors.Is(err, bmc.ErrStorageFull) {
			h.rack.log.Error("login refused: the step before it was not stored", "host", h.Name(), "err", err)
			return bmc.Account{}, false
		}
	}
	v := h.bmc.Login(c)
	if v.Record == nil {
		return v.Account, v.OK
	}
	st := h.begin()
	evs, err := h.bmc.Apply(st.now, v.Record)
	st.bmc = append(st.bmc, evs...)
	err = errors.Join(err, h.commit(st))
	if errors.Is(err, bmc.ErrStorageFull) && v.OK { // on a full disk clients can read
		return v.Account, v.OK
	}
	if err != nil {
		// A login that cannot be counted is refused.
		h.rack.log.Error("login refused: it was not stored", "host", h.Name(), "err", err)
		return bmc.Account{}, false
	}
	return v.Account, v.OK
}

// Power resets the machine. The kind is a value of ComputerSystem.ResetType
// (DSP2046).
func (h *Host) Power(ctx context.Context, kind string) error {
	return h.Apply(ctx, machine.Reset{Kind: machine.ResetKind(kind)})
}

// Apply carries out a command to the machine. When it returns, the effect is
// stored and visible, and a system that ran on a machine which lost its power has
// stopped.
func (h *Host) Apply(ctx context.Context, c machine.Command) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if h.rack.delivery.full(h) {
		return fmt.Errorf("%w: too many events of %s wait to be taken", redfish.ErrBusy, h.Name())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.beginRequest(ctx)
	evs, err := h.machine.Apply(st.now, c)
	if err != nil && !st.overdue { // refused, and nothing has changed
		return err
	}
	st.machine = append(st.machine, evs...)
	return errors.Join(err, h.commit(st))
}

// advance commits a step when a deadline of the host has passed.
func (h *Host) advance() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if st := h.begin(); st.overdue {
		return h.commit(st)
	}
	h.schedule()
	return nil
}

// resume continues one host after the rack was opened. It returns the images that
// virtual media slots hold, and those of firmware updates that are under way.
func (h *Host) resume() ([]store.Image, []store.Image, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.newStep()
	var slots []store.Image
	for _, s := range st.was.BMC.Media.Slots {
		switch {
		case s.Image == "":
			continue
		case s.Inserted && h.imageSize(s.ID) == s.Size:
			slots = append(slots, store.Image{Host: h.Name(), ID: s.ID})
			continue
		}
		h.rack.log.Warn("virtual media lost in a restart", "host", h.Name(), "slot", s.ID)
		evs, err := h.bmc.Apply(st.now, bmc.MediaFetchFailed{Slot: s.ID, Fetch: s.Fetch})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", h.Name(), err)
		}
		st.bmc = append(st.bmc, evs...)
	}
	images := h.imagesInUse(st)
	evs, err := h.bmc.Apply(st.now, bmc.EndOrphanedTasks{Works: func(task string) bool {
		return h.machine.RunsTask(task) || h.rack.faults.Holds(h.Name(), task)
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", h.Name(), err)
	}
	st.bmc = append(st.bmc, evs...)
	if err := h.commit(st); err != nil {
		return nil, nil, err
	}
	switch v := h.Machine(); {
	case v.CurrentSource != nil:
		h.rack.delivery.push(h, []machine.Event{machine.BootAttempted{At: st.now, Source: *v.CurrentSource, Boot: v.Boots}})
	case v.Phase == machine.Running:
		h.rack.delivery.push(h, []machine.Event{machine.SystemStarted{At: st.now, OS: *v.OS}})
	}
	h.schedule()
	return slots, images, nil
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/lab/journal"
	"github.com/metalab-dev/metalab/emulator/lab/mishap"
	"github.com/metalab-dev/metalab/emulator/lab/network"
	"github.com/metalab-dev/metalab/emulator/lab/store"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

// faults is what goes wrong in a lab on purpose.
type faults struct {
	server mishap.Server
	ended  chan struct{}

	asks    atomic.Uint32 // sites that the plan has rules for: bits of askBits
	waiting atomic.Int64  // answers that are delayed

	mu       sync.Mutex
	plan     *fault.Plan
	defined  []string // IDs of the rules that the rack defines
	held     []heldTask
	deadline *clock.Timer   // at the plan's deadline; nil while nothing is served
	off      map[*Host]bool // hosts that were offline at the last edge
}

var askBits = map[fault.Site]uint32{fault.Connect: 1, fault.Request: 2, fault.Task: 4, fault.Datagram: 8, fault.Command: 16}

// storedFaults is what the store knows of the faults.
type storedFaults struct {
	Plan    *fault.State `json:"plan"`
	Defined []string     `json:"defined,omitempty"`
	Held    []heldTask   `json:"held,omitempty"`
}

const faultsKey = "faults"

// openFaults restores the faults, or begins with those of the rack; anew says
// that the rack defines others than it did.
func (l *Lab) openFaults(anew bool) error {
	f := &l.faults
	f.ended, f.off = make(chan struct{}), map[*Host]bool{}
	var st storedFaults
	found, err := l.store.Load(store.Meta, faultsKey, &st)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if f.plan, err = fault.New(l.rack.Seed, st.Plan); err != nil {
		return fmt.Errorf("lab: faults: %w", err)
	}
	f.held, f.defined = st.Held, st.Defined
	if !found || anew {
		for _, id := range f.defined {
			if err := f.plan.Remove(id); err != nil && !errors.Is(err, fault.ErrUnknown) {
				return fmt.Errorf("lab: faults: %w", err)
			}
		}
		f.defined = nil
		for i, r := range l.rack.Faults {
			r, err := f.plan.Add(l.clock.Now(), r)
			if err != nil {
				return fmt.Errorf("lab: faults[%d]: %w", i, err)
			}
			f.defined = append(f.defined, r.ID)
		}
	}
	l.planChanged()
	return l.saveFaults()
}

// planChanged takes note of a change of the plan. It holds f.mu, or nobody
// else knows of the faults yet.
func (l *Lab) planChanged() {
	f := &l.faults
	var bits uint32
	for site, bit := range askBits { // into a set: the order is not seen
		if f.plan.Asks(site) {
			bits |= bit
		}
	}
	f.asks.Store(bits)
	if f.deadline == nil {
		return
	}
	now := l.clock.Now()
	if at, ok := f.plan.Deadline(now); ok {
		f.deadline.Reset(at.Sub(now))
	} else {
		f.deadline.Stop()
	}
}

// saveFaults stores the faults. It holds f.mu, or nobody else knows of them.
func (l *Lab) saveFaults() error {
	f := &l.faults
	st := storedFaults{Plan: f.plan.State(), Defined: f.defined, Held: f.held}
	if err := l.store.Save(l.clock.Now(), store.Put{Kind: store.Meta, Key: faultsKey, Value: st}); err != nil {
		return fmt.Errorf("lab: faults: %w", err)
	}
	return nil
}

// Faults lists the rules by which things go wrong.
func (l *Lab) Faults() []fault.Listed {
	l.faults.mu.Lock()
	defer l.faults.mu.Unlock()
	return l.faults.plan.List(l.clock.Now())
}

// AddFault makes something go wrong. It returns the rule with its ID when it is
// stored and holds.
func (l *Lab) AddFault(r fault.Rule) (fault.Rule, error) {
	f := &l.faults
	f.mu.Lock()
	r, err := f.plan.Add(l.clock.Now(), r)
	if err == nil {
		if err = l.saveFaults(); err != nil {
			err = errors.Join(err, f.plan.Remove(r.ID))
		}
		l.planChanged()
	}
	f.mu.Unlock()
	if err != nil {
		return fault.Rule{}, err
	}
	l.journal.Add(journal.Entry{At: l.clock.Now(), Kind: journal.Control, What: "fault.added", Text: r.ID, Faults: []string{r.ID}})
	return r, l.applyFaultChanges()
}

// RemoveFault lets what a rule is about go right again.
func (l *Lab) RemoveFault(id string) error {
	f := &l.faults
	f.mu.Lock()
	before := f.plan.State()
	err := f.plan.Remove(id)
	if err == nil {
		if err = l.saveFaults(); err != nil {
			if back, e := fault.New(l.rack.Seed, before); e == nil {
				f.plan = back
			}
		}
		l.planChanged()
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	l.journal.Add(journal.Entry{At: l.clock.Now(), Kind: journal.Control, What: "fault.removed", Text: id, Faults: []string{id}})
	return l.applyFaultChanges()
}

// decide asks the plan. A count that a restart of the lab must not begin anew is
// stored.
func (l *Lab) decide(s fault.Subject) fault.Decision {
	f := &l.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.plan.Decide(s, l.clock.Now())
	if d.Counted {
		if err := l.saveFaults(); err != nil {
			l.log.Error("the counts of faults are not stored", "err", err)
		}
	}
	return d
}

// hasFaults says whether any rule is for a site. It is all that a fault costs who
// has none.
func (l *Lab) hasFaults(s fault.Site) bool {
	all := l.faults.asks.Load()
	return all != 0 && all&askBits[s] != 0
}

// Offline says whether a rule keeps the BMC from the network.
func (h *Host) Offline() bool {
	if !h.lab.hasFaults(fault.Connect) {
		return false
	}
	f := &h.lab.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.plan.Means("offline", fault.Subject{Site: fault.Connect, BMC: h.Name()}, h.Now())
}

// Waiting is how many answers are delayed now: they come when time goes on.
func (l *Lab) Waiting() int { return int(l.faults.waiting.Load()) }

// startFaults lets time change what goes wrong, until endFaults.
func (l *Lab) startFaults() {
	f := &l.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	const never = 365 * 24 * time.Hour
	f.deadline = l.clock.LazyFunc(never, func() {
		if err := l.applyFaultChanges(); err != nil {
			l.log.Error("faults", "err", err)
		}
	})
	l.planChanged()
}

// endFaults lets nobody wait any longer for an answer that shall not come.
func (l *Lab) endFaults() {
	f := &l.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil {
		f.deadline.Stop()
		f.deadline = nil
		close(f.ended)
	}
}

// applyFaultChanges does what a change of the plan, or time, asks for: a BMC that is
// offline has no connections, and tasks that no rule holds any longer end.
func (l *Lab) applyFaultChanges() error {
	f := &l.faults
	f.mu.Lock()
	now := l.clock.Now()
	var gone, back []*Host
	if l.hasFaults(fault.Connect) || len(f.off) > 0 {
		for _, h := range l.hosts {
			switch is := f.plan.Means("offline", fault.Subject{Site: fault.Connect, BMC: h.Name()}, now); {
			case is && !f.off[h]:
				gone = append(gone, h)
				f.off[h] = true
			case !is && f.off[h]:
				back = append(back, h)
				delete(f.off, h)
			}
		}
	}
	l.planChanged()
	f.mu.Unlock()
	for _, h := range gone {
		l.connections.Reset(h.index)
		l.journal.Add(journal.Entry{At: now, Host: h.Name(), Kind: journal.Event, What: "bmc.offline"})
	}
	for _, h := range back {
		l.journal.Add(journal.Entry{At: now, Host: h.Name(), Kind: journal.Event, What: "bmc.online"})
	}
	return l.releaseTasks()
}

// previousRack is the rack as it was before the last change of each host.
type previousRack struct{ *Lab }

// At implements redfish.Rack.
func (r previousRack) At(local netip.AddrPort) (redfish.Host, bool) {
	h, ok := r.Lab.At(local)
	if !ok {
		return nil, false
	}
	return previousHost{h.(*Host)}, true
}

// previousHost is a host of which one sees what was before its last change.
type previousHost struct{ *Host }

// Machine implements redfish.Host.
func (h previousHost) Machine() *machine.View {
	if v := h.previousMachine.Load(); v != nil {
		return v
	}
	return h.Host.Machine()
}

// BMC implements redfish.Host.
func (h previousHost) BMC() *bmc.View {
	if v := h.previousBMC.Load(); v != nil {
		return v
	}
	return h.Host.BMC()
}

// ServeHTTP answers a request to a BMC, right or wrong.
func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := network.ConnOf(r.Context())
	c.RequestBegins(r.Method)
	defer c.ResponseBegins()
	connect, request := l.hasFaults(fault.Connect), l.hasFaults(fault.Request)
	if !connect && !request {
		l.answer(w, r)
		return
	}
	h := l.hostOf(r)
	if h == nil {
		l.service.ServeHTTP(w, r)
		return
	}
	if connect && h.Offline() {
		mishap.Abort(w) // the connection is from before
		return
	}
	// Until a delay has begun, time stands: who sees that the request has come
	// can let the delay pass. It stands again until the journal has the answer.
	work := &flight{lab: l, leave: l.clock.Enter()}
	defer work.Rest()
	d := l.decide(fault.Subject{Site: fault.Request, BMC: h.Name(), Method: r.Method, Path: r.URL.Path})
	if d.Nothing() {
		work.Rest()
		l.answer(w, r)
		return
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	t := &faultedEntry{Entry: journal.Entry{Host: h.Name(), Kind: journal.Request, From: from, Method: r.Method, Path: r.URL.Path, Faults: d.Rules}}
	began := l.clock.Now()
	defer func() { // also of a connection that is taken from under the handler
		t.At = l.clock.Now()
		t.Took.Duration = t.At.Sub(began)
		l.metrics.count(h.index, t.Method, t.Status, t.Took.Duration, t.In, t.Out)
		l.journal.Add(t.Entry)
	}()
	sent := l.faults.server.Serve(w, r.WithContext(context.WithValue(r.Context(), faultedEntryKey{}, t)), d, h.Dialect().Protocol.Registries, work)
	t.Status, t.Out = sent.Status, sent.Body
}

// answer answers a request as the BMC does, which may take its time with the
// answer to a PATCH.
func (l *Lab) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPatch {
		if h := l.hostOf(r); h != nil && h.Dialect().Protocol.PatchDelay > 0 {
			work := &flight{lab: l, leave: l.clock.Enter()}
			defer func() { work.Rest() }()
			l.faults.server.Late(w, r, h.Dialect().Protocol.PatchDelay, work)
			return
		}
	}
	l.service.ServeHTTP(w, r)
}

// flight is a mishap.Work.
type flight struct {
	lab   *Lab
	leave func()
}

// Rest implements mishap.Work.
func (f *flight) Rest() { f.leave() }

// Pause implements mishap.Work. From the end of the delay on the request is in
// flight again, before time goes on.
func (f *flight) Pause(ctx context.Context, d time.Duration) (err error) {
	l := f.lab
	up, taken := make(chan struct{}), make(chan struct{})
	t := l.clock.AfterFunc(d, func() {
		close(up)
		<-taken // at once: who sleeps below does nothing else
	})
	defer close(taken)
	l.faults.waiting.Add(1)
	defer l.faults.waiting.Add(-1)
	f.leave()
	select {
	case <-up:
		f.leave = l.clock.Enter()
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.faults.ended:
		err = errLabEnded
	}
	t.Stop()
	return err
}

// datagramFault returns what goes wrong with an IPMI datagram on its way in or out
// (fault.In, fault.Out).
func (l *Lab) datagramFault(h ipmi.Host, way string) fault.Decision {
	if !l.hasFaults(fault.Datagram) {
		return fault.Decision{}
	}
	return l.decide(fault.Subject{Site: fault.Datagram, BMC: h.Name(), Method: way})
}

// commandFault returns what goes wrong with an IPMI command.
func (l *Lab) commandFault(h ipmi.Host, fn, cmd byte) fault.Decision {
	if !l.hasFaults(fault.Command) {
		return fault.Decision{}
	}
	return l.decide(fault.Subject{Site: fault.Command, BMC: h.Name(), Path: fmt.Sprintf("/ipmi/%02X/%02X", fn, cmd)})
}

// Package faults applies the fault rules of a rack: it keeps the fault.Plan and its
// counts in the store, decides for connections, HTTP requests, IPMI datagrams, IPMI
// commands and tasks, and acts when time or a change of the rules takes a BMC off the
// network or ends a stuck task. How an HTTP response goes wrong is faulthttp's. It
// knows BMCs by name and index only.
package faults

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Config says whose faults to open.
type Config struct {
	Seed    uint64       // the rack's seed
	Rules   []fault.Rule // that the rack file defines
	Replace bool         // Rules are others than the last time: they replace those
	BMCs    []string     // names, by index
	Clock   *clock.Clock
	Store   Store
	Journal *journal.Journal
	Log     *slog.Logger
	// Disconnect is called when a rule takes a BMC off the network.
	Disconnect func(bmc int)
	// EndTask gives a BMC the end of a task that no rule withholds any longer.
	EndTask func(t HeldTask) error
}

// Store keeps values when the rack stops, as store.Store does.
type Store interface {
	Load(k store.Kind, key string, v any) (bool, error)
	Save(at time.Time, puts ...store.Put) error
}

// Faults are the fault rules of a rack. They are safe for concurrent use.
type Faults struct {
	c     Config
	ended chan struct{} // closed by Stop: nothing waits any longer

	sites   atomic.Uint32 // bits of siteBits: the sites that some rule is about
	delayed atomic.Int64  // responses that are delayed now

	mu       sync.Mutex
	plan     *fault.Plan
	defined  []string // IDs of the rules that the rack file defines
	held     []HeldTask
	deadline *clock.Timer // timer of the plan's next deadline; nil before Start and after Stop
	offline  map[int]bool // BMCs that were off the network when update last looked
}

var siteBits = map[fault.Site]uint32{fault.Connect: 1, fault.Request: 2, fault.Task: 4, fault.Datagram: 8, fault.Command: 16}

// bodiesBit is set beside those of siteBits when a rule depends on the body of requests.
const bodiesBit = 32

// storedFaults is what the store holds about the faults.
type storedFaults struct {
	Plan    *fault.State `json:"plan"`
	Defined []string     `json:"defined,omitempty"`
	Held    []HeldTask   `json:"held,omitempty"`
}

const storeKey = "faults"

// Open restores the faults of a rack from its store, or begins with those of the
// rack file.
func Open(c Config) (*Faults, error) {
	f := &Faults{c: c, ended: make(chan struct{}), offline: map[int]bool{}}
	var st storedFaults
	found, err := c.Store.Load(store.Meta, storeKey, &st)
	if err != nil {
		return nil, err
	}
	if f.plan, err = fault.New(c.Seed, st.Plan); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	f.held, f.defined = st.Held, st.Defined
	if !found || c.Replace {
		if err := f.replaceDefined(c.Rules); err != nil {
			return nil, err
		}
	}
	f.planChanged()
	return f, f.save()
}

// replaceDefined replaces the rules that the rack file defines.
func (f *Faults) replaceDefined(rules []fault.Rule) error {
	for _, id := range f.defined {
		if err := f.plan.Remove(id); err != nil && !errors.Is(err, fault.ErrUnknown) {
			return fmt.Errorf("faults: %w", err)
		}
	}
	f.defined = nil
	for i, r := range rules {
		err := f.someBMC(r)
		if err == nil {
			r, err = f.plan.Add(f.c.Clock.Now(), r)
		}
		if err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
		f.defined = append(f.defined, r.ID)
	}
	return nil
}

// someBMC returns an error when a rule is about no BMC of the rack: it would never
// apply.
func (f *Faults) someBMC(r fault.Rule) error {
	if r.BMC == "" {
		return nil
	}
	for _, name := range f.c.BMCs {
		if ok, err := path.Match(r.BMC, name); ok || err != nil { // plan.Add returns the error of a pattern
			return nil
		}
	}
	return yamlfile.Errorf("bmc", "%q matches no host: labctl hosts lists them%s", r.BMC, suggest.DidYouMean(r.BMC, f.c.BMCs))
}

// planChanged notes which sites have rules now, and sets the timer to the plan's
// next deadline. The caller holds f.mu, or nobody else knows of f yet.
func (f *Faults) planChanged() {
	var bits uint32
	for site, bit := range siteBits { // bits are a set: the order is not seen
		if f.plan.Asks(site) {
			bits |= bit
		}
	}
	if f.plan.ReadsBodies() {
		bits |= bodiesBit
	}
	f.sites.Store(bits)
	if f.deadline == nil {
		return
	}
	now := f.c.Clock.Now()
	if at, ok := f.plan.Deadline(now); ok {
		f.deadline.Reset(at.Sub(now))
	} else {
		f.deadline.Stop()
	}
}

// Save stores the rules and their counts.
func (f *Faults) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.save()
}

// Freeze saves the faults and keeps them unchanged until thaw is called.
func (f *Faults) Freeze() (thaw func(), err error) {
	f.mu.Lock()
	return f.mu.Unlock, f.save()
}

// save stores the faults. The caller holds f.mu, or nobody else knows of f yet.
func (f *Faults) save() error {
	st := storedFaults{Plan: f.plan.State(), Defined: f.defined, Held: f.held}
	if err := f.c.Store.Save(f.c.Clock.Now(), store.Put{Kind: store.Meta, Key: storeKey, Value: st}); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	return nil
}

// List lists the rules with their hits.
func (f *Faults) List() []fault.Listed {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.plan.List(f.c.Clock.Now())
	for i, r := range all {
		if r.Phase == fault.Active && r.Count > 0 && r.Hits >= uint64(r.Count)*uint64(f.about(r.Rule)) {
			all[i].Phase = fault.Spent
		}
	}
	return all
}

// about returns the number of BMCs that a rule is about. Each of them counts for itself.
func (f *Faults) about(r fault.Rule) int {
	if r.BMC == "" {
		return len(f.c.BMCs)
	}
	n := 0
	for _, name := range f.c.BMCs {
		if ok, err := path.Match(r.BMC, name); ok && err == nil {
			n++
		}
	}
	return n
}

// Add adds a rule. It returns the rule with its ID when it is stored and in force.
func (f *Faults) Add(r fault.Rule) (fault.Rule, error) {
	if err := f.someBMC(r); err != nil {
		return fault.Rule{}, err
	}
	f.mu.Lock()
	r, err := f.plan.Add(f.c.Clock.Now(), r)
	if err == nil {
		if err = f.save(); err != nil {
			err = errors.Join(err, f.plan.Remove(r.ID))
		}
		f.planChanged()
	}
	f.mu.Unlock()
	if err != nil {
		return fault.Rule{}, err
	}
	f.c.Journal.Add(journal.Entry{At: f.c.Clock.Now(), Kind: journal.Control, What: "fault.added", Text: r.ID, Faults: []string{r.ID}})
	return r, f.update()
}

// Remove removes a rule. Its error is fault.ErrUnknown when there is none with that
// ID.
func (f *Faults) Remove(id string) error {
	f.mu.Lock()
	before := f.plan.State()
	err := f.plan.Remove(id)
	if err == nil {
		if err = f.save(); err != nil {
			if back, e := fault.New(f.c.Seed, before); e == nil {
				f.plan = back
			}
		}
		f.planChanged()
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	f.c.Journal.Add(journal.Entry{At: f.c.Clock.Now(), Kind: journal.Control, What: "fault.removed", Text: id, Faults: []string{id}})
	return f.update()
}

// Has reports whether some rule is about a site. A rack without faults pays no more
// than this for them.
func (f *Faults) Has(s fault.Site) bool {
	bits := f.sites.Load()
	return bits != 0 && bits&siteBits[s] != 0
}

// ReadsBodies reports whether some rule depends on the body of requests.
func (f *Faults) ReadsBodies() bool { return f.sites.Load()&bodiesBit != 0 }

// Decide asks the plan what goes wrong with a subject. A count that a restart of the
// rack must not reset is stored.
func (f *Faults) Decide(s fault.Subject) fault.Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.plan.Decide(s, f.c.Clock.Now())
	if d.Counted {
		if err := f.save(); err != nil {
			f.c.Log.Error("fault counts not stored", "err", err)
		}
	}
	return d
}

// Datagram decides about an IPMI datagram to or from a BMC; way is fault.In or
// fault.Out.
func (f *Faults) Datagram(bmc, way string) fault.Decision {
	if !f.Has(fault.Datagram) {
		return fault.Decision{}
	}
	return f.Decide(fault.Subject{Site: fault.Datagram, BMC: bmc, Method: way})
}

// Command decides about an IPMI command to a BMC.
func (f *Faults) Command(bmc string, netFn, cmd byte) fault.Decision {
	if !f.Has(fault.Command) {
		return fault.Decision{}
	}
	return f.Decide(fault.Subject{Site: fault.Command, BMC: bmc, Path: fmt.Sprintf("/ipmi/%02X/%02X", netFn, cmd)})
}

// Offline reports whether a rule keeps a BMC off the network.
func (f *Faults) Offline(bmc string) bool {
	if !f.Has(fault.Connect) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isOffline(bmc, f.c.Clock.Now())
}

func (f *Faults) isOffline(bmc string, now time.Time) bool {
	return f.plan.Means("offline", fault.Subject{Site: fault.Connect, BMC: bmc}, now)
}

// Delayed returns how many responses are delayed now. They are sent when time goes
// on.
func (f *Faults) Delayed() int { return int(f.delayed.Load()) }

// Start lets rules begin and end with time, until Stop.
func (f *Faults) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	const never = 365 * 24 * time.Hour
	f.deadline = f.c.Clock.LazyFunc(never, func() {
		if err := f.update(); err != nil {
			f.c.Log.Error("fault rules not applied", "err", err)
		}
	})
	f.planChanged()
}

// Stop ends responses that hang or are delayed.
func (f *Faults) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadline != nil {
		f.deadline.Stop()
		f.deadline = nil
		close(f.ended)
	}
}

// update does what a change of the rules, or the passing of time, asks for: a BMC
// that is off the network loses its connections, and tasks that no rule withholds
// any longer end.
func (f *Faults) update() error {
	f.mu.Lock()
	now := f.c.Clock.Now()
	var gone, back []int
	if f.Has(fault.Connect) || len(f.offline) > 0 {
		for i, name := range f.c.BMCs {
			switch is := f.isOffline(name, now); {
			case is && !f.offline[i]:
				gone = append(gone, i)
				f.offline[i] = true
			case !is && f.offline[i]:
				back = append(back, i)
				delete(f.offline, i)
			}
		}
	}
	f.planChanged()
	f.mu.Unlock()
	for _, i := range gone {
		f.c.Disconnect(i)
		f.c.Journal.Add(journal.Entry{At: now, Host: f.c.BMCs[i], Kind: journal.Event, What: "bmc.offline"})
	}
	for _, i := range back {
		f.c.Journal.Add(journal.Entry{At: now, Host: f.c.BMCs[i], Kind: journal.Event, What: "bmc.online"})
	}
	return f.endTasks()
}

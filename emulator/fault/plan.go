package fault

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

var (
	// ErrUnknown means that a plan has no rule with that ID.
	ErrUnknown = errors.New("no such rule")
	// ErrTaken means that a plan already has a rule with that ID.
	ErrTaken = errors.New("id is taken")
	// ErrFull means that a plan has the maximum number of rules.
	ErrFull = errors.New("too many rules: remove some")
)

// MaxRules is the maximum number of rules of a plan.
const MaxRules = 1000

// Plan is a list of rules with their counts. The zero value has no rules and
// seed 0. It is not safe for concurrent use.
type Plan struct {
	seed  uint64
	named int // IDs assigned so far
	rules []*armed
	sites map[Site]int // number of rules by site
}

// State is a plan in storable form.
type State struct {
	Named int     `json:"named,omitempty"`
	Rules []Stood `json:"rules,omitempty"`
}

// Stood is a rule with its counts.
type Stood struct {
	Rule  Rule             `json:"rule"`
	Added time.Time        `json:"added"`
	Hits  uint64           `json:"hits,omitempty"`
	By    map[string]Tally `json:"by,omitempty"` // by BMC
}

// Tally holds a rule's counts for one BMC.
type Tally struct {
	Seen  int       `json:"seen,omitempty"`  // matches
	Hits  int       `json:"hits,omitempty"`  // matches that the rule has hit
	Draws uint64    `json:"draws,omitempty"` // random draws
	TAT   time.Time `json:"tat,omitzero"`    // theoretical arrival time of Limit
}

// armed is a rule in a plan, with its parsed fields.
type armed struct {
	Rule
	site    Site
	path    pattern
	sends   []pointed
	latency distribution
	limit   rate
	rewrite rewrite
	edits   bool // rewrite is not empty
	counts  bool // it needs a Tally

	added time.Time
	hits  uint64
	by    map[string]*Tally
}

// New returns a plan, or restores one from what State returned. The seed is the
// rack's.
func New(seed uint64, st *State) (*Plan, error) {
	p := &Plan{seed: seed, sites: map[Site]int{}}
	if st == nil {
		return p, nil
	}
	for _, s := range st.Rules {
		a, err := arm(s.Rule, s.Added)
		if err != nil {
			return nil, fmt.Errorf("%w (rule %s)", err, s.Rule.ID)
		}
		a.hits = s.Hits
		for name, t := range s.By { // into a map, so the order has no effect
			a.by[name] = &t
		}
		p.insert(a)
	}
	p.named = st.Named
	return p, nil
}

// State returns the plan in storable form; it shares nothing mutable with the
// plan.
func (p *Plan) State() *State {
	st := &State{Named: p.named}
	for _, a := range p.rules {
		s := Stood{Rule: a.Rule, Added: a.added, Hits: a.hits}
		if len(a.by) > 0 {
			s.By = map[string]Tally{}
			for name, t := range a.by { // into a map, so the order has no effect
				s.By[name] = *t
			}
		}
		st.Rules = append(st.Rules, s)
	}
	return st
}

// Add appends a rule and returns it with its ID.
func (p *Plan) Add(now time.Time, r Rule) (Rule, error) {
	if len(p.rules) >= MaxRules {
		return Rule{}, ErrFull
	}
	if r.ID != "" && p.find(r.ID) >= 0 {
		return Rule{}, fmt.Errorf("%w: %s", ErrTaken, r.ID)
	}
	a, err := arm(r, now)
	if err != nil {
		return Rule{}, err
	}
	for a.ID == "" || r.ID == "" && p.find(a.ID) >= 0 {
		p.named++
		a.ID = fmt.Sprintf("fault-%d", p.named)
	}
	p.insert(a)
	return a.Rule, nil
}

func (p *Plan) insert(a *armed) {
	if p.sites == nil {
		p.sites = map[Site]int{}
	}
	p.rules = append(p.rules, a)
	p.sites[a.site]++
}

// Remove removes a rule.
func (p *Plan) Remove(id string) error {
	i := p.find(id)
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	p.sites[p.rules[i].site]--
	p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
	return nil
}

func (p *Plan) find(id string) int {
	for i, a := range p.rules {
		if a.ID == id {
			return i
		}
	}
	return -1
}

// Phase says whether a rule applies at a time.
type Phase string

// The phases.
const (
	Waiting Phase = "waiting" // before From
	Active  Phase = "active"
	Over    Phase = "over"  // after Until
	Spent   Phase = "spent" // its Count has been used up, at every BMC that it is about
)

// Listed is a rule as List returns it.
type Listed struct {
	Rule
	Added time.Time `json:"added"`
	Phase Phase     `json:"phase"`
	Hits  uint64    `json:"hits"` // total
}

// List returns the rules in order.
func (p *Plan) List(now time.Time) []Listed {
	out := []Listed{} // [] in JSON instead of null
	for _, a := range p.rules {
		out = append(out, Listed{Rule: a.Rule, Added: a.added, Phase: a.phase(now), Hits: a.hits})
	}
	return out
}

// Asks reports whether any rule is for a site; otherwise Decide need not be
// called.
func (p *Plan) Asks(s Site) bool { return p.sites[s] > 0 }

// ReadsBodies reports whether a rule depends on the body of requests.
func (p *Plan) ReadsBodies() bool {
	return slices.ContainsFunc(p.rules, func(a *armed) bool { return len(a.sends) > 0 })
}

// Means reports whether a rule with that effect, one of Rule.Effects, applies
// to a subject now, regardless of counts and probability. It counts nothing.
func (p *Plan) Means(effect string, s Subject, now time.Time) bool {
	for _, a := range p.rules {
		if a.phase(now) != Active || !a.meant(s) {
			continue
		}
		for _, e := range a.effects() {
			if e.set && e.field == effect {
				return true
			}
		}
	}
	return false
}

// Deadline returns when a rule next begins or ends; false when none does.
func (p *Plan) Deadline(now time.Time) (time.Time, bool) {
	var first time.Time
	for _, a := range p.rules {
		for _, at := range []time.Time{a.begin(), a.end()} {
			if at.After(now) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first, !first.IsZero()
}

func (a *armed) begin() time.Time { return a.added.Add(a.From.Duration) }

// end returns the end of a rule; zero: none.
func (a *armed) end() time.Time {
	if a.Until.Duration == 0 {
		return time.Time{}
	}
	return a.added.Add(a.Until.Duration)
}

func (a *armed) phase(now time.Time) Phase {
	switch end := a.end(); {
	case now.Before(a.begin()):
		return Waiting
	case !end.IsZero() && !now.Before(end):
		return Over
	}
	return Active
}

// arm parses a rule's fields.
func arm(r Rule, now time.Time) (*armed, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	a := &armed{Rule: r, site: r.site(), added: now, by: map[string]*Tally{}}
	a.Method, a.Set, a.Sends = append(Methods(nil), r.Method...), maps.Clone(r.Set), maps.Clone(r.Sends)
	// Validate has parsed all of these.
	a.path, _ = parsePattern(r.Path)
	a.sends, _ = r.Sends.parse()
	a.latency, _ = r.Latency.parse()
	a.limit, _ = r.Limit.parse()
	w := rewrite{contentType: r.ContentType, invalid: r.InvalidJSON}
	w.cut, _ = r.Truncate.parse()
	w.set, _ = r.Set.parse()
	if r.Body != nil {
		w.body, w.replaced = *r.Body, true
	}
	if r.Patch != nil {
		w.patch, _ = json.Marshal(r.Patch)
	}
	a.rewrite, a.edits = w, w.replaced || w.patch != nil || len(w.set) > 0 || w.invalid || w.cut.set
	a.counts = r.After > 0 || r.Count > 0 || r.Limit != "" || a.chancy() || a.latency.random()
	return a, nil
}

func (a *armed) chancy() bool { return a.Probability > 0 && a.Probability < 1 }

// Decide returns what goes wrong with a subject, and counts it. All rules that
// hit take part: delays add up, body changes are applied in order, and for
// everything else the first rule counts.
func (p *Plan) Decide(s Subject, now time.Time) Decision {
	var d Decision
	if p.sites[s.Site] == 0 {
		return d
	}
	for _, a := range p.rules {
		if a.meant(s) && a.phase(now) == Active {
			p.hit(a, s.BMC, now, &d)
		}
	}
	return d
}

// tooManyRequests is the status of a request over the limit (RFC 6585, §4).
const tooManyRequests = 429

// hit adds a matching rule to the decision, if its counts and probability allow
// it.
func (p *Plan) hit(a *armed, bmc string, now time.Time, d *Decision) {
	status, retry := a.Status, a.RetryAfter.Duration
	if a.counts {
		t := a.by[bmc]
		if t == nil {
			t = new(Tally)
			a.by[bmc] = t
		}
		t.Seen++
		if t.Seen <= a.After {
			d.Counted = true
			return
		}
		if a.Count > 0 && t.Hits >= a.Count {
			return
		}
		if a.chancy() && p.rng(a.ID, bmc, t).Float64() >= a.Probability {
			return
		}
		if a.Limit != "" {
			wait := a.limit.take(&t.TAT, now)
			if wait == 0 {
				return
			}
			status, retry = cmp.Or(status, tooManyRequests), cmp.Or(retry, wait)
		}
		t.Hits++
		d.Counted = d.Counted || a.Count > 0
		if a.latency.random() {
			d.Delay += a.latency.draw(p.rng(a.ID, bmc, t))
		}
	}
	if !a.latency.random() {
		d.Delay += a.latency.low
	}
	a.hits++
	d.Rules = append(d.Rules, a.ID)
	d.Offline, d.Stale, d.Stuck = d.Offline || a.Offline, d.Stale || a.Stale, d.Stuck || a.Stuck
	if d.Status == 0 && status != 0 {
		d.Status, d.RetryAfter, d.Message, d.MessageID = status, retry, a.Message, a.MessageID
		d.Performed = d.Performed || a.Performed
	}
	if d.Drop == "" && a.Drop != "" {
		d.Drop = a.Drop
		d.Performed = d.Performed || a.Performed
	}
	if d.Code == 0 && a.Code != 0 {
		d.Code = a.Code
		d.Performed = d.Performed || a.Performed
	}
	d.Wire = cmp.Or(d.Wire, a.Wire)
	d.TLS, d.LengthError = cmp.Or(d.TLS, a.TLS), cmp.Or(d.LengthError, a.LengthError)
	if len(a.Headers) > 0 {
		d.Headers = append(d.Headers, a.Headers)
	}
	if a.edits {
		d.rewrites = append(d.rewrites, a.rewrite)
	}
}

// rng returns the random source of a rule's next draw at a BMC.
func (p *Plan) rng(id, bmc string, t *Tally) *rand.Rand {
	t.Draws++
	sum := sha256.Sum256(fmt.Appendf(nil, "fault/%d/%q/%q/%d", p.seed, id, bmc, t.Draws))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

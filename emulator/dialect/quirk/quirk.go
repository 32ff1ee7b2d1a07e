// Package quirk lists the quirks of real BMCs: faults, and behaviour that clients do
// not expect. Each Quirk is a switch that a rack, a dialect file or a scenario turns
// on. It says what a client sees, which BMCs have it, and which source shows that. A
// quirk changes a dialect.Record and nothing else; the package knows no service and
// no host.
package quirk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/suggest"
)

// Quirk is one deviation of real BMCs, as a change of a dialect.
type Quirk struct {
	ID     string                `json:"id"`     // "vmedia-strict-payload"
	Does   string                `json:"does"`   // behaviour that a client sees
	Seen   string                `json:"seen"`   // BMCs that have it
	Source []string              `json:"source"` // URLs and documents that show it
	Params []Param               `json:"params,omitempty"`
	check  func(p values) string // returns the mistake in parameters whose kinds are right, or ""; nil: there is none
	// change adds the quirk to a record. The record is a copy, but shares its lists
	// with the original, except those of Presentation and Protocol.
	change func(r *dialect.Record, p values)
}

// Param is a parameter of a quirk.
type Param struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Kind    Kind   `json:"kind"`
	Means   string `json:"means"` // what the value sets
}

// oneOf returns a Quirk.check for parameters that must have one of the listed
// values.
func oneOf(of map[string][]string) func(values) string {
	return func(p values) string {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(of[name], p[name]) {
				return name + ": must be " + strings.Join(of[name], " or ")
			}
		}
		return ""
	}
}

// Kind is the type of a parameter's value.
type Kind string

// The kinds.
const (
	Span  Kind = "duration" // positive, as time.ParseDuration reads it
	Count Kind = "number"   // from 1 to 1000
	Text  Kind = "text"
)

// Setting is a quirk that is turned on, with its parameters:
// "vmedia-stale-inserted" or "vmedia-stale-inserted for=30s".
type Setting struct {
	ID     string            `json:"id"`
	Params map[string]string `json:"params,omitempty"`
}

// String returns the setting in the form that Parse reads.
func (s Setting) String() string {
	parts := []string{s.ID}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		parts = append(parts, name+"="+s.Params[name])
	}
	return strings.Join(parts, " ")
}

// Parse parses and validates a setting: the name of a quirk, and parameters such as
// for=30s.
func Parse(text string) (Setting, error) {
	parts := strings.Fields(text)
	if len(parts) == 0 {
		return Setting{}, errors.New("is empty: give the name of a quirk, as labctl quirk ls shows it")
	}
	s := Setting{ID: parts[0]}
	for _, p := range parts[1:] {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return Setting{}, fmt.Errorf("%s: %q: a parameter has the form name=value", s.ID, p)
		}
		if s.Params == nil {
			s.Params = map[string]string{}
		}
		s.Params[name] = value
	}
	return s, s.Validate()
}

// Find returns the quirk of a name, and whether there is one.
func Find(id string) (Quirk, bool) {
	i := slices.IndexFunc(All, func(q Quirk) bool { return q.ID == id })
	if i < 0 {
		return Quirk{}, false
	}
	return All[i], true
}

// Validate checks a setting. Errors name the quirk, the parameter and what it must
// be.
func (s Setting) Validate() error {
	q, ok := Find(s.ID)
	if !ok {
		return fmt.Errorf("%s: there is no such quirk: see labctl quirk ls%s", s.ID, suggest.DidYouMean(s.ID, IDs()))
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		i := slices.IndexFunc(q.Params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("%s: it has no parameter %q: %s", s.ID, name, q.parameters()))
			continue
		}
		if err := q.Params[i].check(s.Params[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", s.ID, name, err))
		}
	}
	if q.check != nil && len(errs) == 0 {
		if wrong := q.check(q.with(s.Params)); wrong != "" {
			errs = append(errs, fmt.Errorf("%s: %s", s.ID, wrong))
		}
	}
	return errors.Join(errs...)
}

// IDs lists the names of all quirks, in the order of All.
func IDs() []string {
	ids := make([]string, len(All))
	for i, q := range All {
		ids[i] = q.ID
	}
	return ids
}

// parameters lists the parameters of a quirk for a message.
func (q *Quirk) parameters() string {
	if len(q.Params) == 0 {
		return "it has none"
	}
	var names []string
	for _, p := range q.Params {
		names = append(names, p.Name)
	}
	return "use one of " + strings.Join(names, ", ")
}

func (p *Param) check(value string) error {
	switch p.Kind {
	case Span:
		if d, err := time.ParseDuration(value); err != nil || d <= 0 || d > 24*time.Hour {
			return fmt.Errorf("%q: must be a duration up to 24h, for example 30s", value)
		}
	case Count:
		if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("%q: must be a number from 1 to 1000", value)
		}
	case Text:
		if value == "" {
			return errors.New("must not be empty")
		}
	}
	return nil
}

// with returns the given parameters, and the defaults of the others.
func (q *Quirk) with(params map[string]string) values {
	v := values{}
	for _, p := range q.Params {
		v[p.Name] = p.Default
	}
	maps.Copy(v, params)
	return v
}

// values are the parameters of a setting, defaults included.
type values map[string]string

func (v values) span(name string) time.Duration {
	d, _ := time.ParseDuration(v[name]) // Param.check has parsed it
	return d
}

func (v values) count(name string) int {
	n, _ := strconv.Atoi(v[name]) // Param.check has parsed it
	return n
}

// Must returns a vendor's record with the quirks that all its BMCs have. The settings
// are constants of the program: Must panics when one is invalid.
func Must(r dialect.Record, settings ...string) dialect.Record {
	all := make([]Setting, len(settings))
	for i, text := range settings {
		s, err := Parse(text)
		if err != nil {
			panic(err)
		}
		all[i] = s
	}
	out, err := Apply(&r, all)
	if err != nil {
		panic(err)
	}
	return *out
}

// Apply returns a record with quirks added. It does not change r.
func Apply(r *dialect.Record, all []Setting) (*dialect.Record, error) {
	if len(all) == 0 {
		return r, nil
	}
	out := *r
	out.Presentation = r.Presentation.Clone()
	out.Protocol = r.Protocol.Clone()
	for _, s := range all {
		if err := s.Validate(); err != nil {
			return nil, err
		}
		q, _ := Find(s.ID)
		q.change(&out, q.with(s.Params))
	}
	return &out, out.Validate()
}

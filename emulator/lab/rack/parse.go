package rack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// Problem is one thing that is wrong with a definition.
type Problem struct {
	File  string // "" of a definition that came from no file
	Line  int    // 0 when it is not known
	Field string // hosts[1].count
	Text  string // what is wrong with it, and what to write instead
}

// Error implements error.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString("rack: ")
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Parse reads a definition and puts in the defaults. The error joins a Problem
// for each thing that is wrong; file is for these.
func Parse(file string, data []byte) (Lab, error) {
	var l Lab
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&l); err != nil {
		return Lab{}, syntax(file, data, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Lab{}, &Problem{File: file, Text: "holds more than one document: a lab has one rack"}
	}
	at := places(data)
	one := func(field string, groups []Group) {
		for i := range groups {
			if _, said := at[fmt.Sprintf("%s[%d].count", field, i)]; !said {
				groups[i].Count = 1
			}
		}
	}
	one("hosts", l.Hosts)
	for i, r := range l.Racks {
		one(fmt.Sprintf("racks[%d].hosts", i), r.Hosts)
	}
	l.fill()
	found := l.problems()
	for i, r := range l.Faults {
		field := fmt.Sprintf("faults[%d].probability", i)
		if _, said := at[field]; said && r.Probability == 0 {
			found = append(found, &Problem{Field: field, Text: "0: must be above 0 and at most 1"})
		}
	}
	var errs []error
	for _, p := range found {
		p.File = file
		for f := p.Field; p.Line == 0 && f != ""; f = parent(f) {
			p.Line = at[f].line
		}
		errs = append(errs, p)
	}
	return l, errors.Join(errs...)
}

// Validate says all that is wrong with a definition.
func (l *Lab) Validate() error {
	var errs []error
	for _, p := range l.problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// label is a DNS label (RFC 1123, §2.1): host names become resource names.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func (l *Lab) problems() (out []*Problem) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, &Problem{Field: field, Text: fmt.Sprintf(text, args...)})
		}
	}
	need(l.Kind == Kind, "kind", "%q: must be %s", l.Kind, Kind)
	need(isLabel(l.Name, 63), "name", "%q: "+labelForm, l.Name, 63)
	_, _, err := l.Speed.Factor()
	need(err == nil, "speed", "%q: use a form like 1x, 60x or max", l.Speed)

	need(len(l.Accounts) > 0, "accounts", "must not be empty")
	seen := map[string]bool{}
	for i, a := range l.Accounts {
		at := fmt.Sprintf("accounts[%d]", i)
		// IPMI v2.0 rev 1.1, §22.28 and §22.30: 16 and 20 bytes. A colon ends
		// the name in HTTP's basic authentication (RFC 7617, §2).
		need(printable(a.Name, 16) && a.Name != "" && !strings.Contains(a.Name, ":"), at+".name", "%q: use 1 to 16 printable characters without a colon", a.Name)
		need(printable(a.Password, 20), at+".password", "use at most 20 printable characters: IPMI takes no more")
		need(slices.Contains(roles, a.Role), at+".role", "%q: must be one of %s", a.Role, strings.Join(roles, ", "))
		need(!seen[a.Name], at+".name", "%q: is there twice: give each account its own name", a.Name)
		seen[a.Name] = true
	}
	_, ok := l.Admin()
	need(len(l.Accounts) == 0 || ok, "accounts", "none is an Administrator: the lab's controllers need one")

	_, err = l.Listen.Parse()
	need(err == nil, "listen", "%v", err)
	out = append(out, l.hostProblems()...)
	ids := map[string]bool{}
	need(len(l.Faults) <= fault.MaxRules, "faults", "%d: a lab has at most %d", len(l.Faults), fault.MaxRules)
	for i, r := range l.Faults[:min(len(l.Faults), fault.MaxRules)] {
		at := fmt.Sprintf("faults[%d]", i)
		for _, p := range r.Problems() {
			field := at
			if p.Field != "" {
				field += "." + p.Field
			}
			need(false, field, "%s", p.Text)
		}
		need(r.ID == "" || !ids[r.ID], at+".id", "%s: is there twice: give each fault its own id", r.ID)
		ids[r.ID] = true
	}
	return out
}

// isLabel says whether s is a DNS label of at most so many characters.
func isLabel(s string, most int) bool { return len(s) <= most && label.MatchString(s) }

const labelForm = "use up to %d of a-z, 0-9 and -, beginning and ending with a letter or digit"

// hostProblems lists what is wrong with the hosts and racks.
func (l *Lab) hostProblems() (out []*Problem) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, &Problem{Field: field, Text: fmt.Sprintf(text, args...)})
		}
	}
	need(len(l.Hosts)+len(l.Racks) > 0, "hosts", "must not be empty: add - {profile: generic, count: 1}")
	seen := map[string]bool{}
	for i, r := range l.Racks {
		at := fmt.Sprintf("racks[%d]", i)
		need(isLabel(r.Name, 40), at+".name", "%q: "+labelForm, r.Name, 40)
		need(!seen[r.Name], at+".name", "%q: is there twice: give each rack its own name", r.Name)
		seen[r.Name] = true
		need(len(r.Hosts) > 0, at+".hosts", "must not be empty: add - {profile: generic, count: 1}")
	}
	total := 0
	for _, g := range l.Groups() {
		need(g.Profile != "", g.Field+".profile", "must not be empty")
		need(g.Count >= 1, g.Field+".count", "%d: must be 1 or more", g.Count)
		need(isLabel(g.NamePrefix, 50), g.Field+".namePrefix", "%q: "+labelForm, g.NamePrefix, 50)
		g.IPMI.problems(func(ok bool, field, text string, args ...any) { need(ok, g.Field+".ipmi."+field, text, args...) })
		if g.Count > 0 {
			total = min(total+min(g.Count, MaxHosts+1), 2*MaxHosts+2)
		}
	}
	need(total <= MaxHosts, "hosts", "%d: a lab has at most %d", total, MaxHosts)
	for _, t := range l.Timings.all() {
		need(t.is == nil || t.is.Duration >= 0, "timings."+t.name, "%v: must not be negative", t.is)
	}
	return out
}

func printable(s string, most int) bool {
	return len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// parent is the field that a field is in: hosts[1], hosts, "".
func parent(field string) string {
	return field[:max(0, strings.LastIndexAny(field, ".["))]
}

package rackfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// Parse reads a rack file and fills in the defaults. The error joins a
// yamlfile.Error for each mistake, with the name of the file, line and field, in the order of
// lines. The checks are of what a rack file alone does not tell, such as which profiles there
// are; their errors are among the others.
func Parse(file string, data []byte, checks ...func(*Lab) error) (Lab, error) {
	f, err := yamlfile.Read(file, data, "kind: "+Kind)
	if err != nil {
		return Lab{}, err
	}
	var l Lab
	wrong := f.Decode(&l)
	defaultCount := func(field string, groups []Group) {
		for i := range groups {
			// Only the file tells a count of 0 from none.
			if !f.Has(fmt.Sprintf("%s[%d].count", field, i)) {
				groups[i].Count = 1
			}
		}
	}
	defaultCount("hosts", l.Hosts)
	for i, r := range l.Racks {
		defaultCount(fmt.Sprintf("racks[%d].hosts", i), r.Hosts)
	}
	l.fill()
	found := l.problems(f)
	for _, check := range checks {
		found = append(found, check(&l))
	}
	return l, f.All(wrong, found...)
}

// Validate checks a definition. The error joins a yamlfile.Error for each
// mistake.
func (l *Lab) Validate() error { return errors.Join(l.problems(nil)...) }

// label matches DNS labels (RFC 1123, §2.1): host names become names of Kubernetes
// resources.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// problems lists the mistakes of a definition that was read from f; nil is no file.
func (l *Lab) problems(f *yamlfile.File) (out []error) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, yamlfile.Errorf(field, text, args...))
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

	for i, family := range l.With {
		need(isLabel(family, 63), fmt.Sprintf("with[%d]", i), "%q: "+labelForm, family, 63)
		need(!slices.Contains(l.With[:i], family), fmt.Sprintf("with[%d]", i), "%q: is there twice", family)
	}
	_, err = l.Listen.Parse()
	need(err == nil, "listen", "%v", err)
	out = append(out, l.hostProblems()...)
	ids := map[string]bool{}
	need(len(l.Faults) <= fault.MaxRules, "faults", "%d: a lab has at most %d", len(l.Faults), fault.MaxRules)
	rules := l.Faults[:min(len(l.Faults), fault.MaxRules)]
	out = append(out, fault.Problems(f, "faults", rules)...)
	for i, r := range rules {
		need(r.ID == "" || !ids[r.ID], fmt.Sprintf("faults[%d].id", i), "%s: is there twice: give each fault its own id", r.ID)
		ids[r.ID] = true
	}
	return out
}

// isLabel reports whether s is a DNS label of at most so many characters.
func isLabel(s string, most int) bool { return len(s) <= most && label.MatchString(s) }

const labelForm = "use up to %d of a-z, 0-9 and -, beginning and ending with a letter or digit"

// hostProblems lists the mistakes in hosts, racks and timings.
func (l *Lab) hostProblems() (out []error) {
	need := func(ok bool, field, text string, args ...any) {
		if !ok {
			out = append(out, yamlfile.Errorf(field, text, args...))
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
		osReleaseProblems(g.OSRelease, func(ok bool, field, text string, args ...any) { need(ok, g.Field+".osRelease."+field, text, args...) })
		need(slices.Contains([]string{"", FirstBootLab, FirstBootImage}, g.FirstBoot), g.Field+".firstBoot", "%q: use lab or image", g.FirstBoot)
		if g.Count > 0 {
			total = min(total+min(g.Count, MaxHosts+1), 2*MaxHosts+2)
		}
	}
	if p := l.Part; p != nil {
		need(p.First >= 0, "part.first", "%d: must not be negative", p.First)
		need(p.Count >= 0, "part.count", "%d: must not be negative", p.Count)
	}
	if l.Part == nil {
		need(total <= MaxHosts, "hosts", "%d: a lab has at most %d", total, MaxHosts)
	} else {
		need(l.Part.Count <= MaxHosts, "part.count", "%d: a shard has at most %d hosts", l.Part.Count, MaxHosts)
	}
	for _, t := range l.Timings.all() {
		need(t.is == nil || t.is.Duration >= 0, "timings."+t.name, "%v: must not be negative", t.is)
	}
	return out
}

func printable(s string, most int) bool {
	return len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

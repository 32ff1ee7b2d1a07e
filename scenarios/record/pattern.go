package record

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

func filler(r *dialect.Record) *strings.Replacer {
	return strings.NewReplacer("{system}", r.SystemID, "{manager}", r.ManagerID, "{chassis}", r.ChassisID)
}

// pattern is an address with names in braces for what can be anything.
type pattern string

func (p pattern) holds(at string) bool {
	_, _, ok := p.match(at)
	return ok
}

// match takes the variables of an address that is this one or below it.
func (p pattern) match(at string) (vars map[string]string, rest string, ok bool) {
	want, have := strings.Split(string(p), "/"), strings.Split(at, "/")
	if len(have) < len(want) {
		return nil, "", false
	}
	vars = map[string]string{}
	for i, w := range want {
		before, after, name := w, "", ""
		if head, tail, ok := strings.Cut(w, "{"); ok {
			before = head
			name, after, _ = strings.Cut(tail, "}")
			name, _, _ = strings.Cut(name, ":")
		}
		v, ok := strings.CutPrefix(have[i], before)
		if ok {
			v, ok = strings.CutSuffix(v, after)
		}
		if !ok || (name == "") != (v == "") {
			return nil, "", false
		}
		if name != "" {
			vars[name] = v
		}
	}
	return vars, strings.TrimPrefix(strings.Join(have[len(want):], "/"), "/"), true
}

// inTree is the address in the tree of what clients see at an address.
func inTree(r *dialect.Record, at string) string {
	for _, m := range r.Presentation.URIMappings {
		vars, rest, ok := pattern(fill(m.To, r)).match(at)
		if !ok {
			continue
		}
		to := fill(m.From, r)
		for name, v := range vars {
			// A number that was filled up with zeros is told by them alone.
			to = strings.ReplaceAll(to, "{"+name+"}", v)
		}
		if rest != "" {
			to += "/" + rest
		}
		return to
	}
	return at
}

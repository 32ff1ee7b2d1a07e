package record

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// idReplacer replaces {system}, {manager} and {chassis} by the IDs of a
// dialect's record.
func idReplacer(r *dialect.Record) *strings.Replacer {
	return strings.NewReplacer("{system}", r.SystemID, "{manager}", r.ManagerID, "{chassis}", r.ChassisID)
}

// uriPattern is a URI with names in braces for variable parts.
type uriPattern string

// matches reports whether a URI is the pattern's or below it.
func (p uriPattern) matches(at string) bool {
	_, _, ok := p.match(at)
	return ok
}

// match matches a URI that is the pattern's or below it, and returns the values
// of the variables and the rest of the URI.
func (p uriPattern) match(at string) (vars map[string]string, rest string, ok bool) {
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

// toStandardURI returns the standard URI of the resource that clients see at a
// vendor's URI.
func toStandardURI(r *dialect.Record, at string) string {
	for _, m := range r.Presentation.URIMappings {
		vars, rest, ok := uriPattern(expandIDs(m.To, r)).match(at)
		if !ok {
			continue
		}
		to := expandIDs(m.From, r)
		for name, v := range vars {
			// A number keeps its leading zeros: they alone tell it apart.
			to = strings.ReplaceAll(to, "{"+name+"}", v)
		}
		if rest != "" {
			to += "/" + rest
		}
		return to
	}
	return at
}

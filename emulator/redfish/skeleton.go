package redfish

import (
	"bytes"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// skeleton is what of a body stays while what is fixed of it does: its cut, the
// properties that parts are made from, and those that are in no part, as
// clients see them. Of a body that is remade it is kept. It is immutable then.
type skeleton struct {
	fixed []byte
	self  string // address of the resource in the tree
	c     *cut
	in    []laid
	out   []member // sorted
}

// laid is a property and the part that it is in.
type laid struct {
	member
	part int
}

// The places of properties that are in no part of a cut.
const (
	alone = -1
	done  = -2
)

// is says whether it is the skeleton of a body with this fixed text.
func (k *skeleton) is(fixed []byte) bool {
	return k != nil && len(k.fixed) == len(fixed) && len(fixed) > 0 && &k.fixed[0] == &fixed[0]
}

// kept is a copy that shares nothing that is used again.
func (k *skeleton) kept() *skeleton {
	is := *k
	is.in, is.out = slices.Clone(k.in), slices.Clone(k.out)
	return &is
}

// read makes the skeleton; false when the body is not like others.
func (w *showing) read(fixed []byte) bool {
	k := w.k
	k.fixed = fixed
	var ok bool
	if w.all, ok = members(w.all[:0], fixed); !ok {
		return false
	}
	kind, named := "", false
	for _, m := range w.all {
		ok := true
		switch string(m.name) {
		case "@odata.type":
			kind, ok = plainText(m.value)
		case "@odata.id":
			k.self, ok = plainText(m.value)
		case "Name":
			named = true
		}
		if !ok {
			return false
		}
	}
	if k.self == "" || w.f.isShut(k.self) {
		return false
	}
	k.c = uncut
	at, away := moved(w.f.out, k.self)
	if kind != "" && named {
		if k.c = w.f.cutOf(typeName(strings.TrimPrefix(kind, "#")), k.self, at); k.c == nil {
			return false
		}
	}
	if away && k.c.dresses {
		for i := range w.all {
			if _, known := k.c.of["Id"]; known || string(w.all[i].name) != "Id" {
				continue
			}
			id, ok := plainText(w.all[i].value)
			if !ok {
				return false
			}
			w.all[i].value = appendText(nil, idAt(id, k.self, at))
		}
	}
	k.in, k.out, ok = w.place(k.in, k.out)
	slices.SortFunc(k.out, byName)
	return ok
}

// add adds what stands beside what is fixed.
func (w *showing) add(text []byte) bool {
	var ok bool
	if w.all, ok = members(w.all[:0], text); !ok {
		return false
	}
	for _, m := range w.all {
		switch string(m.name) {
		case "@odata.type", "@odata.id", "Name", "Id": // what says what the body is of is fixed
			return false
		}
		name, counts := bytes.CutSuffix(m.name, []byte(countOf))
		if _, known := w.k.c.of[string(name)]; !known && (counts || m.value[0] == '[') && w.counts(name) {
			return false
		}
	}
	w.more, w.out, ok = w.place(w.more, w.out)
	return ok
}

// counts says whether an array, or its count, is fixed and in no part.
func (w *showing) counts(name []byte) bool {
	return slices.ContainsFunc(w.k.out, func(m member) bool {
		rest, begins := bytes.CutPrefix(m.name, name)
		return begins && (len(rest) == 0 || string(rest) == countOf)
	})
}

// place sorts properties into parts, and makes those that are in none.
func (w *showing) place(in []laid, out []member) ([]laid, []member, bool) {
	for i := range w.all {
		m := w.all[i]
		if m.name == nil { // it has been taken along with another
			continue
		}
		if of, known := w.k.c.of[string(bytes.TrimSuffix(m.name, []byte(countOf)))]; known {
			in = append(in, laid{m, of})
			continue
		}
		var ok bool
		if out, ok = w.single(out, i); !ok {
			return in, out, false
		}
	}
	return in, out, true
}

// single adds a property that is in no part of the cut. Most are as they were.
func (w *showing) single(out []member, i int) ([]member, bool) {
	m := w.all[i]
	if string(m.name) == etagOf {
		w.etag = m
		return out, true
	}
	also := -1 // its count, or what it is the count of
	switch v := m.value; v[0] {
	case '{', '[':
		if len(v) == 2 {
			return append(out, m), true
		}
		if v[0] == '[' {
			also = w.other(i, string(m.name)+countOf)
		}
	case '"':
		text := v[1 : len(v)-1]
		switch {
		case bytes.IndexByte(v, '\\') >= 0:
		case bytes.HasPrefix(text, []byte("/redfish/v1")):
			if is := string(text); !w.f.unlink(is) {
				out = append(out, member{m.name, appendText(nil, w.f.address(is))})
			}
			return out, true
		case w.f.d.Presentation.DateTimeFormat == dialect.CompactZone:
			if is := string(text); compactDate(is) != is {
				m.value = appendText(nil, compactDate(is))
			}
			return append(out, m), true
		default:
			return append(out, m), true
		}
	default:
		if of, counts := bytes.CutSuffix(m.name, []byte(countOf)); counts {
			also = w.other(i, string(of))
		}
		if also < 0 || len(w.all[also].value) < 3 || w.all[also].value[0] != '[' {
			return append(out, m), true
		}
	}
	w.begin(alone)
	w.opens()
	w.put(m)
	if also >= 0 {
		w.put(w.all[also])
		w.all[also].name = nil
	}
	p := w.finish(nil)
	if p == nil {
		return out, false
	}
	return append(out, p.out...), true
}

// other is where a property is that has not been taken yet; -1 when there is
// none.
func (w *showing) other(than int, name string) int {
	for i := than + 1; i < len(w.all); i++ {
		if string(w.all[i].name) == name {
			return i
		}
	}
	return -1
}

package redfish

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// facePart is what a vendor makes of some properties of a body. It depends on
// nothing but what it was made from, so that it is kept for all bodies that have
// the same: of one BMC over time, and of others like it. It is immutable.
type facePart struct {
	from []byte   // the cut and its part, the address, what is taken from others, and the properties
	out  []member // in order
	told []string // what of it the ETag depends on, in the order of cutPart.told
}

// size is about how many bytes are held.
func (p *facePart) size() int {
	n := len(p.from) + 128
	for _, m := range p.out {
		n += len(m.name) + len(m.value) + 56
	}
	return n
}

const (
	keptParts = 2 << 20 // bytes, in each of two generations
	mostOfOne = 8 << 10 // bytes of a part that is kept
)

// faced is a body of the tree as clients of a vendor see it, its ETag, and what
// it takes from others.
func (s *Service) faced(f *face, m *match, is, was *made, retag bool) ([]byte, string, []taking) {
	take := &takings{s: s, at: &is.at, of: s.browse(&is.at), was: was}
	if m.raw == nil {
		if body, tag, ok := f.inParts(is, was, take, retag); ok {
			return body, tag, take.is
		}
	}
	body, tag := f.wholly(&is.page, m.schema, take.of, retag)
	return body, tag, nil
}

// wholly is a body as clients of a vendor see it, and its ETag; the long way.
func (f *face) wholly(p *page, schema string, of browse, retag bool) ([]byte, string) {
	o, tag := f.object(decode(p.body.whole()), of), p.tag()
	if retag {
		tag = f.tag(tag, schema, o)
		o["@odata.etag"] = tag
	}
	return encode(o), tag
}

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

// showing makes the body that clients of a vendor see.
type showing struct {
	s    *Service
	f    *face
	take *takings
	k    *skeleton
	own  skeleton // which is used again

	all  []member // properties that are being sorted into parts
	more []laid   // of what is live
	from []byte   // of a part
	open int      // where its properties begin in that
	out  []member // beside those of the skeleton
	etag member
	told []string
}

var showings = sync.Pool{New: func() any { return new(showing) }}

// release is where it can be used again, and refers to nothing.
func (w *showing) release() {
	clear(w.all[:cap(w.all)])
	clear(w.more[:cap(w.more)])
	clear(w.out[:cap(w.out)])
	clear(w.own.in[:cap(w.own.in)])
	clear(w.own.out[:cap(w.own.out)])
	*w = showing{
		all: w.all[:0], more: w.more[:0], from: w.from[:0], out: w.out[:0], told: w.told[:0],
		own: skeleton{in: w.own.in[:0], out: w.own.out[:0]},
	}
	showings.Put(w)
}

// inParts is wholly, of parts that are kept; false for a body that has to be
// made as a whole.
func (f *face) inParts(is, was *made, take *takings, retag bool) (body []byte, tag string, ok bool) {
	w := showings.Get().(*showing)
	defer w.release()
	w.s, w.f, w.take = take.s, f, take
	fixed, head, live := is.body[0], []byte(nil), []byte(nil)
	if is.ends != nil { // it is in pieces (match.compose)
		head, fixed, live = is.body[0], is.body[1], is.body[2]
	} else if len(is.body[1])+len(is.body[2]) > 0 || len(fixed) < 2 || fixed[0] != '{' {
		return nil, "", false
	} else {
		fixed = fixed[1 : len(fixed)-1]
	}
	if w.k = was.skeleton; !w.k.is(fixed) {
		w.k = &w.own
		if !w.read(fixed) || is.ends != nil && w.etag.name != nil {
			return nil, "", false
		}
		if is.ends != nil && was.ends != nil {
			w.k = w.own.kept()
		}
	}
	if is.ends != nil && was.ends != nil {
		is.skeleton = w.k
	}
	if len(head) > 0 && !w.add(head[1:len(head)-1]) || len(live) > 1 && !w.add(bytes.TrimPrefix(live[:len(live)-1], []byte(","))) {
		return nil, "", false
	}
	for len(w.told) < w.k.c.told {
		w.told = append(w.told, "")
	}
	for i := range w.k.c.parts {
		if !w.part(i) {
			return nil, "", false
		}
	}
	if tag = is.tag(); retag {
		tag = f.tagOf(tag, w.told)
		w.etag = member{[]byte(etagOf), appendText(nil, tag)}
	}
	if w.etag.name != nil {
		w.out = append(w.out, w.etag)
	}
	slices.SortFunc(w.out, byName)
	body, ok = joined(w.k.out, w.out)
	return body, tag, ok
}

// etagOf is the property that the ETag is in.
const etagOf = "@odata.etag"

func byName(a, b member) int { return bytes.Compare(a.name, b.name) }

// joined is the object of properties of which both lists are sorted; false
// when one is there twice.
func joined(a, b []member) ([]byte, bool) {
	size := 2
	for _, all := range [][]member{a, b} {
		for i := range all {
			size += len(all[i].name) + len(all[i].value) + 4
		}
	}
	out := append(make([]byte, 0, size), '{')
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 {
			from = &b
		} else if len(b) > 0 {
			switch order := byName(a[0], b[0]); {
			case order == 0:
				return nil, false
			case order > 0:
				from = &b
			}
		}
		m := &(*from)[0]
		if *from = (*from)[1:]; len(*from) > 0 && bytes.Equal((*from)[0].name, m.name) {
			return nil, false
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.name...), '"', ':')
		out = append(out, m.value...)
	}
	return append(out, '}'), true
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
		if _, known := w.k.c.of[string(name)]; !known && (counts || m.value[0] == '[') && w.counts(string(name)) {
			return false
		}
	}
	w.more, w.out, ok = w.place(w.more, w.out)
	return ok
}

// counts says whether an array, or its count, is fixed and in no part.
func (w *showing) counts(name string) bool {
	return slices.ContainsFunc(w.k.out, func(m member) bool { return partName(string(m.name)) == name })
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
		case w.f.d.Face.Dates == dialect.Compact:
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

// begin begins what a part is made from.
func (w *showing) begin(i int) {
	w.from = binary.LittleEndian.AppendUint64(w.from[:0], w.f.number)
	if i != alone { // which does not depend on what it is in
		w.from = binary.LittleEndian.AppendUint64(w.from, w.k.c.number)
		w.from = append(binary.LittleEndian.AppendUint16(w.from, uint16(i)), w.k.self...)
	}
	w.from = append(w.from, 0)
}

// opens begins its properties.
func (w *showing) opens() {
	w.open = len(w.from)
	w.from = append(w.from, '{')
}

// put is one of them.
func (w *showing) put(m member) {
	if len(w.from) > w.open+1 {
		w.from = append(w.from, ',')
	}
	w.from = append(append(append(w.from, '"'), m.name...), '"', ':')
	w.from = append(w.from, m.value...)
}

// part adds a part of the cut; false when it cannot be made alone.
func (w *showing) part(i int) bool {
	of := &w.k.c.parts[i]
	w.begin(i)
	for _, from := range of.takes {
		w.from = append(append(w.from, w.take.value(from, w.k.self)...), 0)
	}
	w.opens()
	for _, all := range [][]laid{w.k.in, w.more} {
		for j := range all {
			if all[j].part == i {
				w.put(all[j].member)
			}
		}
	}
	p := w.finish(of)
	if p == nil {
		return false
	}
	w.out = append(w.out, p.out...)
	for j, t := range of.told {
		w.told[t.at] = p.told[j]
	}
	return true
}

// finish is what becomes of what was begun; nil when it cannot be made alone.
func (w *showing) finish(of *cutPart) *facePart {
	w.from = append(w.from, '}')
	key := maphash.Bytes(w.s.seed, w.from)
	if p, known := w.s.parts.get(key); known && bytes.Equal(p.from, w.from) {
		return p
	}
	p, keep := w.make(of)
	if keep && len(w.from) <= mostOfOne {
		p.from = bytes.Clone(w.from)
		w.s.parts.put(key, p)
	}
	return p
}

// make makes a part; nil when it cannot be made alone. It is not to be kept if
// something in it takes from others what the part does not tell.
func (w *showing) make(of *cutPart) (p *facePart, keep bool) {
	f, o := w.f, decode(w.from[w.open:])
	keep = true
	if len(f.shut) > 0 {
		f.unlink(o)
	}
	f.dressBelow(o, func(from string) (any, bool) {
		keep = false
		return w.take.of.take(from)
	})
	p = &facePart{}
	if of != nil {
		f.identify(o, w.k.self)
		for i := range of.shapes {
			of.shapes[i].put(o, w.k.self, f.d, w.take.read)
		}
		if of.acts {
			f.showActions(o, w.k.self)
		}
	}
	mapTexts(o, f.address)
	if f.d.Face.Dates == dialect.Compact {
		mapTexts(o, compactDate)
	}
	if of != nil {
		for _, t := range of.told {
			p.told = append(p.told, tells(o, t.path))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		m := member{[]byte(name), appendValue(nil, o[name])}
		if len(appendText(nil, name)) != len(name)+2 {
			return nil, false
		}
		m.value = slices.Clip(m.value)
		p.out = append(p.out, m)
	}
	return p, keep
}

// taking is a value of another resource, or of what is remembered, that a body
// shows.
type taking struct {
	from string // as dialect.Datum.From, filled in
	is   []byte // JSON; empty where there is none
	by   shows  // what it depends on
}

// takings are those of a body.
type takings struct {
	s    *Service
	at   *snapshot
	of   browse
	was  *made // the page before, which may have none
	is   []taking
	seen map[string]object // resources that were looked at
}

// value is what is taken, as JSON; empty where there is nothing.
func (t *takings) value(from, self string) []byte {
	if strings.Contains(from, "{") {
		d := t.at.d
		from = strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID, "{self}", self).Replace(from)
	}
	same := func(is taking) bool { return is.from == from }
	if i := slices.IndexFunc(t.is, same); i >= 0 {
		return t.is[i].is
	}
	if i := slices.IndexFunc(t.was.takes, same); i >= 0 && t.was.takes[i].by.same(&t.was.at, t.at) {
		t.is = append(t.is, t.was.takes[i])
		return t.was.takes[i].is
	}
	is := taking{from: from}
	address, path, property := strings.Cut(from, "#")
	if property {
		if m := t.s.find(&url.URL{Path: address}); m != nil {
			is.by = m.shows
		}
		is.is = t.property(address, path)
	} else {
		is.by = showsKept
		if v, ok := t.of.take(from); ok {
			is.is = appendValue(nil, v)
		}
	}
	t.is = append(t.is, is)
	return is.is
}

// property is that of another resource.
func (t *takings) property(address, path string) []byte {
	o, seen := t.seen[address]
	if !seen {
		o = t.s.bodyAt(address, t.at)
		if t.seen == nil {
			t.seen = map[string]object{}
		}
		t.seen[address] = o
	}
	top, _, _ := strings.Cut(path, "/")
	is, ok := o[top]
	if !ok {
		return nil
	}
	v, ok := valueAt(decode(encode(object{top: is})), path)
	if !ok {
		return nil
	}
	return appendValue(nil, v)
}

// read is a value that was taken.
func (t *takings) read(from string) (any, bool) {
	is := t.value(from, "")
	if len(is) == 0 {
		return nil, false
	}
	return decode(slices.Concat([]byte(`{"x":`), is, []byte("}")))["x"], true
}

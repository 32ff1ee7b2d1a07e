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
		if body, tag, ok := f.inParts(&is.page, take, retag); ok {
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

// showing makes the body that clients of a vendor see.
type showing struct {
	s    *Service
	f    *face
	self string // address of the resource in the tree
	take *takings
	c    *cut

	body []byte   // in the tree
	all  []member // of that
	in   []int    // of each: the part, or one of these
	from []byte   // of a part
	open int      // where its properties begin in that
	out  []member
	told []string
}

// The places of properties that are in no part of a cut.
const (
	alone = -1
	done  = -2
)

var showings = sync.Pool{New: func() any { return new(showing) }}

// inParts is wholly, of parts that are kept; false for a body that has to be
// made as a whole.
func (f *face) inParts(p *page, take *takings, retag bool) (body []byte, tag string, ok bool) {
	w := showings.Get().(*showing)
	defer func() {
		*w = showing{body: w.body[:0], all: clearedOf(w.all), in: w.in[:0], from: w.from[:0], out: clearedOf(w.out), told: w.told[:0]}
		showings.Put(w)
	}()
	w.s, w.f, w.take = take.s, f, take
	for _, some := range p.body {
		w.body = append(w.body, some...)
	}
	if w.all, ok = members(w.all, w.body); !ok || !w.read() {
		return nil, "", false
	}
	for i := range w.c.parts {
		if !w.part(i) {
			return nil, "", false
		}
	}
	for i := range w.all {
		if w.in[i] == alone && !w.single(i) {
			return nil, "", false
		}
	}
	slices.SortFunc(w.out, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	tag = p.tag()
	if retag {
		tag = f.tagOf(tag, w.told)
		w.put(member{[]byte("@odata.etag"), appendText(nil, tag)})
	}
	size := 1
	for i, m := range w.out {
		if i > 0 && bytes.Equal(m.name, w.out[i-1].name) {
			return nil, "", false
		}
		size += len(m.name) + len(m.value) + 4
	}
	b := append(make([]byte, 0, max(size, 2)), '{')
	for i, m := range w.out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), m.name...), '"', ':')
		b = append(b, m.value...)
	}
	return append(b, '}'), tag, true
}

// clearedOf is an empty slice that refers to nothing.
func clearedOf(all []member) []member {
	clear(all[:cap(all)])
	return all[:0]
}

// put is a property, instead of one of its name.
func (w *showing) put(m member) {
	i, is := slices.BinarySearchFunc(w.out, m.name, func(m member, name []byte) int { return bytes.Compare(m.name, name) })
	if is {
		w.out[i] = m
		return
	}
	w.out = slices.Insert(w.out, i, m)
}

// read finds out what the body is of, and sorts its properties into parts;
// false when it is not like others.
func (w *showing) read() bool {
	kind, named := "", false
	for _, m := range w.all {
		var ok bool
		switch string(m.name) {
		case "@odata.type":
			if kind, ok = plainText(m.value); !ok {
				return false
			}
		case "@odata.id":
			if w.self, ok = plainText(m.value); !ok || w.self == "" {
				return false
			}
		case "Name":
			named = true
		}
	}
	if w.self == "" || w.f.isShut(w.self) {
		return false
	}
	w.c = uncut
	at, away := moved(w.f.out, w.self)
	if kind != "" && named {
		if w.c = w.f.cutOf(typeName(strings.TrimPrefix(kind, "#")), w.self, at); w.c == nil {
			return false
		}
	}
	for len(w.told) < w.c.told {
		w.told = append(w.told, "")
	}
	for _, m := range w.all {
		of, known := w.c.of[string(bytes.TrimSuffix(m.name, []byte(countOf)))]
		switch {
		case known:
			w.in = append(w.in, of)
		case away && w.c.dresses && string(m.name) == "Id":
			w.in = append(w.in, done)
			id, ok := plainText(m.value)
			if !ok {
				return false
			}
			w.out = append(w.out, member{m.name, appendText(nil, idAt(id, w.self, at))})
		default:
			w.in = append(w.in, alone)
		}
	}
	return true
}

// single adds a property that is in no part of the cut. Most are as they were.
func (w *showing) single(i int) bool {
	m := w.all[i]
	if w.in[i] = done; string(m.name) == "@odata.etag" {
		w.out = append(w.out, m)
		return true
	}
	also := -1 // its count, or what it is the count of
	switch v := m.value; v[0] {
	case '{', '[':
		if len(v) == 2 {
			w.out = append(w.out, m)
			return true
		}
		if v[0] == '[' {
			also = w.other(i, string(m.name)+countOf)
		}
	case '"':
		text := v[1 : len(v)-1]
		if bytes.IndexByte(v, '\\') >= 0 {
			break
		}
		if bytes.HasPrefix(text, []byte("/redfish/v1")) {
			if is := string(text); !w.f.unlink(is) {
				w.out = append(w.out, member{m.name, appendText(nil, w.f.address(is))})
			}
			return true
		}
		if w.f.d.Face.Dates == dialect.Compact {
			if is := string(text); compactDate(is) != is {
				m.value = appendText(nil, compactDate(is))
			}
		}
		w.out = append(w.out, m)
		return true
	default:
		if of, counts := bytes.CutSuffix(m.name, []byte(countOf)); counts {
			also = w.other(i, string(of))
		}
		if also < 0 || len(w.all[also].value) < 3 || w.all[also].value[0] != '[' {
			w.out = append(w.out, m)
			return true
		}
	}
	w.begin(alone)
	w.opens()
	w.add(m)
	if also >= 0 {
		w.in[also] = done
		w.add(w.all[also])
	}
	return w.finish(nil)
}

// other is where a property is that is in no part of the cut either, and has
// not been added yet; -1 when there is none.
func (w *showing) other(than int, name string) int {
	for i := range w.all {
		if i != than && w.in[i] == alone && string(w.all[i].name) == name {
			return i
		}
	}
	return -1
}

// begin begins what a part is made from.
func (w *showing) begin(i int) {
	w.from = binary.LittleEndian.AppendUint64(w.from[:0], w.f.number)
	if i != alone { // which does not depend on what it is in
		w.from = binary.LittleEndian.AppendUint64(w.from, w.c.number)
		w.from = append(binary.LittleEndian.AppendUint16(w.from, uint16(i)), w.self...)
	}
	w.from = append(w.from, 0)
}

// opens begins its properties.
func (w *showing) opens() {
	w.open = len(w.from)
	w.from = append(w.from, '{')
}

func (w *showing) add(m member) {
	if len(w.from) > w.open+1 {
		w.from = append(w.from, ',')
	}
	w.from = append(append(append(w.from, '"'), m.name...), '"', ':')
	w.from = append(w.from, m.value...)
}

// part adds a part of the cut.
func (w *showing) part(i int) bool {
	of := &w.c.parts[i]
	w.begin(i)
	for _, from := range of.takes {
		w.from = append(append(w.from, w.take.value(from, w.self)...), 0)
	}
	w.opens()
	for j := range w.all {
		if w.in[j] == i {
			w.add(w.all[j])
		}
	}
	return w.finish(of)
}

// finish adds what becomes of what was begun.
func (w *showing) finish(of *cutPart) bool {
	w.from = append(w.from, '}')
	key := maphash.Bytes(w.s.seed, w.from)
	p, known := w.s.parts.get(key)
	if !known || !bytes.Equal(p.from, w.from) {
		var keep bool
		if p, keep = w.make(of); p == nil {
			return false
		} else if keep && len(w.from) <= mostOfOne {
			p.from = bytes.Clone(w.from)
			w.s.parts.put(key, p)
		}
	}
	w.out = append(w.out, p.out...)
	if of != nil {
		for i, t := range of.told {
			w.told[t.at] = p.told[i]
		}
	}
	return true
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
		f.identify(o, w.self)
		for i := range of.shapes {
			of.shapes[i].put(o, w.self, f.d, w.take.read)
		}
		if of.acts {
			f.showActions(o, w.self)
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

package redfish

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
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

	again bool // there was one before
}

var showings = sync.Pool{New: func() any { return new(showing) }}

// release lets it be used again, when it refers to nothing.
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
	w.s, w.f, w.take, w.again = take.s, f, take, was.at.d != nil
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
	if keep && len(w.from) <= mostOfOne && (of == nil || len(of.takes) == 0 || w.again) { // of one BMC alone, for now
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
	if f.d.Presentation.DateTimeFormat == dialect.CompactZone {
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

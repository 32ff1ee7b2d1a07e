package redfish

import (
	"hash/crc32"
	"maps"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// piece is some properties of a body that are made anew without the rest, when
// what they follow from has changed. No other property follows from that.
type piece struct {
	in    string // property whose object they are in; "": the body's own. Pieces of one property stand one after the other
	shows shows  // what they depend on; 0: all that the row shows
	of    func(v view) object
	// alike says of two stands of a machine's power and boot that they show
	// alike here; nil: they never do.
	alike func(a, b *machine.Main) bool
}

// still says whether a piece is as it was.
func (r *resource) still(p *piece, was, at *snapshot) bool {
	on := r.follows(p)
	return on.same(was, at) ||
		p.alike != nil && (on&^showsPower).same(was, at) && was.m.Power == at.m.Power && p.alike(was.m.Main, at.m.Main)
}

// follows is what a piece of a row depends on.
func (r *resource) follows(p *piece) shows {
	if p.shows == 0 {
		return r.shows
	}
	return p.shows
}

// inPieces is a body with where its parts are, so that the next one can take
// over those that are the same.
type inPieces struct {
	fixed []byte  // without braces
	sum   uint64  // of that
	live  []byte  // the pieces, and what is between them
	ends  []int32 // from and to in that: of each piece, without braces
}

// part is the i-th piece.
func (b *inPieces) part(i int) []byte { return b.live[b.ends[2*i]:b.ends[2*i+1]] }

// compose makes a body of what is fixed and of pieces, and its ETag: of both, or
// of what is fixed alone if the pieces are volatile. What is as it was in an
// older body, which there may be, is taken from that.
func (m *match) compose(at, was *snapshot, old *inPieces) (stretches, inPieces, string) {
	known := old.ends != nil
	out := inPieces{fixed: old.fixed, sum: old.sum, ends: make([]int32, 0, 2*len(m.live))}
	if !known || !(m.shows&^m.moves).same(was, at) {
		out.fixed = slices.Clip(appendMembers(make([]byte, 0, 4096), m.fixed(m.view(at))))
		out.sum = sum(0, out.fixed)
	}
	b := make([]byte, 0, len(old.live)+128)
	begin := func() { out.ends = append(out.ends, int32(len(b))) }
	var seen view // by the last piece that was made
	var as shows
	room := sights.Get().(*sight)
	defer func() {
		*room = sight{}
		sights.Put(room)
	}()
	for i := range m.live {
		p := &m.live[i]
		first := i == 0 || m.live[i-1].in != p.in
		if p.in != "" && first {
			b = append(appendText(append(b, ','), p.in), ':', '{')
		}
		comma := p.in == "" || !first && b[len(b)-1] != '{'
		if comma {
			b = append(b, ',')
		}
		begin()
		from := len(b)
		if known && m.still(p, was, at) {
			b = append(b, old.part(i)...)
		} else {
			if some := m.follows(p); seen.m == nil || some != as {
				*room = sight{} // what was made of it is text
				seen, as = m.seeIn(room, some, at), some
			}
			b = appendMembers(b, p.of(seen))
		}
		if comma && len(b) == from { // nothing to say
			b = b[:from-1]
			out.ends[len(out.ends)-1]--
		}
		begin()
		if p.in != "" && (i == len(m.live)-1 || m.live[i+1].in != p.in) {
			b = append(b, '}')
		}
	}
	all := out.sum
	if m.volatile == nil {
		all = sum(all, b)
	}
	tag := written(tagOf(all), at.d.Protocol.ETags)
	out.live = append(b, '}')
	b = append(appendText(append(out.live, `{"@odata.etag":`...), tag), ',') // what the body begins with stands behind its end
	return stretches{b[len(out.live):], out.fixed, out.live}, out, tag
}

// object is the body of a resource.
func (m *match) object(v view) object {
	o := m.fixed(v)
	for i := range m.live {
		p := &m.live[i]
		below, ok := o[p.in].(object)
		switch {
		case p.in == "":
			maps.Copy(o, p.of(v))
		case ok:
			maps.Copy(below, p.of(v))
		default:
			o[p.in] = p.of(v)
		}
	}
	if m.finish != nil {
		m.finish(v, o, m.volatile)
	}
	return o
}

// noETag is as long as all are.
const noETag = `"0000000000000000"`

// tagOf makes an ETag of a sum.
func tagOf(sum uint64) string {
	const hex = "0123456789abcdef"
	tag := []byte(noETag)
	for i := 16; i > 0; i-- {
		tag[i] = hex[sum&15]
		sum >>= 4
	}
	return string(tag)
}

// etag tells bodies apart. A CRC does that for sure where they differ in one
// stretch of up to eight bytes, and costs a fraction of a cryptographic hash.
func etag(body []byte) string { return tagOf(sum(0, body)) }

// sum goes on with a CRC: two of 32 bits, which processors have instructions for,
// and which are one of 64 bits since their polynomials have no factor in common.
func sum(of uint64, b []byte) uint64 {
	return uint64(crc32.Update(uint32(of>>32), castagnoli, b))<<32 | uint64(crc32.Update(uint32(of), crc32.IEEETable, b))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

package redfish

// Fragments are for speed alone: of a system that is changed, only the properties
// that follow from the change are made and encoded again; the text of the others
// is copied from the representation before. Only ComputerSystem has them, and
// vendors' transforms rule them out. BenchmarkFloor/generic/patch/tls/16 measures
// 0.42 to 0.49 of the floor (of-floor/cpu) with them and 0.14 to 0.16 without.

// span is where the text of a fragment is in a body, behind its ETag.
type span struct{ from, to int32 }

// compose renders a resource that has fragments, as render does, and takes what
// stays the same from the representation before, which may be nil.
func compose(m *match, at *snapshot, old *cacheEntry) *cacheEntry {
	v := m.view(at)
	spans := make([]span, 0, len(m.fragments)+1)
	b := startEncoding()
	defer b.release()
	add := func(on shows, of func(v view) object) {
		from := len(b.text)
		if i := len(spans); old != nil && old.spans != nil && on.same(&old.at, at) {
			b.text = append(b.text, old.behindETag()[old.spans[i].from:old.spans[i].to]...)
		} else {
			b.text = appendMembers(b.text, of(v))
		}
		spans = append(spans, span{int32(from), int32(len(b.text))})
	}
	b.text = append(b.text, '{')
	add(m.shows&^m.moves, m.stable)
	for i, f := range m.fragments {
		switch {
		case f.in == "" || i > 0 && m.fragments[i-1].in == f.in:
			b.text = append(b.text, ',')
		default:
			b.text = append(appendText(append(b.text, ','), f.in), ':', '{')
		}
		add(f.shows, f.of)
		if f.in != "" && (i == len(m.fragments)-1 || m.fragments[i+1].in != f.in) {
			b.text = append(b.text, '}')
		}
	}
	b.text = append(b.text, '}')
	tag := written(etag(b.text), at.d.Protocol.ETags)
	return &cacheEntry{newRepresentation(jsonType, withETag(b.text, tag), tag, m.describedBy), *at, spans}
}

// behindETag is the body as it was before it had its ETag.
func (e *cacheEntry) behindETag() []byte {
	return e.body[len(withETag([]byte("{"), e.tag()))-1:]
}

package redfish

import (
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// representation is the body of a resource as clients of a vendor see it, with
// its headers. It is immutable.
type representation struct {
	body []byte
	mime mime
	// The values of headers, made once.
	content, link, allow []string
	etag, length         [1]string // the ETag with its quotes
}

func newRepresentation(kind mime, body []byte, etag string, link []string) *representation {
	return &representation{
		body: body, mime: kind, content: kind.header(), link: link,
		etag: [1]string{etag}, length: [1]string{strconv.Itoa(len(body))},
	}
}

// tag is the ETag.
func (p *representation) tag() string { return p.etag[0] }

// with is the representation with another body.
func (p *representation) with(body []byte) *representation {
	other := newRepresentation(p.mime, body, p.tag(), p.link)
	other.allow = p.allow
	return other
}

// cacheKey names a cached representation by the machine that the resource is of,
// or by the machine's model if the resource is alike for all machines of one.
type cacheKey struct {
	id  *machine.Identity
	p   *machine.Profile
	uri string
}

// cacheEntry is a representation with the state that it was rendered from.
type cacheEntry struct {
	*representation
	at    snapshot
	spans []span // of fragments
}

// representation returns the representation of a resource, or nil when the
// resource does not exist. It is rendered once for as long as the state that it
// depends on stays the same.
func (s *Service) representation(m *match, at *snapshot) *representation {
	if m.base != nil {
		m = m.base
	}
	if m.fresh {
		if !m.isThere(at) {
			return nil
		}
		p := s.render(m, at)
		p.allow = m.allow
		return p
	}
	needs := m.shows
	if f := faceOf(at.d); f != nil {
		needs |= f.beside(s, m.schema)
	}
	k := cacheKey{id: at.m.Identity, uri: m.uri}
	if needs == 0 {
		k = cacheKey{p: at.m.Profile, uri: m.uri}
	}
	old, known := s.cache.get(k)
	if known && needs.same(&old.at, at) {
		return old.representation
	}
	if !m.isThere(at) {
		return nil
	}
	var is *cacheEntry
	if m.fragments != nil && faceOf(at.d) == nil {
		is = m.compose(at, old)
	} else {
		is = &cacheEntry{s.render(m, at), *at, nil}
	}
	is.allow = m.takes(m.view(at))
	s.cache.put(k, is)
	return is.representation
}

// render makes the representation of a resource: its object as the standard has
// it, the vendor's transforms, JSON and the ETag, in this order.
func (s *Service) render(m *match, at *snapshot) *representation {
	if m.upload != nil {
		return newRepresentation(jsonType, nil, "", nil)
	}
	f, v := faceOf(at.d), m.view(at)
	if m.raw != nil {
		kind, body := m.raw(s, v)
		tag := written(etag(body), at.d.Protocol.ETags)
		if f != nil && kind == jsonType && len(body) > 0 {
			body = encode(f.object(decode(body), s.browse(at)))
		}
		return newRepresentation(kind, body, tag, nil)
	}
	o, volatile := m.standard(v), m.volatile
	if f != nil {
		o = f.object(normalized(o), s.browse(at))
		volatile = f.volatile(m.schema, volatile)
	}
	if m.finish != nil {
		m.finish(v, o, volatile)
	}
	body, tag := encodeWithETag(o, volatile, at.d.Protocol)
	return newRepresentation(jsonType, body, tag, m.describedBy)
}

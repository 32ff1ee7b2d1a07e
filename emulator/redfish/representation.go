// Package render makes the representations of resources: the object of a row, the
// vendor's transforms, JSON and the ETag, and one cache of the results.
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

// Renderer renders the resources of a tree for all vendors. It is safe for
// concurrent use.
type Renderer struct {
	tree       *Tree
	vendors    *Vendors
	cache      *cache[cacheKey, *cacheEntry]
	compressed *cache[*representation, *compressed]
}

const (
	cachedBytes   = 16 << 20 // of bodies, in each of two generations
	gzippedBytes  = 4 << 20  // likewise
	besideTheBody = 1 << 10  // bytes that are held with a body: its headers and views
)

// NewRenderer returns a Renderer.
func NewRenderer(t *Tree, v *Vendors) *Renderer {
	return &Renderer{
		tree: t, vendors: v,
		cache:      newCache[cacheKey](cachedBytes, func(e *cacheEntry) int { return len(e.body) + besideTheBody }),
		compressed: newCache[*representation](gzippedBytes, func(z *compressed) int { return len(z.body) + besideTheBody }),
	}
}

// representation returns the representation of a resource, or nil when the
// resource does not exist. It is rendered once for as long as the state that it
// depends on stays the same.
func (s *Renderer) representation(m *match, at *snapshot) *representation {
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
	vendor := s.vendors.Of(at.d)
	needs |= vendor.DependsOn(m.schema)
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
	if m.fragments != nil && vendor.IsStandard() {
		is = compose(m, at, old)
	} else {
		is = &cacheEntry{s.render(m, at), *at, nil}
	}
	is.allow = m.takes(m.view(at))
	s.cache.put(k, is)
	return is.representation
}

// render makes the representation of a resource: its object as the standard has
// it, the vendor's transforms, JSON and the ETag, in this order.
func (s *Renderer) render(m *match, at *snapshot) *representation {
	if m.upload != nil {
		return newRepresentation(jsonType, nil, "", nil)
	}
	vendor, v := s.vendors.Of(at.d), m.view(at)
	if m.raw != nil {
		kind, body := m.raw(v)
		tag := written(etag(body), at.d.Protocol.ETags)
		if kind == jsonType && len(body) > 0 && !vendor.IsStandard() {
			body = encode(vendor.Render(decode(body), at))
		}
		return newRepresentation(kind, body, tag, nil)
	}
	o, volatile := vendor.Render(m.standard(v), at), vendor.Volatile(m.schema, m.volatile)
	m.showETag(v, o, volatile)
	body, tag := encodeWithETag(o, volatile, at.d.Protocol)
	return newRepresentation(jsonType, body, tag, m.describedBy)
}

// Package render makes the representations of resources: the object of a row, the
// vendor's transforms, JSON and the ETag, and one cache of the results.
package render

import (
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Representation is the body of a resource as clients of a vendor see it, with
// its headers. It is immutable.
type Representation struct {
	Body []byte
	Mime resource.MediaType
	// The values of headers, made once.
	Content, Link, Allow []string
	ETag, Length         [1]string // the ETag with its quotes
}

func NewRepresentation(kind resource.MediaType, body []byte, etag string, link []string) *Representation {
	return &Representation{
		Body: body, Mime: kind, Content: kind.Header(), Link: link,
		ETag: [1]string{etag}, Length: [1]string{strconv.Itoa(len(body))},
	}
}

// Tag is the ETag.
func (p *Representation) Tag() string { return p.ETag[0] }

// With is the representation with another body.
func (p *Representation) With(body []byte) *Representation {
	other := NewRepresentation(p.Mime, body, p.Tag(), p.Link)
	other.Allow = p.Allow
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
	*Representation
	at       resource.Snapshot
	spans    []span // of fragments
	untagged int    // with spans: length of the body before it had its ETag
}

// Renderer renders the resources of a tree for all vendors. It is safe for
// concurrent use.
type Renderer struct {
	tree       *resource.Tree
	vendors    *vendor.Vendors
	cache      *cache.Cache[cacheKey, *cacheEntry]
	compressed *cache.Cache[*Representation, *compressed]
}

const (
	cachedBytes   = 16 << 20 // of bodies, in each of two generations
	gzippedBytes  = 4 << 20  // likewise
	besideTheBody = 1 << 10  // bytes that are held with a body: its headers and views
)

// NewRenderer returns a Renderer.
func NewRenderer(t *resource.Tree, v *vendor.Vendors) *Renderer {
	return &Renderer{
		tree: t, vendors: v,
		cache:      cache.New[cacheKey](cachedBytes, func(e *cacheEntry) int { return len(e.Body) + besideTheBody }),
		compressed: cache.New[*Representation](gzippedBytes, func(z *compressed) int { return len(z.Body) + besideTheBody }),
	}
}

// Representation returns the representation of a resource, or nil when the
// resource does not exist. It is rendered once for as long as the state that it
// depends on stays the same.
func (s *Renderer) Representation(m *resource.Match, at *resource.Snapshot) *Representation {
	if m.Base != nil {
		m = m.Base
	}
	if m.Uncached {
		if !m.IsPresent(at) {
			return nil
		}
		p := s.Render(m, at)
		p.Allow = m.Allow
		return p
	}
	needs := m.DependsOn
	vendor := s.vendors.Of(at.Dialect)
	needs |= vendor.DependsOn(m.Schema)
	k := cacheKey{id: at.Machine.Identity, uri: m.URI}
	if needs == 0 {
		k = cacheKey{p: at.Machine.Profile, uri: m.URI}
	}
	old, known := s.cache.Get(k)
	if known && needs.Same(&old.at, at) {
		return old.Representation
	}
	v := m.View(at)
	if !m.PresentIn(v) {
		return nil
	}
	var is *cacheEntry
	if m.Fragments != nil && vendor.IsStandard() {
		is = compose(m, v, at, old)
	} else {
		is = &cacheEntry{Representation: s.Render(m, at), at: *at}
	}
	is.Allow = m.AllowHeader(v)
	s.cache.Put(k, is)
	return is.Representation
}

// Render makes the representation of a resource: its object as the standard has
// it, the vendor's transforms, JSON and the ETag, in this order.
func (s *Renderer) Render(m *resource.Match, at *resource.Snapshot) *Representation {
	if m.Upload != nil {
		return NewRepresentation(resource.JSON, nil, "", nil)
	}
	vendor, v := s.vendors.Of(at.Dialect), m.View(at)
	if m.Raw != nil {
		kind, body := m.Raw(v)
		tag := resource.FormatETag(resource.ETag(body), at.Dialect.Protocol.ETags)
		if kind == resource.JSON && len(body) > 0 && !vendor.IsStandard() {
			body = resource.Encode(vendor.Render(resource.Decode(body), at))
		}
		return NewRepresentation(kind, body, tag, nil)
	}
	o, volatile := vendor.Render(m.Standard(v), at), vendor.Volatile(m.Schema, m.Volatile)
	m.AddETag(v, o, volatile)
	body, tag := encodeWithETag(o, volatile, at.Dialect.Protocol)
	return NewRepresentation(resource.JSON, body, tag, m.DescribedBy)
}

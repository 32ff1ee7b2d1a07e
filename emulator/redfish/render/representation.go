// Package render makes the representations of resources: it takes the object that a
// row of the resource tree returns, applies the vendor's transforms, encodes it as
// JSON with its ETag, and caches the result until the state that it depends on
// changes. It knows no requests.
package render

import (
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// Representation is the body of a resource as clients of a vendor receive it, with
// the values of its headers. It is immutable.
type Representation struct {
	Body      []byte
	MediaType resource.MediaType
	// The values of headers, which requests share.
	ContentType, Link, Allow []string
	ETag, ContentLength      [1]string // the ETag in quotes, "" when the vendor sends none
}

// NewRepresentation returns a representation without Allow. etag is in quotes, or ""
// for none.
func NewRepresentation(kind resource.MediaType, body []byte, etag string, link []string) *Representation {
	return &Representation{
		Body: body, MediaType: kind, ContentType: kind.Header(), Link: link,
		ETag: [1]string{etag}, ContentLength: [1]string{strconv.Itoa(len(body))},
	}
}

// Tag returns the ETag in quotes, or "".
func (p *Representation) Tag() string { return p.ETag[0] }

// With returns a copy of the representation with another body.
func (p *Representation) With(body []byte) *Representation {
	other := NewRepresentation(p.MediaType, body, p.Tag(), p.Link)
	other.Allow = p.Allow
	return other
}

// cacheKey identifies a cached representation: by URI and machine, or by URI and
// profile when it depends on the profile alone, so that machines of a profile share
// it.
type cacheKey struct {
	id      *machine.Identity
	profile *machine.Profile
	uri     string
}

// cacheEntry is a representation with the state that it was rendered from.
type cacheEntry struct {
	*Representation
	at       resource.Snapshot
	spans    []span // spans of the fragments, if the resource has any
	untagged int    // with spans: length of the body without its ETag, in bytes
}

// Renderer renders the resources of a tree for all vendors. It is safe for
// concurrent use.
type Renderer struct {
	tree       *resource.Tree
	vendors    *vendor.Vendors
	cache      *cache.Cache[cacheKey, *cacheEntry]
	compressed *cache.Cache[*Representation, *Compressed]
	slashed    *cache.Cache[*Representation, *Representation]
	reduced    *cache.Cache[*Representation, *Representation] // without the secrets of URIs
}

const (
	// The bounds of the caches, in bytes of each of two generations.
	cachedBytes  = 16 << 20
	gzippedBytes = 4 << 20
	slashedBytes = 4 << 20
	reducedBytes = 4 << 20

	entryOverhead = 1 << 10 // bytes that a cached body holds besides: headers and views
)

// NewRenderer returns a Renderer with empty caches.
func NewRenderer(t *resource.Tree, v *vendor.Vendors) *Renderer {
	return &Renderer{
		tree: t, vendors: v,
		cache:      cache.New[cacheKey](cachedBytes, func(e *cacheEntry) int { return len(e.Body) + entryOverhead }),
		compressed: cache.New[*Representation](gzippedBytes, func(z *Compressed) int { return len(z.Body) + entryOverhead }),
		slashed:    cache.New[*Representation](slashedBytes, func(p *Representation) int { return len(p.Body) + entryOverhead }),
		reduced:    cache.New[*Representation](reducedBytes, func(p *Representation) int { return len(p.Body) + entryOverhead }),
	}
}

// Representation returns the representation of a resource; nil when the host has no
// such resource. It renders the resource again only when state that the row or the
// vendor's transforms depend on has changed.
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
	vendor := s.vendors.Of(at.Dialect)
	dependsOn := m.DependsOn | vendor.DependsOn(m.Schema)
	k := cacheKey{id: at.Machine.Identity, uri: m.URI}
	if dependsOn == 0 {
		k = cacheKey{profile: at.Machine.Profile, uri: m.URI}
	}
	old, known := s.cache.Get(k)
	if known && dependsOn.Same(&old.at, at) {
		return old.Representation
	}
	v := m.View(at)
	if !m.PresentIn(v) {
		return nil
	}
	var entry *cacheEntry
	if m.Fragments != nil && vendor.IsStandard() {
		entry = compose(vendor, m, v, at, old)
	} else {
		entry = &cacheEntry{Representation: s.Render(m, at), at: *at}
	}
	entry.Allow = m.AllowHeader(v)
	s.cache.Put(k, entry)
	return entry.Representation
}

// WithoutURISecrets returns a representation for users who may not read the secrets of the
// URIs in it: see resource.HideURISecrets. Its ETag is the same, because it changes when the
// resource does. It is cached by representation, as the gzip form is.
func (s *Renderer) WithoutURISecrets(p *Representation) *Representation {
	if less, ok := s.reduced.Get(p); ok {
		return less
	}
	less := p
	if body := resource.HideURISecretsInBody(p.Body); len(body) != len(p.Body) || &body[0] != &p.Body[0] {
		less = p.With(body)
	}
	s.reduced.Put(p, less)
	return less
}

// Render returns the representation of a resource that exists, uncached and without
// Allow: the standard object, then the vendor's transforms, then JSON and the ETag.
func (s *Renderer) Render(m *resource.Match, at *resource.Snapshot) *Representation {
	if m.Upload != nil {
		return NewRepresentation(resource.JSON, nil, "", nil)
	}
	vendor, v := s.vendors.Of(at.Dialect), m.View(at)
	if m.Raw != nil {
		kind, body := m.Raw(v)
		tag := vendor.ETag(body)
		if kind == resource.JSON && len(body) > 0 && !vendor.IsStandard() {
			body = resource.Encode(vendor.Render(resource.Decode(body), at))
		}
		return NewRepresentation(kind, body, tag, nil)
	}
	o, volatile := vendor.Render(m.Standard(v), at), vendor.Volatile(m.Schema, m.Volatile)
	m.AddETag(v, o, volatile)
	body, tag := encodeWithETag(o, volatile, vendor)
	return NewRepresentation(resource.JSON, body, tag, m.DescribedBy)
}

// AllMembers returns the body of a collection with all of its members in the vendor's
// form: Representation has no more of them than a page holds. It is not cached.
func (s *Renderer) AllMembers(m *resource.Match, at *resource.Snapshot) resource.Object {
	return s.vendors.Of(at.Dialect).Render(m.Standard(m.View(at)), at)
}

// WithTrailingSlashes returns a representation whose URIs end with slashes. It is cached by
// representation: a resource that changes has another one.
func (s *Renderer) WithTrailingSlashes(p *Representation) *Representation {
	if slashed, ok := s.slashed.Get(p); ok {
		return slashed
	}
	slashed := p.With(resource.Encode(vendor.WithTrailingSlashes(resource.Decode(p.Body))))
	s.slashed.Put(p, slashed)
	return slashed
}

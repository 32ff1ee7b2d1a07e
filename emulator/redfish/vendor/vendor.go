// Package vendor applies a dialect to the standard Redfish service. A Vendor routes
// the vendor's URIs, decodes and rejects requests, renders bodies and errors in the
// vendor's form, and executes OEM actions and writes to OEM properties. It opens no
// connection and writes no response.
//
// gorilla/mux routes OEM resources and OEM actions (router.go). The patterns of
// URIMapping rewrite URIs, which mux cannot do (urimapping.go).
package vendor

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Vendors holds one Vendor for each dialect whose service uses a tree. It is safe
// for concurrent use.
type Vendors struct {
	tree     *resource.Tree
	byRecord sync.Map // *dialect.Record → *Vendor; it grows with the dialects, not with the hosts
}

// NewVendors returns an empty set of vendors for a tree.
func NewVendors(t *resource.Tree) *Vendors { return &Vendors{tree: t} }

// Of returns the vendor of a record. It makes the vendor at the first call.
func (s *Vendors) Of(d *dialect.Record) *Vendor {
	if v, ok := s.byRecord.Load(d); ok {
		return v.(*Vendor)
	}
	v, _ := s.byRecord.LoadOrStore(d, newVendor(s.tree, d))
	return v.(*Vendor)
}

// Vendor applies one dialect to the standard service: it routes, decodes, rejects
// and executes requests, and renders resources and errors. It is immutable except
// for its caches, and safe for concurrent use.
type Vendor struct {
	d            *dialect.Record
	tree         *resource.Tree
	presentation *presentation                         // nil: resources are rendered as the standard service has them
	oem          *oem                                  // nil: the vendor has no OEM resources, actions or properties
	routed       *cache.Cache[string, *resource.Match] // matches of GET, PATCH and DELETE, by path
}

func newVendor(t *resource.Tree, d *dialect.Record) *Vendor {
	v := &Vendor{d: d, tree: t, presentation: newPresentation(t, d), routed: cache.New[string](resource.MatchesCached, func(*resource.Match) int { return 1 })}
	if !d.OEM.IsEmpty() {
		v.oem = newOEM(t, d, v.presentation)
	}
	return v
}

// Request is a request to the vendor's service after routing. RejectRules,
// InputAliases and SuccessMessages select requests by it.
type Request struct {
	Method   string
	Match    *resource.Match
	At       *resource.Snapshot // state of the host when the request came in
	BodySize int64              // bytes
}

// selects reports whether a rule for a resource type, a method and a URI pattern
// applies to the request. An empty type, an empty method and a nil pattern match
// everything. The method of an action is the action's name, that of an upload the
// property of the UpdateService that names its URI.
func (q Request) selects(resourceType, method string, uri pattern) bool {
	m, called := q.Match, q.Method
	schema := m.Schema
	switch {
	case m.Action != nil:
		called = m.Action.Name
	case m.Upload != nil:
		schema, called = "UpdateService", m.Upload.Kind.Property()
	}
	if m.OEM != nil && uri != nil && len(uri) < len(splitPath(m.URI)) {
		return false // the pattern covers an OEM resource only by its own URI, not from above
	}
	return (resourceType == "" || resourceType == resource.TypeName(schema)) && (method == "" || method == called) && (uri == nil || uri.covers(m.URI))
}

// IsStandard reports whether the vendor renders resources as the standard service
// has them.
func (v *Vendor) IsStandard() bool { return v.presentation == nil }

// Route returns the resource or action at a URL of the vendor's service, or nil.
func (v *Vendor) Route(method string, u *url.URL) *resource.Match {
	if method == http.MethodPost || u.RawPath != "" { // POST may lead to an action at the URI of a resource
		return v.route(method, u)
	}
	if m, known := v.routed.Get(u.Path); known {
		return m
	}
	m := v.route(method, u)
	if m != nil {
		v.routed.Put(u.Path, m)
	}
	return m
}

// route is Route without the cache. OEM resources come before standard ones.
func (v *Vendor) route(method string, u *url.URL) *resource.Match {
	if v.oem != nil {
		if m, standard := v.oem.find(u.Path, method); m != nil {
			return m
		} else if standard != "" {
			return v.tree.Find(&url.URL{Path: standard, RawPath: u.RawPath})
		}
	}
	if v.presentation == nil {
		return v.tree.Find(u)
	}
	standard := v.presentation.toStandardURI(u.Path)
	if standard == "" {
		return nil
	}
	return v.tree.Find(&url.URL{Path: standard, RawPath: u.RawPath})
}

// URI returns the vendor's URI of the resource at a standard URI.
func (v *Vendor) URI(uri string) string {
	if v.presentation == nil {
		return uri
	}
	return v.presentation.clientURI(uri)
}

// StandardURIs replaces the vendor's URIs in the body of a request by standard ones.
func (v *Vendor) StandardURIs(in resource.Document) {
	if v.presentation != nil {
		MapTexts(in, func(text string) string {
			if !strings.HasPrefix(text, "/redfish/v1/") {
				return text
			}
			if uri := v.presentation.toStandardURI(text); uri != "" {
				return uri
			}
			return text
		})
	}
}

// Decode translates the body of a request to the standard's properties and values,
// by the InputAliases of the dialect.
func (v *Vendor) Decode(q Request, in resource.Document) resource.Document {
	if v.presentation != nil {
		for i := range v.presentation.inputAliases {
			if a := &v.presentation.inputAliases[i]; q.selects(a.ResourceType, a.Method, a.uri) {
				in = a.translate(in)
			}
		}
	}
	return gatherAttributes(q, in)
}

// Render applies the vendor's transforms to a standard body, and returns it. It
// changes o, which may hold values of any Go type.
func (v *Vendor) Render(o resource.Object, at *resource.Snapshot) resource.Object {
	if v.presentation == nil {
		return o
	}
	return v.presentation.render(resource.NormalizeObject(o), &sources{tree: v.tree, at: at})
}

// DependsOn returns the parts of the host's state that the vendor's transforms add
// to the body of a schema.
func (v *Vendor) DependsOn(schema string) resource.Parts {
	if v.presentation == nil {
		return 0
	}
	return v.presentation.dependsOn(schema)
}

// Volatile returns the paths of a schema's volatile properties in the vendor's body:
// paths, and those of properties that transforms copy from them.
func (v *Vendor) Volatile(schema string, paths []string) []string {
	if v.presentation == nil {
		return paths
	}
	return v.presentation.volatile(schema, paths)
}

// ActionTexts reports whether the body of an action may be a JSON text with its object.
func (v *Vendor) ActionTexts() bool { return v.d.Protocol.ActionTexts }

// GzipOnly reports whether the resource at a standard URI is sent compressed only.
func (v *Vendor) GzipOnly(uri string) bool {
	return v.presentation != nil && coversAny(v.presentation.gzipOnly, uri)
}

// Package vendor is all that a dialect changes of the Redfish service, behind
// Vendor: it routes vendors' URIs, decodes and rejects what clients send, renders
// bodies and errors, and executes vendors' own requests.
package vendor

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Vendors are the vendors whose services run on one tree. It is safe for
// concurrent use.
type Vendors struct {
	tree *resource.Tree
	of   sync.Map // *dialect.Record → *Vendor: as many as there are dialects, not hosts
}

// NewVendors returns the vendors of a tree.
func NewVendors(t *resource.Tree) *Vendors { return &Vendors{tree: t} }

// Of returns the vendor of a record.
func (s *Vendors) Of(d *dialect.Record) *Vendor {
	if v, ok := s.of.Load(d); ok {
		return v.(*Vendor)
	}
	v, _ := s.of.LoadOrStore(d, newVendor(s.tree, d))
	return v.(*Vendor)
}

// Vendor is what a dialect changes of the service: how requests are routed,
// decoded, rejected and executed, and how resources and errors are rendered. It
// is immutable but for its caches, and safe for concurrent use.
type Vendor struct {
	d            *dialect.Record
	tree         *resource.Tree
	presentation *presentation                         // nil: resources are as the standard has them
	oem          *oem                                  // nil: there are no others
	routed       *cache.Cache[string, *resource.Match] // of GET, PATCH and DELETE
}

func newVendor(t *resource.Tree, d *dialect.Record) *Vendor {
	v := &Vendor{d: d, tree: t, presentation: newPresentation(t, d), routed: cache.New[string](resource.MatchesCached, func(*resource.Match) int { return 1 })}
	if !d.OEM.IsEmpty() {
		v.oem = newOEM(t, d, v.presentation)
	}
	return v
}

// Request is a request as rules of a vendor see it.
type Request struct {
	Method   string
	Match    *resource.Match
	At       *resource.Snapshot
	BodySize int64
}

// IsStandard says whether resources are rendered as the standard has them.
func (v *Vendor) IsStandard() bool { return v.presentation == nil }

// Route returns what is at a URL that a client of this vendor uses; nil when
// there is nothing.
func (v *Vendor) Route(method string, u *url.URL) *resource.Match {
	if method == http.MethodPost || u.RawPath != "" { // which may lead elsewhere
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

func (v *Vendor) route(method string, u *url.URL) *resource.Match {
	if v.oem != nil {
		if m, at := v.oem.find(u.Path, method); m != nil {
			return m
		} else if at != "" {
			return v.tree.Find(&url.URL{Path: at, RawPath: u.RawPath})
		}
	}
	if v.presentation == nil {
		return v.tree.Find(u)
	}
	at := v.presentation.toStandardURI(u.Path)
	if at == "" {
		return nil
	}
	return v.tree.Find(&url.URL{Path: at, RawPath: u.RawPath})
}

// URI is where clients of this vendor see a resource of the tree.
func (v *Vendor) URI(uri string) string {
	if v.presentation == nil {
		return uri
	}
	return v.presentation.clientURI(uri)
}

// StandardURIs replaces the URIs in what a client has sent by those of the tree.
func (v *Vendor) StandardURIs(in resource.Document) {
	if v.presentation != nil {
		MapTexts(in, func(text string) string {
			if !strings.HasPrefix(text, "/redfish/v1/") {
				return text
			}
			if at := v.presentation.toStandardURI(text); at != "" {
				return at
			}
			return text
		})
	}
}

// Decode returns what a client has sent as the standard has it.
func (v *Vendor) Decode(q Request, in resource.Document) resource.Document {
	if v.presentation != nil {
		for i := range v.presentation.inputAliases {
			if r := &v.presentation.inputAliases[i]; r.concerns(q) {
				in = r.read(in)
			}
		}
	}
	return gatherAttributes(q, in)
}

// Render applies the vendor's transforms to a body, and returns it. The body is
// changed; it may have any types.
func (v *Vendor) Render(o resource.Object, at *resource.Snapshot) resource.Object {
	if v.presentation == nil {
		return o
	}
	return v.presentation.render(resource.NormalizeObject(o), lookupAt(v.tree, at))
}

// DependsOn says on which parts of the state the body of a type depends for its
// vendor's sake.
func (v *Vendor) DependsOn(schema string) resource.Parts {
	if v.presentation == nil {
		return 0
	}
	return v.presentation.dependsOn(schema)
}

// Volatile are the paths of volatile properties, with those that transforms make
// of them.
func (v *Vendor) Volatile(schema string, paths []string) []string {
	if v.presentation == nil {
		return paths
	}
	return v.presentation.volatile(schema, paths)
}

// GzipOnly says whether what is at a URI of the tree is sent compressed only.
func (v *Vendor) GzipOnly(uri string) bool {
	return v.presentation != nil && v.presentation.isGzipOnly(uri)
}

// Registries are the versions of the message registries that the vendor uses.
func (v *Vendor) Registries() message.Versions { return v.d.Protocol.Registries }

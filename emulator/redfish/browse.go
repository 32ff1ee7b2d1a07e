package redfish

import (
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// browse reads other resources of the tree, whole, by their addresses, and what
// a vendor's service remembers, by "=" and its name; nil is what is not there.
type browse func(address string) object

// keptAs is where in what is browsed that is which is remembered.
const keptAs = "is"

// browse is the tree at a time.
func (s *Service) browse(at *snapshot) browse {
	return func(address string) object {
		if name, ok := strings.CutPrefix(address, "="); ok {
			if is, known := keptIn(at.b, name); known {
				return object{keptAs: is}
			}
			return nil
		}
		m := s.find(&url.URL{Path: address})
		if m == nil || m.raw != nil || m.upload != nil || m.action != nil || m.members {
			return nil
		}
		v := m.view(at)
		if m.missing(v) != "" || !m.there(v) {
			return nil
		}
		return decode(encode(m.object(v)))
	}
}

// browse is the tree now.
func (x *exchange) browse() browse { return x.s.browse(look(x.host)) }

// beside is what the body of a resource depends on for its vendor's sake: what
// it takes from others.
func (f *face) beside(s *Service, schema string) shows {
	if all, ok := f.needs.Load(schema); ok {
		return all.(shows)
	}
	var all shows
	for _, set := range f.taken(schema) {
		if strings.HasPrefix(set.From, "=") {
			all |= showsKept
			continue
		}
		at, _, _ := strings.Cut(set.From, "#")
		at = strings.NewReplacer("{system}", f.d.SystemID, "{manager}", f.d.ManagerID, "{chassis}", f.d.ChassisID).Replace(at)
		if m := s.find(&url.URL{Path: at}); m != nil {
			all |= m.shows
		}
	}
	f.needs.Store(schema, all)
	return all
}

// taken are the properties of a resource that are others'.
func (f *face) taken(schema string) []dialect.Datum {
	var all []dialect.Datum
	for _, shape := range f.shapes[typeName(schema)] {
		for _, set := range shape.Set {
			if strings.Contains(set.From, "#") || strings.HasPrefix(set.From, "=") {
				all = append(all, set)
			}
		}
	}
	return all
}

// tag is the ETag of a body that had another before others' properties came in.
func (f *face) tag(was, schema string, o object) string {
	for _, set := range f.taken(schema) {
		v, _ := valueAt(o, set.Path)
		was += string(encode(object{set.Path: v}))
	}
	return written(etag([]byte(was)), f.d.Protocol.ETags)
}

// packs says whether what is at an address of the tree is sent packed only.
func (f *face) packs(at string) bool {
	return slices.ContainsFunc(f.packed, func(a pattern) bool { return a.holds(at) })
}

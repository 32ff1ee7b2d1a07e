package vendor

import (
	"net/url"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// sources reads what transforms copy into a body from elsewhere: properties of other
// standard resources, and stored values. All of it is of one snapshot.
type sources struct {
	tree   *resource.Tree
	at     *resource.Snapshot
	bodies map[string]resource.Object // by standard URI: a body may copy several properties of one resource
}

// value returns the value that an external From names, and whether there is one:
// "URI#PATH" is a property of the resource at a standard URI, "=NAME" a stored value.
func (s *sources) value(from string) (any, bool) {
	if name, stored := strings.CutPrefix(from, "="); stored {
		return resource.OEMValueIn(s.at.BMC, name)
	}
	uri, path, _ := strings.Cut(from, "#")
	return resource.ValueAt(s.body(uri), path)
}

// body returns the body of the resource at a standard URI, or nil.
func (s *sources) body(uri string) resource.Object {
	o, known := s.bodies[uri]
	if known {
		return o
	}
	if o = s.tree.BodyAt(uri, s.at); o != nil {
		o = resource.NormalizeObject(o)
	}
	if s.bodies == nil {
		s.bodies = map[string]resource.Object{}
	}
	s.bodies[uri] = o
	return o
}

// isExternal reports whether a rule takes its value from another resource or from a
// stored value, and not from the body that it changes.
func isExternal(set dialect.PropertyRule) bool {
	return strings.Contains(set.From, "#") || strings.HasPrefix(set.From, "=")
}

// dependsOn returns the parts of the state that the external values of a schema's
// transforms come from.
func (f *presentation) dependsOn(schema string) resource.Parts {
	if parts, known := f.dependencies.Load(schema); known {
		return parts.(resource.Parts)
	}
	var parts resource.Parts
	for _, t := range f.transforms[resource.TypeName(schema)] {
		for _, set := range t.Set {
			if isExternal(set) {
				parts |= f.partsOf(set.From)
			}
		}
	}
	f.dependencies.Store(schema, parts)
	return parts
}

// partsOf returns the parts of the state that an external From reads.
func (f *presentation) partsOf(from string) resource.Parts {
	if strings.HasPrefix(from, "=") {
		return resource.PartOEM
	}
	uri, _, _ := strings.Cut(from, "#")
	uri = strings.NewReplacer("{system}", f.d.SystemID, "{manager}", f.d.ManagerID, "{chassis}", f.d.ChassisID).Replace(uri)
	if m := f.tree.Find(&url.URL{Path: uri}); m != nil {
		return m.DependsOn
	}
	return 0
}

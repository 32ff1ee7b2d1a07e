package vendor

import (
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// lookup reads other resources of the tree, whole, by their addresses, and what
// a vendor's service remembers, by "=" and its name; nil is what is not there.
type lookup func(address string) resource.Object

// keptAs is where in what is browsed that is which is remembered.
const keptAs = "is"

// taker is a property of another resource, by its address, "#" and its path,
// or what is remembered, by "=" and its name.
type taker func(from string) (any, bool)

// take is a taker.
func (of lookup) take(from string) (any, bool) {
	at, path, property := strings.Cut(from, "#")
	if !property {
		path = keptAs
	}
	return resource.ValueAt(of(at), path)
}

// lookupAt is the tree at a time.
func lookupAt(t *resource.Tree, at *resource.Snapshot) lookup {
	seen := map[string]resource.Object{} // a body takes several values of one resource
	return func(address string) resource.Object {
		if o, ok := seen[address]; ok {
			return o
		}
		if name, ok := strings.CutPrefix(address, "="); ok {
			if is, known := resource.OEMValueIn(at.BMC, name); known {
				return resource.Object{keptAs: is}
			}
			return nil
		}
		o := t.BodyAt(address, at)
		if o != nil {
			o = resource.NormalizeObject(o)
		}
		seen[address] = o
		return o
	}
}

// dependsOn is what the body of a resource depends on for its vendor's sake: what
// it takes from others.
func (f *presentation) dependsOn(schema string) resource.Parts {
	if all, ok := f.needs.Load(schema); ok {
		return all.(resource.Parts)
	}
	var all resource.Parts
	for _, set := range f.externalRules(schema) {
		if strings.HasPrefix(set.From, "=") {
			all |= resource.PartOEM
			continue
		}
		at, _, _ := strings.Cut(set.From, "#")
		at = strings.NewReplacer("{system}", f.d.SystemID, "{manager}", f.d.ManagerID, "{chassis}", f.d.ChassisID).Replace(at)
		if m := f.tree.Find(&url.URL{Path: at}); m != nil {
			all |= m.DependsOn
		}
	}
	f.needs.Store(schema, all)
	return all
}

// externalRules are the properties of a resource that are others'.
func (f *presentation) externalRules(schema string) []dialect.PropertyRule {
	var all []dialect.PropertyRule
	for _, shape := range f.transforms[resource.TypeName(schema)] {
		for _, set := range shape.Set {
			if external(set) {
				all = append(all, set)
			}
		}
	}
	return all
}

// volatile are the paths of a resource's volatile properties, with those that
// transforms make from them.
func (f *presentation) volatile(schema string, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	all := slices.Clone(paths)
	for _, s := range f.transformsOf(resource.TypeName(schema)) {
		for _, set := range s.Set {
			if set.From != "" && !external(set) && slices.ContainsFunc(paths, func(p string) bool { return p == set.From || strings.HasPrefix(set.From, p+"/") }) {
				all = append(all, set.Path)
			}
		}
	}
	return all
}

// isGzipOnly says whether what is at an address of the tree is sent packed only.
func (f *presentation) isGzipOnly(at string) bool {
	return slices.ContainsFunc(f.gzipOnly, func(a pattern) bool { return a.holds(at) })
}

// external says whether a value is taken from another resource or from what is
// remembered.
func external(set dialect.PropertyRule) bool {
	return strings.Contains(set.From, "#") || strings.HasPrefix(set.From, "=")
}

// transformsOf are the shapes for a type, wherever its resources are.
func (f *presentation) transformsOf(kind string) []transform {
	all := f.transforms[kind]
	if strings.HasSuffix(kind, "Collection") {
		all = append(slices.Clone(all), f.transforms["*Collection"]...)
	}
	return all
}

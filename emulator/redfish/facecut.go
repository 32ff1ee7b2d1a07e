package redfish

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// cut says into which parts the bodies of resources fall that the same shapes
// are for: properties that a shape reads or writes together are in one part. No
// part depends on another. What is in no part no shape touches; each such
// property is a part of its own, but for an array, which is one with its count.
type cut struct {
	number  uint64 // tells cuts apart
	dresses bool   // it is a resource that shapes are for
	parts   []cutPart
	of      map[string]int // the part of a property
	told    int            // values of others' that the ETag depends on
}

// cutPart is what is done to the properties of a part.
type cutPart struct {
	shapes []formed
	takes  []string // what of others is put in: as Datum.From
	told   []toldAt
	acts   bool // the vendor's actions are among them
}

// toldAt is a path of a property that the ETag depends on, and its place among all
// of the face's that do.
type toldAt struct {
	path string
	at   int
}

// cutKey names a cut.
type cutKey struct {
	kind   string // type without version
	shapes uint64 // those that are for the resource
	acts   bool
}

// numbers tell faces and cuts apart.
var numbers atomic.Uint64

// uncut is the cut of what no shape is for.
var uncut = &cut{}

// countOf is behind the name of an array in that of its count (OData JSON
// Format 4.0, "Control Information: count").
const countOf = "@odata.count"

// partName is the property that stands for one and for its count.
func partName(name string) string { return strings.TrimSuffix(name, countOf) }

// topOf is the property of the body that a path leads through.
func topOf(path string) string {
	name, _, _ := strings.Cut(path, "/")
	return partName(name)
}

// external says whether a value is taken from another resource or from what is
// remembered.
func external(set dialect.PropertyRule) bool {
	return strings.Contains(set.From, "#") || strings.HasPrefix(set.From, "=")
}

// shapesOf are the shapes for a type, wherever its resources are.
func (f *face) shapesOf(kind string) []formed {
	all := f.shapes[kind]
	if strings.HasSuffix(kind, "Collection") {
		all = append(slices.Clone(all), f.shapes["*Collection"]...)
	}
	return all
}

// cutOf is the cut of a resource; nil when there are more shapes than a key can tell.
// at is where clients see it.
func (f *face) cutOf(kind, self, at string) *cut {
	all := f.shapesOf(kind)
	if len(all) > 64 {
		return nil
	}
	k := cutKey{kind: kind}
	for i := range all {
		if s := &all[i]; s.at == nil || s.at.holds(self) {
			k.shapes |= 1 << i
		}
	}
	k.acts = slices.ContainsFunc(f.acts, func(a shownAction) bool { _, ok := a.on.is(at, exact); return ok })
	if c, ok := f.cuts.Load(k); ok {
		return c.(*cut)
	}
	var on []formed
	for i := range all {
		if k.shapes&(1<<i) != 0 {
			on = append(on, all[i])
		}
	}
	c, _ := f.cuts.LoadOrStore(k, newCut(on, f.taken(kind), k.acts))
	return c.(*cut)
}

// newCut is the cut that some shapes make, where the ETag depends on some
// values.
func newCut(shapes []formed, told []dialect.PropertyRule, acts bool) *cut {
	var names []string
	over := map[string]string{} // each leads to one that stands for its part
	find := func(name string) string {
		if _, known := over[name]; !known {
			over[name] = name
			names = append(names, name)
		}
		for over[name] != name {
			name = over[name]
		}
		return name
	}
	for _, s := range shapes {
		for _, set := range s.Set {
			top := find(topOf(set.Path))
			if set.From != "" && !external(set) {
				over[find(topOf(set.From))] = top
			}
		}
		for _, path := range slices.Concat(s.Remove, s.OmitEmpty) {
			find(topOf(path))
		}
	}
	for _, set := range told {
		find(topOf(set.Path))
	}
	if acts {
		find(actionsOf)
	}
	c := &cut{number: numbers.Add(1), dresses: true, of: map[string]int{}, told: len(told)}
	at := map[string]int{}
	for _, name := range names {
		top := find(name)
		if _, known := at[top]; !known {
			at[top] = len(at)
		}
		c.of[name] = at[top]
	}
	c.parts = make([]cutPart, len(at))
	for i := range c.parts {
		in := func(path string) bool { return c.of[topOf(path)] == i }
		p := &c.parts[i]
		for _, s := range shapes {
			some := s
			some.Set = slices.DeleteFunc(slices.Clone(s.Set), func(set dialect.PropertyRule) bool { return !in(set.Path) })
			some.Remove = slices.DeleteFunc(slices.Clone(s.Remove), func(path string) bool { return !in(path) })
			some.OmitEmpty = slices.DeleteFunc(slices.Clone(s.OmitEmpty), func(path string) bool { return !in(path) })
			if len(some.Set)+len(some.Remove)+len(some.OmitEmpty) > 0 {
				p.shapes = append(p.shapes, some)
			}
			for _, set := range some.Set {
				if external(set) && !slices.Contains(p.takes, set.From) {
					p.takes = append(p.takes, set.From)
				}
			}
		}
		for j, set := range told {
			if in(set.Path) {
				p.told = append(p.told, toldAt{set.Path, j})
			}
		}
		p.acts = acts && in(actionsOf)
	}
	return c
}

// actionsOf is the property that actions are in.
const actionsOf = "Actions"

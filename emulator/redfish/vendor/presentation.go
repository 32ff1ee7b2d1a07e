package vendor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// presentation is a dialect.Presentation, ready for use. Rows, links and matches
// have the URIs of the standard; presentation stands between those and what
// clients of the vendor see.
type presentation struct {
	d               *dialect.Record
	tree            *resource.Tree
	patterns        []pattern    // of the tree, where letters have no case
	out, in         []uriMapping // from the tree's addresses to the vendor's, and back
	hidden          []pattern
	transforms      map[string][]transform // by type
	rejectRules     []rejectRule
	gzipOnly        []pattern
	successMessages []successMessage
	inputAliases    []inputAlias
	actions         []shownAction                // of the standard's resources
	needs           sync.Map                     // schema → shows: what bodies depend on for their vendor's sake
	successBodies   sync.Map                     // *dialect.Saying → []byte: answers to writes that were done
	standardURIs    *cache.Cache[string, string] // of addresses of the vendor's, in the tree; "" for none
}

// newPresentation returns the presentation of a record; nil for one that changes nothing.
func newPresentation(t *resource.Tree, d *dialect.Record) *presentation {
	if d.Presentation.IsStandard() && len(d.Protocol.GzipOnly)+len(d.OEM.Actions) == 0 {
		return nil
	}
	f := &presentation{d: d, tree: t, transforms: map[string][]transform{}, standardURIs: cache.New[string](1<<12, func(string) int { return 1 })}
	for _, m := range d.Presentation.URIMappings {
		from, to := PatternOf(m.From, d), PatternOf(m.To, d)
		f.out = append(f.out, uriMapping{from, to, m.TrailingSlash})
		f.in = append(f.in, uriMapping{from: to, to: from})
	}
	for _, all := range [][]uriMapping{f.out, f.in} { // the closest first
		slices.SortStableFunc(all, func(a, b uriMapping) int { return cmp.Compare(len(b.from), len(a.from)) })
	}
	for _, p := range d.Presentation.Hidden {
		f.hidden = append(f.hidden, PatternOf(p, d))
	}
	for _, s := range d.Presentation.Transforms {
		f.transforms[s.ResourceType] = append(f.transforms[s.ResourceType], transform{s, PatternOf(s.URI, d)})
	}
	for _, r := range d.Presentation.RejectRules {
		f.rejectRules = append(f.rejectRules, rejectRule{r, PatternOf(r.URI, d)})
	}
	for _, r := range d.Presentation.InputAliases {
		f.inputAliases = append(f.inputAliases, inputAlias{r, PatternOf(r.URI, d)})
	}
	for _, p := range d.Protocol.GzipOnly {
		f.gzipOnly = append(f.gzipOnly, PatternOf(p, d))
	}
	for _, t := range d.Presentation.Errors.SuccessMessages {
		f.successMessages = append(f.successMessages, successMessage{t, PatternOf(t.URI, d)})
	}
	f.actions = shownActions(d)
	if d.Presentation.IgnoreURICase {
		for _, r := range t.All {
			f.patterns = append(f.patterns, PatternOf(r.Pattern, &dialect.Record{SystemID: "{system}", ManagerID: "{manager}", ChassisID: "{chassis}"}))
		}
	}
	return f
}

// toStandardURI is where an address of the vendor's is in the tree; "" when there is
// nothing. It may end with a slash.
func (f *presentation) toStandardURI(path string) string {
	path = strings.TrimRight(path, "/")
	if at, ok := f.standardURIs.Get(path); ok {
		return at
	}
	at, was := mapURI(f.in, path)
	if !was && f.d.Presentation.IgnoreURICase {
		at, was = mapURI(f.in, f.withTreeCase(path, f.in))
		if !was {
			at = f.withTreeCase(path, nil)
		}
	}
	if _, away := mapURI(f.out, at); away && !was || f.isHidden(at) {
		at = ""
	}
	f.standardURIs.Put(path, at)
	return at
}

func (f *presentation) isHidden(at string) bool {
	return slices.ContainsFunc(f.hidden, func(a pattern) bool { return a.holds(at) })
}

// removeHidden takes out of a value what leads to addresses that are not there: links,
// members, and actions. It says whether the value itself does.
func (f *presentation) removeHidden(v any) (gone bool) {
	switch x := v.(type) {
	case string:
		path, _, _ := strings.Cut(x, "#")
		return strings.HasPrefix(path, "/redfish/v1/") && f.isHidden(path)
	case resource.Object:
		for name, below := range x {
			switch all := below.(type) {
			case []any:
				left := slices.DeleteFunc(all, f.removeHidden)
				if _, counted := x[name+"@odata.count"]; counted && len(left) < len(all) {
					x[name+"@odata.count"] = len(left)
				}
				x[name] = left
			default:
				if f.removeHidden(below) {
					delete(x, name)
					gone = gone || name == "@odata.id" || name == "target"
				}
			}
		}
	}
	return gone
}

// withTreeCase is an address with the letters of the pattern, of the tree or of
// moves, that it is of but for their case.
func (f *presentation) withTreeCase(path string, moves []uriMapping) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	fold := func(patterns []segment) bool {
		if len(patterns) > len(segments) {
			return false
		}
		for i, p := range patterns {
			if len(p.vars) == 0 && !strings.EqualFold(p.lead, segments[i]) {
				return false
			}
		}
		for i, p := range patterns {
			if len(p.vars) == 0 {
				segments[i] = p.lead
			}
		}
		return true
	}
	if moves != nil {
		for _, m := range moves {
			if fold(m.from) {
				break
			}
		}
		return "/" + strings.Join(segments, "/")
	}
	for _, p := range f.patterns {
		if len(p) == len(segments) && fold(p) {
			break
		}
	}
	return "/" + strings.Join(segments, "/")
}

// clientURI is a text of a body, as clients see it: the clientURI that it is, if
// it is one.
func (f *presentation) clientURI(text string) string {
	if !strings.HasPrefix(text, "/redfish/v1") {
		return text
	}
	path, tail := text, ""
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		path, tail = text[:i], text[i:]
	}
	path, _ = mapURI(f.out, path)
	if f.d.Presentation.TrailingSlash && !strings.HasSuffix(path, "/") && !strings.Contains(path[strings.LastIndexByte(path, '/'):], ".json") {
		path += "/"
	}
	return path + tail
}

// values maps every text of a value.
func MapTexts(v any, to func(string) string) any {
	switch x := v.(type) {
	case string:
		return to(x)
	case resource.Object:
		for name, below := range x {
			x[name] = MapTexts(below, to)
		}
	case resource.Document:
		for i := range x.Fields {
			x.Fields[i].Value = MapTexts(x.Fields[i].Value, to)
		}
	case []any:
		for i := range x {
			x[i] = MapTexts(x[i], to)
		}
	case []resource.Object:
		for i := range x {
			MapTexts(x[i], to)
		}
	case []string:
		for i := range x {
			x[i] = to(x[i])
		}
	}
	return v
}

// render changes a body to what clients of this vendor see, and returns it.
func (f *presentation) render(o resource.Object, of lookup) resource.Object {
	if len(f.hidden) > 0 {
		f.removeHidden(o)
	}
	f.applyTransforms(o, of.take)
	MapTexts(o, f.clientURI)
	if f.d.Presentation.DateTimeFormat == dialect.CompactZone {
		MapTexts(o, resource.CompactDate)
	}
	return o
}

// applyTransforms shapes an object, and those in it.
func (f *presentation) applyTransforms(o resource.Object, take taker) {
	f.applyTransformsBelow(o, take)
	kind, _ := o["@odata.type"].(string)
	if kind == "" {
		return
	}
	self, _ := o["@odata.id"].(string)
	if _, whole := o["Name"]; !whole && self != "" {
		return // it only says where a resource is, and of which type
	}
	name := resource.TypeName(strings.TrimPrefix(kind, "#"))
	f.setID(o, self)
	all := f.transformsOf(name)
	for i := range all {
		if s := &all[i]; s.at == nil || s.at.holds(self) {
			s.apply(o, self, f.d, take)
		}
	}
	f.showActions(o, self)
}

// applyTransformsBelow shapes the objects in an object.
func (f *presentation) applyTransformsBelow(o resource.Object, take taker) {
	for _, below := range o {
		switch x := below.(type) {
		case resource.Object:
			f.applyTransforms(x, take)
		case []any:
			for _, e := range x {
				if in, ok := e.(resource.Object); ok {
					f.applyTransforms(in, take)
				}
			}
		case []resource.Object:
			for _, in := range x {
				f.applyTransforms(in, take)
			}
		}
	}
}

// setID gives a resource that is elsewhere the ID that it has there.
func (f *presentation) setID(o resource.Object, self string) {
	if id, ok := o["Id"].(string); ok {
		if at, away := mapURI(f.out, self); away {
			o["Id"] = idAt(id, self, at)
		}
	}
}

// idAt is the ID of a resource that clients see at an address.
func idAt(id, self, at string) string {
	if id == "" || !strings.HasSuffix(self, "/"+id) {
		return id
	}
	at = strings.TrimSuffix(at, "/")
	return at[strings.LastIndexByte(at, '/')+1:]
}

// transform is a dialect.Shape, ready for use.
type transform struct {
	dialect.Transform
	at pattern
}

// apply changes an object.
func (s *transform) apply(o resource.Object, self string, d *dialect.Record, take taker) {
	fill := strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID, "{self}", self)
	for _, set := range s.Set { // before anything that they are taken from goes
		v, ok := set.Value, true
		if set.From != "" {
			var is any
			if external(set) {
				is, ok = take(fill.Replace(set.From))
			} else {
				is, ok = resource.ValueAt(o, set.From)
			}
			if ok {
				v, ok = mapped(set, is)
			}
		}
		if !ok {
			continue
		}
		resource.SetAt(o, set.Path, MapTexts(resource.Clone(v), fill.Replace))
	}
	for _, path := range s.Remove {
		resource.RemoveAt(o, path)
	}
	for _, path := range s.OmitEmpty {
		if v, ok := resource.ValueAt(o, path); ok && isEmpty(v) {
			resource.RemoveAt(o, path)
		}
	}
}

// mapped is what becomes of a value that a property is taken from; false when
// the property stays what it is.
func mapped(set dialect.PropertyRule, is any) (any, bool) {
	v := set.Value
	to, known := set.Map[fmt.Sprint(is)]
	switch {
	case set.Map == nil:
		v = is
	case known:
		v = to
	case set.Otherwise == dialect.LeaveUnchanged:
		return nil, false
	}
	if set.Format != "" {
		v = strings.Replace(set.Format, "%", fmt.Sprint(v), 1)
	}
	return v, true
}

// isEmpty says whether a JSON value is empty: null, "", [] or {}.
func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case []any:
		return len(x) == 0
	case resource.Object:
		return len(x) == 0
	}
	return false
}

package vendor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// transform is a dialect.Transform with its pattern parsed.
type transform struct {
	dialect.Transform
	uri pattern
}

// transformsOf returns the transforms of a resource type, for any URI.
func (f *presentation) transformsOf(resourceType string) []transform {
	all := f.transforms[resourceType]
	if strings.HasSuffix(resourceType, "Collection") {
		all = append(slices.Clone(all), f.transforms["*Collection"]...)
	}
	return all
}

// volatile returns paths, and the paths of the properties that transforms of the
// schema copy from them.
func (f *presentation) volatile(schema string, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	all := slices.Clone(paths)
	for _, t := range f.transformsOf(resource.TypeName(schema)) {
		for _, set := range t.Set {
			if set.From != "" && !isExternal(set) && slices.ContainsFunc(paths, func(p string) bool { return p == set.From || strings.HasPrefix(set.From, p+"/") }) {
				all = append(all, set.Path)
			}
		}
	}
	return all
}

// applyTransforms transforms a body, and the resources that $expand has put into it,
// innermost first.
func (f *presentation) applyTransforms(o resource.Object, s *sources) {
	f.transformMembers(o, s)
	odataType, _ := o["@odata.type"].(string)
	if odataType == "" {
		return
	}
	self, _ := o["@odata.id"].(string)
	if _, named := o["Name"]; !named && self != "" {
		return // a reference to a resource, with its type: only resources have a Name (DSP0266, common properties)
	}
	f.setID(o, self)
	all := f.transformsOf(resource.TypeName(strings.TrimPrefix(odataType, "#")))
	for i := range all {
		if t := &all[i]; t.uri == nil || t.uri.covers(self) {
			t.apply(o, self, f.d, s)
		}
	}
	f.omitUnwritable(o, resource.TypeName(strings.TrimPrefix(odataType, "#")), self)
	pruneWriteable(o)
	f.showActions(o, self)
}

// omitUnwritable removes from WriteableProperties the properties that the vendor's rules refuse in
// a PATCH.
func (f *presentation) omitUnwritable(o resource.Object, resourceType, self string) {
	for _, r := range f.unwritable {
		if r.ResourceType != "" && r.ResourceType != resourceType || r.uri != nil && !r.uri.covers(self) {
			continue
		}
		if len(r.SendsAny) == 0 { // the rule answers any PATCH
			removeWriteable(o)
		}
		for _, property := range r.SendsAny {
			parent, name := path.Split(property)
			of := o
			if parent != "" {
				value, _ := resource.ValueAt(o, strings.TrimSuffix(parent, "/"))
				of, _ = value.(resource.Object)
			}
			if names, listed := of[resource.WriteableProperties]; listed {
				of[resource.WriteableProperties] = slices.DeleteFunc(slices.Clone(resource.Elements(names)), func(n any) bool { return fmt.Sprint(n) == name })
			}
			removeWriteable(of[name])
		}
	}
}

// removeWriteable removes WriteableProperties from a value and all below it.
func removeWriteable(v any) {
	switch x := v.(type) {
	case resource.Object:
		delete(x, resource.WriteableProperties)
		for _, below := range x {
			removeWriteable(below)
		}
	case []any:
		for _, below := range x {
			removeWriteable(below)
		}
	}
}

// pruneWriteable removes from WriteableProperties what transforms have removed from the
// object, and the annotation once it is empty.
func pruneWriteable(v any) {
	switch x := v.(type) {
	case resource.Object:
		if names, ok := x[resource.WriteableProperties]; ok {
			left := slices.DeleteFunc(slices.Clone(resource.Elements(names)), func(name any) bool { _, there := x[fmt.Sprint(name)]; return !there })
			if x[resource.WriteableProperties] = left; len(left) == 0 {
				delete(x, resource.WriteableProperties)
			}
		}
		for _, below := range x {
			pruneWriteable(below)
		}
	case []any:
		for _, below := range x {
			pruneWriteable(below)
		}
	}
}

// transformMembers transforms the objects in an object.
func (f *presentation) transformMembers(o resource.Object, s *sources) {
	for _, value := range o {
		switch x := value.(type) {
		case resource.Object:
			f.applyTransforms(x, s)
		case []any:
			for _, e := range x {
				if member, ok := e.(resource.Object); ok {
					f.applyTransforms(member, s)
				}
			}
		case []resource.Object:
			for _, member := range x {
				f.applyTransforms(member, s)
			}
		}
	}
}

// setID sets the Id of a resource that a URIMapping moves to the last segment of its
// new URI, when it was the last segment of the standard URI.
func (f *presentation) setID(o resource.Object, self string) {
	id, ok := o["Id"].(string)
	if !ok || id == "" || !strings.HasSuffix(self, "/"+id) {
		return
	}
	if uri, moved := mapURI(f.toClient, self); moved {
		uri = strings.TrimSuffix(uri, "/")
		o["Id"] = uri[strings.LastIndexByte(uri, '/')+1:]
	}
}

// apply transforms the body of the resource at the URI self.
func (t *transform) apply(o resource.Object, self string, d *dialect.Record, s *sources) {
	fill := strings.NewReplacer("{system}", d.SystemID, "{manager}", d.ManagerID, "{chassis}", d.ChassisID, "{self}", self)
	for _, set := range t.Set { // before Remove, which may remove what From names
		v, ok := set.Value, true
		if set.From != "" {
			if isExternal(set) {
				v, ok = s.value(fill.Replace(set.From))
			} else {
				v, ok = resource.ValueAt(o, set.From)
			}
			if ok {
				v, ok = mapValue(set, v)
			}
		}
		if !ok {
			continue
		}
		resource.SetAt(o, set.Path, MapTexts(resource.Clone(v), fill.Replace))
	}
	for _, path := range t.Remove {
		resource.RemoveAt(o, path)
	}
	for _, path := range t.OmitEmpty {
		if v, ok := resource.ValueAt(o, path); ok && isEmpty(v) {
			resource.RemoveAt(o, path)
		}
	}
}

// mapValue returns what a rule sets when from is the value of its From: by Map,
// Otherwise and Format. It returns false when the property stays as it is.
func mapValue(set dialect.PropertyRule, from any) (any, bool) {
	v := set.Value
	to, known := set.Map[fmt.Sprint(from)]
	switch {
	case set.Map == nil:
		v = from
	case known:
		v = to
	case set.Otherwise == dialect.LeaveUnchanged:
		return nil, false
	}
	if set.Match != "" {
		v = firstGroup(set.Match, fmt.Sprint(v))
	}
	if set.Format != "" {
		v = strings.Replace(set.Format, "%", fmt.Sprint(v), 1)
	}
	if set.Number {
		n, err := strconv.ParseInt(fmt.Sprint(v), 0, 64)
		if err != nil {
			return nil, true // not a number: the device does not say
		}
		return n, true
	}
	return v, true
}

// matchers has the compiled regular expressions of rules, by their text. It grows with
// the dialects.
var matchers sync.Map

// firstGroup returns the text of a regular expression's first group, or "".
func firstGroup(expression, text string) string {
	of, known := matchers.Load(expression)
	if !known {
		of, _ = matchers.LoadOrStore(expression, regexp.MustCompile(expression)) // Record.Validate has compiled it
	}
	if found := of.(*regexp.Regexp).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// isEmpty reports whether a JSON value is null, "", [] or {}.
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

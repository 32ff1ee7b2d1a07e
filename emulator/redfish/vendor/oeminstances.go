package vendor

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// OEMInstances returns the OEM resources that exist in any of the snapshots of a host and
// that depend on some of the parts of its state.
func (v *Vendor) OEMInstances(changed resource.Parts, snapshots ...*resource.Snapshot) []*resource.Match {
	if v.oem == nil {
		return nil
	}
	var found []*resource.Match
	for _, t := range v.oem.routes {
		w, _ := t.OEM.(*oemResource)
		if w == nil || t.Action != nil || w.dependsOn&changed == 0 || t.Pattern != w.URI {
			continue // the URI of an ActionInfo or of an action
		}
		for _, uri := range v.oem.instances(t.uri, snapshots) {
			if m := v.oem.match(http.MethodGet, uri); m != nil {
				found = append(found, m)
			}
		}
	}
	return found
}

// instances returns the URIs of a pattern whose variables have values of the tree in any of
// the snapshots.
func (o *oem) instances(uri pattern, snapshots []*resource.Snapshot) []string {
	var all []string
	for _, at := range snapshots {
		var descend func(names []string, ids map[string]string)
		descend = func(names []string, ids map[string]string) {
			if len(names) == 0 {
				if is := uri.fill(ids); !slices.Contains(all, is) {
					all = append(all, is)
				}
				return
			}
			members := resource.Members[names[0]]
			if members == nil {
				return
			}
			for _, id := range members(resource.View{Host: at.Host, Tree: o.tree, Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, IDs: ids}) {
				more := maps.Clone(ids)
				more[names[0]] = id
				descend(names[1:], more)
			}
		}
		descend(uri.variables(), o.singletons(nil))
	}
	return all
}

// dependsOn returns the parts of the state that the body of an OEM resource depends on. A
// hook may read all of it.
func (o *oem) dependsOn(w *oemResource) resource.Parts {
	if w.Read != nil {
		return resource.AllParts()
	}
	parts := resource.PartOEM
	if m := o.source(w.basedOn); m != nil {
		parts |= m.DependsOn
	}
	for _, set := range w.Set {
		if uri, _, external := strings.Cut(set.From, "#"); external {
			if m := o.source(o.parseStandard(uri)); m != nil {
				parts |= m.DependsOn
			}
		}
	}
	return parts
}

// volatileOf returns the paths of the properties that an OEM resource copies from volatile
// properties of standard resources.
func (o *oem) volatileOf(r dialect.Resource) []string {
	var paths []string
	for _, set := range r.Set {
		if uri, path, external := strings.Cut(set.From, "#"); external {
			if m := o.source(o.parseStandard(uri)); m != nil && slices.Contains(m.Volatile, path) {
				paths = append(paths, set.Path)
			}
		}
	}
	return paths
}

// source returns the standard resource at a pattern, with any values of its variables, or
// nil.
func (o *oem) source(uri pattern) *resource.Match {
	if uri == nil {
		return nil
	}
	return o.tree.Find(&url.URL{Path: uri.fill(namesAsValues(uri))})
}

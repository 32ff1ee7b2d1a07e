package vendor

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// oem is a dialect.OEM, ready for use: rows of the framework beside the tree,
// with a router of their own. What its rows have is at addresses as clients see
// them, what they are like in the tree.
type oem struct {
	tree         *resource.Tree
	presentation *presentation
	d            *dialect.Record
	routes       []vendorRoute
	aliases      []uriMapping
	below        []uriMapping // from below its resources to below what they are like
	writes       []vendorWrite
	places       *cache.Cache[string, vendorPlace]
}

// vendorRoute is a route with its pattern as clients see it.
type vendorRoute struct {
	*resource.Route
	at   pattern
	on   pattern // of an action of a resource in the tree: that of the resource
	base bool    // it is such an action
}

// vendorPlace is what a vendor has at an address.
type vendorPlace struct {
	m    *resource.Match // nil: nothing
	post *resource.Match // that takes a POST there; nil: m does, if anything
	at   string          // of what the tree has; "": nothing
}

// oemResource is a dialect.Resource, ready for use.
type oemResource struct {
	dialect.Resource
	of          *oem
	basedOn     pattern
	moves       []uriMapping // of addresses in what it is like
	variables   []string
	passesPatch bool // a PATCH of what it does not keep is one of what it is like
}

func newOEM(t *resource.Tree, d *dialect.Record, f *presentation) *oem {
	o := &oem{tree: t, d: d, presentation: f, places: cache.New[string](resource.MatchesCached, func(vendorPlace) int { return 1 })}
	own := map[string]bool{}
	for _, r := range d.OEM.Resources {
		own[patternText(PatternOf(r.URI, d))] = true
	}
	var actions []vendorRoute
	for _, a := range d.OEM.Actions {
		on := PatternOf(a.ResourceURI, d)
		if own[patternText(on)] {
			continue
		}
		row := &resource.Row{URI: a.ResourceURI, Privileges: vendorNeeds(a.Privilege), Uncached: true, Actions: []resource.Action{o.action(a, "/Actions/Oem/"+a.Name)}}
		for _, t := range resource.Routes([]resource.Row{*row}, o.tree) {
			if t.Action != nil {
				actions = append(actions, vendorRoute{Route: t, at: PatternOf(t.Pattern, d), on: on, base: true})
			}
		}
	}
	for _, r := range d.OEM.Resources {
		o.add(r)
	}
	o.routes = append(o.routes, actions...)
	// What is told apart by a text comes before what a variable stands for.
	slices.SortStableFunc(o.routes, func(a, b vendorRoute) int { return cmp.Compare(len(a.at.names()), len(b.at.names())) })
	for _, m := range d.OEM.URIAliases {
		o.aliases = append(o.aliases, uriMapping{from: PatternOf(m.From, d), to: o.patternOf(m.To)})
	}
	for _, all := range [][]uriMapping{o.aliases, o.below} {
		slices.SortStableFunc(all, func(a, b uriMapping) int { return cmp.Compare(len(b.from), len(a.from)) })
	}
	for _, w := range d.OEM.WritableProperties {
		o.writes = append(o.writes, vendorWrite{w, o.patternOf(w.URI)})
	}
	return o
}

// patternText tells patterns apart.
func patternText(p pattern) string {
	all := map[string]string{}
	for _, name := range p.names() {
		all[name] = "{" + name + "}"
	}
	return p.Write(all)
}

// patternOf is a pattern in the tree, where logs have this record's names, and
// the manager has one NIC and one host interface.
func (o *oem) patternOf(text string) pattern {
	return PatternOf(strings.NewReplacer("{systemlog}", o.d.Logs.System, "{managerlog}", o.d.Logs.Manager,
		"{managernic}", resource.ManagerNICID, "{hostinterface}", resource.HostInterfaceID).Replace(text), o.d)
}

// vendorNeeds are those of a vendor's own resource.
func vendorNeeds(change string) resource.Privileges {
	return resource.ReadWritePrivileges([]resource.Privilege{resource.Login}, resource.Privilege(cmp.Or(change, string(resource.ConfigureManager))))
}

// add makes the row of a resource, and its routes.
func (o *oem) add(r dialect.Resource) {
	at := PatternOf(r.URI, o.d)
	w := &oemResource{Resource: r, of: o, basedOn: o.patternOf(r.BasedOn)}
	schema := r.Type
	if i := strings.LastIndexByte(schema, '.'); i > 0 {
		schema = schema[:i]
	}
	row := resource.Row{
		URI: r.URI, Schema: schema, ODataType: r.Type, Privileges: vendorNeeds(r.Privilege), Link: "-", Uncached: true, OEM: w, RequiresIfMatch: r.RequiresIfMatch,
		Read: w.body, When: w.isThere,
	}
	if w.basedOn != nil {
		w.moves = o.movesOf(at, w.basedOn)
		o.below = append(o.below, uriMapping{from: at, to: w.basedOn})
		if m := o.tree.Find(&url.URL{Path: w.basedOn.Write(placeholders(w.basedOn))}); m != nil {
			row.Volatile, row.Unadvertised = m.Volatile, m.Unadvertised
		}
	} else {
		w.variables = at.names()
	}
	w.passesPatch = slices.Contains(r.PassedMethods, http.MethodPatch)
	writes := slices.ContainsFunc(o.d.OEM.WritableProperties, func(w dialect.WritableProperty) bool { return w.ResourceType == resource.TypeName(schema) })
	if len(r.Writable) > 0 || w.passesPatch || writes {
		row.Patch = &resource.Patch{}
	}
	if slices.Contains(r.PassedMethods, http.MethodDelete) {
		row.Remove = w.remove
	}
	privileges := map[string]string{}
	for _, a := range o.d.OEM.Actions {
		if patternText(PatternOf(a.ResourceURI, o.d)) == patternText(at) {
			row.Actions = append(row.Actions, o.action(a, ""))
			privileges[a.Name] = a.Privilege
		}
	}
	for _, t := range resource.Routes([]resource.Row{row}, o.tree) {
		t.Vars, t.DescribedBy = nil, nil
		if t.Action != nil {
			its := *t.Row
			its.Privileges = vendorNeeds(privileges[t.Action.Name])
			t.Row = &its
		}
		o.routes = append(o.routes, vendorRoute{Route: t, at: PatternOf(t.Pattern, o.d)})
	}
}

// placeholders give each variable itself as its value.
func placeholders(p pattern) map[string]string {
	all := map[string]string{}
	for _, name := range p.names() {
		all[name] = name
	}
	return all
}

// movesOf says where addresses are that a resource shows which is like one of
// the tree: what is below that is below the resource, or where the vendor has a
// resource of its own for it.
func (o *oem) movesOf(at, like pattern) []uriMapping {
	all := []uriMapping{{from: like, to: at}}
	for _, r := range o.d.OEM.Resources {
		m := uriMapping{from: o.patternOf(r.BasedOn), to: PatternOf(r.URI, o.d)}
		if len(m.from) > len(like) && len(m.to) > len(at) &&
			patternText(m.from[:len(like)]) == patternText(like) && patternText(m.to[:len(at)]) == patternText(at) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b uriMapping) int { return cmp.Compare(len(b.from), len(a.from)) })
	return all
}

// find is what a vendor has at an address, or else where in the tree that is.
func (o *oem) find(path, method string) (m *resource.Match, at string) {
	if len(path) > 1 {
		path = strings.TrimRight(path, "/")
	}
	p, known := o.places.Get(path)
	if !known {
		p = o.place(path)
		o.places.Put(path, p)
	}
	if method == http.MethodPost && p.post != nil {
		return p.post, ""
	}
	return p.m, p.at
}

func (o *oem) place(path string) (p vendorPlace) {
	f := ExactCase
	if o.d.Presentation.IgnoreURICase {
		f = AnyCase
	}
	for i := range o.routes {
		t := &o.routes[i]
		vars, ok := t.at.Is(path, f)
		if !ok {
			continue
		}
		at := t.at.Write(vars) // in the letters that the vendor has for it
		m := &resource.Match{Route: t.Route, URI: at, IDs: o.ids(vars)}
		if t.Action != nil {
			m.URI = at[:len(at)-len(t.Action.Target())]
		}
		if t.base && !o.bind(m) {
			continue
		}
		switch {
		case t.Action != nil && t.Action.Target() == "":
			p.post = m
		case p.m == nil:
			p.m = m
		}
	}
	if p.post != nil && p.m != nil && !slices.Contains(p.m.Methods, http.MethodPost) {
		t := *p.m.Route
		t.Methods = append(slices.Clip(t.Methods), http.MethodPost)
		t.Allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.Methods), t.IsUnadvertised), ", ")}
		p.m = &resource.Match{Route: &t, URI: p.m.URI, IDs: p.m.IDs}
	}
	if p.m != nil {
		return p
	}
	if at, ok := mapURIWith(o.aliases, path, o.ids(nil), f); ok {
		p.at = at
		return p
	}
	for _, m := range o.below {
		if len(split(path)) <= len(m.from) {
			continue
		}
		if at, ok := mapURIWith([]uriMapping{m}, path, o.ids(nil), f); ok {
			p.at = at
			return p
		}
	}
	return p
}

// bind finds what of the tree an action is of; false when there is nothing.
func (o *oem) bind(m *resource.Match) bool {
	at := m.URI
	if o.presentation != nil {
		at = o.presentation.toStandardURI(m.URI)
	}
	m.Base = o.tree.Find(&url.URL{Path: at})
	if at == "" || m.Base == nil || m.Base.Action != nil || m.Base.Members {
		return false
	}
	t, row := *m.Route, *m.Row
	row.Schema = m.Base.Schema
	t.Row, m.Route = &row, &t
	m.IDs = maps.Clone(m.IDs)
	maps.Copy(m.IDs, m.Base.IDs)
	return true
}

// ids are the variables of an address, with what there is one of.
func (o *oem) ids(vars map[string]string) map[string]string {
	all := map[string]string{
		"system": o.d.SystemID, "manager": o.d.ManagerID, "chassis": o.d.ChassisID,
		"systemlog": o.d.Logs.System, "managerlog": o.d.Logs.Manager, "managernic": resource.ManagerNICID, "hostinterface": resource.HostInterfaceID,
	}
	maps.Copy(all, vars)
	return all
}

// basis is the resource of the tree that a vendor's begins with; nil where
// there is none.
func (w *oemResource) basis(v resource.View) *resource.Match {
	m := w.of.tree.Find(&url.URL{Path: w.basedOn.Write(v.IDs)})
	if m == nil || m.Action != nil || m.Members || m.Raw != nil || !m.IsPresent(v.Snapshot()) {
		return nil
	}
	return m
}

// isThere says whether there is such a resource.
func (w *oemResource) isThere(v resource.View) bool {
	if w.StoredAs != "" {
		if _, ok := v.OEMValue(v.Fill(w.StoredAs)); !ok {
			return false
		}
	}
	if w.basedOn != nil {
		return w.basis(v) != nil
	}
	for _, name := range w.variables {
		if resource.Members[name] == nil || !v.Has(name, v.IDs[name]) {
			return false
		}
	}
	return true
}

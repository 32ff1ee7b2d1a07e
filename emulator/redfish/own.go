package redfish

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// oem is a dialect.OEM, ready for use: rows of the framework beside the tree,
// with a router of their own. What its rows have is at addresses as clients see
// them, what they are like in the tree.
type oem struct {
	tree   *Tree
	face   *face
	d      *dialect.Record
	routes []vendorRoute
	also   []move
	below  []move // from below its resources to below what they are like
	writes []vendorWrite
	places *cache[string, vendorPlace]
}

// vendorRoute is a route with its pattern as clients see it.
type vendorRoute struct {
	*route
	at   pattern
	on   pattern // of an action of a resource in the tree: that of the resource
	base bool    // it is such an action
}

// vendorPlace is what a vendor has at an address.
type vendorPlace struct {
	m    *match // nil: nothing
	post *match // that takes a POST there; nil: m does, if anything
	at   string // of what the tree has; "": nothing
}

// vendorRow is a dialect.Resource, ready for use.
type vendorRow struct {
	dialect.Resource
	of       *oem
	like     pattern
	moves    []move // of addresses in what it is like
	wants    []string
	forwards bool // a PATCH of what it does not keep is one of what it is like
}

func newOEM(t *Tree, d *dialect.Record, f *face) *oem {
	o := &oem{tree: t, d: d, face: f, places: newCache[string](matchesCached, func(vendorPlace) int { return 1 })}
	own := map[string]bool{}
	for _, r := range d.OEM.Resources {
		own[patternText(patternOf(r.URI, d))] = true
	}
	var actions []vendorRoute
	for _, a := range d.OEM.Actions {
		on := patternOf(a.ResourceURI, d)
		if own[patternText(on)] {
			continue
		}
		row := &resource{uri: a.ResourceURI, needs: vendorNeeds(a.Privilege), fresh: true, actions: []action{o.action(a, "/Actions/Oem/"+a.Name)}}
		for _, t := range routes([]resource{*row}, o.tree) {
			if t.action != nil {
				actions = append(actions, vendorRoute{route: t, at: patternOf(t.pattern, d), on: on, base: true})
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
		o.also = append(o.also, move{from: patternOf(m.From, d), to: o.patternOf(m.To)})
	}
	for _, all := range [][]move{o.also, o.below} {
		slices.SortStableFunc(all, func(a, b move) int { return cmp.Compare(len(b.from), len(a.from)) })
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
	return p.write(all)
}

// patternOf is a pattern in the tree, where logs have this record's names, and
// the manager has one NIC and one host interface.
func (o *oem) patternOf(text string) pattern {
	return patternOf(strings.NewReplacer("{systemlog}", o.d.Logs.System, "{managerlog}", o.d.Logs.Manager,
		"{managernic}", managerNICID, "{hostinterface}", hostInterfaceID).Replace(text), o.d)
}

// vendorNeeds are those of a vendor's own resource.
func vendorNeeds(change string) needs {
	return needsTo([]privilege{login}, privilege(cmp.Or(change, string(configureManager))))
}

// add makes the row of a resource, and its routes.
func (o *oem) add(r dialect.Resource) {
	at := patternOf(r.URI, o.d)
	w := &vendorRow{Resource: r, of: o, like: o.patternOf(r.BasedOn)}
	schema := r.Type
	if i := strings.LastIndexByte(schema, '.'); i > 0 {
		schema = schema[:i]
	}
	row := resource{
		uri: r.URI, schema: schema, typed: r.Type, needs: vendorNeeds(r.Privilege), link: "-", fresh: true, vendor: w, guarded: r.RequiresIfMatch,
		read: w.body, when: w.isThere,
	}
	if w.like != nil {
		w.moves = o.movesOf(at, w.like)
		o.below = append(o.below, move{from: at, to: w.like})
		if m := o.tree.find(&url.URL{Path: w.like.write(placeholders(w.like))}); m != nil {
			row.volatile, row.quiet = m.volatile, m.quiet
		}
	} else {
		w.wants = at.names()
	}
	w.forwards = slices.Contains(r.PassedMethods, http.MethodPatch)
	writes := slices.ContainsFunc(o.d.OEM.WritableProperties, func(w dialect.WritableProperty) bool { return w.ResourceType == typeName(schema) })
	if len(r.Writable) > 0 || w.forwards || writes {
		row.patch = &patch{}
	}
	if slices.Contains(r.PassedMethods, http.MethodDelete) {
		row.remove = w.remove
	}
	privileges := map[string]string{}
	for _, a := range o.d.OEM.Actions {
		if patternText(patternOf(a.ResourceURI, o.d)) == patternText(at) {
			row.actions = append(row.actions, o.action(a, ""))
			privileges[a.Name] = a.Privilege
		}
	}
	for _, t := range routes([]resource{row}, o.tree) {
		t.vars, t.describedBy = nil, nil
		if t.action != nil {
			its := *t.resource
			its.needs = vendorNeeds(privileges[t.action.name])
			t.resource = &its
		}
		o.routes = append(o.routes, vendorRoute{route: t, at: patternOf(t.pattern, o.d)})
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
func (o *oem) movesOf(at, like pattern) []move {
	all := []move{{from: like, to: at}}
	for _, r := range o.d.OEM.Resources {
		m := move{from: o.patternOf(r.BasedOn), to: patternOf(r.URI, o.d)}
		if len(m.from) > len(like) && len(m.to) > len(at) &&
			patternText(m.from[:len(like)]) == patternText(like) && patternText(m.to[:len(at)]) == patternText(at) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b move) int { return cmp.Compare(len(b.from), len(a.from)) })
	return all
}

// find is what a vendor has at an address, or else where in the tree that is.
func (o *oem) find(path, method string) (m *match, at string) {
	if len(path) > 1 {
		path = strings.TrimRight(path, "/")
	}
	p, known := o.places.get(path)
	if !known {
		p = o.place(path)
		o.places.put(path, p)
	}
	if method == http.MethodPost && p.post != nil {
		return p.post, ""
	}
	return p.m, p.at
}

func (o *oem) place(path string) (p vendorPlace) {
	f := exact
	if o.d.Presentation.IgnoreURICase {
		f = anyCase
	}
	for i := range o.routes {
		t := &o.routes[i]
		vars, ok := t.at.is(path, f)
		if !ok {
			continue
		}
		at := t.at.write(vars) // in the letters that the vendor has for it
		m := &match{route: t.route, uri: at, ids: o.ids(vars)}
		if t.action != nil {
			m.uri = at[:len(at)-len(t.action.target())]
		}
		if t.base && !o.bind(m) {
			continue
		}
		switch {
		case t.action != nil && t.action.target() == "":
			p.post = m
		case p.m == nil:
			p.m = m
		}
	}
	if p.post != nil && p.m != nil && !slices.Contains(p.m.methods, http.MethodPost) {
		t := *p.m.route
		t.methods = append(slices.Clip(t.methods), http.MethodPost)
		t.allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.methods), t.isQuiet), ", ")}
		p.m = &match{route: &t, uri: p.m.uri, ids: p.m.ids}
	}
	if p.m != nil {
		return p
	}
	if at, ok := movedAt(o.also, path, o.ids(nil), f); ok {
		p.at = at
		return p
	}
	for _, m := range o.below {
		if len(split(path)) <= len(m.from) {
			continue
		}
		if at, ok := movedAt([]move{m}, path, o.ids(nil), f); ok {
			p.at = at
			return p
		}
	}
	return p
}

// bind finds what of the tree an action is of; false when there is nothing.
func (o *oem) bind(m *match) bool {
	at := m.uri
	if o.face != nil {
		at = o.face.inside(m.uri)
	}
	m.base = o.tree.find(&url.URL{Path: at})
	if at == "" || m.base == nil || m.base.action != nil || m.base.members {
		return false
	}
	t, row := *m.route, *m.resource
	row.schema = m.base.schema
	t.resource, m.route = &row, &t
	m.ids = maps.Clone(m.ids)
	maps.Copy(m.ids, m.base.ids)
	return true
}

// ids are the variables of an address, with what there is one of.
func (o *oem) ids(vars map[string]string) map[string]string {
	all := map[string]string{
		"system": o.d.SystemID, "manager": o.d.ManagerID, "chassis": o.d.ChassisID,
		"systemlog": o.d.Logs.System, "managerlog": o.d.Logs.Manager, "managernic": managerNICID, "hostinterface": hostInterfaceID,
	}
	maps.Copy(all, vars)
	return all
}

// likeness is the resource of the tree that a vendor's begins with; nil where
// there is none.
func (w *vendorRow) likeness(v view) *match {
	m := w.of.tree.find(&url.URL{Path: w.like.write(v.ids)})
	if m == nil || m.action != nil || m.members || m.raw != nil || !m.isThere(v.snapshot()) {
		return nil
	}
	return m
}

// isThere says whether there is such a resource.
func (w *vendorRow) isThere(v view) bool {
	if w.StoredAs != "" {
		if _, ok := v.kept(v.fill(w.StoredAs)); !ok {
			return false
		}
	}
	if w.like != nil {
		return w.likeness(v) != nil
	}
	for _, name := range w.wants {
		if things[name] == nil || !v.has(name, v.ids[name]) {
			return false
		}
	}
	return true
}

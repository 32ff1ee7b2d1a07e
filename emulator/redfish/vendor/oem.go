package vendor

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// oem is a dialect.OEM with parsed patterns: rows like those of the tree, and a router.
// OEM resources have the vendor's URIs, and their BasedOn standard ones.
type oem struct {
	tree         *resource.Tree
	presentation *presentation
	d            *dialect.Record
	routes       []oemRoute
	router       func() *router // built at the first request
	aliases      []uriMapping   // URIAliases
	below        []uriMapping   // from URIs below an OEM resource to URIs below its BasedOn
	writable     []writableProperty
	places       *cache.Cache[string, place] // results of locate, by path
}

// oemRoute is a route with the pattern of its URIs as clients see them.
type oemRoute struct {
	*resource.Route
	uri        pattern
	ofStandard bool // an action of a standard resource
}

// place is the resource or action that a URI of the vendor's service leads to.
type place struct {
	m        *resource.Match // nil: no OEM resource or action
	post     *resource.Match // what a POST leads to; m, unless an action is posted to the URI of a resource
	standard string          // standard URI that an alias leads to, or that is below a BasedOn; "": none
}

// oemResource is a dialect.Resource with parsed patterns.
type oemResource struct {
	dialect.Resource
	oem         *oem
	basedOn     pattern
	links       []uriMapping // rewrites URIs in the body of BasedOn
	variables   []string     // URI variables of a resource without BasedOn
	passesPatch bool         // a PATCH of properties that are not Writable is passed on to BasedOn
	dependsOn   resource.Parts
	someMembers bool // members of the collection may have a RequiredProperty
}

func newOEM(t *resource.Tree, d *dialect.Record, f *presentation) *oem {
	o := &oem{tree: t, d: d, presentation: f, places: cache.New[string](resource.MatchesCached, func(place) int { return 1 })}
	for _, r := range d.OEM.Resources {
		o.addResource(r)
	}
	for _, a := range d.OEM.Actions {
		if !isOEMResource(d, a.ResourceURI) {
			o.addStandardAction(a)
		}
	}
	// A text is more specific than a variable.
	slices.SortStableFunc(o.routes, func(a, b oemRoute) int { return cmp.Compare(len(a.uri.variables()), len(b.uri.variables())) })
	o.router = sync.OnceValue(o.newRouter)
	for _, m := range d.OEM.URIAliases {
		o.aliases = append(o.aliases, uriMapping{from: parsePattern(m.From, d), to: o.parseStandard(m.To)})
	}
	sortByLength(o.aliases)
	sortByLength(o.below)
	for _, w := range d.OEM.WritableProperties {
		o.writable = append(o.writable, writableProperty{w, o.parseStandard(w.URI)})
	}
	return o
}

// isOEMResource reports whether a URI pattern is that of an OEM resource.
func isOEMResource(d *dialect.Record, uri string) bool {
	text := parsePattern(uri, d).String()
	return slices.ContainsFunc(d.OEM.Resources, func(r dialect.Resource) bool { return parsePattern(r.URI, d).String() == text })
}

// parseStandard parses a pattern of standard URIs, and fills in the IDs of the
// record's logs, of the manager's NIC and of its host interface.
func (o *oem) parseStandard(text string) pattern {
	return parsePattern(strings.NewReplacer("{systemlog}", o.d.Logs.System, "{managerlog}", o.d.Logs.Manager,
		"{managernic}", resource.ManagerNICID, "{hostinterface}", resource.HostInterfaceID).Replace(text), o.d)
}

// oemPrivileges returns the privileges of an OEM resource: Login for reading, and
// change, or ConfigureManager when it is empty, for the rest.
func oemPrivileges(change string) resource.Privileges {
	return resource.ReadWritePrivileges([]resource.Privilege{resource.Login}, resource.Privilege(cmp.Or(change, string(resource.ConfigureManager))))
}

// addResource adds the routes of an OEM resource and of its actions.
func (o *oem) addResource(r dialect.Resource) {
	uri := parsePattern(r.URI, o.d)
	w := &oemResource{Resource: r, oem: o, basedOn: o.parseStandard(r.BasedOn)}
	schema := r.Type
	if i := strings.LastIndexByte(schema, '.'); i > 0 {
		schema = schema[:i]
	}
	row := resource.Row{
		URI: r.URI, Schema: schema, ODataType: r.Type, Privileges: oemPrivileges(r.Privilege), Link: "-", Uncached: true, OEM: w, RequiresIfMatch: r.RequiresIfMatch,
		Read: w.body, When: w.exists,
	}
	if w.basedOn != nil {
		w.links = o.linkMappings(uri, w.basedOn)
		w.someMembers = slices.ContainsFunc(o.d.OEM.Resources, func(m dialect.Resource) bool {
			return m.RequiredProperty != "" && strings.HasPrefix(m.URI, r.URI+"/{")
		})
		o.below = append(o.below, uriMapping{from: uri, to: w.basedOn})
		if m := o.source(w.basedOn); m != nil {
			row.Volatile, row.Unadvertised = m.Volatile, m.Unadvertised
		}
	} else {
		w.variables = uri.variables()
	}
	w.dependsOn = o.dependsOn(w)
	row.Volatile = append(slices.Clip(row.Volatile), o.volatileOf(r)...)
	w.passesPatch = slices.Contains(r.PassedMethods, http.MethodPatch)
	writable := slices.ContainsFunc(o.d.OEM.WritableProperties, func(w dialect.WritableProperty) bool { return w.ResourceType == resource.TypeName(schema) })
	if len(r.Writable) > 0 || w.passesPatch || writable {
		row.Patch = &resource.Patch{}
	}
	if slices.Contains(r.PassedMethods, http.MethodDelete) {
		row.Remove = w.remove
	}
	privileges := map[string]string{} // privileges of the actions, by name
	for _, a := range o.d.OEM.Actions {
		if parsePattern(a.ResourceURI, o.d).String() == uri.String() {
			row.Actions = append(row.Actions, o.action(a, ""))
			privileges[a.Name] = a.Privilege
		}
	}
	for _, t := range resource.Routes([]resource.Row{row}, o.tree) {
		t.Vars, t.DescribedBy = nil, nil
		if t.Action != nil {
			actionRow := *t.Row
			actionRow.Privileges = oemPrivileges(privileges[t.Action.Name])
			t.Row = &actionRow
		}
		o.routes = append(o.routes, oemRoute{Route: t, uri: parsePattern(t.Pattern, o.d)})
	}
}

// addStandardAction adds the route of an OEM action of a standard resource.
func (o *oem) addStandardAction(a dialect.Action) {
	row := resource.Row{URI: a.ResourceURI, Privileges: oemPrivileges(a.Privilege), Uncached: true, Actions: []resource.Action{o.action(a, "/Actions/Oem/"+a.Name)}}
	for _, t := range resource.Routes([]resource.Row{row}, o.tree) {
		if t.Action != nil {
			o.routes = append(o.routes, oemRoute{Route: t, uri: parsePattern(t.Pattern, o.d), ofStandard: true})
		}
	}
}

// namesAsValues returns the pattern's variables with their names as values, to fill in
// a pattern when only its route matters.
func namesAsValues(p pattern) map[string]string {
	all := map[string]string{}
	for _, name := range p.variables() {
		all[name] = name
	}
	return all
}

// linkMappings returns the mappings for the URIs in the body that an OEM resource
// takes from its BasedOn: URIs below BasedOn become URIs below the resource, or
// those of the OEM resources that are based on them.
func (o *oem) linkMappings(uri, basedOn pattern) []uriMapping {
	all := []uriMapping{{from: basedOn, to: uri}}
	for _, r := range o.d.OEM.Resources {
		m := uriMapping{from: o.parseStandard(r.BasedOn), to: parsePattern(r.URI, o.d)}
		if len(m.from) > len(basedOn) && len(m.to) > len(uri) &&
			m.from[:len(basedOn)].String() == basedOn.String() && m.to[:len(uri)].String() == uri.String() {
			all = append(all, m)
		}
	}
	sortByLength(all)
	return all
}

// singletons returns the values of the variables of which a server has one, with
// vars added.
func (o *oem) singletons(vars map[string]string) map[string]string {
	all := map[string]string{
		"system": o.d.SystemID, "manager": o.d.ManagerID, "chassis": o.d.ChassisID,
		"systemlog": o.d.Logs.System, "managerlog": o.d.Logs.Manager, "managernic": resource.ManagerNICID, "hostinterface": resource.HostInterfaceID,
	}
	maps.Copy(all, vars)
	return all
}

// base returns the standard resource that the resource is based on, or nil when it
// does not exist.
func (w *oemResource) base(v resource.View) *resource.Match {
	m := w.oem.tree.Find(&url.URL{Path: w.basedOn.fill(v.IDs)})
	if m == nil || m.Action != nil || m.Members || m.Raw != nil || !m.IsPresent(v.Snapshot()) {
		return nil
	}
	return m
}

// exists reports whether the resource exists: its StoredAs is stored, its BasedOn
// exists, or, without BasedOn, its variables have values of the tree.
func (w *oemResource) exists(v resource.View) bool {
	if w.StoredAs != "" {
		if _, ok := v.OEMValue(v.Fill(w.StoredAs)); !ok {
			return false
		}
	}
	if w.basedOn != nil {
		m := w.base(v)
		if m == nil || w.RequiredProperty == "" {
			return m != nil
		}
		_, has := resource.ValueAt(resource.NormalizeObject(m.Object(m.View(v.Snapshot()))), w.RequiredProperty)
		return has
	}
	for _, name := range w.variables {
		if resource.Members[name] == nil || !v.Has(name, v.IDs[name]) {
			return false
		}
	}
	return true
}

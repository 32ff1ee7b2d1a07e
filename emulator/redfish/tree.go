// Package resource holds the resources of the Redfish service: a row for each URI
// pattern, which says what is at its URIs, who may do what there, how a body is
// made from a host's views and from nothing else, and how requests change it.
// What all rows have in common, from Allow to the action's parameters, follows
// from the row. A resource of the standard is a file here.
package redfish

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/mux"
)

// Tree is all that a service serves: the rows, and which of them a URI is of. It
// is the same for every host. It is safe for concurrent use.
type Tree struct {
	rows    []resource
	all     []*route
	routes  map[string]*route // by pattern
	router  *mux.Router
	matches *cache[string, *match]
	schemas []string          // that the rows have, with their versions, in order
	library *library          // nil when the user has given none
	types   map[string]string // of the things that variables stand for
	log     *slog.Logger
}

const matchesCached = 4096

// NewTree returns the tree. The files, which may be nil, are those of DMTF that
// the service serves: DSP8010, with or without DSP8011's registries.
func NewTree(files fs.FS, log *slog.Logger) (*Tree, error) {
	t := &Tree{
		rows: rows(), routes: map[string]*route{}, types: map[string]string{}, log: log,
		matches: newCache[string](matchesCached, func(*match) int { return 1 }),
	}
	if err := validate(t.rows); err != nil {
		return nil, err
	}
	if err := assignNeeds(t.rows); err != nil {
		return nil, err
	}
	linked(t.rows)
	showOrigins(t.rows)
	gather(t.rows)
	t.all = routes(t.rows, t)
	t.router = router(t.all)
	for _, r := range t.all {
		t.routes[r.pattern] = r
		if r.schema != "" && !slices.Contains(t.schemas, r.schema) {
			t.schemas = append(t.schemas, r.schema)
		}
	}
	slices.Sort(t.schemas)
	if files != nil {
		var err error
		if t.library, err = openLibrary(files); err != nil {
			return nil, err
		}
	}
	for i := range t.rows {
		r := &t.rows[i]
		if vars := variables(r.uri); strings.HasSuffix(r.uri, "}") {
			t.types[vars[len(vars)-1]] = cmp.Or(typeName(r.schema), "document")
		}
	}
	return t, nil
}

// shared is the router of the tree's patterns, which are the same for all
// services: it is dear to make, and larger than all else that a service needs.
var shared struct {
	sync.Once
	router *mux.Router
}

// router is that router, of all routes of the tree.
func router(all []*route) *mux.Router {
	shared.Do(func() {
		shared.router = mux.NewRouter()
		for _, t := range all {
			shared.router.Path(t.pattern).Name(t.pattern)
		}
	})
	return shared.router
}

// find is what is at an address, or nil. Matching is dear, so matches are kept.
func (t *Tree) find(u *url.URL) *match {
	if u.RawPath != "" && strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return nil // a slash within a name, which no name has
	}
	path := u.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/") // both forms name the same resource
	}
	if m, ok := t.matches.get(path); ok {
		return m
	}
	var found mux.RouteMatch
	if !t.router.Match(&http.Request{URL: &url.URL{Path: path}}, &found) {
		return nil
	}
	r := t.routes[found.Route.GetName()]
	m := &match{route: r, ids: found.Vars, uri: path}
	switch {
	case r.action != nil:
		m.uri = strings.TrimSuffix(path, "/Actions/"+r.action.name)
	case r.members:
		m.uri = strings.TrimSuffix(path, "/Members")
	}
	t.matches.put(path, m)
	return m
}

// gather tells each collection whose members stand in it whole which row they
// are of, and that it shows what they do.
func gather(tree []resource) {
	for i := range tree {
		r := &tree[i]
		j := slices.IndexFunc(tree, func(m resource) bool { return r.whole && m.uri == r.uri+"/{"+r.of+"}" })
		if j >= 0 {
			r.member = &tree[j]
			r.shows |= r.member.shows
		}
	}
}

// linked tells each row which rows it links to: those whose pattern is its own
// and one segment more. Where those are not there, their link is not either.
func linked(tree []resource) {
	at := map[string]*resource{}
	for i := range tree {
		at[tree[i].uri] = &tree[i]
	}
	for i := range tree {
		r := &tree[i]
		slash := strings.LastIndexByte(r.uri, '/')
		above, last := at[r.uri[:slash]], r.uri[slash+1:]
		if r.link == "-" || r.schema == "" || above == nil || above.of != "" || strings.HasPrefix(last, "{") {
			continue
		}
		if r.link == "" {
			r.link = last
		}
		above.below = append(above.below, r)
		if r.when != nil { // what its presence depends on, its link does
			above.shows |= r.shows
		}
	}
}

// validate says what is wrong with a tree; it guards against slips in the
// table.
func validate(tree []resource) error {
	for i := range tree {
		r := &tree[i]
		for _, v := range append(variables(r.uri), r.of) {
			if v != "" && things[v] == nil {
				return fmt.Errorf("redfish: %s: unknown variable %s", r.uri, v)
			}
		}
		bodies := 0
		for _, has := range []bool{r.read != nil, r.raw != nil, r.of != "", r.upload != nil} {
			if has {
				bodies++
			}
		}
		if r.create != nil && memberOf(tree, r) == nil {
			return fmt.Errorf("redfish: %s: create: has no row of its members", r.uri)
		}
		if bodies != 1 {
			return fmt.Errorf("redfish: %s: want one of read, raw, of and upload", r.uri)
		}
	}
	return nil
}

// rows are all that the service serves, row by row. The rows stand beside what
// they serve; a resource links to the rows one segment below by itself
// (resource.link).
func rows() []resource {
	return slices.Concat(
		rootRows(),
		schemaRows(),
		sessionRows(),
		accountRows(),
		certificateRows(),
		systemRows(),
		bootRows(),
		processorRows(),
		networkRows(),
		biosRows(),
		registryRows(),
		updateRows(),
		inventoryRows(),
		storageRows(),
		mediaRows(),
		managerRows(),
		chassisRows(),
		pcieRows(),
		trustedRows(),
		sensorRows(),
		powerRows(),
		coolingRows(),
		environmentRows(),
		secureBootRows(),
		telemetryRows(),
		integrityRows(),
		taskRows(),
		logRows(),
		managerNetworkRows(),
		hostInterfaceRows(),
		planRows(),
		eventRows(),
	)
}

// bodyAt is a resource of the tree; nil where there is none.
func (t *Tree) bodyAt(address string, at *snapshot) object {
	m := t.find(&url.URL{Path: address})
	if m == nil || m.raw != nil || m.upload != nil || m.action != nil || m.members {
		return nil
	}
	v := m.view(at)
	if m.missing(v) != "" || !m.there(v) {
		return nil
	}
	return m.object(v)
}

// instances are the resources of a row that there are in one snapshot or the
// other, in the order in which they are listed.
func (t *Tree) instances(r *resource, snapshots ...*snapshot) []*match {
	var found []*match
	seen := map[string]bool{}
	for i := range snapshots {
		at := snapshots[i]
		var descend func(pattern string, ids map[string]string)
		descend = func(pattern string, ids map[string]string) {
			open := strings.IndexByte(pattern, '{')
			if open < 0 {
				if m := t.find(&url.URL{Path: pattern}); m != nil && m.resource == r && !seen[pattern] {
					seen[pattern] = true
					found = append(found, m)
				}
				return
			}
			end := open + strings.IndexByte(pattern[open:], '}')
			name := pattern[open+1 : end]
			for _, id := range things[name](view{d: at.d, m: at.m, b: at.b, now: at.now, ids: ids}) {
				below := maps.Clone(ids)
				below[name] = id
				descend(pattern[:open]+id+pattern[end+1:], below)
			}
		}
		descend(r.uri, map[string]string{})
	}
	return found
}

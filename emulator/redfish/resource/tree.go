// Package resource holds the resources of the Redfish service: a row for each URI
// pattern, which says what is at its URIs, who may do what there, how a body is
// made from a host's views and from nothing else, and how requests change it.
// What all rows have in common, from Allow to the action's parameters, follows
// from the row. A resource of the standard is a file here.
package resource

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

	"github.com/metalab-dev/metalab/emulator/redfish/cache"
)

// Tree is all that a service serves: the rows, and which of them a URI is of. It
// is the same for every host. It is safe for concurrent use.
type Tree struct {
	Rows    []Row
	All     []*Route
	routes  map[string]*Route // by pattern
	router  *mux.Router
	matches *cache.Cache[string, *Match]
	Schemas []string          // that the rows have, with their versions, in order
	Library *library          // nil when the user has given none
	Types   map[string]string // of the things that variables stand for
	log     *slog.Logger
}

const MatchesCached = 4096

// NewTree returns the tree. The files, which may be nil, are those of DMTF that
// the service serves: DSP8010, with or without DSP8011's registries.
func NewTree(files fs.FS, log *slog.Logger) (*Tree, error) {
	t := &Tree{
		Rows: Rows(), routes: map[string]*Route{}, Types: map[string]string{}, log: log,
		matches: cache.New[string](MatchesCached, func(*Match) int { return 1 }),
	}
	if err := validate(t.Rows); err != nil {
		return nil, err
	}
	if err := AssignNeeds(t.Rows); err != nil {
		return nil, err
	}
	linked(t.Rows)
	showOrigins(t.Rows)
	gather(t.Rows)
	t.All = Routes(t.Rows, t)
	t.router = router(t.All)
	for _, r := range t.All {
		t.routes[r.Pattern] = r
		if r.Schema != "" && !slices.Contains(t.Schemas, r.Schema) {
			t.Schemas = append(t.Schemas, r.Schema)
		}
	}
	slices.Sort(t.Schemas)
	if files != nil {
		var err error
		if t.Library, err = openLibrary(files); err != nil {
			return nil, err
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if vars := Variables(r.URI); strings.HasSuffix(r.URI, "}") {
			t.Types[vars[len(vars)-1]] = cmp.Or(TypeName(r.Schema), "document")
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
func router(all []*Route) *mux.Router {
	shared.Do(func() {
		shared.router = mux.NewRouter()
		for _, t := range all {
			shared.router.Path(t.Pattern).Name(t.Pattern)
		}
	})
	return shared.router
}

// Find is what is at an address, or nil. Matching is dear, so matches are kept.
func (t *Tree) Find(u *url.URL) *Match {
	if u.RawPath != "" && strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return nil // a slash within a name, which no name has
	}
	path := u.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/") // both forms name the same resource
	}
	if m, ok := t.matches.Get(path); ok {
		return m
	}
	var found mux.RouteMatch
	if !t.router.Match(&http.Request{URL: &url.URL{Path: path}}, &found) {
		return nil
	}
	r := t.routes[found.Route.GetName()]
	m := &Match{Route: r, IDs: found.Vars, URI: path}
	switch {
	case r.Action != nil:
		m.URI = strings.TrimSuffix(path, "/Actions/"+r.Action.Name)
	case r.Members:
		m.URI = strings.TrimSuffix(path, "/Members")
	}
	t.matches.Put(path, m)
	return m
}

// gather tells each collection whose members stand in it whole which row they
// are of, and that it shows what they do.
func gather(tree []Row) {
	for i := range tree {
		r := &tree[i]
		j := slices.IndexFunc(tree, func(m Row) bool { return r.expands && m.URI == r.URI+"/{"+r.MemberVariable+"}" })
		if j >= 0 {
			r.member = &tree[j]
			r.DependsOn |= r.member.DependsOn
		}
	}
}

// linked tells each row which rows it links to: those whose pattern is its own
// and one segment more. Where those are not there, their link is not either.
func linked(tree []Row) {
	at := map[string]*Row{}
	for i := range tree {
		at[tree[i].URI] = &tree[i]
	}
	for i := range tree {
		r := &tree[i]
		slash := strings.LastIndexByte(r.URI, '/')
		above, last := at[r.URI[:slash]], r.URI[slash+1:]
		if r.Link == "-" || r.Schema == "" || above == nil || above.MemberVariable != "" || strings.HasPrefix(last, "{") {
			continue
		}
		if r.Link == "" {
			r.Link = last
		}
		above.below = append(above.below, r)
		if r.When != nil { // what its presence depends on, its link does
			above.DependsOn |= r.DependsOn
		}
	}
}

// validate says what is wrong with a tree; it guards against slips in the
// table.
func validate(tree []Row) error {
	for i := range tree {
		r := &tree[i]
		for _, v := range append(Variables(r.URI), r.MemberVariable) {
			if v != "" && Members[v] == nil {
				return fmt.Errorf("redfish: %s: unknown variable %s", r.URI, v)
			}
		}
		bodies := 0
		for _, has := range []bool{r.Read != nil, r.Raw != nil, r.MemberVariable != "", r.Upload != nil} {
			if has {
				bodies++
			}
		}
		if r.Create != nil && memberOf(tree, r) == nil {
			return fmt.Errorf("redfish: %s: create: has no row of its members", r.URI)
		}
		if bodies != 1 {
			return fmt.Errorf("redfish: %s: want one of read, raw, of and upload", r.URI)
		}
	}
	return nil
}

// Rows are all that the service serves, row by row. The rows stand beside what
// they serve; a resource links to the rows one segment below by itself
// (resource.link).
func Rows() []Row {
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

// BodyAt is a resource of the tree; nil where there is none.
func (t *Tree) BodyAt(address string, at *Snapshot) Object {
	m := t.Find(&url.URL{Path: address})
	if m == nil || m.Raw != nil || m.Upload != nil || m.Action != nil || m.Members {
		return nil
	}
	v := m.View(at)
	if m.Missing(v) != "" || !m.There(v) {
		return nil
	}
	return m.Object(v)
}

// Instances are the resources of a row that there are in one snapshot or the
// other, in the order in which they are listed.
func (t *Tree) Instances(r *Row, snapshots ...*Snapshot) []*Match {
	var found []*Match
	seen := map[string]bool{}
	for i := range snapshots {
		at := snapshots[i]
		var descend func(pattern string, ids map[string]string)
		descend = func(pattern string, ids map[string]string) {
			open := strings.IndexByte(pattern, '{')
			if open < 0 {
				if m := t.Find(&url.URL{Path: pattern}); m != nil && m.Row == r && !seen[pattern] {
					seen[pattern] = true
					found = append(found, m)
				}
				return
			}
			end := open + strings.IndexByte(pattern[open:], '}')
			name := pattern[open+1 : end]
			for _, id := range Members[name](View{Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, IDs: ids}) {
				below := maps.Clone(ids)
				below[name] = id
				descend(pattern[:open]+id+pattern[end+1:], below)
			}
		}
		descend(r.URI, map[string]string{})
	}
	return found
}

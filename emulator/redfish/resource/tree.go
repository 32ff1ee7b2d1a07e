// Package resource defines the resources of the Redfish service. Each URI pattern has a Row
// with its schema, the privileges it requires, the function that renders its body from a
// View of the host and from nothing else, and the functions that carry out PATCH, POST,
// DELETE and actions. The framework derives the rest from the row: Allow, links, ActionInfo,
// collection capabilities. Each resource of DSP2046 has a file of its own.
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

// Tree holds all resources that a service serves, as rows, and finds the row of a URI. It
// is the same for every host and safe for concurrent use.
type Tree struct {
	Rows    []Row
	All     []*Route
	routes  map[string]*Route // by pattern
	router  *mux.Router
	matches *cache.Cache[string, *Match]
	Schemas []string          // schemas of the rows, with their versions, sorted
	Library *schemaFiles      // nil without files of DMTF
	Types   map[string]string // resource types by URI variable
	log     *slog.Logger
}

// MatchesCached is how many URIs Tree.Find caches.
const MatchesCached = 4096

// NewTree returns the tree. files, which may be nil, holds DMTF's files that the service
// serves: DSP8010, with or without DSP8011's registries.
func NewTree(files fs.FS, log *slog.Logger) (*Tree, error) {
	t := &Tree{
		Rows: Rows(), routes: map[string]*Route{}, Types: map[string]string{}, log: log,
		matches: cache.New[string](MatchesCached, func(*Match) int { return 1 }),
	}
	if err := validate(t.Rows); err != nil {
		return nil, err
	}
	if err := AssignPrivileges(t.Rows); err != nil {
		return nil, err
	}
	linkSubordinates(t.Rows)
	addOriginParts(t.Rows)
	linkMembers(t.Rows)
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
		if t.Library, err = openSchemaFiles(files); err != nil {
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

// shared holds the router of the tree's patterns, which are the same for all services.
// Building it is expensive, and it is larger than everything else that a service needs.
var shared struct {
	sync.Once
	router *mux.Router
}

// router returns the shared router. The first call builds it.
func router(all []*Route) *mux.Router {
	shared.Do(func() {
		shared.router = mux.NewRouter()
		for _, t := range all {
			shared.router.Path(t.Pattern).Name(t.Pattern)
		}
	})
	return shared.router
}

// Find returns the match of a URI, or nil when no pattern matches. Matching is expensive,
// so matches are cached.
func (t *Tree) Find(u *url.URL) *Match {
	if u.RawPath != "" && strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return nil // no ID contains a slash
	}
	path := u.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/") // a trailing slash names the same resource
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

// linkMembers sets the member row of each autoExpand collection, and makes the collection
// depend on what its members depend on.
func linkMembers(tree []Row) {
	for i := range tree {
		r := &tree[i]
		j := slices.IndexFunc(tree, func(m Row) bool { return r.autoExpand && m.URI == r.URI+"/{"+r.memberVariable+"}" })
		if j >= 0 {
			r.memberRow = &tree[j]
			r.DependsOn |= r.memberRow.DependsOn
		}
	}
}

// linkSubordinates sets the rows that each row links to: those whose pattern has one
// segment more. A link is shown only while its resource exists.
func linkSubordinates(tree []Row) {
	at := map[string]*Row{}
	for i := range tree {
		at[tree[i].URI] = &tree[i]
	}
	for i := range tree {
		r := &tree[i]
		slash := strings.LastIndexByte(r.URI, '/')
		above, last := at[r.URI[:slash]], r.URI[slash+1:]
		if r.Link == "-" || r.Schema == "" || above == nil || above.memberVariable != "" || strings.HasPrefix(last, "{") {
			continue
		}
		if r.Link == "" {
			r.Link = last
		}
		above.subordinates = append(above.subordinates, r)
		if r.When != nil { // the link depends on what the resource's presence depends on
			above.DependsOn |= r.DependsOn
		}
	}
}

// validate returns an error for a mistake in the table of rows.
func validate(tree []Row) error {
	for i := range tree {
		r := &tree[i]
		for _, v := range append(Variables(r.URI), r.memberVariable) {
			if v != "" && Members[v] == nil {
				return fmt.Errorf("redfish: %s: unknown variable %s", r.URI, v)
			}
		}
		bodies := 0
		for _, has := range []bool{r.Read != nil, r.Raw != nil, r.memberVariable != "", r.Upload != nil} {
			if has {
				bodies++
			}
		}
		if r.Create != nil && memberRow(tree, r) == nil {
			return fmt.Errorf("redfish: %s: Create without a row for the members", r.URI)
		}
		if bodies != 1 {
			return fmt.Errorf("redfish: %s: want exactly one of Read, Raw, memberVariable and Upload", r.URI)
		}
	}
	return nil
}

// Rows returns the rows of all resources. A resource links to the rows one segment below it
// automatically (linkSubordinates).
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
		jobRows(),
		eventRows(),
	)
}

// BodyAt returns the body of the resource at a URI, or nil when there is no resource.
func (t *Tree) BodyAt(address string, at *Snapshot) Object {
	m := t.Find(&url.URL{Path: address})
	if m == nil || m.Raw != nil || m.Upload != nil || m.Action != nil || m.Members {
		return nil
	}
	v := m.View(at)
	if m.MissingVariable(v) != "" || !m.ConditionsHold(v) {
		return nil
	}
	return m.Object(v)
}

// Instances returns the resources of a row that exist in any of the snapshots, in the order
// in which collections list them.
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

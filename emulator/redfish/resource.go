package redfish

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"
)

// resource is a row of the tree: what is at the addresses of one pattern, who
// may do what there, and how.
type resource struct {
	uri    string // pattern: "/redfish/v1/Systems/{system}"
	schema string // with its version: "ComputerSystem.v1_27_0"; "" for a document of the protocol
	open   bool   // can be read without login
	needs  needs
	shows  shows                                   // the views that the body depends on
	read   func(v view) object                     // the body, but for what the framework adds
	raw    func(s *Service, v view) (mime, []byte) // a document of the protocol
	name   string                                  // of a collection
	of     string                                  // variable that the members of a collection stand for
	own    func(v view, who actor) bool            // whether it belongs to that actor, for ConfigureSelf
	patch  *patch
	create *create
	remove func(ctx context.Context, h Host, v view) error

	actions []action
}

// shows says which views a body depends on.
type shows uint8

const (
	showsRecord  shows = 0 // the dialect only
	showsMachine shows = 1
	showsBMC     shows = 2
)

// mime is a media type.
type mime string

const (
	jsonType mime = "application/json"
	xmlType  mime = "application/xml"
)

// patch is how a resource is changed (DSP0266, "PATCH (update)").
type patch struct {
	inputs []input
	apply  func(ctx context.Context, h Host, v view, set values) error
}

// create is how a member is added to a collection (DSP0266, "POST (create)").
type create struct {
	open   bool // without login
	inputs []input
	apply  func(ctx context.Context, h Host, set values, from string) (created, error)
}

// created is a new member of a collection.
type created struct {
	id    string
	token string // of a session, shown this once
}

// action is an action of a resource (DSP0266, "POST (action)").
type action struct {
	name   string // "ComputerSystem.Reset"
	inputs []input
	slow   bool // waits for the world: others need not wait for it
	apply  func(ctx context.Context, h Host, v view, set values) error
}

// verb is the name without its type.
func (a *action) verb() string {
	_, verb, _ := strings.Cut(a.name, ".")
	return verb
}

// route is what the addresses of one pattern lead to: a resource, or one of
// the addresses that a resource has beside its own.
type route struct {
	*resource
	pattern string
	vars    []string // of the pattern, outermost first
	action  *action  // its target
	members bool     // the collection's Members, which takes a POST as the collection does
	methods []string
	allow   []string // Allow header
}

// routes makes the routes of a tree.
func routes(tree []resource) []*route {
	var out []*route
	add := func(r *resource, below string, a *action, members bool) {
		t := &route{resource: r, pattern: r.uri + below, vars: variables(r.uri), action: a, members: members}
		t.methods = methods(t)
		t.allow = []string{strings.Join(t.methods, ", ")}
		out = append(out, t)
	}
	for i := range tree {
		r := &tree[i]
		for j := range r.actions {
			a := &r.actions[j]
			add(r, "/Actions/"+a.name, a, false)
			if len(a.inputs) > 0 {
				add(actionInfo(r, a), "", nil, false)
			}
		}
		if r.create != nil {
			add(r, "/Members", nil, true) // before the members themselves
		}
		add(r, "", nil, false)
	}
	return out
}

// methods lists the HTTP methods that an address takes.
func methods(t *route) []string {
	if t.action != nil || t.members {
		return []string{http.MethodPost, http.MethodOptions}
	}
	out := []string{http.MethodGet, http.MethodHead}
	for _, m := range []struct {
		method string
		has    bool
	}{{http.MethodPatch, t.patch != nil}, {http.MethodPost, t.create != nil}, {http.MethodDelete, t.remove != nil}} {
		if m.has {
			out = append(out, m.method)
		}
	}
	return append(out, http.MethodOptions)
}

// takes says whether an address takes a method.
func (t *route) takes(method string) bool { return slices.Contains(t.methods, method) }

// variables lists the variables of a pattern.
func variables(pattern string) []string {
	var out []string
	for s := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(s, "{") {
			out = append(out, strings.Trim(s, "{}"))
		}
	}
	return out
}

// match is an address with the route that it takes.
type match struct {
	*route
	uri string            // of the resource
	ids map[string]string // never changed
}

// router makes the router of some routes, which it knows by their patterns.
func router(all []*route) (*mux.Router, map[string]*route) {
	m, by := mux.NewRouter(), map[string]*route{}
	for _, t := range all {
		m.Path(t.pattern).Name(t.pattern)
		by[t.pattern] = t
	}
	return m, by
}

// find is what is at an address, or nil. Matching is dear, so matches are kept.
func (s *Service) find(u *url.URL) *match {
	if u.RawPath != "" && strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return nil // a slash within a name, which no name has
	}
	path := u.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/") // both forms name the same resource
	}
	if m, ok := s.matches.get(path); ok {
		return m
	}
	var found mux.RouteMatch
	if !s.router.Match(&http.Request{URL: &url.URL{Path: path}}, &found) {
		return nil
	}
	t := s.routes[found.Route.GetName()]
	m := &match{route: t, ids: found.Vars, uri: path}
	switch {
	case t.action != nil:
		m.uri = strings.TrimSuffix(path, "/Actions/"+t.action.name)
	case t.members:
		m.uri = strings.TrimSuffix(path, "/Members")
	}
	s.matches.put(path, m)
	return m
}

// missing is the first variable whose thing is not there; "" when all are.
func (t *route) missing(v view) string {
	for _, name := range t.vars {
		if !slices.Contains(things[name](v), v.ids[name]) {
			return name
		}
	}
	return ""
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
		for _, has := range []bool{r.read != nil, r.raw != nil, r.of != ""} {
			if has {
				bodies++
			}
		}
		if bodies != 1 {
			return fmt.Errorf("redfish: %s: want one of read, raw and of", r.uri)
		}
	}
	return nil
}

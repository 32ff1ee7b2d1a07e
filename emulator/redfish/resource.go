package redfish

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/mux"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// resource is a row of the tree: what is at the addresses of one pattern, who
// may do what there, and how.
type resource struct {
	uri     string                                    // pattern: "/redfish/v1/Systems/{system}"
	schema  string                                    // with its version: "ComputerSystem.v1_27_0"; "" for a document of the protocol
	open    bool                                      // can be read without login
	needs   needs                                     // as its entity's (privilege.go); said here of what has no entity: documents, and a vendor's own
	shows   shows                                     // the parts of a view that the body depends on
	when    func(v view) bool                         // whether it is there at all; nil: always
	link    string                                    // property of the resource above that leads here; "" is the last segment, "-" none
	read    func(v view) object                       // the body, but for what the framework adds
	finish  func(v view, o object, volatile []string) // adds what depends on all the rest of the body
	raw     func(s *Service, v view) (mime, []byte)   // a document of the protocol
	answer  func(x *exchange, v view)                 // to a GET or HEAD, where that is not the document
	origins bool                                      // it links to what something happened to
	name    string                                    // of a collection
	of      string                                    // variable that the members of a collection stand for
	own     func(v view, who actor) bool              // whether it belongs to that actor, for ConfigureSelf
	patch   *patch
	create  *create
	upload  *upload // it is no resource, and only takes what is sent to it
	remove  func(ctx context.Context, c operation) (reply, error)
	// guarded means that it is changed only on a condition, with If-Match.
	guarded bool
	// applies lists when creating, deleting and actions can take effect; nil,
	// or none: at once.
	applies func(v view) []string
	// quiet are methods that the resource takes without saying so: its schema
	// has no place for them, and clients count on them all the same.
	quiet []string
	// spares says whether this one resource does not take a method that its
	// row has; nil: it takes all.
	spares func(v view, method string) bool
	// volatile are properties, by their paths, that change by themselves and
	// that the ETag leaves out: who read the resource before may still change it (DSP0266,
	// "ETags").
	volatile []string
	// fragments are properties beside those of read, and moves is what those of
	// read do not depend on (fragments.go).
	fragments []fragment
	moves     shows
	actions   []action

	vendor *vendorRow // of a resource that only this vendor's service has
	fresh  bool       // its body is made anew each time, of all that there is
	typed  string     // @odata.type, where that does not follow from the schema

	untold bool // no event tells that it comes, goes or changes: others do
	whole  bool // a collection whose members stand in it whole (OData.AutoExpand)

	member *resource   // of a collection whose members stand in it whole
	below  []*resource // that the body links to by their link
}

// mime is a media type.
type mime string

const (
	jsonType mime = "application/json"
	xmlType  mime = "application/xml"
	gzipType mime = "application/gzip"
)

// content is the Content-Type header of a body.
func (m mime) content() string {
	if m == gzipType { // no text
		return string(m)
	}
	return string(m) + ";charset=utf-8"
}

// contents are the Content-Type headers of bodies.
var contents = map[mime][]string{
	jsonType: {jsonType.content()}, xmlType: {xmlType.content()}, gzipType: {gzipType.content()},
}

func (m mime) header() []string {
	if h, ok := contents[m]; ok {
		return h
	}
	return []string{m.content()}
}

// operation is one request that was understood: to whom, about what, by whom.
type operation struct {
	host Host
	view view   // of the resource that the request addresses
	set  values // what the client sent and the inputs took
	who  actor
	from string // address of the client
	x    *exchange
	in   document // what the client sent, whole
	when string   // it shall take effect: immediate, or another of resource.applies
}

// request tells a job what asked for it. A request that held a secret is not
// shown (DSP2046, Task.HidePayload).
func (c operation) request() bmc.Request {
	body, hidden := c.in.redacted(c.x.match)
	return bmc.Request{Method: c.x.r.Method, Target: c.x.match.target(), Body: body, Hidden: hidden}
}

// job is a job that this request asks for.
func (c operation) job(name string) bmc.OpenTask {
	return bmc.OpenTask{Name: name, User: c.who.user, Account: c.who.account, Request: c.request()}
}

// begin opens a job for a command to the machine and answers with it.
func (c operation) begin(ctx context.Context, name string, do func(job string) machine.Command) (reply, error) {
	c.x.expect(http.StatusAccepted)
	if job := c.x.joins; job != "" {
		return reply{job: job}, c.host.Apply(ctx, do(job))
	}
	j, err := c.host.Begin(ctx, c.job(name), do)
	return reply{job: j.ID}, err
}

// work has the BMC begin work of its own, and answers with its job.
func (c operation) work(ctx context.Context, do bmc.Command) (reply, error) {
	evs, err := c.host.ApplyBMC(ctx, do)
	if err != nil {
		return reply{}, err
	}
	for _, ev := range evs {
		if opened, ok := ev.(bmc.TaskOpened); ok {
			return reply{job: opened.Task.ID}, nil
		}
	}
	return reply{}, fmt.Errorf("redfish: %T opened no job", do)
}

// reply is what an operation answers. The zero reply has nothing to say but
// that it was done.
type reply struct {
	at     string            // address of what was made, when that is no member of the addressed collection
	id     string            // last segment of the address of a new member
	token  string            // of a session, shown this once
	body   object            // of an action that answers something
	job    string            // that goes on: the answer is 202 and leads to its task
	status int               // of the answer with body, or without one; 0: as is usual
	made   *stepAnswer       // that is the answer
	bad    []refusal         // of a PATCH: what only the model could find wrong; the rest was done
	told   []message.Message // beside the resource that is answered
}

// patch is how a resource is changed (DSP0266, "PATCH (update)").
type patch struct {
	inputs []input
	slow   func(set values) bool // waits for the world: others need not wait for it; nil: never
	apply  func(ctx context.Context, c operation) (reply, error)
}

// create is how a member is added to a collection (DSP0266, "POST (create)").
type create struct {
	open    bool // without login
	inputs  []input
	useCase string           // CollectionCapabilities.UseCase; "" when the schema knows none
	most    func(v view) int // members that there can be; nil: nobody knows
	apply   func(ctx context.Context, c operation) (reply, error)
}

// upload is how an address takes a body that is no JSON.
type upload struct {
	inputs []input // of what of it is
	apply  func(x *exchange, c operation) (reply, error)
}

// action is an action of a resource (DSP0266, "POST (action)").
type action struct {
	name   string // "ComputerSystem.Reset"
	at     string // where it is posted to, behind the address of the resource; "": where the standard has it; "/": there itself
	hidden bool   // the resource does not show it
	inner  bool   // only steps of vendors' requests reach it: the standard has no such action
	inputs []input
	late   func(v view) bool // of a slow one: it is answered with a task that goes on; nil: only for who prefers that
	like   string            // property that is written by it, so that it needs what a PATCH of that does; "": none
	slow   bool              // waits for the world: others need not wait for it
	defers bool              // takes effect when the client says, as far as the resource applies it
	when   func(v view) bool // whether the resource has it; nil: always
	apply  func(ctx context.Context, c operation) (reply, error)
	beside func(v view) object // what the resource shows of it, beside what follows from the inputs
}

// target is the address that a request of its kind goes to.
func (m *match) target() string {
	switch {
	case m.action != nil:
		return m.uri + m.action.target()
	case m.members:
		return m.uri + "/Members"
	}
	return m.uri
}

// target is where it is posted to, behind the address of its resource.
func (a *action) target() string {
	switch a.at {
	case "":
		return "/Actions/" + a.name
	case "/":
		return ""
	}
	return a.at
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
	served  *served
	pattern string
	vars    []string // of the pattern, outermost first
	action  *action  // its target
	makes   string   // schema of what a POST to it makes
	members bool     // the collection's Members, which takes a POST as the collection does
	methods []string
	allow   []string // Allow header
	stays   bool     // what it leads to depends on the dialect alone

	describedBy []string // Link header of the resource
}

// routes makes the routes of a tree.
func routes(tree []resource, all *served) []*route {
	var out []*route
	add := func(r *resource, below string, a *action, members bool) {
		t := &route{resource: r, served: all, pattern: r.uri + below, vars: variables(r.uri), action: a, members: members}
		t.methods = methods(t)
		if of := memberOf(tree, r); r.create != nil && of != nil {
			t.makes = of.schema
		}
		t.allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.methods), t.isQuiet), ", ")}
		t.stays = r.when == nil && (a == nil || a.when == nil) && !slices.ContainsFunc(t.vars, func(name string) bool { return theOnly[name] == nil })
		t.describedBy = []string{"<" + jsonSchema(r.schema) + ">; rel=describedby"}
		out = append(out, t)
	}
	for i := range tree {
		r := &tree[i]
		for j := range r.actions {
			a := &r.actions[j]
			add(r, a.target(), a, false)
			if len(a.inputs) > 0 && !a.hidden {
				add(actionInfo(r, a), "", nil, false)
			}
		}
		if r.create != nil { // before the members themselves
			add(r, "/Members", nil, true)
			if r.create.useCase != "" {
				add(capabilities(r, memberOf(tree, r)), "", nil, false)
			}
		}
		add(r, "", nil, false)
	}
	return out
}

// methods lists the HTTP methods that an address takes.
func methods(t *route) []string {
	if t.action != nil || t.members || t.upload != nil {
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

// takes lists the methods that a resource takes, as an Allow header.
func (r *resource) takes(v view) []string {
	all := slices.DeleteFunc(methods(&route{resource: r}), r.isQuiet)
	if r.spares != nil {
		all = slices.DeleteFunc(all, func(m string) bool { return r.spares(v, m) })
	}
	return []string{strings.Join(all, ", ")}
}

func (r *resource) isQuiet(method string) bool { return slices.Contains(r.quiet, method) }

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
	// base is what a vendor's action is of, where that is in the tree.
	base *match
}

// isThere says whether what it leads to is.
func (m *match) isThere(at *snapshot) bool {
	if m.base != nil {
		m = m.base
	}
	v := view{d: at.d, ids: m.ids}
	if !m.stays {
		v = m.view(at)
	}
	return m.missing(v) == "" && m.there(v)
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

// there says whether the resource is there, given that its variables' things are.
func (t *route) there(v view) bool {
	return (t.when == nil || t.when(v)) && (t.action == nil || t.action.when == nil || t.action.when(v))
}

// missing is the first variable whose thing is not there; "" when all are.
func (t *route) missing(v view) string {
	for _, name := range t.vars {
		if !v.has(name, v.ids[name]) {
			return name
		}
	}
	return ""
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

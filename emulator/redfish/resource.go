package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// resource is a row of the tree: what is at the addresses of one pattern, who
// may do what there, and how.
type resource struct {
	uri     string                                           // pattern: "/redfish/v1/Systems/{system}"
	schema  string                                           // with its version: "ComputerSystem.v1_27_0"; "" for a document of the protocol
	open    bool                                             // can be read without login
	needs   needs                                            // as its entity's (privilege.go); said here of what has no entity: documents, and a vendor's own
	shows   shows                                            // the parts of a view that the body depends on
	when    func(v view) bool                                // whether it is there at all; nil: always
	link    string                                           // property of the resource above that leads here; "" is the last segment, "-" none
	read    func(v view) object                              // the body, but for what the framework adds
	finish  func(v view, o object, etag func(object) string) // adds what depends on all the rest of the body, with its ETag
	raw     func(v view) (mime, []byte)                      // a document of the protocol
	answer  answerKind                                       // of a GET or HEAD; "": the representation
	origins bool                                             // it links to what something happened to
	name    string                                           // of a collection
	of      string                                           // variable that the members of a collection stand for
	own     func(v view, who actor) bool                     // whether it belongs to that actor, for ConfigureSelf
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

	vendor any    // of a resource that only one vendor's service has: what package vendor knows of it
	fresh  bool   // its body is made anew each time, of all that there is
	typed  string // @odata.type, where that does not follow from the schema

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

	streamType mime = "text/event-stream"
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
	kind   uploadKind
	inputs []input // of what of it is
}

// uploadKind says what a body that is no JSON holds.
type uploadKind string

const (
	plainUpload     uploadKind = "image"
	multipartUpload uploadKind = "multipart"
)

// answerKind says how a GET is answered that the representation is not the answer to.
type answerKind string

const (
	eventStream       answerKind = "event stream"
	taskMonitorAnswer answerKind = "task monitor"
)

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
	tree    *Tree
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
func routes(tree []resource, all *Tree) []*route {
	var out []*route
	add := func(r *resource, below string, a *action, members bool) {
		t := &route{resource: r, tree: all, pattern: r.uri + below, vars: variables(r.uri), action: a, members: members}
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

// exists says whether there is a resource to read.
func (m *match) exists(at *snapshot) bool { return m.action == nil && !m.members && m.isThere(at) }

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

// guards says whether a resource is changed only on a condition.
func (r *resource) guards(as dialect.ETags) bool {
	return r.guarded || slices.Contains(as.IfMatchRequired, "*") || slices.Contains(as.IfMatchRequired, typeName(r.schema))
}

package resource

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Row is a row of the tree: what is at the addresses of one pattern, who
// may do what there, and how.
type Row struct {
	URI            string                                           // pattern: "/redfish/v1/Systems/{system}"
	Schema         string                                           // with its version: "ComputerSystem.v1_27_0"; "" for a document of the protocol
	Open           bool                                             // can be read without login
	Privileges     Privileges                                       // as its entity's (privilege.go); said here of what has no entity: documents, and a vendor's own
	DependsOn      Parts                                            // the parts of a view that the body depends on
	When           func(v View) bool                                // whether it is there at all; nil: always
	Link           string                                           // property of the resource above that leads here; "" is the last segment, "-" none
	Read           func(v View) Object                              // the body, but for what the framework adds
	finish         func(v View, o Object, etag func(Object) string) // adds what depends on all the rest of the body, with its ETag
	Raw            func(v View) (MediaType, []byte)                 // a document of the protocol
	Answer         AnswerKind                                       // of a GET or HEAD; "": the representation
	origins        bool                                             // it links to what something happened to
	Name           string                                           // of a collection
	MemberVariable string                                           // variable that the members of a collection stand for
	BelongsTo      func(v View, who Actor) bool                     // whether it belongs to that actor, for ConfigureSelf
	Patch          *Patch
	Create         *Create
	Upload         *upload // it is no resource, and only takes what is sent to it
	Remove         func(ctx context.Context, c Call) (Result, error)
	// RequiresIfMatch means that it is changed only on a condition, with If-Match.
	RequiresIfMatch bool
	// ApplyTimes lists when creating, deleting and actions can take effect; nil,
	// or none: at once.
	ApplyTimes func(v View) []string
	// Unadvertised are methods that the resource takes without saying so: its schema
	// has no place for them, and clients count on them all the same.
	Unadvertised []string
	// Refuses says whether this one resource does not take a method that its
	// row has; nil: it takes all.
	Refuses func(v View, method string) bool
	// Volatile are properties, by their paths, that change by themselves and
	// that the ETag leaves out: who read the resource before may still change it (DSP0266,
	// "ETags").
	Volatile []string
	// Fragments are properties beside those of read, and moves is what those of
	// read do not depend on (fragments.go).
	Fragments     []fragment
	FragmentParts Parts
	Actions       []Action

	OEM       any    // of a resource that only one vendor's service has: what package vendor knows of it
	Uncached  bool   // its body is made anew each time, of all that there is
	ODataType string // @odata.type, where that does not follow from the schema

	NoEvents bool // no event tells that it comes, goes or changes: others do
	expands  bool // a collection that holds its members, not links to them (OData.AutoExpand)

	member *Row   // of a collection that expands
	below  []*Row // that the body links to by their link
}

// MediaType is a media type.
type MediaType string

const (
	JSON     MediaType = "application/json"
	XML      MediaType = "application/xml"
	gzipType MediaType = "application/gzip"

	EventStreamType MediaType = "text/event-stream"
)

// content is the Content-Type header of a body.
func (m MediaType) content() string {
	if m == gzipType { // no text
		return string(m)
	}
	return string(m) + ";charset=utf-8"
}

// contents are the Content-Type headers of bodies.
var contents = map[MediaType][]string{
	JSON: {JSON.content()}, XML: {XML.content()}, gzipType: {gzipType.content()},
}

func (m MediaType) Header() []string {
	if h, ok := contents[m]; ok {
		return h
	}
	return []string{m.content()}
}

// Patch is how a resource is changed (DSP0266, "PATCH (update)").
type Patch struct {
	Inputs []Input
	Slow   func(set Values) bool // waits for the world: others need not wait for it; nil: never
	Apply  func(ctx context.Context, c Call) (Result, error)
}

// Create is how a member is added to a collection (DSP0266, "POST (create)").
type Create struct {
	open    bool // without login
	Inputs  []Input
	UseCase string           // CollectionCapabilities.UseCase; "" when the schema knows none
	Most    func(v View) int // members that there can be; nil: nobody knows
	Apply   func(ctx context.Context, c Call) (Result, error)
}

// upload is how an address takes a body that is no JSON.
type upload struct {
	Kind   UploadKind
	inputs []Input // of what of it is
}

// UploadKind says what a body that is no JSON holds.
type UploadKind string

const (
	PlainUpload     UploadKind = "image"
	MultipartUpload UploadKind = "multipart"
)

// AnswerKind says how a GET is answered that the representation is not the answer to.
type AnswerKind string

const (
	EventStream       AnswerKind = "event stream"
	TaskMonitorAnswer AnswerKind = "task monitor"
)

// Action is an action of a resource (DSP0266, "POST (action)").
type Action struct {
	Name   string // "ComputerSystem.Reset"
	At     string // where it is posted to, behind the address of the resource; "": where the standard has it; "/": there itself
	Hidden bool   // the resource does not show it
	Inner  bool   // only steps of vendors' requests reach it: the standard has no such action
	Inputs []Input
	Late   func(v View) bool // of a slow one: it is answered with a task that goes on; nil: only for who prefers that
	like   string            // property that is written by it, so that it needs what a PATCH of that does; "": none
	Slow   bool              // waits for the world: others need not wait for it
	Defers bool              // takes effect when the client says, as far as the resource applies it
	when   func(v View) bool // whether the resource has it; nil: always
	Apply  func(ctx context.Context, c Call) (Result, error)
	beside func(v View) Object // what the resource shows of it, beside what follows from the inputs
}

// target is the address that a request of its kind goes to.
func (m *Match) target() string {
	switch {
	case m.Action != nil:
		return m.URI + m.Action.Target()
	case m.Members:
		return m.URI + "/Members"
	}
	return m.URI
}

// Target is where it is posted to, behind the address of its resource.
func (a *Action) Target() string {
	switch a.At {
	case "":
		return "/Actions/" + a.Name
	case "/":
		return ""
	}
	return a.At
}

// verb is the name without its type.
func (a *Action) verb() string {
	_, verb, _ := strings.Cut(a.Name, ".")
	return verb
}

// Route is what the addresses of one pattern lead to: a resource, or one of
// the addresses that a resource has beside its own.
type Route struct {
	*Row
	Tree    *Tree
	Pattern string
	Vars    []string // of the pattern, outermost first
	Action  *Action  // its target
	makes   string   // schema of what a POST to it makes
	Members bool     // the collection's Members, which takes a POST as the collection does
	Methods []string
	Allow   []string // Allow header
	stays   bool     // what it leads to depends on the dialect alone

	DescribedBy []string // Link header of the resource
}

// Routes makes the routes of a tree.
func Routes(tree []Row, all *Tree) []*Route {
	var out []*Route
	add := func(r *Row, below string, a *Action, members bool) {
		t := &Route{Row: r, Tree: all, Pattern: r.URI + below, Vars: Variables(r.URI), Action: a, Members: members}
		t.Methods = methods(t)
		if of := memberOf(tree, r); r.Create != nil && of != nil {
			t.makes = of.Schema
		}
		t.Allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.Methods), t.IsUnadvertised), ", ")}
		t.stays = r.When == nil && (a == nil || a.when == nil) && !slices.ContainsFunc(t.Vars, func(name string) bool { return theOnly[name] == nil })
		t.DescribedBy = []string{"<" + JSONSchema(r.Schema) + ">; rel=describedby"}
		out = append(out, t)
	}
	for i := range tree {
		r := &tree[i]
		for j := range r.Actions {
			a := &r.Actions[j]
			add(r, a.Target(), a, false)
			if len(a.Inputs) > 0 && !a.Hidden {
				add(actionInfo(r, a), "", nil, false)
			}
		}
		if r.Create != nil { // before the members themselves
			add(r, "/Members", nil, true)
			if r.Create.UseCase != "" {
				add(Capabilities(r, memberOf(tree, r)), "", nil, false)
			}
		}
		add(r, "", nil, false)
	}
	return out
}

// methods lists the HTTP methods that an address takes.
func methods(t *Route) []string {
	if t.Action != nil || t.Members || t.Upload != nil {
		return []string{http.MethodPost, http.MethodOptions}
	}
	out := []string{http.MethodGet, http.MethodHead}
	for _, m := range []struct {
		method string
		has    bool
	}{{http.MethodPatch, t.Patch != nil}, {http.MethodPost, t.Create != nil}, {http.MethodDelete, t.Remove != nil}} {
		if m.has {
			out = append(out, m.method)
		}
	}
	return append(out, http.MethodOptions)
}

// AllowHeader lists the methods that a resource takes, as an Allow header.
func (r *Row) AllowHeader(v View) []string {
	all := slices.DeleteFunc(methods(&Route{Row: r}), r.IsUnadvertised)
	if r.Refuses != nil {
		all = slices.DeleteFunc(all, func(m string) bool { return r.Refuses(v, m) })
	}
	return []string{strings.Join(all, ", ")}
}

func (r *Row) IsUnadvertised(method string) bool { return slices.Contains(r.Unadvertised, method) }

// Variables lists the variables of a pattern.
func Variables(pattern string) []string {
	var out []string
	for s := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(s, "{") {
			out = append(out, strings.Trim(s, "{}"))
		}
	}
	return out
}

// Match is an address with the route that it takes.
type Match struct {
	*Route
	URI string            // of the resource
	IDs map[string]string // never changed
	// On is what a vendor's action is of, where that is in the tree.
	On *Match
}

// exists says whether there is a resource to read.
func (m *Match) exists(at *Snapshot) bool { return m.Action == nil && !m.Members && m.IsPresent(at) }

// IsPresent says whether what it leads to is.
func (m *Match) IsPresent(at *Snapshot) bool {
	if m.On != nil {
		m = m.On
	}
	v := View{Dialect: at.Dialect, IDs: m.IDs}
	if !m.stays {
		v = m.View(at)
	}
	return m.Missing(v) == "" && m.There(v)
}

// There says whether the resource is there, given that its variables' things are.
func (t *Route) There(v View) bool {
	return (t.When == nil || t.When(v)) && (t.Action == nil || t.Action.when == nil || t.Action.when(v))
}

// Missing is the first variable whose thing is not there; "" when all are.
func (t *Route) Missing(v View) string {
	for _, name := range t.Vars {
		if !v.Has(name, v.IDs[name]) {
			return name
		}
	}
	return ""
}

// GuardedBy says whether a resource is changed only on a condition.
func (r *Row) GuardedBy(as dialect.ETags) bool {
	return r.RequiresIfMatch || slices.Contains(as.IfMatchRequired, "*") || slices.Contains(as.IfMatchRequired, TypeName(r.Schema))
}

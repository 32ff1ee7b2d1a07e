package resource

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// Row declares the resources at the URIs of one pattern. Exactly one of Read, Raw,
// memberVariable and Upload is set. A field is exported if another package reads or
// sets it: package redfish answers requests by it, package vendor makes rows of OEM
// resources, and packages render and event read representations through it.
type Row struct {
	// The resource and its URIs.

	URI       string            // pattern: "/redfish/v1/Systems/{system}"
	Schema    string            // with its version: "ComputerSystem.v1_27_0"; "" for a document of the protocol
	ODataType string            // @odata.type, if it does not follow from Schema
	Link      string            // property of the parent resource that links here; "": the last segment of URI; "-": none
	When      func(v View) bool // reports whether the resource exists; nil: always
	OEM       any               // package vendor's data of an OEM resource

	// GET.

	Read           func(v View) Object                              // returns the body without the properties that follow from the row
	finish         func(v View, o Object, etag func(Object) string) // adds the properties that depend on the rest of the body, or on its ETag
	Raw            func(v View) (MediaType, []byte)                 // returns a document of the protocol, which is not a resource
	collectionName string                                           // Name of a collection
	memberVariable string                                           // URI variable of a collection's members
	autoExpand     bool                                             // a collection contains its members in full, not links to them (OData.AutoExpand)
	Response       ResponseKind                                     // kind of response to a GET or HEAD, if it is not the representation
	Fragments      []fragment                                       // properties in addition to those of Read (fragment.go)
	FragmentParts  Parts                                            // the parts in DependsOn that Read itself does not depend on

	// The cache, ETags and events.

	DependsOn      Parts    // the parts of the state that the body depends on
	linksToOrigins bool     // the body calls OriginOfCondition, so it depends on more parts
	Uncached       bool     // the body depends on the entire state and is rendered for each request
	Volatile       []string // paths of properties that change without a request and that the ETag omits, so that If-Match of a client stays valid (DSP0266, "ETags")
	NoEvents       bool     // no ResourceEvent reports a change, because other events do

	// Authorization.

	Unauthenticated bool                         // GET needs no authentication
	Privileges      Privileges                   // follow from the entity (privilege.go); rows without an entity, documents and OEM resources, state them
	BelongsTo       func(v View, who Actor) bool // reports whether the resource is the actor's own, for ConfigureSelf

	// The other methods. The row has no method whose field is nil.

	Patch           *Patch
	Create          *create                                           // POST to a collection
	Upload          *upload                                           // POST of a file: the URI is no resource and only accepts uploads
	Remove          func(ctx context.Context, c Call) (Result, error) // DELETE
	Actions         []Action
	RequiresIfMatch bool                             // a change without If-Match is refused
	ApplyTimes      func(v View) []string            // returns the supported values of OperationApplyTime for POST, DELETE and actions; nil: no annotation; an empty list: an annotation without values
	Refuses         func(v View, method string) bool // reports whether this resource refuses a method that the row has; nil: it refuses none
	Unadvertised    []string                         // methods that the resource accepts and Allow omits: its schema does not have them, but clients use them

	// Derived by NewTree from the other rows.

	memberRow    *Row   // row of the members of an autoExpand collection
	subordinates []*Row // the rows that the body links to
}

// MediaType is a media type.
type MediaType string

// Media types of bodies.
const (
	JSON     MediaType = "application/json"
	XML      MediaType = "application/xml"
	gzipType MediaType = "application/gzip"

	EventStreamType MediaType = "text/event-stream"
)

// contentType returns the Content-Type header of a body.
func (m MediaType) contentType() string {
	if m == gzipType { // no text
		return string(m)
	}
	return string(m) + ";charset=utf-8"
}

// contentTypes holds the Content-Type headers of the known media types. Responses share
// them, so callers do not change them.
var contentTypes = map[MediaType][]string{
	JSON: {JSON.contentType()}, XML: {XML.contentType()}, gzipType: {gzipType.contentType()},
}

// Header returns the Content-Type header as http.Header stores it.
func (m MediaType) Header() []string {
	if h, ok := contentTypes[m]; ok {
		return h
	}
	return []string{m.contentType()}
}

// Patch describes how a resource is changed (DSP0266, "PATCH (update)").
type Patch struct {
	Inputs []Input
	Slow   func(set Values) bool // reports whether a change may wait for other machines and so runs without the write lock; nil: never
	Apply  func(ctx context.Context, c Call) (Result, error)
}

// create describes how a member is added to a collection (DSP0266, "POST (create)").
type create struct {
	unauthenticated bool // without authentication
	Inputs          []Input
	useCase         string           // CollectionCapabilities.UseCase; "" when the schema has none
	maxMembers      func(v View) int // the most members the collection can have; nil: unknown
	Apply           func(ctx context.Context, c Call) (Result, error)
}

// upload describes how a URI accepts a body that is not JSON.
type upload struct {
	Kind   UploadKind
	inputs []Input // inputs of its JSON part
}

// UploadKind is what an upload contains.
type UploadKind string

// Kinds of uploads.
const (
	PlainUpload     UploadKind = "image"
	MultipartUpload UploadKind = "multipart"
)

// Property returns the property of the UpdateService that names the URI.
func (k UploadKind) Property() string {
	if k == MultipartUpload {
		return "MultipartHttpPushUri"
	}
	return "HttpPushUri"
}

// ResponseKind names a response to a GET that is not the representation of a resource.
type ResponseKind string

// Kinds of such responses.
const (
	EventStreamResponse ResponseKind = "event stream"
	TaskMonitorResponse ResponseKind = "task monitor"
)

// Action is an action of a resource (DSP0266, "POST (action)").
type Action struct {
	Name              string // "ComputerSystem.Reset"
	TargetPath        string // the target URI, relative to the resource; "": /Actions/Name, as in the standard; "/": the resource itself
	Hidden            bool   // the body of the resource omits the action
	Internal          bool   // the standard has no such action; package vendor translates OEM requests to it
	Inputs            []Input
	AsTask            func(v View) bool // reports whether the action is always answered with 202 and a task; nil: only with Prefer: respond-async
	writes            string            // property that the action writes: it requires the privileges of a PATCH of that property; "": none
	Slow              bool              // may wait for other machines, so it runs without the write lock
	SupportsApplyTime bool              // accepts @Redfish.OperationApplyTime, with the resource's ApplyTimes
	when              func(v View) bool // reports whether the resource has the action; nil: always
	Apply             func(ctx context.Context, c Call) (Result, error)
	extraProperties   func(v View) Object // returns properties of the action in the body, in addition to those of its inputs
}

// target returns the URI that requests of the match's kind are sent to.
func (m *Match) target() string {
	switch {
	case m.Action != nil:
		return m.URI + m.Action.Target()
	case m.Members:
		return m.URI + "/Members"
	}
	return m.URI
}

// Target returns the target of the action, relative to the URI of its resource.
func (a *Action) Target() string {
	switch a.TargetPath {
	case "":
		return "/Actions/" + a.Name
	case "/":
		return ""
	}
	return a.TargetPath
}

// verb returns the name of the action without its resource type.
func (a *Action) verb() string {
	_, verb, _ := strings.Cut(a.Name, ".")
	return verb
}

// Route is the target of the URIs of one pattern: a resource, an action of one, or the
// Members of a collection.
type Route struct {
	*Row
	Tree         *Tree
	Pattern      string
	Vars         []string // variables of the pattern, outermost first
	Action       *Action  // the action whose target this is; nil: none
	memberSchema string   // schema of the resource that a POST creates
	Members      bool     // the URI is a collection's Members, which accepts POST as the collection does
	Methods      []string
	Allow        []string // Allow header
	static       bool     // whether the resource exists depends on the dialect alone

	DescribedBy []string // Link header of the resource
}

// Routes returns the routes of a tree.
func Routes(tree []Row, all *Tree) []*Route {
	var out []*Route
	add := func(r *Row, below string, a *Action, members bool) {
		t := &Route{Row: r, Tree: all, Pattern: r.URI + below, Vars: Variables(r.URI), Action: a, Members: members}
		t.Methods = methods(t)
		if of := memberRow(tree, r); r.Create != nil && of != nil {
			t.memberSchema = of.Schema
		}
		t.Allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.Methods), t.IsUnadvertised), ", ")}
		t.static = r.When == nil && (a == nil || a.when == nil) && !slices.ContainsFunc(t.Vars, func(name string) bool { return singletonIDs[name] == nil })
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
			if r.Create.useCase != "" {
				add(capabilities(r, memberRow(tree, r)), "", nil, false)
			}
		}
		add(r, "", nil, false)
	}
	return out
}

// methods returns the HTTP methods that a route accepts.
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

// AllowHeader returns the Allow header of a resource.
func (r *Row) AllowHeader(v View) []string {
	all := slices.DeleteFunc(methods(&Route{Row: r}), r.IsUnadvertised)
	if r.Refuses != nil {
		all = slices.DeleteFunc(all, func(m string) bool { return r.Refuses(v, m) })
	}
	return []string{strings.Join(all, ", ")}
}

// IsUnadvertised reports whether Allow omits a method that the resource accepts.
func (r *Row) IsUnadvertised(method string) bool { return slices.Contains(r.Unadvertised, method) }

// Variables returns the variables of a URI pattern.
func Variables(pattern string) []string {
	var out []string
	for s := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(s, "{") {
			out = append(out, strings.Trim(s, "{}"))
		}
	}
	return out
}

// Match is a URI with its route.
type Match struct {
	*Route
	URI string            // URI of the resource
	IDs map[string]string // the values of the pattern's variables; never changed
	// Base is the resource in the tree that an OEM action belongs to; nil: none.
	Base *Match
}

// exists reports whether the URI names a resource that can be read.
func (m *Match) exists(at *Snapshot) bool { return m.Action == nil && !m.Members && m.IsPresent(at) }

// IsPresent reports whether what the URI names exists in a snapshot.
func (m *Match) IsPresent(at *Snapshot) bool {
	if m.Base != nil {
		m = m.Base
	}
	v := View{Dialect: at.Dialect, IDs: m.IDs}
	if !m.static {
		v = m.View(at)
	}
	return m.PresentIn(v)
}

// PresentIn is IsPresent for a caller that has the view already.
func (t *Route) PresentIn(v View) bool { return t.MissingVariable(v) == "" && t.ConditionsHold(v) }

// ConditionsHold reports whether the row's When and the action's when hold. The caller has
// checked the variables with MissingVariable.
func (t *Route) ConditionsHold(v View) bool {
	return (t.When == nil || t.When(v)) && (t.Action == nil || t.Action.when == nil || t.Action.when(v))
}

// MissingVariable returns the first variable whose ID does not exist, or "" when all exist.
func (t *Route) MissingVariable(v View) string {
	for _, name := range t.Vars {
		if !v.Has(name, v.IDs[name]) {
			return name
		}
	}
	return ""
}

// GuardedBy reports whether a change of the resource requires If-Match, by its row or by
// the dialect.
func (r *Row) GuardedBy(as dialect.ETags) bool {
	return r.RequiresIfMatch || slices.Contains(as.IfMatchRequired, "*") || slices.Contains(as.IfMatchRequired, TypeName(r.Schema))
}

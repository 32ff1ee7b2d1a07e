package dialect

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// OEM describes what only this vendor's service has (DSP0266, "OEM extension").
// The standard service carries it out: the effects of a vendor's action are
// requests to standard URIs, to which RejectRules do not apply. A hook, a Go
// function, does what data cannot describe; a dialect has ten hooks at most.
type OEM struct {
	Resources          []Resource
	Actions            []Action
	WritableProperties []WritableProperty
	// URIAliases are more URIs at which clients find resources: From is the alias,
	// To the standard URI, or that of an OEM resource. No body shows them.
	URIAliases []URIMapping
}

// IsEmpty reports whether the vendor has no extensions.
func (o *OEM) IsEmpty() bool {
	return len(o.Resources)+len(o.Actions)+len(o.WritableProperties)+len(o.URIAliases) == 0
}

// Resource is a resource that only this vendor's service has.
type Resource struct {
	// URI is the pattern of its URI, as clients see it. A variable has the value that
	// it has in standard URIs: {task}, {slot}, {controller}.
	URI  string
	Type string // namespace, version, name: "AcmeJobs.v1_0_0.AcmeJobs"
	Name string // property Name
	// BasedOn is the pattern of the standard URI of the resource whose body this one
	// begins with, and without which it does not exist. Its links to URIs below
	// BasedOn become links to URIs below URI. "": the body begins empty.
	BasedOn string
	// RequiredProperty is the path of a property of BasedOn without which the resource
	// does not exist. A collection shows no members that do not exist.
	RequiredProperty string
	Remove           []string                         // paths of properties to remove from BasedOn
	Set              []PropertyRule                   // properties to set
	Read             func(HookContext) map[string]any // hook: properties to set on top of Set; nil is none
	// StoredAs is the name of an object that an Effect has stored, whose properties
	// are set on top of all others. While nothing is stored under the name the
	// resource does not exist; a DELETE, if PassedMethods has it, removes the object.
	StoredAs string
	// Writable has the paths of properties that clients may PATCH and that the BMC
	// then stores: "ServerBoot/FirstBootDevice"; "Attributes/*" is each property of
	// Attributes.
	Writable []string
	// PassedMethods has methods, of PATCH and DELETE, that are passed on to the
	// resource that this one is BasedOn: a PATCH with the properties that are not
	// Writable.
	PassedMethods []string
	// RequiresIfMatch answers a change without If-Match 428.
	RequiresIfMatch bool
	// AllowableValues has the values of Writable properties, by their paths.
	// Properties that it does not have may have any value.
	AllowableValues map[string][]string
	Privilege       string // privilege that a change needs; "" is ConfigureManager
}

// Action is an action that only this vendor's service has.
type Action struct {
	ResourceURI string // pattern of the URI of the resource that shows the action, as clients see it
	// Name is the action's name in Actions: "AcmeJobs.Clear". A standard resource
	// shows it in Actions/Oem.
	Name string
	// Target is what the action's URI has behind ResourceURI; "" is /Actions/NAME, or
	// /Actions/Oem/NAME in a standard resource; "/" is the resource itself.
	Target     string
	Hidden     bool // no body shows the action
	Parameters []Parameter
	Privilege  string // privilege that the action needs; "" is ConfigureManager
	Effects    []Effect
}

// ParameterType is the JSON type of a parameter or of a writable property.
type ParameterType string

// The types.
const (
	StringParameter  ParameterType = ""        // a string
	IntegerParameter ParameterType = "integer" // a number without fraction
	BooleanParameter ParameterType = "boolean" // true or false
	ObjectParameter  ParameterType = "object"  // an object
	ArrayParameter   ParameterType = "array"   // a list
)

// Parameter is a parameter of an action.
type Parameter struct {
	Name            string // "ShareParameters/Target" is Target in the object ShareParameters
	Type            ParameterType
	Required        bool     // a request without it is rejected
	AllowableValues []string // values that a string, or the strings of an array, may have; empty: any
	AcceptsSingle   bool     // a text with the elements, and commas between them, may be sent in place of an array
	Secret          bool     // error messages and action info do not show the value
}

// WritableProperty is a vendor's property in a standard resource that clients set by
// PATCH.
type WritableProperty struct {
	ResourceType string // type of the resource, without version
	URI          string // pattern of its standard URI, as in URIMapping.From; "" is any
	Path         string // path of the property: "Oem/Acme/BootOnce"
	Type         ParameterType
	Effects      []Effect // "$" in their texts is the value
}

// Effect is what a request to an Action or a WritableProperty does: the first effect
// whose conditions hold is carried out. A request for which none holds is rejected.
//
// The texts of Store, Requests and Body may refer to values. A text that is "$" alone
// is the value that was sent, and "$A/B" alone is that of its property, with its JSON
// type; a property of a body whose text refers to a value that was not sent is left
// out. "=NAME" alone is the value stored under a name. {system}, {manager}, {chassis},
// {self} and the variables of the URI are filled in anywhere in a text, as are {$A/B}
// and {=NAME}.
type Effect struct {
	When  map[string][]string // the request's properties have one of these values
	While Condition
	For   time.Duration // how long a While that begins with "after" lasts
	// Reject rejects the request with a message, and nothing else happens.
	Reject *VendorMessage
	Status int // HTTP status of the response; 0 is 400 with Reject, else the standard's
	// Store has values for the BMC to store, by names; null removes one.
	Store map[string]any
	// EjectAfterBoots ejects the media of the slot that the request addresses after so
	// many boots of the system. 0 leaves an earlier setting as it is, -1 cancels it.
	EjectAfterBoots int
	// Requests are carried out by the standard service, in their order; the first that
	// fails gives the answer.
	Requests []StandardRequest
	// Task is the name of a task that carries out Requests: the response is 202, and
	// tasks that the requests start become part of it, so that it ends after them.
	// "": the requests are carried out before the response.
	Task         string
	TaskDuration time.Duration // how long the task takes before Requests
	// Body is the body of the response; nil is that of the last request, or the task.
	// {job} is the ID of the task.
	Body map[string]any
	// TaskResult is the response to a read of the task or its monitor once it has
	// ended: a JSON value, or a plain text.
	TaskResult any
	// Hook is a function that returns the effect, in place of all other fields.
	Hook func(ActionCall) (Effect, error)
}

// StandardRequest is a request to a standard URI.
type StandardRequest struct {
	Method string         // "PATCH", "POST", "DELETE"
	URI    string         // "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset"
	Body   map[string]any // body of the request
}

// HookContext is what a hook may read. It must not change any of it.
type HookContext struct {
	Machine   *machine.View
	BMC       *bmc.View
	Now       time.Time         // the lab's time
	URI       string            // URI of the resource
	Variables map[string]string // variables of the URI
	Stored    map[string]any    // values that effects have stored, by names
	// Standard returns the body of the resource at a standard URI, or nil.
	Standard func(uri string) map[string]any
}

// ActionCall is the request that a hook of an action carries out.
type ActionCall struct {
	HookContext
	Body  map[string]any // body of the request
	Query url.Values     // query of its URI
}

// Rejection is the error with which a hook rejects a request.
type Rejection struct {
	Status  int // HTTP status; 0 is 400
	Message VendorMessage
	Args    []string // arguments of Message
}

// Error returns "REGISTRY.KEY: TEXT".
func (r *Rejection) Error() string {
	return r.Message.Registry + "." + r.Message.Key + ": " + r.Message.Text
}

// Hooks returns the number of hooks of a record: of functions, which several resources
// and effects may use.
func (r *Record) Hooks() int {
	hooks := map[uintptr]bool{}
	count := func(all []Effect) {
		for _, e := range all {
			if e.Hook != nil {
				hooks[reflect.ValueOf(e.Hook).Pointer()] = true
			}
		}
	}
	for _, o := range r.OEM.Resources {
		if o.Read != nil {
			hooks[reflect.ValueOf(o.Read).Pointer()] = true
		}
	}
	for _, a := range r.OEM.Actions {
		count(a.Effects)
	}
	for _, w := range r.OEM.WritableProperties {
		count(w.Effects)
	}
	return len(hooks)
}

// maxHooks is how many hooks a dialect may have. A vendor that needs more belongs in
// the standard service, or in a new field of Record.
const maxHooks = 10

var requestMethods = []string{"PATCH", "POST", "DELETE"}

// validateOEM checks OEM.
func (r *Record) validateOEM(need func(ok bool, field, fix string)) {
	pattern := func(field, p string) {
		need(strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/"), field, fmt.Sprintf("%q must begin with a slash and not end with one", p))
	}
	message := func(field string, s *VendorMessage) {
		need(s.Registry != "" && s.Key != "" && s.Text != "" && registryVersion.MatchString(s.Version), field, "must have a registry, its version, a key and a text")
	}
	effects := func(owner string, all []Effect) {
		need(len(all) > 0, owner+".effects", "must not be empty")
		for i, e := range all {
			field := item(owner+".effects", i)
			need(slices.Contains(conditions, e.While), field+".while", fmt.Sprintf("%q: must be one of %q", e.While, conditions))
			need(e.Hook == nil || len(e.Requests)+len(e.Store) == 0 && e.Task == "", field, "a hook stands alone: requests, store and task must be empty")
			need(e.TaskDuration == 0 && e.TaskResult == nil || e.Task != "", field+".task", "must not be empty where taskDuration or taskResult is given")
			if e.Reject != nil {
				message(field+".reject", e.Reject)
			}
			for j, s := range e.Requests {
				request := item(field+".requests", j)
				need(slices.Contains(requestMethods, s.Method), request+".method", fmt.Sprintf("%q: must be one of %v", s.Method, requestMethods))
				pattern(request+".uri", s.URI)
			}
		}
	}
	need(r.Hooks() <= maxHooks, "oem", fmt.Sprintf("has %d hooks, must have %d at most", r.Hooks(), maxHooks))
	for i, o := range r.OEM.Resources {
		at := item("oem.resources", i)
		pattern(at+".uri", o.URI)
		need(strings.Count(o.Type, ".") <= 2 && o.Type != "", at+".type", fmt.Sprintf("%q: must be a type like AcmeJobs.v1_0_0.AcmeJobs", o.Type))
		if o.BasedOn != "" {
			pattern(at+".basedOn", o.BasedOn)
		}
		need(o.RequiredProperty == "" || o.BasedOn != "", at+".requiredProperty", "needs basedOn")
	}
	for i, a := range r.OEM.Actions {
		at := item("oem.actions", i)
		pattern(at+".resourceURI", a.ResourceURI)
		need(a.Name != "", at+".name", "must not be empty")
		effects(at, a.Effects)
	}
	for i, w := range r.OEM.WritableProperties {
		at := item("oem.writableProperties", i)
		need(w.ResourceType != "" && w.Path != "", at, "needs resourceType and path")
		effects(at, w.Effects)
	}
	for i, m := range r.OEM.URIAliases {
		pattern(item("oem.uriAliases", i)+".from", m.From)
		pattern(item("oem.uriAliases", i)+".to", m.To)
	}
}

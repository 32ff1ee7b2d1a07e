package dialect

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// OEM is what only this vendor's service has, beside what the standard's has
// (DSP0266, "OEM extension"). It is carried out by the standard's means: what a
// vendor's action does are requests to the tree, which no Rule of the Face
// stands before. Where data cannot say it, a hook does; a dialect has ten at
// most.
type OEM struct {
	Resources          []Resource
	Actions            []Action
	WritableProperties []WritableProperty
	// Also are further addresses at which clients find what the tree has: From
	// is theirs, To the tree's. No body shows them.
	URIAliases []URIMapping
}

// IsEmpty says that a vendor has nothing of his own.
func (o *OEM) IsEmpty() bool {
	return len(o.Resources)+len(o.Actions)+len(o.WritableProperties)+len(o.URIAliases) == 0
}

// Resource is one that only this vendor's service has.
type Resource struct {
	// At is the pattern of its address, as clients see it. A variable stands for
	// what it does in the tree: {task}, {slot}, {controller}.
	URI  string
	Type string // namespace, version, name: "AcmeJobs.v1_0_0.AcmeJobs"
	Name string
	// Like is the pattern of the address in the tree of the resource that it
	// begins with, and without which it is not there. Addresses below that are
	// told as being below this. "": it begins with nothing.
	BasedOn string
	Remove  []string
	Set     []PropertyRule
	Read    func(HookContext) map[string]any // hook: comes on top, when not nil
	// Kept is the name of an object that is kept, and shown on top of all else.
	// While nothing is kept under it the resource is not there; who deletes it,
	// if Takes has DELETE, has it forgotten.
	StoredAs string
	// Changes are the paths of the properties that clients may write by PATCH,
	// and which are kept: "ServerBoot/FirstBootDevice"; "Attributes/*" are all
	// that Attributes shows.
	Writable []string
	// Takes are methods that go on to what it is like, of PATCH and DELETE: a
	// PATCH with what Changes does not name.
	PassedMethods []string
	// Guarded says that it is changed only with If-Match.
	RequiresIfMatch bool
	// Allows are the values that properties of Changes take, by their paths; any
	// for those that it does not have.
	AllowableValues map[string][]string
	Privilege       string // privilege for changing it; "": ConfigureManager
}

// Action is one that only this vendor's service has.
type Action struct {
	ResourceURI string // pattern of the address of the resource that shows it, as clients see it
	// Name is what it stands under in Actions: "AcmeJobs.Clear". In a resource
	// of the standard's that is in Actions/Oem.
	Name string
	// At is where it is posted to, behind the address of the resource; "" is
	// /Actions/Name, in a resource of the standard's /Actions/Oem/Name, "/" the
	// resource itself.
	Target     string
	Hidden     bool // no body shows it
	Parameters []Parameter
	Privilege  string // privilege; "": those of ConfigureManager
	Effects    []Effect
}

// ParameterType is the JSON type of an input.
type ParameterType string

// The types.
const (
	StringParameter  ParameterType = "" // a string
	IntegerParameter ParameterType = "integer"
	BooleanParameter ParameterType = "boolean"
	ObjectParameter  ParameterType = "object"
	ArrayParameter   ParameterType = "array"
)

// Parameter is a parameter of an action.
type Parameter struct {
	Name            string // "ShareParameters/Target" is one within an object
	Type            ParameterType
	Required        bool
	AllowableValues []string // of a text, or of those of a list; none: any
	Secret          bool
}

// WritableProperty is a property of a vendor's own in a resource of the standard's, which
// a PATCH sets.
type WritableProperty struct {
	ResourceType string // type of the resource, without version
	URI          string // pattern of its address in the tree, as Move.From; "": anywhere
	Path         string // "Oem/Acme/BootOnce"
	Type         ParameterType
	Effects      []Effect // "$" in a text is the value
}

// Effect is what a request of this vendor's does: of several the first whose
// conditions hold. A request that none is for is refused.
//
// In the texts of Keep, Step and Body, "$" and "$A/B" alone are the value that
// was sent, or that of its property, with its type; a property whose text that
// is, and that was not sent, is left out. "=Name" alone is what is kept under a
// name. {system}, {manager}, {chassis}, {self} and the variables of the address
// are filled in anywhere, as are {$A/B} and {=Name}.
type Effect struct {
	When  map[string][]string // values that properties of the request have
	While Condition
	For   time.Duration
	// Refuse ends it.
	Reject *VendorMessage
	Status int // of the answer; of Refuse 400, of others 0 is as the standard has it
	// Keep is remembered by the BMC, by names; nil forgets.
	Store map[string]any
	// Leaves is after how many starts of the system the slot that the request is
	// about is emptied; 0: whatever was said before goes on holding. -1 takes that
	// back.
	EjectAfterBoots int
	Requests        []StandardRequest
	// Job is the name of the job that carries out Steps; the answer is 202.
	// What a step begins joins it: it ends when that has ended, too.
	// "": they are carried out at once, and the first that fails is the answer.
	Task         string
	TaskDuration time.Duration // of the job, before its steps
	// Body is that of the answer; nil: that of the last step, or, with Job, the
	// task. With Job, {job} is filled in, too.
	Body map[string]any
	// Result is what reading the job's task, or its monitor, is answered when it
	// has ended: JSON or, if it is a text, that text.
	TaskResult any
	// Do is the hook that says what to do, instead of all the rest.
	Hook func(ActionCall) (Effect, error)
}

// StandardRequest is a request to the tree.
type StandardRequest struct {
	Method string // "PATCH", "POST", "DELETE"
	URI    string // "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset"
	Body   map[string]any
}

// HookContext is what a hook sees. It changes nothing of it.
type HookContext struct {
	Machine   *machine.View
	BMC       *bmc.View
	Now       time.Time         // of the lab
	URI       string            // address of the resource
	Variables map[string]string // variables of the address
	Stored    map[string]any    // by names
	// Tree reads a resource of the tree, whole; nil where there is none.
	Standard func(address string) map[string]any
}

// ActionCall is what a hook of an action sees.
type ActionCall struct {
	HookContext
	Body  map[string]any // of the request
	Query url.Values     // of its address
}

// Rejection is the error by which a hook refuses a request.
type Rejection struct {
	Status  int // 0 is 400
	Message VendorMessage
	Args    []string
}

func (r *Rejection) Error() string {
	return r.Message.Registry + "." + r.Message.Key + ": " + r.Message.Text
}

// Hooks counts the functions of a record.
func (r *Record) Hooks() int {
	n := 0
	count := func(all []Effect) {
		for _, e := range all {
			if e.Hook != nil {
				n++
			}
		}
	}
	for _, o := range r.OEM.Resources {
		if o.Read != nil {
			n++
		}
	}
	for _, a := range r.OEM.Actions {
		count(a.Effects)
	}
	for _, w := range r.OEM.WritableProperties {
		count(w.Effects)
	}
	return n
}

// maxHooks is how many functions a dialect may have: what needs more is no
// dialect.
const maxHooks = 10

var requestMethods = []string{"PATCH", "POST", "DELETE"}

// validateOEM says what is wrong with what a vendor has of his own.
func (r *Record) validateOEM(need func(ok bool, field, fix string)) {
	pattern := func(field, p string) {
		need(strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/"), field, fmt.Sprintf("%q must begin with a slash and not end with one", p))
	}
	says := func(field string, s *VendorMessage) {
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
				says(field+".reject", e.Reject)
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

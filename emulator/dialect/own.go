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

// Own is what only this vendor's service has, beside what the standard's has
// (DSP0266, "OEM extension"). It is carried out by the standard's means: what a
// vendor's action does are requests to the tree, which no Rule of the Face
// stands before. Where data cannot say it, a hook does; a dialect has ten at
// most.
type Own struct {
	Resources []Resource
	Actions   []Action
	Writes    []Write
	// Also are further addresses at which clients find what the tree has: From
	// is theirs, To the tree's. No body shows them.
	Also []Move
}

// Plain says that a vendor has nothing of his own.
func (o *Own) Plain() bool {
	return len(o.Resources)+len(o.Actions)+len(o.Writes)+len(o.Also) == 0
}

// Resource is one that only this vendor's service has.
type Resource struct {
	// At is the pattern of its address, as clients see it. A variable stands for
	// what it does in the tree: {task}, {slot}, {controller}.
	At   string
	Type string // namespace, version, name: "AcmeJobs.v1_0_0.AcmeJobs"
	Name string
	// Like is the pattern of the address in the tree of the resource that it
	// begins with, and without which it is not there. Addresses below that are
	// told as being below this. "": it begins with nothing.
	Like string
	Drop []string
	Set  []Datum
	Read func(Look) map[string]any // hook: comes on top, when not nil
	// Kept is the name of an object that is kept, and shown on top of all else.
	// While nothing is kept under it the resource is not there; who deletes it,
	// if Takes has DELETE, has it forgotten.
	Kept string
	// Changes are the paths of the properties that clients may write by PATCH,
	// and which are kept: "ServerBoot/FirstBootDevice"; "Attributes/*" are all
	// that Attributes shows.
	Changes []string
	// Takes are methods that go on to what it is like, of PATCH and DELETE: a
	// PATCH with what Changes does not name.
	Takes []string
	// Guarded says that it is changed only with If-Match.
	Guarded bool
	// Allows are the values that properties of Changes take, by their paths; any
	// for those that it does not have.
	Allows map[string][]string
	Needs  string // privilege for changing it; "": ConfigureManager
}

// Action is one that only this vendor's service has.
type Action struct {
	On string // pattern of the address of the resource that shows it, as clients see it
	// Name is what it stands under in Actions: "AcmeJobs.Clear". In a resource
	// of the standard's that is in Actions/Oem.
	Name string
	// At is where it is posted to, behind the address of the resource; "" is
	// /Actions/Name, in a resource of the standard's /Actions/Oem/Name, "/" the
	// resource itself.
	At     string
	Hidden bool // no body shows it
	Inputs []Input
	Needs  string // privilege; "": those of ConfigureManager
	Does   []Effect
}

// InputType is the JSON type of an input.
type InputType string

// The types.
const (
	TextInput   InputType = "" // a string
	WholeInput  InputType = "integer"
	FlagInput   InputType = "boolean"
	ObjectInput InputType = "object"
	ListInput   InputType = "array"
)

// Input is a parameter of an action.
type Input struct {
	Name     string // "ShareParameters/Target" is one within an object
	Type     InputType
	Required bool
	Values   []string // of a text, or of those of a list; none: any
	Secret   bool
}

// Write is a property of a vendor's own in a resource of the standard's, which
// a PATCH sets.
type Write struct {
	Of   string // type of the resource, without version
	At   string // pattern of its address in the tree, as Move.From; "": anywhere
	Path string // "Oem/Acme/BootOnce"
	Type InputType
	Does []Effect // "$" in a text is the value
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
	While While
	For   time.Duration
	// Refuse ends it.
	Refuse *Saying
	Status int // of the answer; of Refuse 400, of others 0 is as the standard has it
	// Keep is remembered by the BMC, by names; nil forgets.
	Keep map[string]any
	// Leaves is after how many starts of the system the slot that the request is
	// about is emptied; 0: whatever was said before goes on holding. -1 takes that
	// back.
	Leaves int
	Steps  []Step
	// Job is the name of the job that carries out Steps; the answer is 202.
	// What a step begins joins it: it ends when that has ended, too.
	// "": they are carried out at once, and the first that fails is the answer.
	Job   string
	Takes time.Duration // of the job, before its steps
	// Body is that of the answer; nil: that of the last step, or, with Job, the
	// task. With Job, {job} is filled in, too.
	Body map[string]any
	// Result is what reading the job's task, or its monitor, is answered when it
	// has ended: JSON or, if it is a text, that text.
	Result any
	// Do is the hook that says what to do, instead of all the rest.
	Do func(Call) (Effect, error)
}

// Step is a request to the tree.
type Step struct {
	Method string // "PATCH", "POST", "DELETE"
	At     string // "/redfish/v1/Systems/{system}/Actions/ComputerSystem.Reset"
	Body   map[string]any
}

// Look is what a hook sees. It changes nothing of it.
type Look struct {
	Machine *machine.View
	BMC     *bmc.View
	Now     time.Time         // of the lab
	Self    string            // address of the resource
	IDs     map[string]string // variables of the address
	Kept    map[string]any    // by names
	// Tree reads a resource of the tree, whole; nil where there is none.
	Tree func(address string) map[string]any
}

// Call is what a hook of an action sees.
type Call struct {
	Look
	Body  map[string]any // of the request
	Query url.Values     // of its address
}

// Refusal is the error by which a hook refuses a request.
type Refusal struct {
	Status int // 0 is 400
	Says   Saying
	Args   []string
}

func (r *Refusal) Error() string { return r.Says.Registry + "." + r.Says.Key + ": " + r.Says.Text }

// Hooks counts the functions of a record.
func (r *Record) Hooks() int {
	n := 0
	count := func(all []Effect) {
		for _, e := range all {
			if e.Do != nil {
				n++
			}
		}
	}
	for _, o := range r.Own.Resources {
		if o.Read != nil {
			n++
		}
	}
	for _, a := range r.Own.Actions {
		count(a.Does)
	}
	for _, w := range r.Own.Writes {
		count(w.Does)
	}
	return n
}

// maxHooks is how many functions a dialect may have: what needs more is no
// dialect.
const maxHooks = 10

var stepMethods = []string{"PATCH", "POST", "DELETE"}

// validateOwn says what is wrong with what a vendor has of his own.
func (r *Record) validateOwn(need func(ok bool, field, fix string)) {
	pattern := func(field, p string) {
		need(strings.HasPrefix(p, "/") && !strings.HasSuffix(p, "/"), field, fmt.Sprintf("%q must begin with a slash and not end with one", p))
	}
	says := func(field string, s *Saying) {
		need(s.Registry != "" && s.Key != "" && s.Text != "" && registryVersion.MatchString(s.Version), field, "must have a registry, its version, a key and a text")
	}
	effects := func(field string, all []Effect) {
		need(len(all) > 0, field+".Does", "must not be empty")
		for _, e := range all {
			need(slices.Contains(whiles, e.While), field+".While", fmt.Sprintf("%q is no condition", e.While))
			need(e.Do == nil || len(e.Steps)+len(e.Keep) == 0 && e.Job == "", field+".Do", "says all the rest")
			need(e.Takes == 0 && e.Result == nil || e.Job != "", field+".Takes, Result", "needs Job")
			if e.Refuse != nil {
				says(field+".Refuse", e.Refuse)
			}
			for _, s := range e.Steps {
				need(slices.Contains(stepMethods, s.Method), field+".Steps.Method", fmt.Sprintf("%q: must be one of %v", s.Method, stepMethods))
				pattern(field+".Steps.At", s.At)
			}
		}
	}
	need(r.Hooks() <= maxHooks, "Own", fmt.Sprintf("has %d hooks, must have %d at most", r.Hooks(), maxHooks))
	for _, o := range r.Own.Resources {
		pattern("Own.Resources.At", o.At)
		need(strings.Count(o.Type, ".") <= 2 && o.Type != "", "Own.Resources.Type", o.At+": must be a type, as AcmeJobs.v1_0_0.AcmeJobs is")
		if o.Like != "" {
			pattern("Own.Resources.Like", o.Like)
		}
	}
	for _, a := range r.Own.Actions {
		pattern("Own.Actions.On", a.On)
		need(a.Name != "", "Own.Actions.Name", a.On+": must not be empty")
		effects("Own.Actions", a.Does)
	}
	for _, w := range r.Own.Writes {
		need(w.Of != "" && w.Path != "", "Own.Writes", "must have Of and Path")
		effects("Own.Writes", w.Does)
	}
	for _, m := range r.Own.Also {
		pattern("Own.Also.From", m.From)
		pattern("Own.Also.To", m.To)
	}
}

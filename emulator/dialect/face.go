package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Face is where and in what form a vendor's service shows what the standard's
// shows elsewhere or otherwise. The service is one for all vendors; a Face is
// laid over its addresses and bodies, both ways. Its zero value changes nothing.
type Face struct {
	Moves    []Move
	Shapes   []Shape
	Rules    []Rule
	Readings []Reading
	// Slash says that addresses in bodies end with a slash. Both forms are
	// answered always (DSP0266, "URIs").
	Slash bool
	// Fold says that addresses are found whatever the case of their letters.
	Fold  bool
	Dates Dates
	// Shut are patterns of addresses that are not there, of actions as well. No
	// body leads to them.
	Shut   []string
	Errors Errors
}

// Dates says how times are written.
type Dates string

// The ways to write them.
const (
	ISO8601 Dates = ""        // as DSP0266 asks: 2026-03-01T12:00:00Z
	Compact Dates = "compact" // in a zone west of Greenwich, without a colon: 2026-03-01T06:00:00-0600
)

var datings = []Dates{ISO8601, Compact}

// Move puts a resource, with all that is below it, to another address. Both are
// patterns: {system}, {manager} and {chassis} are the record's IDs, any other
// name in braces stands for one segment, or for a part of it, and keeps its
// value; {job:12} is filled with zeros to twelve digits.
type Move struct {
	From, To string
	Slash    bool // addresses in bodies, of To and below, end with a slash
}

// Shape is how the resources of one type differ from what they would be.
type Shape struct {
	Of   string   // type without version: "ComputerSystem"; "*Collection": any collection
	At   string   // pattern of their address, as Move.From; "": anywhere
	Drop []string // properties by their paths: "Boot/BootOrder"; in an array "*" is every element
	Bare []string // properties that are not there while they are empty
	Set  []Datum
}

// Datum is a property of a vendor's.
type Datum struct {
	// Path is where it stands: "Oem/Acme/PostState"; what it is in is made where
	// it is not there. In an array a segment is the number of an element.
	Path string
	// Value is what it is, in JSON: nil, bool, number, text, []any and
	// map[string]any. In a text {system}, {manager}, {chassis} and {self}, the
	// address of the resource, are filled in.
	Value any
	// From, when it is not empty, is the path of a property that it takes its
	// value from, where -1 is the last element of an array; Map says what becomes
	// of which, Value of any other. It may be
	// another resource's, of the tree: "/redfish/v1/Systems/{system}#PowerState",
	// or, in a resource of a vendor's own, what is kept: "=Name".
	From string
	Map  map[string]any
	Else Else // what becomes of a value that Map does not know
	// As is what a value that is taken From is put into, as a text: "rev. %".
	As string
}

// Else says what becomes of a value that a map does not know.
type Else string

// What becomes of it.
const (
	ByValue Else = ""         // Datum.Value
	AsItIs  Else = "as it is" // the property at Path stays what it is
)

// Rule is something that a service refuses although the standard allows it.
// The first rule that holds answers.
type Rule struct {
	Of     string // type of the resource, without version; of a collection: that of the collection
	At     string // pattern of its address, as Move.From; "": anywhere
	Method string // "PATCH", "POST", "DELETE", or an action: "VirtualMedia.InsertMedia"; "": any that changes something
	// The rule holds if all of these do that are not zero.
	Sent     []string            // one of these properties, by their paths, was sent
	Together []string            // one of these was sent, another was not
	Lacks    []string            // one of these was not sent
	Most     int                 // more than so many properties were sent in the first of Sent
	Beyond   map[string][]string // a property has another value than these
	Is       map[string][]string // a property has one of these values
	Begins   map[string][]string // a property begins with one of these
	Empty    bool                // there is no body at all; {} is one
	Same     []string            // one of these was sent with the value that it has
	While    While
	For      time.Duration       // how long While lasts
	Kept     map[string][]string // what is kept by a name is one of these; "" is nothing
	// Answer.
	Status int    // 400 where it is 0
	Says   Saying // Text's %1 is the property, %2 its value
	Bare   bool   // the answer is the text, and no JSON
}

// While says in which condition of the server or the BMC a rule holds.
type While string

// The conditions.
const (
	Always      While = ""
	InPOST      While = "in POST"      // the system is between power on and its boot, which it may look for in vain
	NotInPOST   While = "not in POST"  //
	AfterOff    While = "after off"    // for Rule.For after it went off
	AfterOn     While = "after on"     // for Rule.For after it came on
	AfterEject  While = "after eject"  // for Rule.For after the slot was emptied
	AfterStart  While = "after start"  // for Rule.For after the BMC came up
	SettingsDue While = "settings due" // BIOS settings wait for a restart, and are not held
	SystemOn    While = "system on"    //
	SystemOff   While = "system off"   //
	NeverReset  While = "never reset"  // the BMC has not been restarted since it was made
)

var whiles = []While{Always, InPOST, NotInPOST, AfterOff, AfterOn, AfterEject, AfterStart, SettingsDue, SystemOn, SystemOff, NeverReset}

// timed are those that last for Rule.For.
var timed = []While{AfterOff, AfterOn, AfterEject, AfterStart}

// Errors is the form of error responses (DSP0266, "Error responses").
type Errors struct {
	Code  string // of error.code; "": that of the standard
	Terse bool   // messages are their MessageId and MessageArgs alone
	One   bool   // @Message.ExtendedInfo is an object, not a list
	Word  bool   // @Message.ExtendedInfo is the text of its first message
	// Errata says that message IDs have the whole version of their registry:
	// "Base.1.4.0.Success" (DSP0266, "MessageId format", leaves errata out).
	Errata bool
	// Done says that a write that shows no resource is answered 200, with an
	// error object that tells of the success. A PATCH shows none.
	Done *Saying
	// Under is the property that Done stands in; "" is error, as that of a refusal.
	Under string
	// Tells are what some writes are answered with instead.
	Tells []Tell
}

// Tell is what a write is answered with, instead of Errors.Done.
type Tell struct {
	Of     string // type of the resource, without version
	At     string // pattern of its address, as Move.From; "": anywhere
	Method string // as Rule.Method; "": any
	Says   Saying
}

// Plain says that the face changes nothing.
func (f *Face) Plain() bool {
	return !f.Slash && !f.Fold && f.Dates == ISO8601 && len(f.Moves)+len(f.Shapes)+len(f.Rules)+len(f.Readings)+len(f.Shut) == 0 && f.Errors.plain()
}

func (e *Errors) plain() bool {
	return e.Code == "" && !e.Terse && !e.One && !e.Word && !e.Errata && e.Done == nil && len(e.Tells) == 0
}

// Clone is a copy that shares nothing that would be appended to.
func (f Face) Clone() Face {
	f.Moves, f.Shapes, f.Rules, f.Shut = slices.Clone(f.Moves), slices.Clone(f.Shapes), slices.Clone(f.Rules), slices.Clone(f.Shut)
	f.Readings = slices.Clone(f.Readings)
	f.Errors.Tells = slices.Clone(f.Errors.Tells)
	return f
}

var segmentVariable = regexp.MustCompile(`\{[a-z]+(:\d+)?\}`)

func (r *Record) validateFace(need func(ok bool, field, fix string)) {
	f := &r.Face
	pattern := func(field, p string) {
		need(strings.HasPrefix(p, "/redfish/v1") && !strings.HasSuffix(p, "/"), field, fmt.Sprintf("%q must begin with /redfish/v1 and end without a slash", p))
		left := segmentVariable.ReplaceAllString(p, "")
		need(!strings.ContainsAny(left, "{}"), field, fmt.Sprintf("%q: a variable must be letters in braces", p))
	}
	need(slices.Contains(datings, f.Dates), "Face.Dates", fmt.Sprintf("%q: must be one of %q", f.Dates, datings))
	for _, m := range f.Moves {
		pattern("Face.Moves.From", m.From)
		pattern("Face.Moves.To", m.To)
	}
	for _, p := range f.Shut {
		pattern("Face.Shut", p)
	}
	for _, s := range f.Shapes {
		need(s.Of != "" && !strings.ContainsAny(s.Of, "._"), "Face.Shapes.Of", "must be a type without its version")
		if s.At != "" {
			pattern("Face.Shapes.At", s.At)
		}
		for _, d := range s.Set {
			need(d.Path != "", "Face.Shapes.Set.Path", s.Of+": must not be empty")
			need(d.Map == nil && d.As == "" || d.From != "", "Face.Shapes.Set.Map", s.Of+"/"+d.Path+": needs From")
			need(d.As == "" || strings.Count(d.As, "%") == 1, "Face.Shapes.Set.As", s.Of+"/"+d.Path+": must have one % for the value")
		}
	}
	need(f.Errors.Under == "" || f.Errors.Done != nil, "Face.Errors.Under", "needs Done")
	for _, t := range f.Errors.Tells {
		need(f.Errors.Done != nil, "Face.Errors.Tells", "needs Done")
		need(t.Says.Registry != "" && t.Says.Key != "" && registryVersion.MatchString(t.Says.Version), "Face.Errors.Tells", t.Of+": must have a registry, its version and a key")
	}
	for _, u := range f.Rules {
		need(slices.Contains(whiles, u.While), "Face.Rules.While", fmt.Sprintf("%q is no condition", u.While))
		need(!slices.Contains(timed, u.While) || u.For > 0, "Face.Rules.For", string(u.While)+": must be positive")
		need(u.Status == 0 || u.Status >= 400 && u.Status < 600, "Face.Rules.Status", "must be that of an error")
		need(u.Says.Key != "" && u.Says.Registry != "" && u.Says.Text != "" && registryVersion.MatchString(u.Says.Version), "Face.Rules.Says",
			u.Of+" "+u.Method+": must have a registry, its version, a key and a text")
		need(u.Most == 0 || len(u.Sent) > 0, "Face.Rules.Most", u.Of+": needs Sent")
	}
}

package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Presentation is where and in what form a vendor's service shows what the standard's
// shows elsewhere or otherwise. The service is one for all vendors; a Presentation is
// laid over its addresses and bodies, both ways. Its zero value changes nothing.
type Presentation struct {
	URIMappings  []URIMapping
	Transforms   []Transform
	RejectRules  []RejectRule
	InputAliases []InputAlias
	// Slash says that addresses in bodies end with a slash. Both forms are
	// answered always (DSP0266, "URIs").
	TrailingSlash bool
	// Fold says that addresses are found whatever the case of their letters.
	IgnoreURICase  bool
	DateTimeFormat DateTimeFormat
	// Shut are patterns of addresses that are not there, of actions as well. No
	// body leads to them.
	Hidden []string
	Errors ErrorFormat
}

// DateTimeFormat says how times are written.
type DateTimeFormat string

// The ways to write them.
const (
	ISO8601     DateTimeFormat = ""        // as DSP0266 asks: 2026-03-01T12:00:00Z
	CompactZone DateTimeFormat = "compact" // in a zone west of Greenwich, without a colon: 2026-03-01T06:00:00-0600
)

var dateTimeFormats = []DateTimeFormat{ISO8601, CompactZone}

// URIMapping puts a resource, with all that is below it, to another address. Both are
// patterns: {system}, {manager} and {chassis} are the record's IDs, any other
// name in braces stands for one segment, or for a part of it, and keeps its
// value; {job:12} is filled with zeros to twelve digits.
type URIMapping struct {
	From, To      string
	TrailingSlash bool // addresses in bodies, of To and below, end with a slash
}

// Transform is how the resources of one type differ from what they would be.
type Transform struct {
	ResourceType string   // type without version: "ComputerSystem"; "*Collection": any collection
	URI          string   // pattern of their address, as Move.From; "": anywhere
	Remove       []string // properties by their paths: "Boot/BootOrder"; in an array "*" is every element
	OmitEmpty    []string // properties that are not there while they are empty
	Set          []PropertyRule
}

// PropertyRule is a property of a vendor's.
type PropertyRule struct {
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
	From      string
	Map       map[string]any
	Otherwise Otherwise // what becomes of a value that Map does not know
	// As is what a value that is taken From is put into, as a text: "rev. %".
	Format string
}

// Otherwise says what becomes of a value that a map does not know.
type Otherwise string

// What becomes of it.
const (
	UseValue       Otherwise = ""         // Datum.Value
	LeaveUnchanged Otherwise = "as it is" // the property at Path stays what it is
)

// RejectRule is something that a service refuses although the standard allows it.
// The first rule that holds answers.
type RejectRule struct {
	ResourceType string // type of the resource, without version; of a collection: that of the collection
	URI          string // pattern of its address, as Move.From; "": anywhere
	Method       string // "PATCH", "POST", "DELETE", or an action: "VirtualMedia.InsertMedia"; "": any that changes something
	// The rule holds if all of these do that are not zero.
	SendsAny        []string            // one of these properties, by their paths, was sent
	SendsIncomplete []string            // one of these was sent, another was not
	Missing         []string            // one of these was not sent
	MaxProperties   int                 // more than so many properties were sent in the first of Sent
	NotOneOf        map[string][]string // a property has another value than these
	OneOf           map[string][]string // a property has one of these values
	HasPrefix       map[string][]string // a property begins with one of these
	EmptyBody       bool                // there is no body at all; {} is one
	SendsUnchanged  []string            // one of these was sent with the value that it has
	While           Condition
	For             time.Duration       // how long While lasts
	Stored          map[string][]string // what is kept by a name is one of these; "" is nothing
	// Answer.
	Status    int           // 400 where it is 0
	Message   VendorMessage // Text's %1 is the property, %2 its value
	PlainText bool          // the answer is the text, and no JSON
}

// Condition says in which condition of the server or the BMC a rule holds.
type Condition string

// The conditions.
const (
	Always      Condition = ""
	InPOST      Condition = "in POST"      // the system is between power on and its boot, which it may look for in vain
	NotInPOST   Condition = "not in POST"  //
	AfterOff    Condition = "after off"    // for Rule.For after it went off
	AfterOn     Condition = "after on"     // for Rule.For after it came on
	AfterEject  Condition = "after eject"  // for Rule.For after the slot was emptied
	AfterStart  Condition = "after start"  // for Rule.For after the BMC came up
	SettingsDue Condition = "settings due" // BIOS settings wait for a restart, and are not held
	SystemOn    Condition = "system on"    //
	SystemOff   Condition = "system off"   //
	NeverReset  Condition = "never reset"  // the BMC has not been restarted since it was made
)

var conditions = []Condition{Always, InPOST, NotInPOST, AfterOff, AfterOn, AfterEject, AfterStart, SettingsDue, SystemOn, SystemOff, NeverReset}

// timedConditions are those that last for Rule.For.
var timedConditions = []Condition{AfterOff, AfterOn, AfterEject, AfterStart}

// ErrorFormat is the form of error responses (DSP0266, "Error responses").
type ErrorFormat struct {
	Code         string // of error.code; "": that of the standard
	IDsOnly      bool   // messages are their MessageId and MessageArgs alone
	SingleObject bool   // @Message.ExtendedInfo is an object, not a list
	SingleText   bool   // @Message.ExtendedInfo is the text of its first message
	// Errata says that message IDs have the whole version of their registry:
	// "Base.1.4.0.Success" (DSP0266, "MessageId format", leaves errata out).
	FullVersions bool
	// Done says that a write that shows no resource is answered 200, with an
	// error object that tells of the success. A PATCH shows none.
	Success *VendorMessage
	// Under is the property that Done stands in; "" is error, as that of a refusal.
	SuccessProperty string
	// Tells are what some writes are answered with instead.
	SuccessMessages []SuccessMessage
}

// SuccessMessage is what a write is answered with, instead of Errors.Done.
type SuccessMessage struct {
	ResourceType string // type of the resource, without version
	URI          string // pattern of its address, as Move.From; "": anywhere
	Method       string // as Rule.Method; "": any
	Message      VendorMessage
}

// IsStandard says that the face changes nothing.
func (f *Presentation) IsStandard() bool {
	return !f.TrailingSlash && !f.IgnoreURICase && f.DateTimeFormat == ISO8601 && len(f.URIMappings)+len(f.Transforms)+len(f.RejectRules)+len(f.InputAliases)+len(f.Hidden) == 0 && f.Errors.isStandard()
}

func (e *ErrorFormat) isStandard() bool {
	return e.Code == "" && !e.IDsOnly && !e.SingleObject && !e.SingleText && !e.FullVersions && e.Success == nil && len(e.SuccessMessages) == 0
}

// Clone is a copy that shares nothing that would be appended to.
func (f Presentation) Clone() Presentation {
	f.URIMappings, f.Transforms, f.RejectRules, f.Hidden = slices.Clone(f.URIMappings), slices.Clone(f.Transforms), slices.Clone(f.RejectRules), slices.Clone(f.Hidden)
	f.InputAliases = slices.Clone(f.InputAliases)
	f.Errors.SuccessMessages = slices.Clone(f.Errors.SuccessMessages)
	return f
}

var segmentVariable = regexp.MustCompile(`\{[a-z]+(:\d+)?\}`)

func (r *Record) validatePresentation(need func(ok bool, field, fix string)) {
	f := &r.Presentation
	pattern := func(field, p string) {
		need(strings.HasPrefix(p, "/redfish/v1") && !strings.HasSuffix(p, "/"), field, fmt.Sprintf("%q must begin with /redfish/v1 and end without a slash", p))
		left := segmentVariable.ReplaceAllString(p, "")
		need(!strings.ContainsAny(left, "{}"), field, fmt.Sprintf("%q: a variable must be letters in braces", p))
	}
	need(slices.Contains(dateTimeFormats, f.DateTimeFormat), "presentation.dateTimeFormat", fmt.Sprintf("%q: must be one of %q", f.DateTimeFormat, dateTimeFormats))
	for i, m := range f.URIMappings {
		pattern(item("presentation.uriMappings", i)+".from", m.From)
		pattern(item("presentation.uriMappings", i)+".to", m.To)
	}
	for i, p := range f.Hidden {
		pattern(item("presentation.hidden", i), p)
	}
	for i, s := range f.Transforms {
		at := item("presentation.transforms", i)
		need(s.ResourceType != "" && !strings.ContainsAny(s.ResourceType, "._"), at+".resourceType", "must be a type without its version")
		if s.URI != "" {
			pattern(at+".uri", s.URI)
		}
		for j, d := range s.Set {
			set := item(at+".set", j)
			need(d.Path != "", set+".path", "must not be empty")
			need(d.Map == nil && d.Format == "" || d.From != "", set+".from", "must not be empty where map or format is given")
			need(d.Format == "" || strings.Count(d.Format, "%") == 1, set+".format", fmt.Sprintf("%q", d.Format)+": must have one % for the value")
		}
	}
	need(f.Errors.SuccessProperty == "" || f.Errors.Success != nil, "presentation.errors.successProperty", "needs presentation.errors.success")
	for i, t := range f.Errors.SuccessMessages {
		at := item("presentation.errors.successMessages", i)
		need(f.Errors.Success != nil, at, "needs presentation.errors.success")
		need(t.Message.Registry != "" && t.Message.Key != "" && registryVersion.MatchString(t.Message.Version), at+".message", "must have a registry, its version and a key")
	}
	for i, u := range f.RejectRules {
		at := item("presentation.rejectRules", i)
		need(slices.Contains(conditions, u.While), at+".while", fmt.Sprintf("%q: must be one of %q", u.While, conditions))
		need(!slices.Contains(timedConditions, u.While) || u.For > 0, at+".for", fmt.Sprintf("must be positive where while is %q", u.While))
		need(u.Status == 0 || u.Status >= 400 && u.Status < 600, at+".status", fmt.Sprintf("%d: must be 400 to 599, or 0", u.Status))
		need(u.Message.Key != "" && u.Message.Registry != "" && u.Message.Text != "" && registryVersion.MatchString(u.Message.Version), at+".message", "must have a registry, its version, a key and a text")
		need(u.MaxProperties == 0 || len(u.SendsAny) > 0, at+".maxProperties", "needs sendsAny")
	}
}

package dialect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Presentation describes where and in which form the vendor's service shows what
// the standard service shows elsewhere or otherwise. All vendors share one service;
// a Presentation translates the URIs and bodies of requests and responses. The zero
// value changes nothing.
//
// The URIs of the standard service are called standard below, and what clients see
// is the vendor's.
type Presentation struct {
	URIMappings  []URIMapping
	Transforms   []Transform
	RejectRules  []RejectRule
	InputAliases []InputAlias
	// TrailingSlash ends the URIs in bodies with a slash. Requests may have the slash
	// or not in either case (DSP0266, "URIs").
	TrailingSlash bool
	// TrailingSlashAsRequested ends the URIs in the body of a response to a GET with a
	// slash when the URI of the request has one.
	TrailingSlashAsRequested bool
	// IgnoreURICase finds URIs whatever the case of their letters.
	IgnoreURICase  bool
	DateTimeFormat DateTimeFormat
	// Hidden has patterns of the vendor's URIs, of resources and of actions, that are
	// answered 404. No body links to them.
	Hidden []string
	Errors ErrorFormat
}

// DateTimeFormat is the form of times in bodies.
type DateTimeFormat string

// The forms of times.
const (
	ISO8601     DateTimeFormat = ""        // as DSP0266 asks: 2026-03-01T12:00:00Z
	CompactZone DateTimeFormat = "compact" // in a time zone west of Greenwich, without a colon: 2026-03-01T06:00:00-0600
)

var dateTimeFormats = []DateTimeFormat{ISO8601, CompactZone}

// URIMapping moves a resource, with everything below it, from a standard URI to the
// vendor's. Both are patterns: {system}, {manager} and {chassis} stand for the
// record's IDs; any other name in braces stands for one segment or a part of one,
// and has the same value in both; {job:12} is padded with zeros to twelve digits.
type URIMapping struct {
	From, To      string // the standard URI, the vendor's
	TrailingSlash bool   // in bodies, To and the URIs below it end with a slash
}

// Transform changes the bodies of the resources of one type.
type Transform struct {
	ResourceType string         // type without version: "ComputerSystem"; "*Collection" is any collection
	URI          string         // pattern of their URI, as in URIMapping.From; "" is any
	Remove       []string       // paths of properties to remove: "Boot/BootOrder"; "*" is each element of an array
	OmitEmpty    []string       // paths of properties to remove while they are empty
	Set          []PropertyRule // properties to set
}

// PropertyRule sets a property of a body.
type PropertyRule struct {
	// Path is the property: "Oem/Acme/PostState". Objects around it are made where
	// they are missing. A number selects an element of an array.
	Path string
	// Value is the property's value: null, a boolean, a number, a text, a list or a
	// mapping. In texts {system}, {manager}, {chassis} and {self}, the URI of the
	// resource, are filled in.
	Value any
	// From, if not empty, is the path of a property whose value is used instead of
	// Value. In an array, -1 is the last element. It may be a property of another
	// resource, by its standard URI: "/redfish/v1/Systems/{system}#PowerState"; or,
	// in a resource of OEM, a stored value: "=Name".
	From string
	// Map translates the value of From. Otherwise is for a value that it does not
	// have.
	Map       map[string]any
	Otherwise Otherwise
	// Match is a regular expression. The value becomes the text of its first group, or ""
	// when it does not match.
	Match string
	// Format is a text into which the value of From is put, in place of its one %:
	// "rev. %".
	Format string
	// Number makes a number of a value that is a text: "0x5c" becomes 92.
	Number bool
}

// Otherwise is what a PropertyRule sets when Map does not have the value of From.
type Otherwise string

// The choices.
const (
	UseValue       Otherwise = ""         // PropertyRule.Value
	LeaveUnchanged Otherwise = "as it is" // nothing: the property at Path keeps its value
)

// RejectRule rejects requests that the standard allows. The first rule that applies
// gives the answer.
type RejectRule struct {
	ResourceType string // type of the resource, without version; for a POST to a collection the collection's
	URI          string // pattern of its URI, as in URIMapping.From; "" is any
	// Method is "PATCH", "POST", "DELETE", an action: "VirtualMedia.InsertMedia", or, of
	// an UpdateService, "HttpPushUri" or "MultipartHttpPushUri": a POST to the URI that
	// the property names, with UpdateParameters as its body. "" is any method that
	// changes something.
	Method string

	// The rule applies when all of the following that are given hold. Properties
	// are named by their paths: "Boot/BootSourceOverrideTarget".

	SendsAny        []string            // the request has one of these properties
	SendsIncomplete []string            // the request has at least one of these properties, but not all
	Missing         []string            // the request lacks one of these properties
	MaxProperties   int                 // the first property of SendsAny is an object with more properties than this
	NotOneOf        map[string][]string // a property has a value that is not one of these
	OneOf           map[string][]string // a property has one of these values
	HasPrefix       map[string][]string // a property begins with one of these texts
	EmptyBody       bool                // the request has no body at all; {} is a body
	SendsUnchanged  []string            // the request has one of these properties with its present value
	While           Condition
	For             time.Duration       // how long a While that begins with "after" lasts
	Stored          map[string][]string // a value that an Effect has stored under the name is one of these; "" is none

	// The answer.

	Status    int           // HTTP status, 400 to 599; 0 is 400
	Message   VendorMessage // %1 in its text is the property, %2 its value
	PlainText bool          // the body is the message's text, instead of JSON
}

// Condition is a state of the system or the BMC in which a RejectRule or an Effect
// applies.
type Condition string

// The conditions.
const (
	Always      Condition = ""             // no condition
	InPOST      Condition = "in POST"      // between power on and the boot, including a search for a boot source that finds none
	NotInPOST   Condition = "not in POST"  // at any other time than InPOST
	AfterOff    Condition = "after off"    // for For after the system went off
	AfterOn     Condition = "after on"     // for For after the system came on
	AfterEject  Condition = "after eject"  // for For after the media was ejected
	AfterStart  Condition = "after start"  // for For after the BMC started
	SettingsDue Condition = "settings due" // BIOS settings will be applied at the next reset
	SystemOn    Condition = "system on"    // the system is powered on
	SystemOff   Condition = "system off"   // the system is powered off
	NeverReset  Condition = "never reset"  // the BMC has never been restarted
)

var conditions = []Condition{Always, InPOST, NotInPOST, AfterOff, AfterOn, AfterEject, AfterStart, SettingsDue, SystemOn, SystemOff, NeverReset}

// timedConditions are the conditions that last for RejectRule.For or Effect.For.
var timedConditions = []Condition{AfterOff, AfterOn, AfterEject, AfterStart}

// ErrorFormat is the form of error responses (DSP0266, "Error responses").
type ErrorFormat struct {
	Code string // error.code; "" is the standard's
	// KeepReplaced shows, behind each message of Protocol.Messages, the message of the
	// Base registry that it replaces.
	KeepReplaced bool
	// ReplacedFirst shows it in front instead, where KeepReplaced does.
	ReplacedFirst bool
	// EmptyLists shows MessageArgs and RelatedProperties of every message, even when they
	// are empty.
	EmptyLists bool
	// Counts shows MessageArgs and RelatedProperties of every message, with
	// @odata.count, even when they are empty.
	Counts       bool
	IDsOnly      bool // messages have their MessageId and MessageArgs alone
	SingleObject bool // @Message.ExtendedInfo is an object, instead of a list
	SingleText   bool // @Message.ExtendedInfo is the text of the first message
	// FullVersions writes the full version of the registry into message IDs:
	// "Base.1.4.0.Success". DSP0266, "MessageId format", omits the errata version.
	FullVersions bool
	// Success is the message of a 200 response to a write that would show no
	// resource; nil: such a write is answered 204. A PATCH that succeeds in full is
	// answered with it too, unless the request has Prefer.
	Success *VendorMessage
	// SuccessProperty is the property of the body that has Success; "" is error, as
	// in error responses.
	SuccessProperty string
	// SuccessMessages replace Success for some writes.
	SuccessMessages []SuccessMessage
}

// SuccessMessage replaces ErrorFormat.Success for some writes.
type SuccessMessage struct {
	ResourceType string // type of the resource, without version
	URI          string // pattern of its URI, as in URIMapping.From; "" is any
	Method       string // as in RejectRule; "" is any
	Message      VendorMessage
}

// IsStandard reports whether the Presentation changes nothing.
func (f *Presentation) IsStandard() bool {
	return !f.TrailingSlash && !f.TrailingSlashAsRequested && !f.IgnoreURICase && f.DateTimeFormat == ISO8601 && len(f.URIMappings)+len(f.Transforms)+len(f.RejectRules)+len(f.InputAliases)+len(f.Hidden) == 0 && f.Errors.isStandard()
}

func (e *ErrorFormat) isStandard() bool {
	return e.Code == "" && !e.KeepReplaced && !e.EmptyLists && !e.Counts && !e.IDsOnly && !e.SingleObject && !e.SingleText && !e.FullVersions && e.Success == nil && len(e.SuccessMessages) == 0
}

// Clone returns a copy whose lists can be appended to.
func (f Presentation) Clone() Presentation {
	f.URIMappings, f.Transforms, f.RejectRules, f.Hidden = slices.Clone(f.URIMappings), slices.Clone(f.Transforms), slices.Clone(f.RejectRules), slices.Clone(f.Hidden)
	f.InputAliases = slices.Clone(f.InputAliases)
	f.Errors.SuccessMessages = slices.Clone(f.Errors.SuccessMessages)
	return f
}

var segmentVariable = regexp.MustCompile(`\{[a-z]+(:\d+)?\}`)

// namesProperty reports whether a rejected request has a property that the message is
// about.
func (u *RejectRule) namesProperty() bool {
	return u.namesValue() || len(u.SendsIncomplete)+len(u.Missing) > 0
}

// namesValue reports whether that property was sent, so that it has a value.
func (u *RejectRule) namesValue() bool {
	return len(u.SendsAny)+len(u.NotOneOf)+len(u.OneOf)+len(u.SendsUnchanged) > 0 || len(u.HasPrefix) > 0 && len(u.Missing) == 0
}

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
			if d.Match != "" {
				of, err := regexp.Compile(d.Match)
				need(err == nil && of.NumSubexp() == 1, set+".match", fmt.Sprintf("%q: must be a regular expression with one group", d.Match))
			}
		}
	}
	need(!f.Errors.ReplacedFirst || f.Errors.KeepReplaced, "presentation.errors.replacedFirst", "needs presentation.errors.keepReplaced")
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
		need(u.namesProperty() || !strings.Contains(u.Message.Text, "%1"), at+".message.text", fmt.Sprintf("%q: must not have %%1, for no condition names a property", u.Message.Text))
		need(u.namesValue() || !strings.Contains(u.Message.Text, "%2"), at+".message.text", fmt.Sprintf("%q: must not have %%2, for no condition has a value that was sent", u.Message.Text))
		need(u.MaxProperties == 0 || len(u.SendsAny) > 0, at+".maxProperties", "needs sendsAny")
	}
}

package dialect

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// Protocol is what a vendor's service makes of the Redfish protocol (DSP0266).
type Protocol struct {
	// Registries are the versions of the message registries that the service
	// speaks, by prefix: "Base": "1.8.4". Of others it speaks the newest.
	Registries map[string]string
	// Sayings are what the service says instead of messages of Base, by their
	// keys: "SessionLimitExceeded".
	Sayings map[string]Saying
	// Queries are the query parameters that the service carries out.
	Queries Queries
	// Claims are those that it says it carries out; nil: the truth.
	Claims *Queries
	// Page is how many members of a collection one answer shows; 0: all.
	Page int
	// ETags are what the service makes of ETags.
	ETags ETags
	// Gzip says that the service packs what it sends when a client takes that.
	Gzip bool
	// Packed are patterns of addresses, as Move.From, of what is sent packed and
	// not otherwise: to a client that does not take that the answer is 406.
	Packed []string
	// OEM are the types of objects that the vendor adds to resources.
	OEM []OEMType
	// Close says that the service ends each connection after one answer.
	Close bool
	// Slow is how long the answer to a PATCH takes after what it asked for is done.
	Slow time.Duration
	// Thin are properties that a resource lacks where $expand shows it.
	Thin []string
	// Bereft is for how long after the BMC came up collections show no members.
	Bereft time.Duration
	// Prefaced are resources before which, when they are read, an error stands:
	// two documents of JSON in one body.
	Prefaced []Preface
	// Plain says that it speaks HTTP without TLS, where others speak HTTPS.
	Plain bool
}

// Preface is an error that a resource is shown after, as if all were well.
type Preface struct {
	Of   string // type of the resource, without version
	Says Saying
}

// Scheme is what the URLs of the service begin with.
func (p *Protocol) Scheme() string {
	if p.Plain {
		return "http"
	}
	return "https"
}

// Clone is a copy that shares nothing that would be changed.
func (p Protocol) Clone() Protocol {
	p.Registries, p.Sayings, p.ETags.Required = maps.Clone(p.Registries), maps.Clone(p.Sayings), slices.Clone(p.ETags.Required)
	p.ETags.Fleeting = slices.Clone(p.ETags.Fleeting)
	p.Packed, p.Thin, p.Prefaced = slices.Clone(p.Packed), slices.Clone(p.Thin), slices.Clone(p.Prefaced)
	return p
}

// ETags say what a service makes of ETags (DSP0266, "ETags"). The zero value is
// what the standard asks for.
type ETags struct {
	Written  Writing
	Compared Comparing
	NoStar   bool // If-Match: * holds for nothing
	// Required are the types, without their version, that are changed and
	// deleted only with If-Match; otherwise the answer is 428. "*" is all.
	Required []string
	// Deletes says that they are deleted without it.
	Deletes bool
	// Fleeting are types whose ETag is another one each time that somebody looks:
	// If-Match holds with * alone.
	Fleeting []string
	// NoActions says that an action with If-Match is refused.
	NoActions bool
	// Suffixed says that no change takes the ETag of a packed body, which has a
	// suffix: that of the plain one does.
	Suffixed bool
}

// Writing says how ETags are written.
type Writing string

// The ways to write them.
const (
	Strong Writing = ""      // "x"
	Weak   Writing = "weak"  // W/"x"; If-Match compares weakly, against RFC 9110
	Twice  Writing = "twice" // ""x"", and so they are compared
	Empty  Writing = "empty" // there is nothing in them, and nothing is like them
)

// Comparing says when If-Match holds.
type Comparing string

// The ways to compare.
const (
	Quoted   Comparing = ""         // the ETag as it is written
	Unquoted Comparing = "unquoted" // the ETag without its quotes, and only so
	Never    Comparing = "never"
)

// Queries are query parameters (DSP0266, "Query parameters").
type Queries struct {
	TopSkip, Select, Filter, Only, Excerpt bool
	// ExpandAll, ExpandLinks and ExpandRest are the *, ~ and . of $expand.
	ExpandAll, ExpandLinks, ExpandRest bool
	Levels                             int // most that $levels may ask for; 0: it takes none
	Unknown                            Unknown
}

// AllQueries leaves nothing out.
var AllQueries = Queries{
	TopSkip: true, Select: true, Filter: true, Only: true, Excerpt: true,
	ExpandAll: true, ExpandLinks: true, ExpandRest: true, Levels: 6,
}

// Unknown says how a service answers a query parameter that begins with $ and
// that it does not carry out.
type Unknown string

// The answers.
const (
	NotImplemented Unknown = ""            // 501, as DSP0266 asks
	BadRequest     Unknown = "bad request" // 400
	Ignored        Unknown = "ignored"     // as if it were not there
)

var registryVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

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
	Messages map[string]VendorMessage
	// Queries are the query parameters that the service carries out.
	Queries Queries
	// Claims are those that it says it carries out; nil: the truth.
	AdvertisedQueries *Queries
	// Page is how many members of a collection one answer shows; 0: all.
	PageSize int
	// ETags are what the service makes of ETags.
	ETags ETags
	// Gzip says that the service packs what it sends when a client takes that.
	Gzip bool
	// Packed are patterns of addresses, as Move.From, of what is sent packed and
	// not otherwise: to a client that does not take that the answer is 406.
	GzipOnly []string
	// OEM are the types of objects that the vendor adds to resources.
	OEMTypes []OEMType
	// Close says that the service ends each connection after one answer.
	CloseAfterResponse bool
	// Slow is how long the answer to a PATCH takes after what it asked for is done.
	PatchDelay time.Duration
	// Thin are properties that a resource lacks where $expand shows it.
	ExpandOmits []string
	// Bereft is for how long after the BMC came up collections show no members.
	EmptyCollectionsAfterBoot time.Duration
	// Prefaced are resources before which, when they are read, an error stands:
	// two documents of JSON in one body.
	ErrorPrefixes []ErrorPrefix
	// Plain says that it speaks HTTP without TLS, where others speak HTTPS.
	PlainHTTP bool
}

// ErrorPrefix is an error that a resource is shown after, as if all were well.
type ErrorPrefix struct {
	ResourceType string // type of the resource, without version
	Message      VendorMessage
}

// Scheme is what the URLs of the service begin with.
func (p *Protocol) Scheme() string {
	if p.PlainHTTP {
		return "http"
	}
	return "https"
}

// Clone is a copy that shares nothing that would be changed.
func (p Protocol) Clone() Protocol {
	p.Registries, p.Messages, p.ETags.IfMatchRequired = maps.Clone(p.Registries), maps.Clone(p.Messages), slices.Clone(p.ETags.IfMatchRequired)
	p.ETags.Volatile = slices.Clone(p.ETags.Volatile)
	p.GzipOnly, p.ExpandOmits, p.ErrorPrefixes = slices.Clone(p.GzipOnly), slices.Clone(p.ExpandOmits), slices.Clone(p.ErrorPrefixes)
	return p
}

// ETags say what a service makes of ETags (DSP0266, "ETags"). The zero value is
// what the standard asks for.
type ETags struct {
	Format     ETagFormat
	Comparison ETagComparison
	RejectStar bool // If-Match: * holds for nothing
	// Required are the types, without their version, that are changed and
	// deleted only with If-Match; otherwise the answer is 428. "*" is all.
	IfMatchRequired []string
	// Deletes says that they are deleted without it.
	DeleteWithoutIfMatch bool
	// Fleeting are types whose ETag is another one each time that somebody looks:
	// If-Match holds with * alone.
	Volatile []string
	// NoActions says that an action with If-Match is refused.
	RejectIfMatchOnActions bool
	// Suffixed says that no change takes the ETag of a packed body, which has a
	// suffix: that of the plain one does.
	GzipSuffix bool
}

// ETagFormat says how ETags are written.
type ETagFormat string

// The ways to write them.
const (
	Strong       ETagFormat = ""      // "x"
	Weak         ETagFormat = "weak"  // W/"x"; If-Match compares weakly, against RFC 9110
	DoubleQuoted ETagFormat = "twice" // ""x"", and so they are compared
	Empty        ETagFormat = "empty" // there is nothing in them, and nothing is like them
)

// ETagComparison says when If-Match holds.
type ETagComparison string

// The ways to compare.
const (
	Quoted   ETagComparison = ""         // the ETag as it is written
	Unquoted ETagComparison = "unquoted" // the ETag without its quotes, and only so
	Never    ETagComparison = "never"
)

// Queries are query parameters (DSP0266, "Query parameters").
type Queries struct {
	TopSkip, Select, Filter, Only, Excerpt bool
	// ExpandAll, ExpandLinks and ExpandRest are the *, ~ and . of $expand.
	ExpandAll, ExpandLinks, ExpandRest bool
	MaxLevels                          int // most that $levels may ask for; 0: it takes none
	Unknown                            UnknownQuery
}

// AllQueries leaves nothing out.
var AllQueries = Queries{
	TopSkip: true, Select: true, Filter: true, Only: true, Excerpt: true,
	ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 6,
}

// UnknownQuery says how a service answers a query parameter that begins with $ and
// that it does not carry out.
type UnknownQuery string

// The answers.
const (
	NotImplemented UnknownQuery = ""            // 501, as DSP0266 asks
	BadRequest     UnknownQuery = "bad request" // 400
	Ignored        UnknownQuery = "ignored"     // as if it were not there
)

var registryVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

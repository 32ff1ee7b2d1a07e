package dialect

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// Protocol describes a vendor's implementation of the Redfish protocol (DSP0266).
type Protocol struct {
	// Registries has the versions of the message registries, by prefix:
	// "Base": "1.8.4". Others have their newest version.
	Registries map[string]string
	// Messages replaces messages of the Base registry, by their keys:
	// "SessionLimitExceeded".
	Messages map[string]VendorMessage
	// Queries are the query parameters that the service implements.
	Queries Queries
	// AdvertisedQueries are what ProtocolFeaturesSupported claims; nil: Queries.
	AdvertisedQueries *Queries
	// PageSize is how many members of a collection one response shows; 0: all.
	PageSize int
	ETags    ETags
	// Gzip compresses responses for clients that accept it.
	Gzip bool
	// WriteableProperties are the types, without version, whose resources list in
	// @Redfish.WriteableProperties what a PATCH may change, if they take one (DSP0266,
	// "Schema-defined annotations"; RedfishExtensions, WriteableProperties). "*" is all
	// types.
	WriteableProperties []string
	// GzipOnly has patterns of URIs, as in URIMapping.From, whose responses are
	// always compressed: a client that does not accept that is answered 406.
	GzipOnly []string
	// ActionTexts takes a JSON text with an object, such as "{}", as the body of an action for that
	// object.
	ActionTexts bool
	// OEMTypes are the types of the objects that the vendor adds to resources.
	OEMTypes []OEMType
	// CloseAfterResponse closes each connection after one response.
	CloseAfterResponse bool
	// PatchDelay is how long the response to a PATCH takes after the change has been
	// made: at most an hour.
	PatchDelay time.Duration
	// ExpandOmits are properties that $expand leaves out of the members.
	ExpandOmits []string
	// EmptyCollectionsAfterBoot is how long after a start of the BMC collections
	// show no members.
	EmptyCollectionsAfterBoot time.Duration
	// ErrorPrefixes are resources whose GET is answered with an error in front of
	// the resource: two JSON documents in one body.
	ErrorPrefixes []ErrorPrefix
	// PlainHTTP serves HTTP without TLS, instead of HTTPS.
	PlainHTTP bool
}

// ErrorPrefix is the error in front of a resource in the body of a 200 response.
type ErrorPrefix struct {
	ResourceType string // type of the resource, without version
	Message      VendorMessage
}

// ListsWriteable reports whether resources of a type list their writable properties.
func (p *Protocol) ListsWriteable(resourceType string) bool {
	return slices.Contains(p.WriteableProperties, "*") || slices.Contains(p.WriteableProperties, resourceType)
}

// Scheme returns the scheme of the service's URLs: http or https.
func (p *Protocol) Scheme() string {
	if p.PlainHTTP {
		return "http"
	}
	return "https"
}

// Clone returns a copy whose lists and maps can be changed.
func (p Protocol) Clone() Protocol {
	p.Registries, p.Messages, p.ETags.IfMatchRequired = maps.Clone(p.Registries), maps.Clone(p.Messages), slices.Clone(p.ETags.IfMatchRequired)
	p.ETags.Volatile = slices.Clone(p.ETags.Volatile)
	p.WriteableProperties = slices.Clone(p.WriteableProperties)
	p.GzipOnly, p.ExpandOmits, p.ErrorPrefixes = slices.Clone(p.GzipOnly), slices.Clone(p.ExpandOmits), slices.Clone(p.ErrorPrefixes)
	return p
}

// ETags describes the service's ETags (DSP0266, "ETags"). The zero value is what the
// standard asks for.
type ETags struct {
	Format     ETagFormat
	Comparison ETagComparison
	RejectStar bool // "If-Match: *" matches nothing
	// IfMatchRequired has types, without version, whose resources are changed and
	// deleted only with If-Match: without it the answer is 428. "*" is all types.
	IfMatchRequired []string
	// DeleteWithoutIfMatch exempts DELETE from IfMatchRequired.
	DeleteWithoutIfMatch bool
	// Volatile has types whose ETag is different at each read, so that If-Match
	// matches with * alone.
	Volatile []string
	// RejectIfMatchOnActions answers an action with If-Match 412.
	RejectIfMatchOnActions bool
	// GzipSuffix makes If-Match reject the ETag of a compressed response, which has a
	// suffix, and match that of the plain response alone.
	GzipSuffix bool
}

// ETagFormat is the form of ETags.
type ETagFormat string

// The forms of ETags.
const (
	Strong       ETagFormat = ""      // "x"
	Weak         ETagFormat = "weak"  // W/"x"; If-Match compares weakly, against RFC 9110
	DoubleQuoted ETagFormat = "twice" // ""x"", and If-Match compares them with all quotes
	Empty        ETagFormat = "empty" // an empty header, which matches nothing
)

// ETagComparison is how If-Match compares.
type ETagComparison string

// The ways to compare.
const (
	Quoted   ETagComparison = ""         // the ETag as it was sent
	Unquoted ETagComparison = "unquoted" // only the ETag without its quotes
	Never    ETagComparison = "never"    // nothing matches
)

// Queries are query parameters (DSP0266, "Query parameters").
type Queries struct {
	TopSkip     bool // $top and $skip
	Select      bool // $select
	Filter      bool // $filter
	Only        bool // only
	Excerpt     bool // excerpt
	ExpandAll   bool // $expand=*
	ExpandLinks bool // $expand=~
	ExpandRest  bool // $expand=.
	MaxLevels   int  // largest $levels of $expand; 0: $levels is not implemented
	Unknown     UnknownQuery
}

// AllQueries has every query parameter of DSP0266.
var AllQueries = Queries{
	TopSkip: true, Select: true, Filter: true, Only: true, Excerpt: true,
	ExpandAll: true, ExpandLinks: true, ExpandRest: true, MaxLevels: 6,
}

// UnknownQuery is the answer to a query parameter that begins with $ and is not
// implemented.
type UnknownQuery string

// The answers.
const (
	NotImplemented UnknownQuery = ""            // 501, as DSP0266 asks
	BadRequest     UnknownQuery = "bad request" // 400
	Ignored        UnknownQuery = "ignored"     // answered as without it
)

var registryVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

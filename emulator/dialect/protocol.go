package dialect

import "regexp"

// Protocol is what a vendor's service makes of the Redfish protocol (DSP0266).
type Protocol struct {
	// Registries are the versions of the message registries that the service
	// speaks, by prefix: "Base": "1.8.4". Of others it speaks the newest.
	Registries map[string]string
	// Queries are the query parameters that the service carries out.
	Queries Queries
	// Claims are those that it says it carries out; nil: the truth.
	Claims *Queries
	// Page is how many members of a collection one answer shows; 0: all.
	Page int
}

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

package dialect

import (
	"fmt"
	"strings"
)

// InputAlias translates a property of a request before the service evaluates the
// request: the property may have another path or other values than the standard's,
// or a default. RejectRules see the request as it was sent. What responses show is
// the task of Transforms.
type InputAlias struct {
	ResourceType string // type of the resource, without version, as in RejectRule
	URI          string // pattern of its URI, as in URIMapping.From; "" is any
	Method       string // as in RejectRule; "" is any
	Path         string // path of the property in the request: "Boot/BootSourceOverrideTarget"
	// Values maps values that the vendor's clients send to the standard's. Values
	// that it does not have stay as they are.
	Values map[string]any
	// To is the standard's path for the property; "" is Path, "-" (Discard) accepts
	// the property and ignores it.
	To string
	// Default is the value of a property that was not sent; nil is none. DefaultWith,
	// if not empty, has paths of which at least one must have been sent for the
	// default to apply.
	Default     any
	DefaultWith []string // see Default
}

// Discard is the InputAlias.To of a property that is accepted and ignored.
const Discard = "-"

func (r *Record) validateInputAliases(need func(ok bool, field, fix string)) {
	for i, g := range r.Presentation.InputAliases {
		at := item("presentation.inputAliases", i)
		need(g.Path != "" && !strings.HasPrefix(g.Path, "/"), at+".path", fmt.Sprintf("%q must be names with slashes between them", g.Path))
		need(g.ResourceType != "" && !strings.ContainsAny(g.ResourceType, "._"), at+".resourceType", "must be a type without its version")
		need(len(g.Values) > 0 || g.To != "" || g.Default != nil, at, "needs values, to or default")
		need(len(g.DefaultWith) == 0 || g.Default != nil, at+".defaultWith", "needs default")
	}
}

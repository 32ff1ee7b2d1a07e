package dialect

import (
	"fmt"
	"strings"
)

// InputAlias is how a service reads a property of a request before it looks at what
// it is to do: it may call the property otherwise, or its values, or take it as
// sent when it was not. Rules see the request as it came. What the service
// shows is a Shape's to say.
type InputAlias struct {
	ResourceType string // type of the resource, as Rule.Of
	URI          string // pattern of its address, as Move.From; "": anywhere
	Method       string // as Rule.Method; "": any
	Path         string // of the property in the request
	// Words says which value stands for which; those that are not there stand
	// for themselves.
	Values map[string]any
	// To is the path at which the tree has the property; "" is Path, and Nowhere
	// leaves it out.
	To string
	// Else is what the property is where it was not sent; nil: nothing. With, if
	// not empty, are paths of which one must have been sent.
	Default     any
	DefaultWith []string
}

// Discard is where a property goes that is taken and has no meaning.
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

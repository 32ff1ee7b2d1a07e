package dialect

import (
	"fmt"
	"strings"
)

// Reading is how a service reads a property of a request before it looks at what
// it is to do: it may call the property otherwise, or its values, or take it as
// sent when it was not. Rules see the request as it came. What the service
// shows is a Shape's to say.
type Reading struct {
	Of     string // type of the resource, as Rule.Of
	At     string // pattern of its address, as Move.From; "": anywhere
	Method string // as Rule.Method; "": any
	Path   string // of the property in the request
	// Words says which value stands for which; those that are not there stand
	// for themselves.
	Words map[string]any
	// To is the path at which the tree has the property; "" is Path, and Nowhere
	// leaves it out.
	To string
	// Else is what the property is where it was not sent; nil: nothing. With, if
	// not empty, are paths of which one must have been sent.
	Else any
	With []string
}

// Nowhere is where a property goes that is taken and has no meaning.
const Nowhere = "-"

func (r *Record) validateReadings(need func(ok bool, field, fix string)) {
	for _, g := range r.Face.Readings {
		need(g.Path != "" && !strings.HasPrefix(g.Path, "/"), "Face.Readings.Path", fmt.Sprintf("%q must be names with slashes between them", g.Path))
		need(g.Of != "" && !strings.ContainsAny(g.Of, "._"), "Face.Readings.Of", "must be a type without its version")
		need(len(g.Words) > 0 || g.To != "" || g.Else != nil, "Face.Readings", g.Of+"/"+g.Path+": must have Words, To or Else")
		need(len(g.With) == 0 || g.Else != nil, "Face.Readings.With", g.Of+"/"+g.Path+": needs Else")
	}
}

package capture

import (
	"maps"
	"slices"

	"github.com/metalab-dev/metalab/emulator/natural"
)

// OfType returns the URIs of the resources of a type, sorted; "" means all
// types.
func (c *Capture) OfType(kind string) []string {
	var out []string
	for _, at := range slices.Sorted(maps.Keys(c.Resources)) {
		if kind == "" || Type(c.Resources[at]) == kind {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, natural.Compare)
	return out
}

// Members returns the URIs of the collection's members that were read, in the
// collection's order.
func (c *Capture) Members(collection string) []string {
	var out []string
	for _, m := range list(c.Resources[collection]["Members"]) {
		if at := trimURI(text(m, "@odata.id")); c.Resources[at] != nil {
			out = append(out, at)
		}
	}
	return out
}

// Link returns the URI to which a property of the resource at a URI links; ""
// when it is no link.
func (c *Capture) Link(at, name string) string {
	return trimURI(text(c.Resources[at][name], "@odata.id"))
}

package vendor

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// inputAlias is a dialect.InputAlias with its pattern parsed.
type inputAlias struct {
	dialect.InputAlias
	uri pattern
}

// translate returns the body of a request with the alias's property at the standard's
// path and with the standard's value.
func (a *inputAlias) translate(in resource.Document) resource.Document {
	sent := func(path string) bool { _, ok := in.Lookup(path); return ok }
	v, given := in.Lookup(a.Path)
	switch {
	case given:
		if standard, ok := a.Values[fmt.Sprint(v)]; ok {
			v = asSent(standard)
		}
	case a.Default != nil && (len(a.DefaultWith) == 0 || slices.ContainsFunc(a.DefaultWith, sent)):
		v = asSent(a.Default)
	default:
		return in
	}
	to := cmp.Or(a.To, a.Path)
	if to != a.Path {
		in = in.WithoutValue(a.Path)
	}
	if to == dialect.Discard {
		return in
	}
	return in.WithValue(to, v)
}

// asSent converts a value of a record to the Go type that a parsed request has for
// it.
func asSent(v any) any {
	in, err := resource.Parse(resource.Encode(resource.Object{"": v}))
	if err != nil {
		return v // unreachable: values of records are JSON
	}
	parsed, _ := in.Get("")
	return parsed
}

// gatherAttributes moves BIOS attributes that a client has sent in the Bios resource
// itself (BIOS.FlatAttributes) to Attributes, where the standard has them.
func gatherAttributes(q Request, in resource.Document) resource.Document {
	if !q.At.Dialect.BIOS.FlatAttributes || q.Method != http.MethodPatch || resource.TypeName(q.Match.Schema) != "Bios" {
		return in
	}
	var out, attributes resource.Document
	for _, f := range in.Fields {
		if f.Name == "Attributes" || strings.HasPrefix(f.Name, "@") {
			out.Fields = append(out.Fields, f)
			continue
		}
		attributes.Fields = append(attributes.Fields, f)
	}
	if len(attributes.Fields) > 0 {
		out.Put("Attributes", attributes)
	}
	return out
}

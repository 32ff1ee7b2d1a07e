package vendor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// inputAlias is a dialect.Reading, ready for use.
type inputAlias struct {
	dialect.InputAlias
	at pattern
}

// concerns says whether it is about what a request is about.
func (r *inputAlias) concerns(q Request) bool {
	of := rejectRule{dialect.RejectRule{ResourceType: r.ResourceType, Method: r.Method}, r.at}
	return of.concerns(q)
}

func (r *inputAlias) read(in resource.Document) resource.Document {
	v, sent := in.Lookup(r.Path)
	switch {
	case sent:
		if word, ok := r.Values[fmt.Sprint(v)]; ok {
			v = sending(word)
		}
	case r.Default != nil && (len(r.DefaultWith) == 0 || slices.ContainsFunc(r.DefaultWith, func(p string) bool { _, ok := in.Lookup(p); return ok })):
		v = sending(r.Default)
	default:
		return in
	}
	to := r.To
	if to == "" {
		to = r.Path
	}
	if to != r.Path {
		in = in.WithoutValue(r.Path)
	}
	if to == dialect.Discard {
		return in
	}
	return in.WithValue(to, v)
}

// sending is a value of a record as a client would have sent it.
func sending(v any) any {
	in, err := resource.Parse(resource.Encode(resource.Object{"": v}))
	if err != nil {
		return v // not reached: it is data
	}
	sent, _ := in.Get("")
	return sent
}

// gatherAttributes puts the BIOS attributes that a client found in the resource
// itself (BIOS.FlatAttributes) where the standard has them.
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

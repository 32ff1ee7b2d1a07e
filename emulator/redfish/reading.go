package redfish

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// reading is a dialect.Reading, ready for use.
type reading struct {
	dialect.InputAlias
	at pattern
}

// concerns says whether it is about what a request is about.
func (r *reading) concerns(q ofRequest) bool {
	of := rule{dialect.RejectRule{ResourceType: r.ResourceType, Method: r.Method}, r.at}
	return of.concerns(q)
}

func (r *reading) read(in document) document {
	v, sent := in.inside(r.Path)
	switch {
	case sent:
		if word, ok := r.Values[fmt.Sprint(v)]; ok {
			v = sending(word)
		}
	case r.Default != nil && (len(r.DefaultWith) == 0 || slices.ContainsFunc(r.DefaultWith, func(p string) bool { _, ok := in.inside(p); return ok })):
		v = sending(r.Default)
	default:
		return in
	}
	to := r.To
	if to == "" {
		to = r.Path
	}
	if to != r.Path {
		in = in.less(r.Path)
	}
	if to == dialect.Discard {
		return in
	}
	return in.more(to, v)
}

// sending is a value of a record as a client would have sent it.
func sending(v any) any {
	in, err := parse(encode(object{"": v}))
	if err != nil {
		return v // not reached: it is data
	}
	sent, _ := in.get("")
	return sent
}

// gatherAttributes puts the BIOS attributes that a client found in the resource
// itself (BIOS.FlatAttributes) where the standard has them.
func gatherAttributes(q ofRequest, in document) document {
	if !q.At.d.BIOS.FlatAttributes || q.Method != http.MethodPatch || typeName(q.Match.schema) != "Bios" {
		return in
	}
	var out, attributes document
	for _, f := range in.fields {
		if f.name == "Attributes" || strings.HasPrefix(f.name, "@") {
			out.fields = append(out.fields, f)
			continue
		}
		attributes.fields = append(attributes.fields, f)
	}
	if len(attributes.fields) > 0 {
		out.put("Attributes", attributes)
	}
	return out
}

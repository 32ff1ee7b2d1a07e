package resource

import (
	"net/http"
	"strings"
)

// Capabilities is the resource that describes what a new member of a collection
// is made of (DSP0266, "Collection capabilities annotation"). It is of the
// member's type, and shows annotations instead of values.
func Capabilities(r, member *Row) *Row {
	var changes []Input
	if member.Patch != nil {
		changes = member.Patch.Inputs
	}
	return &Row{
		URI: r.URI + "/Capabilities", Schema: member.Schema, Privileges: r.Privileges, DependsOn: r.DependsOn,
		When: func(v View) bool { return (r.When == nil || r.When(v)) && r.grows(v) },
		Read: func(v View) Object {
			o := required(r.Create.Inputs, changes, v)
			o["Name"] = "Capabilities of " + r.Name
			return o
		},
	}
}

// required tells of inputs whether a new member needs them, and whether they
// can be changed later.
func required(inputs, changes []Input, v View) Object {
	o := Object{}
	for i := range inputs {
		in := &inputs[i]
		say := func(annotation string) { o[in.Name+"@Redfish."+annotation] = true }
		if in.Required {
			say("RequiredOnCreate")
		} else {
			say("OptionalOnCreate")
		}
		change := Find(changes, in.Name, func(c Input) string { return c.Name })
		if change.Name == "" {
			say("SetOnlyOnCreate")
		} else {
			say("UpdatableAfterCreate")
		}
		if values := in.listed(v); values != nil {
			o[in.Name+Allowable] = values
		}
		if in.Kind == Group {
			o[in.Name] = required(in.Of, change.Of, v)
		}
	}
	return o
}

// Capable is the annotation of a collection that leads to its capabilities, or
// nil. The schema knows but few use cases (CollectionCapabilities.UseCase); of
// other collections there is only how many members they take.
func (r *Row) Capable(v View) Object {
	if !r.grows(v) || r.Create.UseCase == "" && r.Create.MaxMembers == nil {
		return nil
	}
	o := Object{"@odata.type": "#" + capabilitiesSchema + ".CollectionCapabilities"}
	if r.Create.MaxMembers != nil {
		o["MaxMembers"] = max(1, r.Create.MaxMembers(v)) // the least that the schema knows
	}
	if r.Create.UseCase != "" {
		o["Capabilities"] = []Object{{
			"CapabilitiesObject": Ref(v.URI + "/Capabilities"), "UseCase": r.Create.UseCase,
			"Links": Object{"TargetCollection": Ref(v.URI)},
		}}
	}
	return o
}

// grows says whether clients can add members to a collection.
func (r *Row) grows(v View) bool {
	return r.Create != nil && (r.Refuses == nil || !r.Refuses(v, http.MethodPost))
}

const capabilitiesSchema = "CollectionCapabilities.v1_4_1"

// memberOf is the row of a collection's members.
func memberOf(tree []Row, r *Row) *Row {
	for i := range tree {
		below, ok := strings.CutPrefix(tree[i].URI, r.URI+"/{")
		if ok && strings.HasSuffix(below, "}") && !strings.Contains(below, "/") {
			return &tree[i]
		}
	}
	return nil
}

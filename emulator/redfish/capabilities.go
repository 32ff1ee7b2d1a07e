package redfish

import (
	"net/http"
	"strings"
)

// capabilities is the resource that describes what a new member of a collection
// is made of (DSP0266, "Collection capabilities annotation"). It is of the
// member's type, and shows annotations instead of values.
func capabilities(r, member *resource) *resource {
	var changes []input
	if member.patch != nil {
		changes = member.patch.inputs
	}
	return &resource{
		uri: r.uri + "/Capabilities", schema: member.schema, needs: r.needs, shows: r.shows,
		when: func(v view) bool { return (r.when == nil || r.when(v)) && r.grows(v) },
		read: func(v view) object {
			o := required(r.create.inputs, changes, v)
			o["Name"] = "Capabilities of " + r.name
			return o
		},
	}
}

// required tells of inputs whether a new member needs them, and whether they
// can be changed later.
func required(inputs, changes []input, v view) object {
	o := object{}
	for i := range inputs {
		in := &inputs[i]
		say := func(annotation string) { o[in.name+"@Redfish."+annotation] = true }
		if in.required {
			say("RequiredOnCreate")
		} else {
			say("OptionalOnCreate")
		}
		change := pick(changes, in.name, func(c input) string { return c.name })
		if change.name == "" {
			say("SetOnlyOnCreate")
		} else {
			say("UpdatableAfterCreate")
		}
		if values := in.listed(v); values != nil {
			o[in.name+allowable] = values
		}
		if in.kind == group {
			o[in.name] = required(in.of, change.of, v)
		}
	}
	return o
}

// capable is the annotation of a collection that leads to its capabilities, or
// nil. The schema knows but few use cases (CollectionCapabilities.UseCase); of
// other collections there is only how many members they take.
func (r *resource) capable(v view) object {
	if !r.grows(v) || r.create.useCase == "" && r.create.most == nil {
		return nil
	}
	o := object{"@odata.type": "#" + capabilitiesSchema + ".CollectionCapabilities"}
	if r.create.most != nil {
		o["MaxMembers"] = max(1, r.create.most(v)) // the least that the schema knows
	}
	if r.create.useCase != "" {
		o["Capabilities"] = []object{{
			"CapabilitiesObject": ref(v.uri + "/Capabilities"), "UseCase": r.create.useCase,
			"Links": object{"TargetCollection": ref(v.uri)},
		}}
	}
	return o
}

// grows says whether clients can add members to a collection.
func (r *resource) grows(v view) bool {
	return r.create != nil && (r.spares == nil || !r.spares(v, http.MethodPost))
}

const capabilitiesSchema = "CollectionCapabilities.v1_4_1"

// memberOf is the row of a collection's members.
func memberOf(tree []resource, r *resource) *resource {
	for i := range tree {
		below, ok := strings.CutPrefix(tree[i].uri, r.uri+"/{")
		if ok && strings.HasSuffix(below, "}") && !strings.Contains(below, "/") {
			return &tree[i]
		}
	}
	return nil
}

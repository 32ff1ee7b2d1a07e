package resource

import (
	"net/http"
	"strings"
)

// capabilities returns the row of the resource that describes how to create a
// member of a collection (DSP0266, "Collection capabilities annotation"). It has
// the member's type and shows annotations instead of values.
func capabilities(r, member *Row) *Row {
	var changes []Input
	if member.Patch != nil {
		changes = member.Patch.Inputs
	}
	return &Row{
		URI: r.URI + "/Capabilities", Schema: member.Schema, Privileges: r.Privileges, DependsOn: r.DependsOn,
		When: func(v View) bool { return (r.When == nil || r.When(v)) && r.acceptsMembers(v) },
		Read: func(v View) Object {
			o := capabilityAnnotations(r.Create.Inputs, changes, v)
			o["Name"] = "Capabilities of " + r.collectionName
			return o
		},
	}
}

// capabilityAnnotations returns annotations that say which inputs are required
// on create and which can be updated later.
func capabilityAnnotations(inputs, changes []Input, v View) Object {
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
		if values := in.allowableValues(v); values != nil {
			o[in.Name+AllowableValues] = values
		}
		if in.Kind == Group {
			o[in.Name] = capabilityAnnotations(in.Of, change.Of, v)
		}
	}
	return o
}

// capabilitiesAnnotation returns the @Redfish.CollectionCapabilities of a
// collection, or nil. The schema defines few use cases
// (CollectionCapabilities.UseCase); other collections show MaxMembers alone.
func (r *Row) capabilitiesAnnotation(v View) Object {
	if !r.acceptsMembers(v) || r.Create.useCase == "" && r.Create.maxMembers == nil {
		return nil
	}
	o := Object{"@odata.type": "#" + capabilitiesSchema + ".CollectionCapabilities"}
	if r.Create.maxMembers != nil {
		o["MaxMembers"] = max(1, r.Create.maxMembers(v)) // the schema's minimum
	}
	if r.Create.useCase != "" {
		o["Capabilities"] = []Object{{
			"CapabilitiesObject": Ref(v.URI + "/Capabilities"), "UseCase": r.Create.useCase,
			"Links": Object{"TargetCollection": Ref(v.URI)},
		}}
	}
	return o
}

// acceptsMembers reports whether clients can add members to a collection by
// POST.
func (r *Row) acceptsMembers(v View) bool {
	return r.Create != nil && (r.Refuses == nil || !r.Refuses(v, http.MethodPost))
}

const capabilitiesSchema = "CollectionCapabilities.v1_4_1"

// memberRow returns the row of a collection's members; nil if there is none.
func memberRow(tree []Row, r *Row) *Row {
	for i := range tree {
		below, ok := strings.CutPrefix(tree[i].URI, r.URI+"/{")
		if ok && strings.HasSuffix(below, "}") && !strings.Contains(below, "/") {
			return &tree[i]
		}
	}
	return nil
}

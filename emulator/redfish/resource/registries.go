package resource

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// registryRows are the registries that the service speaks, and those that it
// has to itself, whole.
func registryRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Registries", Schema: "MessageRegistryFileCollection", Name: "Registries", MemberVariable: "registry"},
		{URI: "/redfish/v1/Registries/{registry}", Schema: "MessageRegistryFile.v1_1_5", Read: registryFile},
		{URI: "/redfish/v1/Registries/{registry}/{document}", Privileges: ofManager, Link: "-",
			Raw: func(v View) (MediaType, []byte) {
				return JSON, Encode(registries(v)[v.IDs["registry"]].document(v))
			}},
	}
}

// registryOf is a registry of any kind.
type registryOf struct {
	name      string // for people
	speaks    string // MessageRegistryFile.Registry
	language  string
	published string              // where DMTF has it; "" for one of our own
	document  func(v View) Object // the registry itself; nil when it is published elsewhere
}

// registries are all registries, by their IDs.
func registries(v View) map[string]registryOf {
	out := map[string]registryOf{}
	if r := v.registry(); r != nil {
		out[r.ID] = registryOf{name: r.Name, speaks: r.ID, language: r.Language, document: attributeRegistry}
	}
	for _, r := range message.Registries {
		id := r.Prefix + "." + v.Spoken().Of(r.Registry)
		out[id] = registryOf{
			name: r.Prefix + " Message Registry File", speaks: v.Spoken().Name(r.Registry), language: "en", published: publishedRegistries + id + ".json",
		}
	}
	out[PrivilegesID] = registryOf{
		name: "Privilege Registry File", speaks: PrivilegesID, language: "en", published: publishedRegistries + PrivilegesID + ".json",
		document: PrivilegeMapping,
	}
	return out
}

// publishedRegistries is where DMTF has its registries.
const publishedRegistries = "https://redfish.dmtf.org/registries/"

func registryFile(v View) Object {
	id := v.IDs["registry"]
	r := registries(v)[id]
	location := Object{"Language": r.language}
	if r.published != "" {
		location["PublicationUri"] = r.published
	}
	switch {
	case r.document != nil:
		location["Uri"] = v.URI + "/" + id + ".json"
	case v.Tree.Library.Has(id + ".json"):
		location["Uri"] = SchemaStore + id + ".json"
	}
	return Object{"Name": r.name, "Registry": r.speaks, "Languages": []string{r.language}, "Location": []Object{location}}
}

// PrivilegesID is the operation-to-privilege mapping that authorisation follows.
const PrivilegesID = "Redfish_1.8.0_PrivilegeRegistry"

// PrivilegeMapping is that mapping (DSP2046, PrivilegeRegistry), made from the
// tables which decide. It is a document, not a resource.
func PrivilegeMapping(View) Object {
	var all []Object
	for _, group := range Mappings {
		for entity := range strings.FieldsSeq(group.Entities) {
			m := Object{"Entity": entity, "OperationMap": group.needs.operations()}
			if p := Properties[entity]; p != nil {
				var overrides []Object
				for name, privileges := range p {
					overrides = append(overrides, Object{"Targets": []string{name}, "OperationMap": Object{"PATCH": alternatives(privileges)}})
				}
				slices.SortFunc(overrides, func(a, b Object) int {
					return strings.Compare(a["Targets"].([]string)[0], b["Targets"].([]string)[0])
				})
				m["PropertyOverrides"] = overrides
			}
			var overrides []Object
			for _, o := range SubordinateOverrides {
				if slices.Contains(strings.Fields(o.Entities), entity) {
					overrides = append(overrides, Object{"Targets": strings.Fields(o.under), "OperationMap": o.needs.operations()})
				}
			}
			if overrides != nil {
				m["SubordinateOverrides"] = overrides
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a["Entity"].(string), b["Entity"].(string)) })
	return Object{
		"@odata.type": OdataType("PrivilegeRegistry.v1_2_0"), "Id": PrivilegesID, "Name": "Privilege Registry",
		"PrivilegesUsed":    []Privilege{Login, ConfigureManager, configureUsers, configureComponents, configureSelf},
		"OEMPrivilegesUsed": []string{}, "Mappings": all,
	}
}

// operations is what each operation needs, as the registry tells it.
func (n *Privileges) operations() Object {
	o := Object{}
	for _, method := range []string{"GET", "HEAD", "PATCH", "POST", "PUT", "DELETE"} {
		if p := n.To(method); p != nil {
			o[method] = alternatives(p)
		}
	}
	return o
}

// alternatives are privileges of which any one will do.
func alternatives(privileges []Privilege) []Object {
	return Map(privileges, func(p Privilege) Object { return Object{"Privilege": []Privilege{p}} })
}

package redfish

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// registryRows are the registries that the service speaks, and those that it
// has to itself, whole.
func registryRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Registries", schema: "MessageRegistryFileCollection", name: "Registries", of: "registry"},
		{uri: "/redfish/v1/Registries/{registry}", schema: "MessageRegistryFile.v1_1_5", read: registryFile},
		{uri: "/redfish/v1/Registries/{registry}/{document}", needs: ofManager, link: "-",
			raw: func(v view) (mime, []byte) {
				return jsonType, encode(registries(v)[v.ids["registry"]].document(v))
			}},
	}
}

// registryOf is a registry of any kind.
type registryOf struct {
	name      string // for people
	speaks    string // MessageRegistryFile.Registry
	language  string
	published string              // where DMTF has it; "" for one of our own
	document  func(v view) object // the registry itself; nil when it is published elsewhere
}

// registries are all registries, by their IDs.
func registries(v view) map[string]registryOf {
	out := map[string]registryOf{}
	if r := v.registry(); r != nil {
		out[r.ID] = registryOf{name: r.Name, speaks: r.ID, language: r.Language, document: attributeRegistry}
	}
	for _, r := range message.Registries {
		id := r.Prefix + "." + v.spoken().Of(r.Registry)
		out[id] = registryOf{
			name: r.Prefix + " Message Registry File", speaks: v.spoken().Name(r.Registry), language: "en", published: publishedRegistries + id + ".json",
		}
	}
	out[privilegesID] = registryOf{
		name: "Privilege Registry File", speaks: privilegesID, language: "en", published: publishedRegistries + privilegesID + ".json",
		document: privilegeMapping,
	}
	return out
}

// publishedRegistries is where DMTF has its registries.
const publishedRegistries = "https://redfish.dmtf.org/registries/"

func registryFile(v view) object {
	id := v.ids["registry"]
	r := registries(v)[id]
	location := object{"Language": r.language}
	if r.published != "" {
		location["PublicationUri"] = r.published
	}
	switch {
	case r.document != nil:
		location["Uri"] = v.uri + "/" + id + ".json"
	case v.tree.library.has(id + ".json"):
		location["Uri"] = schemaStore + id + ".json"
	}
	return object{"Name": r.name, "Registry": r.speaks, "Languages": []string{r.language}, "Location": []object{location}}
}

// privilegesID is the operation-to-privilege mapping that authorisation follows.
const privilegesID = "Redfish_1.8.0_PrivilegeRegistry"

// privilegeMapping is that mapping (DSP2046, PrivilegeRegistry), made from the
// tables which decide. It is a document, not a resource.
func privilegeMapping(view) object {
	var all []object
	for _, group := range mappings {
		for entity := range strings.FieldsSeq(group.entities) {
			m := object{"Entity": entity, "OperationMap": group.needs.operations()}
			if p := properties[entity]; p != nil {
				var overrides []object
				for name, privileges := range p {
					overrides = append(overrides, object{"Targets": []string{name}, "OperationMap": object{"PATCH": alternatives(privileges)}})
				}
				slices.SortFunc(overrides, func(a, b object) int {
					return strings.Compare(a["Targets"].([]string)[0], b["Targets"].([]string)[0])
				})
				m["PropertyOverrides"] = overrides
			}
			var overrides []object
			for _, o := range beneath {
				if slices.Contains(strings.Fields(o.entities), entity) {
					overrides = append(overrides, object{"Targets": strings.Fields(o.under), "OperationMap": o.needs.operations()})
				}
			}
			if overrides != nil {
				m["SubordinateOverrides"] = overrides
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a["Entity"].(string), b["Entity"].(string)) })
	return object{
		"@odata.type": odataType("PrivilegeRegistry.v1_2_0"), "Id": privilegesID, "Name": "Privilege Registry",
		"PrivilegesUsed":    []privilege{login, configureManager, configureUsers, configureComponents, configureSelf},
		"OEMPrivilegesUsed": []string{}, "Mappings": all,
	}
}

// operations is what each operation needs, as the registry tells it.
func (n *needs) operations() object {
	o := object{}
	for _, method := range []string{"GET", "HEAD", "PATCH", "POST", "PUT", "DELETE"} {
		if p := n.to(method); p != nil {
			o[method] = alternatives(p)
		}
	}
	return o
}

// alternatives are privileges of which any one will do.
func alternatives(privileges []privilege) []object {
	return list(privileges, func(p privilege) object { return object{"Privilege": []privilege{p}} })
}

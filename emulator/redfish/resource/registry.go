package resource

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// registryRows returns the rows of the message registries that the service uses, and of the
// registries that it serves as documents.
func registryRows() []Row {
	return []Row{
		{URI: "/redfish/v1/Registries", Schema: "MessageRegistryFileCollection", collectionName: "Registries", memberVariable: "registry"},
		{URI: "/redfish/v1/Registries/{registry}", Schema: "MessageRegistryFile.v1_1_5", Read: registryFile},
		{URI: "/redfish/v1/Registries/{registry}/{document}", Privileges: managerPrivileges, Link: "-",
			Raw: func(v View) (MediaType, []byte) {
				return JSON, Encode(registries(v)[v.IDs["registry"]].document(v))
			}},
	}
}

// registryInfo describes a message, attribute or privilege registry.
type registryInfo struct {
	name      string // display name
	registry  string // MessageRegistryFile.Registry
	language  string
	published string              // URI at DMTF; "" for a registry of this service
	document  func(v View) Object // body of the registry; nil when only DMTF publishes it
}

// registries returns all registries of the service by their IDs.
func registries(v View) map[string]registryInfo {
	out := map[string]registryInfo{}
	if r := v.registry(); r != nil {
		out[r.ID] = registryInfo{name: r.Name, registry: r.ID, language: r.Language, document: attributeRegistry}
	}
	for _, r := range message.Registries {
		id := r.Prefix + "." + v.MessageVersions().Of(r.Registry)
		out[id] = registryInfo{
			name: r.Prefix + " Message Registry File", registry: v.MessageVersions().Name(r.Registry), language: "en", published: publishedRegistries + id + ".json",
		}
	}
	out[PrivilegesID] = registryInfo{
		name: "Privilege Registry File", registry: PrivilegesID, language: "en", published: publishedRegistries + PrivilegesID + ".json",
		document: PrivilegeMapping,
	}
	return out
}

// publishedRegistries is the URI below which DMTF publishes its registries.
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
	return Object{"Name": r.name, "Registry": r.registry, "Languages": []string{r.language}, "Location": []Object{location}}
}

// PrivilegesID names the operation-to-privilege mapping that authorization follows.
const PrivilegesID = "Redfish_1.8.0_PrivilegeRegistry"

// PrivilegeMapping returns the privilege registry (DSP2046, PrivilegeRegistry), built from
// the tables that authorization uses. It is a document, not a resource.
func PrivilegeMapping(View) Object {
	var all []Object
	for _, group := range Mappings {
		for entity := range strings.FieldsSeq(group.Entities) {
			m := Object{"Entity": entity, "OperationMap": group.privileges.operationMap()}
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
					overrides = append(overrides, Object{"Targets": strings.Fields(o.targets), "OperationMap": o.privileges.operationMap()})
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

// operationMap returns the privileges as an OperationMap of the privilege registry.
func (n *Privileges) operationMap() Object {
	o := Object{}
	for _, method := range []string{"GET", "HEAD", "PATCH", "POST", "PUT", "DELETE"} {
		if p := n.ForMethod(method); p != nil {
			o[method] = alternatives(p)
		}
	}
	return o
}

// alternatives returns privileges of which any one is enough, in the form of the privilege
// registry.
func alternatives(privileges []Privilege) []Object {
	return Map(privileges, func(p Privilege) Object { return Object{"Privilege": []Privilege{p}} })
}

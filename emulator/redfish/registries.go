package redfish

// registryRows are the registries that the service speaks, and those that it
// has to itself, whole.
func registryRows() []resource {
	return []resource{
		{uri: "/redfish/v1/Registries", schema: "MessageRegistryFileCollection", needs: ofManager, name: "Registries", of: "registry"},
		{uri: "/redfish/v1/Registries/{registry}", schema: "MessageRegistryFile.v1_1_5", needs: ofManager, read: registryFile},
		{uri: "/redfish/v1/Registries/{registry}/{document}", needs: ofManager, link: "-",
			raw: func(_ *Service, v view) (mime, []byte) {
				return jsonType, encode(registries(v)[v.ids["registry"]].document(v))
			}},
	}
}

// registryOf is a registry of any kind.
type registryOf struct {
	name     string // for people
	speaks   string // MessageRegistryFile.Registry
	language string
	document func(v view) object // the registry itself; nil when it is published elsewhere
}

// registries are all registries, by their IDs.
func registries(v view) map[string]registryOf {
	out := map[string]registryOf{}
	if r := v.registry(); r != nil {
		out[r.ID] = registryOf{name: r.Name, speaks: r.ID, language: r.Language, document: attributeRegistry}
	}
	return out
}

func registryFile(v view) object {
	r := registries(v)[v.ids["registry"]]
	location := object{"Language": r.language}
	if r.document != nil {
		location["Uri"] = v.uri + "/" + v.ids["registry"] + ".json"
	}
	return object{"Name": r.name, "Registry": r.speaks, "Languages": []string{r.language}, "Location": []object{location}}
}

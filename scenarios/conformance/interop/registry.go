package interop

import (
	"maps"
	"slices"
	"strings"
)

// MessageRegistry is a message registry that a service names.
type MessageRegistry struct {
	Prefix   string          // such as Base
	Version  string          // such as 1.18.0 or 1.18
	Messages map[string]bool // names; nil: nobody has its text
}

// ParseRegistry splits the property Registry of a MessageRegistryFile, such as Base.1.18.0.
func ParseRegistry(text string) (prefix, version string) {
	prefix, version, _ = strings.Cut(text, ".")
	return prefix, version
}

// registries evaluates the requirements on message registries. That a registry has a
// message does not show that the service sends it.
func (e *evaluation) registries() {
	for _, name := range slices.Sorted(maps.Keys(e.profile.Registries)) {
		want, what := e.profile.Registries[name], "Registries/"+name
		if len(want.SupportedFeatures) > 0 {
			e.skip(what+"/SupportedFeatures", "registries of features are not read")
		}
		at := slices.IndexFunc(e.service.Registries, func(r MessageRegistry) bool { return r.Prefix == name })
		severity, wanted := severities[want.ReadRequirement]
		switch {
		case want.ReadRequirement == "Excluded":
			e.require(at < 0, Mandatory, nil, what, "exists")
		case wanted:
			e.require(at >= 0, severity, nil, what, "the service names no such registry")
		}
		if at < 0 {
			continue
		}
		has := e.service.Registries[at]
		if want.MinVersion != "" {
			e.require(!older(has.Version, want.MinVersion), Mandatory, nil, what, "version %s is older than %s", has.Version, want.MinVersion)
		}
		if has.Messages == nil && len(want.Messages) > 0 {
			e.skip(what+"/Messages", "the service does not serve the registry")
			continue
		}
		for _, message := range slices.Sorted(maps.Keys(want.Messages)) {
			if severity, wanted := severities[want.Messages[message].ReadRequirement]; wanted {
				e.require(has.Messages[message], severity, nil, what+"/"+message, "the registry has no such message")
			}
		}
	}
}

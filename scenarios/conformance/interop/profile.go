// Package interop evaluates Redfish interoperability profiles (DSP0272) against
// resources that somebody has read. It sends no request, and knows no profile by
// name.
package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Profile is an interoperability profile.
type Profile struct {
	ProfileName      string
	ProfileVersion   string
	RequiredProfiles map[string]struct{ MinVersion string }
	Protocol         *Protocol
	Resources        map[string]Resource
	Registries       map[string]Registry // by prefix, such as Base

	required []*Profile
}

// Protocol are the requirements on the service.
type Protocol struct {
	MinVersion                                                                   string
	ExpandQuery, FilterQuery, SelectQuery, OnlyQuery, ExcerptQuery, TopSkipQuery string
	Discovery, HostInterface, DeepPATCH, DeepPOST                                string // not evaluated
}

// Resource are the requirements on the resources of one type.
type Resource struct {
	MinVersion, ReadRequirement                    string
	CreateResource, DeleteResource, UpdateResource *bool
	URIs                                           []string
	ConditionalRequirements                        []Condition
	PropertyRequirements                           map[string]Property
	ActionRequirements                             map[string]Action
	UseCases                                       []UseCase
	RequiredResourceProfile                        *struct{ Name string } // not evaluated
}

// UseCase are the requirements on the resources of one type that have a property.
type UseCase struct {
	Resource
	UseCaseType, UseCaseTitle, UseCaseKeyProperty, UseCaseComparison string
	UseCaseKeyValues                                                 []any
}

// Property are the requirements on one property.
type Property struct {
	ReadRequirement, WriteRequirement    string
	ReplacedByProperty, ReplacesProperty string
	MinCount                             *int
	MinSupportValues                     []any
	Comparison                           string
	Values                               []any
	ConditionalRequirements              []Condition
	PropertyRequirements                 map[string]Property
}

// Action are the requirements on one action.
type Action struct {
	ReadRequirement, ActionInfo string
	Parameters                  map[string]Parameter
}

// Parameter are the requirements on a parameter of an action.
type Parameter struct {
	ReadRequirement                                      string
	ParameterValues, RecommendedValues, MinSupportValues []any
}

// Condition are requirements that hold in some resources only.
type Condition struct {
	ReadRequirement, WriteRequirement string
	URIs, SubordinateToResource       []string
	Comparison                        string
	Values                            []any
	CompareProperty, CompareType      string
	CompareValues                     []any
	MinCount                          *int
	PropertyRequirements              map[string]Property
}

// Registry are the requirements on a message registry.
type Registry struct {
	ReadRequirement, MinVersion string
	Messages                    map[string]Message
	SupportedFeatures           map[string]Message // not evaluated
}

// Message are the requirements on a message of a registry.
type Message struct{ ReadRequirement string }

// Parse reads a profile. The profiles that it requires come from find, which may be
// nil when there are none.
func Parse(data []byte, find func(name string) ([]byte, error)) (*Profile, error) {
	return parse(data, find, 0)
}

// maxDepth bounds profiles that require each other.
const maxDepth = 8

func parse(data []byte, find func(string) ([]byte, error), depth int) (*Profile, error) {
	p := new(Profile)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if p.ProfileName == "" || p.Resources == nil && p.RequiredProfiles == nil {
		return nil, errors.New("profile: no ProfileName or no Resources: it is no interoperability profile (DSP0272)")
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("profile %s: profiles require each other", p.ProfileName)
	}
	for name := range p.RequiredProfiles {
		if find == nil {
			return nil, fmt.Errorf("profile %s requires %s, which is not there", p.ProfileName, name)
		}
		more, err := find(name)
		if err != nil {
			return nil, fmt.Errorf("profile %s requires %s: %w", p.ProfileName, name, err)
		}
		r, err := parse(more, find, depth+1)
		if err != nil {
			return nil, err
		}
		p.required = append(p.required, r)
	}
	return p, nil
}

// Types returns the types of resources with requirements, also of the required
// profiles.
func (p *Profile) Types() map[string]bool {
	all := map[string]bool{}
	for t := range p.Resources {
		all[t] = true
	}
	for _, r := range p.required {
		for t := range r.Types() {
			all[t] = true
		}
	}
	return all
}

// RegistryNames returns the prefixes of the message registries with requirements, also of
// the required profiles.
func (p *Profile) RegistryNames() map[string]bool {
	all := map[string]bool{}
	for name := range p.Registries {
		all[name] = true
	}
	for _, r := range p.required {
		for name := range r.RegistryNames() {
			all[name] = true
		}
	}
	return all
}

// Name names the profile with its version.
func (p *Profile) Name() string { return strings.TrimSpace(p.ProfileName + " " + p.ProfileVersion) }

// older reports whether a version like 1.6.0 or v1_6_0 is older than another.
func older(version, least string) bool {
	a, b := numbers(version), numbers(least)
	for i := range b {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) (out [3]int) {
	fields := strings.FieldsFunc(strings.TrimPrefix(version, "v"), func(r rune) bool { return r == '.' || r == '_' })
	for i := range min(3, len(fields)) {
		out[i], _ = strconv.Atoi(fields[i]) // a part that is no number counts as 0, the oldest
	}
	return out
}

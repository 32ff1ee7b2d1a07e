package interop

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Severity is the weight of a requirement that does not hold.
type Severity string

// The severities.
const (
	Mandatory   Severity = "mandatory"
	Recommended Severity = "recommended"
)

// Violation is a requirement that does not hold.
type Violation struct {
	Profile  string
	URI      string // URI of the resource, empty when there is none
	What     string // ComputerSystem/Boot/BootSourceOverrideTarget
	Text     string
	Severity Severity
}

func (v Violation) String() string {
	if v.URI == "" {
		return v.What + ": " + v.Text
	}
	return v.URI + ": " + v.What + ": " + v.Text
}

// Document is a resource that was read.
type Document struct {
	URI     string
	Body    map[string]any
	Allow   []string // methods of the header Allow; nil: it was absent
	Parents []string // types of the resources on the way from the service root
}

// Type returns the type of the resource without namespace and version.
func (d *Document) Type() string { return typeOf(d.Body) }

func typeOf(body map[string]any) string {
	t, _ := body["@odata.type"].(string)
	return t[strings.LastIndexByte(t, '.')+1:]
}

// Service holds the resources that were read of a service.
type Service struct {
	Documents  []Document
	Registries []MessageRegistry

	byURI    map[string]*Document
	settings map[string]bool // URIs of settings resources
}

// index prepares the service. A settings resource holds what its resource will be
// (DSP0266, "Settings resource"): it is no instance of the type.
func (s *Service) index() {
	if s.byURI != nil {
		return
	}
	s.byURI, s.settings = map[string]*Document{}, map[string]bool{}
	for i, d := range s.Documents {
		s.byURI[strings.TrimSuffix(d.URI, "/")] = &s.Documents[i]
		if v, there := lookup(d.Body, "@Redfish.Settings/SettingsObject/@odata.id"); there {
			s.settings[strings.TrimSuffix(fmt.Sprint(v), "/")] = true
		}
	}
}

func (s *Service) at(uri string) *Document {
	s.index()
	return s.byURI[strings.TrimSuffix(uri, "/")]
}

// Evaluation holds the findings of a profile at a service.
type Evaluation struct {
	Violations []Violation // requirements that do not hold
	Checked    int         // requirements that were checked
	// NotEvaluated are requirements that resources do not show, or that this package does
	// not know: "Protocol/Discovery: SSDP is not heard".
	NotEvaluated []string
}

// evaluation collects the findings of a profile.
type evaluation struct {
	Evaluation
	profile *Profile
	service *Service
}

// Evaluate evaluates the profile and those that it requires. Conditions that are false and
// properties that need not be there are no violations.
func (p *Profile) Evaluate(s *Service) Evaluation {
	s.index()
	e := &evaluation{profile: p, service: s}
	for _, r := range p.required {
		more := r.Evaluate(s)
		e.Violations, e.Checked = append(e.Violations, more.Violations...), e.Checked+more.Checked
		e.NotEvaluated = append(e.NotEvaluated, more.NotEvaluated...)
	}
	e.protocol()
	e.registries()
	for _, name := range slices.Sorted(maps.Keys(p.Resources)) {
		r := p.Resources[name]
		if len(r.UseCases) == 0 {
			e.resource(name, name, r, e.documents(name, nil))
			continue
		}
		for _, u := range r.UseCases {
			e.useCase(name, u)
		}
	}
	return e.Evaluation
}

// documents returns the resources of a type that a filter takes.
func (e *evaluation) documents(name string, filter func(*Document) bool) []*Document {
	var all []*Document
	for i := range e.service.Documents {
		d := &e.service.Documents[i]
		if d.Type() == name && !e.service.settings[strings.TrimSuffix(d.URI, "/")] && (filter == nil || filter(d)) {
			all = append(all, d)
		}
	}
	return all
}

// require counts a requirement, and notes a violation unless it holds.
func (e *evaluation) require(holds bool, severity Severity, d *Document, what, format string, args ...any) {
	e.Checked++
	if holds {
		return
	}
	v := Violation{Profile: e.profile.Name(), What: what, Text: fmt.Sprintf(format, args...), Severity: severity}
	if d != nil {
		v.URI = d.URI
	}
	e.Violations = append(e.Violations, v)
}

// skip notes a requirement that is not evaluated.
func (e *evaluation) skip(what, why string) {
	e.NotEvaluated = append(e.NotEvaluated, what+": "+why)
}

func (e *evaluation) protocol() {
	p := e.profile.Protocol
	if p == nil {
		return
	}
	for _, q := range []struct{ want, name, why string }{
		{p.Discovery, "Discovery", "SSDP is not listened for"}, {p.HostInterface, "HostInterface", "the host is not asked"},
		{p.DeepPATCH, "DeepPATCH", "nothing is written"}, {p.DeepPOST, "DeepPOST", "nothing is written"},
	} {
		if _, wanted := severities[q.want]; wanted && q.want != "" {
			e.skip("Protocol/"+q.name, q.why)
		}
	}
	root := e.service.at("/redfish/v1")
	if root == nil {
		return
	}
	if p.MinVersion != "" {
		version, _ := root.Body["RedfishVersion"].(string)
		e.require(!older(version, p.MinVersion), Mandatory, root, "RedfishVersion", "%q is older than %s", version, p.MinVersion)
	}
	features, _ := root.Body["ProtocolFeaturesSupported"].(map[string]any)
	for _, q := range []struct{ want, name string }{
		{p.ExpandQuery, "ExpandQuery"}, {p.FilterQuery, "FilterQuery"}, {p.SelectQuery, "SelectQuery"}, {p.OnlyQuery, "OnlyMemberQuery"}, {p.ExcerptQuery, "ExcerptQuery"}, {p.TopSkipQuery, "TopSkipQuery"},
	} {
		severity, wanted := severities[q.want]
		if q.want == "" || !wanted {
			continue
		}
		supported := features[q.name] == true
		if object, ok := features[q.name].(map[string]any); ok {
			supported = len(object) > 0
		}
		e.require(supported, severity, root, "ProtocolFeaturesSupported/"+q.name, "is not supported")
	}
}

// severities maps requirements to the weight of a violation. Those that are absent
// ask for nothing by themselves.
var severities = map[string]Severity{"": Mandatory, "Mandatory": Mandatory, "Supported": Mandatory, "Recommended": Recommended}

func (e *evaluation) useCase(name string, u UseCase) {
	label := name
	if u.UseCaseTitle != "" {
		label += " (" + u.UseCaseTitle + ")"
	}
	if u.UseCaseType != "" && u.UseCaseType != "Normal" && u.UseCaseType != "AbsentResource" {
		e.skip(label, "use cases of the type "+u.UseCaseType+" are about another resource")
		return
	}
	key := u.UseCaseKeyProperty
	matching := e.documents(name, func(d *Document) bool {
		if u.UseCaseType == "AbsentResource" {
			return isAbsent(d)
		}
		v, there := lookup(d.Body, key)
		return !isAbsent(d) && (key == "" || compare(or(u.UseCaseComparison, "AnyOf"), v, there, u.UseCaseKeyValues))
	})
	if u.UseCaseType == "AbsentResource" && len(matching) == 0 {
		return // a resource that may be absent
	}
	e.resource(name, label, u.Resource, matching)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// isAbsent reports whether a resource stands for hardware that is not there: it
// need not have properties.
func isAbsent(d *Document) bool {
	status, _ := d.Body["Status"].(map[string]any)
	return status["State"] == "Absent"
}

func (e *evaluation) resource(name, label string, r Resource, all []*Document) {
	if r.RequiredResourceProfile != nil {
		e.skip(label+"/RequiredResourceProfile", "the requirements of "+r.RequiredResourceProfile.Name+" are not read")
	}
	if len(r.URIs) > 0 {
		all = slices.DeleteFunc(all, func(d *Document) bool { return !matchesURI(r.URIs, d.URI) })
	}
	read := r.ReadRequirement
	for _, c := range r.ConditionalRequirements {
		// A resource that need not exist otherwise must exist below some parents.
		if len(c.SubordinateToResource) > 0 {
			for i := range e.service.Documents {
				parent := &e.service.Documents[i]
				if parent.Type() == c.SubordinateToResource[len(c.SubordinateToResource)-1] && endsWith(parent.Parents, c.SubordinateToResource[:len(c.SubordinateToResource)-1]) {
					if severity, wanted := severities[c.ReadRequirement]; wanted {
						e.require(slices.ContainsFunc(all, func(d *Document) bool { return endsWith(d.Parents, c.SubordinateToResource) }), severity, parent, label, "no resource of this type is below")
					}
					break
				}
			}
		}
	}
	if severity, wanted := severities[read]; wanted {
		e.require(len(all) > 0, severity, nil, label, "no resource of this type exists")
	}
	if read == "Excluded" {
		e.require(len(all) == 0, Mandatory, nil, label, "a resource of this type exists")
	}
	// A resource that is only recommended need not be one that clients create.
	weight := Mandatory
	if read == "Recommended" {
		weight = Recommended
	}
	for _, d := range all {
		if r.MinVersion != "" {
			t, _ := d.Body["@odata.type"].(string)
			parts := strings.Split(strings.TrimPrefix(t, "#"), ".")
			if len(parts) == 3 { // collections have no version
				e.require(!older(parts[1], r.MinVersion), Mandatory, d, label, "%s is older than %s", t, r.MinVersion)
			}
		}
		for _, method := range []struct {
			want *bool
			name string
		}{{r.CreateResource, "POST"}, {r.DeleteResource, "DELETE"}, {r.UpdateResource, "PATCH"}} {
			if method.want != nil && *method.want {
				e.method(weight, d, label, method.name)
			}
		}
		if !isAbsent(d) {
			e.properties(d, label, d.Body, r.PropertyRequirements)
			e.actions(d, name, label, r.ActionRequirements)
		}
	}
	e.supported(label, all, r.PropertyRequirements)
}

// method requires a method by the header Allow. Without the header nobody knows.
func (e *evaluation) method(severity Severity, d *Document, what, name string) {
	if d.Allow == nil {
		e.require(false, Recommended, d, what, "whether %s is allowed is unknown: the response has no header Allow", name)
		return
	}
	allowed := slices.Contains(d.Allow, name) || name == "PATCH" && slices.Contains(d.Allow, "PUT")
	e.require(allowed, severity, d, what, "%s is not in Allow: %s", name, strings.Join(d.Allow, ", "))
}

// supported requires properties that at least one resource must have.
func (e *evaluation) supported(label string, all []*Document, properties map[string]Property) {
	if len(all) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if properties[name].ReadRequirement != "Supported" {
			continue
		}
		e.require(slices.ContainsFunc(all, func(d *Document) bool { _, there := d.Body[name]; return there }), Mandatory, nil, label+"/"+name, "no resource of this type has it")
	}
}

func (e *evaluation) properties(d *Document, at string, object map[string]any, all map[string]Property) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.property(d, at+"/"+name, object, name, all[name])
	}
}

func (e *evaluation) property(d *Document, what string, object map[string]any, name string, p Property) {
	for _, c := range p.ConditionalRequirements {
		if !e.holds(c, d, object) {
			continue
		}
		if c.ReadRequirement != "" {
			p.ReadRequirement = c.ReadRequirement
		}
		if c.WriteRequirement != "" {
			p.WriteRequirement = c.WriteRequirement
		}
		if c.Comparison != "" {
			p.Comparison, p.Values = c.Comparison, c.Values
		}
		if c.MinCount != nil {
			p.MinCount = c.MinCount
		}
	}
	v, there := object[name]
	if !there && p.ReplacesProperty != "" {
		v, there = lookup(object, p.ReplacesProperty)
	}
	if !there && p.ReplacedByProperty != "" {
		v, there = lookup(object, p.ReplacedByProperty)
	}
	severity, wanted := severities[p.ReadRequirement]
	switch {
	case p.ReadRequirement == "Excluded":
		e.require(!there, Mandatory, d, what, "exists")
		return
	case p.ReadRequirement == "Supported":
		wanted = false // supported looks at all resources
	case wanted:
		e.require(there, severity, d, what, "is absent")
	}
	if !there {
		return
	}
	if !wanted {
		severity = Mandatory // when it is implemented, it is implemented right
	}
	if write, wants := severities[p.WriteRequirement]; wants && p.WriteRequirement != "" {
		e.method(write, d, what, "PATCH")
	}
	if p.MinCount != nil {
		n := 0
		list, _ := v.([]any)
		for _, element := range list {
			if element != nil {
				n++
			}
		}
		e.require(n >= *p.MinCount, severity, d, what, "has %d elements, not %d", n, *p.MinCount)
	}
	if len(p.MinSupportValues) > 0 {
		e.values(d, what, object, name, p.MinSupportValues, severity)
	}
	if p.Comparison != "" || len(p.Values) > 0 {
		e.comparison(d, what, v, p, severity)
	}
	switch v := v.(type) {
	case map[string]any:
		e.properties(d, what, v, p.PropertyRequirements)
	case []any:
		e.elements(d, what, v, p.PropertyRequirements)
	}
}

// elements evaluates requirements on the objects of an array. AllOf is about the
// values of all elements together.
func (e *evaluation) elements(d *Document, what string, list []any, properties map[string]Property) {
	each := maps.Clone(properties)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := properties[name]
		if p.Comparison != "AllOf" {
			continue
		}
		var values []any
		for _, element := range list {
			if o, ok := element.(map[string]any); ok && o[name] != nil {
				values = append(values, o[name])
			}
		}
		if len(values) > 0 {
			severity, wanted := severities[p.ReadRequirement]
			if !wanted {
				severity = Mandatory
			}
			e.require(compare("AllOf", values, true, p.Values), severity, d, what+"/"+name, "%v are not all of %v", values, p.Values)
		}
		p.Comparison, p.Values = "", nil
		each[name] = p
	}
	for _, element := range list {
		if o, ok := element.(map[string]any); ok {
			e.properties(d, what, o, each)
		}
	}
}

// values requires values among the allowable ones that an annotation lists.
func (e *evaluation) values(d *Document, what string, object map[string]any, name string, want []any, severity Severity) {
	allowed, there := object[name+"@Redfish.AllowableValues"].([]any)
	if list, isList := object[name].([]any); !there && isList {
		allowed, there = list, true // a list of the supported ones
	}
	if !there {
		e.require(false, Recommended, d, what, "whether %v are supported is unknown: there is no %s@Redfish.AllowableValues", want, name)
		return
	}
	var missing []any
	for _, w := range want {
		if !slices.Contains(allowed, w) {
			missing = append(missing, w)
		}
	}
	e.require(len(missing) == 0, severity, d, what, "allowable values lack %v", missing)
}

func (e *evaluation) comparison(d *Document, what string, v any, p Property, severity Severity) {
	if p.Comparison != "LinkToResource" {
		how := or(p.Comparison, "AnyOf")
		e.require(compare(how, v, true, p.Values), severity, d, what, "%v is not %s %v", v, how, p.Values)
		return
	}
	links := []any{v}
	if list, ok := v.([]any); ok {
		links = list
	}
	for _, l := range links {
		o, _ := l.(map[string]any)
		uri, _ := o["@odata.id"].(string)
		if uri == "" {
			e.require(false, severity, d, what, "%v is no link", l)
			continue
		}
		if target := e.service.at(uri); target != nil {
			e.require(slices.Contains(p.Values, any(target.Type())), severity, d, what, "leads to a %s, not to one of %v", target.Type(), p.Values)
		}
	}
}

// holds reports whether a condition is true in a resource.
func (e *evaluation) holds(c Condition, d *Document, object map[string]any) bool {
	if len(c.URIs) > 0 && !matchesURI(c.URIs, d.URI) {
		return false
	}
	if len(c.SubordinateToResource) > 0 && !endsWith(d.Parents, c.SubordinateToResource) {
		return false
	}
	if c.CompareProperty == "" {
		return true
	}
	from := object
	if strings.HasPrefix(c.CompareProperty, "/") {
		from = d.Body
	}
	v, there := lookup(from, c.CompareProperty)
	return compare(or(c.CompareType, "AnyOf"), v, there, c.CompareValues)
}

// endsWith reports whether the types on the way to a resource end with a chain, the
// nearest last.
func endsWith(parents, chain []string) bool {
	return len(parents) >= len(chain) && slices.Equal(parents[len(parents)-len(chain):], chain)
}

func (e *evaluation) actions(d *Document, name, label string, all map[string]Action) {
	actions, _ := d.Body["Actions"].(map[string]any)
	for _, short := range slices.Sorted(maps.Keys(all)) {
		want := all[short]
		what := label + "/Actions/" + short
		action, there := actions["#"+name+"."+short].(map[string]any)
		severity, wanted := severities[want.ReadRequirement]
		if wanted {
			e.require(there, severity, d, what, "is absent")
		}
		if !there {
			continue
		}
		uri, _ := action["@Redfish.ActionInfo"].(string)
		if s, asked := severities[want.ActionInfo]; asked && want.ActionInfo != "" {
			e.require(uri != "", s, d, what, "has no @Redfish.ActionInfo")
		}
		for _, parameter := range slices.Sorted(maps.Keys(want.Parameters)) {
			p := want.Parameters[parameter]
			allowed, known := e.allowable(action, uri, parameter)
			required := slices.Concat(p.ParameterValues, p.MinSupportValues)
			if len(required)+len(p.RecommendedValues) == 0 {
				continue // without values nobody can tell whether it is accepted
			}
			if !known {
				e.require(false, Recommended, d, what+"/"+parameter, "whether %v are supported is unknown: no allowable values are listed", required)
				continue
			}
			weight, asked := severities[p.ReadRequirement]
			if !asked {
				weight = Recommended
			}
			for _, v := range required {
				e.require(slices.Contains(allowed, v), weight, d, what+"/"+parameter, "allowable values lack %v", v)
			}
			for _, v := range p.RecommendedValues {
				e.require(slices.Contains(allowed, v), Recommended, d, what+"/"+parameter, "allowable values lack %v", v)
			}
		}
	}
}

// allowable returns the allowable values of a parameter, from the action or from
// its ActionInfo.
func (e *evaluation) allowable(action map[string]any, info, parameter string) (values []any, known bool) {
	if inline, ok := action[parameter+"@Redfish.AllowableValues"].([]any); ok {
		return inline, true
	}
	d := e.service.at(info)
	if info == "" || d == nil {
		return nil, false
	}
	all, _ := d.Body["Parameters"].([]any)
	for _, p := range all {
		o, _ := p.(map[string]any)
		if o["Name"] == parameter {
			values, known = o["AllowableValues"].([]any)
			return values, known
		}
	}
	return nil, false
}

// lookup finds a property by its name or by a path of names.
func lookup(object map[string]any, path string) (v any, there bool) {
	v = object
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		o, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, there = o[name]; !there {
			return nil, false
		}
	}
	return v, true
}

// variable matches the part of a URI pattern that stands for any ID.
var variable = regexp.MustCompile(`\\\{[^}]*\\\}`)

func matchesURI(patterns []string, uri string) bool {
	for _, p := range patterns {
		expression := "^" + variable.ReplaceAllString(regexp.QuoteMeta(strings.TrimSuffix(p, "/")), "[^/]+") + "$"
		if ok, err := regexp.MatchString(expression, strings.TrimSuffix(uri, "/")); err == nil && ok {
			return true
		}
	}
	return false
}

package redfish

import (
	"encoding/xml"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// typeSet has DMTF's types from CSDL. The bundle has the CSDL of all versions, and JSON
// schemas of the newest only; besides, CSDL has the types of links' targets and the
// methods of resources, which JSON schemas lack.
type typeSet struct {
	b     *bundle
	files map[string]*typeFile // by the first part of the namespace
	kinds map[string]*objectType
}

// typeFile holds the declarations of one CSDL file, by qualified name.
type typeFile struct {
	objects map[string]csdlObject
	words   map[string]*words // enumerations and definitions
	actions map[string]string // version that added the action
}

// The elements of CSDL that the tests read (OData CSDL 4.01, DSP0266 "Schema
// modification rules" and the terms of RedfishExtensions).
type (
	csdlSchema struct {
		Namespace   string       `xml:",attr"`
		Entities    []csdlObject `xml:"EntityType"`
		Complexes   []csdlObject `xml:"ComplexType"`
		Enums       []csdlWords  `xml:"EnumType"`
		Definitions []csdlWords  `xml:"TypeDefinition"`
		Actions     []csdlWords  `xml:"Action"`
	}
	csdlObject struct {
		Name       string         `xml:",attr"`
		BaseType   string         `xml:",attr"`
		Properties []csdlProperty `xml:"Property"`
		Links      []csdlProperty `xml:"NavigationProperty"`
		Terms      csdlTerms      `xml:"Annotation"`
	}
	csdlProperty struct {
		Name     string    `xml:",attr"`
		Type     string    `xml:",attr"`
		Nullable string    `xml:",attr"`
		Terms    csdlTerms `xml:"Annotation"`
	}
	csdlWords struct {
		Name           string      `xml:",attr"`
		UnderlyingType string      `xml:",attr"`
		Members        []csdlWords `xml:"Member"`
		Terms          csdlTerms   `xml:"Annotation"`
	}
	csdlTerms []csdlTerm
	csdlTerm  struct {
		Term       string       `xml:",attr"`
		String     string       `xml:",attr"`
		Int        string       `xml:",attr"`
		EnumMember string       `xml:",attr"`
		Texts      []string     `xml:"Collection>String"`
		Each       []csdlRecord `xml:"Collection>Record"`
		One        []csdlRecord `xml:"Record"`
	}
	csdlRecord struct {
		Values []struct {
			Property, String, EnumMember, Bool string `xml:",attr"`
		} `xml:"PropertyValue"`
		Terms csdlTerms `xml:"Annotation"`
	}
)

func (all csdlTerms) find(term string) *csdlTerm {
	if i := slices.IndexFunc(all, func(x csdlTerm) bool { return x.Term == term }); i >= 0 {
		return &all[i]
	}
	return nil
}

// revised is the version that added or deprecated an element.
func (all csdlTerms) revised(how string) string {
	if term := all.find("Redfish.Revisions"); term != nil {
		for _, r := range term.Each {
			if strings.HasSuffix(r.value("Kind"), "/"+how) {
				return r.value("Version")
			}
		}
	}
	return ""
}

func (r csdlRecord) value(name string) string {
	for _, v := range r.Values {
		if v.Property == name {
			return v.String + v.EnumMember + v.Bool
		}
	}
	return ""
}

// objectType is a structured type, including the members of its base types.
type objectType struct {
	name       string
	lines      []string // the type and its base types
	properties map[string]*property
	others     *property // properties whose names match pattern
	pattern    *regexp.Regexp
	uris       []string
	methods    []string // allowed besides GET; nil: CSDL does not say
}

func (k *objectType) is(name string) bool { return slices.Contains(k.lines, name) }

type property struct {
	of                              string
	array, nullable, link, embedded bool
	required, hidden                bool
	words                           // bounds in the annotations of the property itself
	copies                          *string
	excerpt, excerptOnly            bool
	kinds                           []string // excerpts that have the property; none: all
}

// words are the constraints on values of a simple type.
type words struct {
	basic    string
	values   []string
	since    map[string]string // versions of values
	pattern  *regexp.Regexp
	min, max *float64
}

// simple maps the primitive types of OData to those of JSON and their formats.
var simple = map[string]words{
	"Edm.SByte": {basic: "integer"}, "Edm.Int16": {basic: "integer"}, "Edm.Int32": {basic: "integer"}, "Edm.Int64": {basic: "integer"},
	"Edm.Decimal": {basic: "number"}, "Edm.Double": {basic: "number"}, "Edm.String": {basic: "string"}, "Edm.Boolean": {basic: "boolean"},
	"Edm.PrimitiveType": {basic: "any"}, "Edm.Primitive": {basic: "any"},
	"Edm.DateTimeOffset": {basic: "string", pattern: regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)},
	"Edm.Duration":       {basic: "string", pattern: regexp.MustCompile(`^-?P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$`)},
	"Edm.TimeOfDay":      {basic: "string", pattern: regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,12})?$`)},
	"Edm.Guid":           {basic: "string", pattern: regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)},
}

// newTypes returns DMTF's types and the OEM types of a vendor.
func newTypes(t testing.TB, d *dialect.Record) *typeSet {
	t.Helper()
	set := &typeSet{b: dmtf(t), files: map[string]*typeFile{}, kinds: map[string]*objectType{}}
	for _, o := range d.Protocol.OEMTypes {
		set.files[o.Namespace] = declared(t, resource.CSDL(d, o))
	}
	return set
}

var declarations sync.Map // parsed CSDL files of DMTF, which all tests share

func (s *typeSet) file(t testing.TB, name string) *typeFile {
	space, _, _ := strings.Cut(name, ".")
	if f := s.files[space]; f != nil {
		return f
	}
	f, ok := declarations.Load(space)
	if !ok {
		raw, err := s.b.read("data/csdl/" + space + "_v1.xml")
		if err != nil {
			raw = nil // a vendor's type without a published schema
		}
		f, _ = declarations.LoadOrStore(space, declared(t, raw))
	}
	s.files[space] = f.(*typeFile)
	return s.files[space]
}

func declared(t testing.TB, raw []byte) *typeFile {
	f := &typeFile{objects: map[string]csdlObject{}, words: map[string]*words{}, actions: map[string]string{}}
	if raw == nil {
		return f
	}
	var doc struct {
		Schemas []csdlSchema `xml:"DataServices>Schema"`
	}
	must(t, xml.Unmarshal(raw, &doc))
	for _, s := range doc.Schemas {
		for _, o := range slices.Concat(s.Entities, s.Complexes) {
			f.objects[s.Namespace+"."+o.Name] = o
		}
		for _, e := range s.Enums {
			w := &words{basic: "string", since: map[string]string{}, values: []string{}}
			for _, m := range e.Members {
				w.values = append(w.values, m.Name)
				w.since[m.Name] = m.Terms.revised("Added")
			}
			f.words[s.Namespace+"."+e.Name] = w
		}
		for _, d := range s.Definitions {
			w := simple[d.UnderlyingType]
			w.bound(d.Terms)
			if list := d.Terms.find("Redfish.Enumeration"); list != nil {
				w.since, w.values = map[string]string{}, []string{}
				for _, r := range list.Each {
					w.values = append(w.values, r.value("Member"))
					w.since[r.value("Member")] = r.Terms.revised("Added")
				}
			}
			f.words[s.Namespace+"."+d.Name] = &w
		}
		for _, a := range s.Actions {
			f.actions[s.Namespace+"."+a.Name] = a.Terms.revised("Added")
		}
	}
	return f
}

func (w *words) bound(terms csdlTerms) {
	if p := terms.find("Validation.Pattern"); p != nil {
		w.pattern = regexp.MustCompile(p.String)
	}
	for term, to := range map[string]**float64{"Validation.Minimum": &w.min, "Validation.Maximum": &w.max} {
		if p := terms.find(term); p != nil {
			if n, err := strconv.ParseFloat(p.Int, 64); err == nil {
				*to = &n
			}
		}
	}
}

// kind returns the type of exactly that name, or nil.
func (s *typeSet) kind(t testing.TB, name string) *objectType {
	if k, ok := s.kinds[name]; ok {
		return k
	}
	o, ok := s.file(t, name).objects[name]
	if !ok {
		s.kinds[name] = nil
		return nil
	}
	k := &objectType{name: name, lines: []string{name}, properties: map[string]*property{}}
	if base := s.kind(t, o.BaseType); o.BaseType != "" && base != nil {
		k.lines, k.uris, k.methods, k.others, k.pattern = append(k.lines, base.lines...), base.uris, base.methods, base.others, base.pattern
		maps.Copy(k.properties, base.properties)
	}
	for _, p := range o.Properties {
		k.properties[p.Name] = newProperty(p, false)
	}
	for _, p := range o.Links {
		k.properties[p.Name] = newProperty(p, true)
		if p.Name == "Members" && k.is("Resource.v1_0_0.ResourceCollection") {
			k.properties["Members@odata.count"] = ofProtocol("Edm.Int64", true)
			k.properties["Members@odata.nextLink"] = ofProtocol("Edm.String", false)
		}
	}
	for _, n := range inherited[name] {
		k.properties[n] = ofProtocol("Edm.String", true)
	}
	k.terms(o.Terms)
	s.kinds[name] = k
	return k
}

// inherited has the properties that the protocol adds to types (DSP0266, "Resource
// properties").
var inherited = map[string][]string{
	"Resource.v1_0_0.Resource":            {"@odata.id", "@odata.type"},
	"Resource.v1_0_0.ResourceCollection":  {"@odata.id", "@odata.type"},
	"Resource.v1_0_0.ReferenceableMember": {"@odata.id"},
}

func ofProtocol(of string, required bool) *property {
	return &property{of: of, required: required, words: simple[of]}
}

func (k *objectType) terms(all csdlTerms) {
	if uris := all.find("Redfish.Uris"); uris != nil {
		k.uris = uris.Texts
	}
	if p := all.find("Redfish.DynamicPropertyPatterns"); p != nil && len(p.Each) > 0 {
		k.pattern = regexp.MustCompile(p.Each[0].value("Pattern"))
		k.others = newProperty(csdlProperty{Type: p.Each[0].value("Type")}, false)
	}
	if all.find("Capabilities.InsertRestrictions") == nil {
		return
	}
	k.methods = []string{}
	for term, methods := range map[string][]string{"Insert": {"POST"}, "Update": {"PATCH", "PUT"}, "Delete": {"DELETE"}} {
		if c := all.find("Capabilities." + term + "Restrictions"); c != nil && c.One[0].Values[0].Bool == "true" {
			k.methods = append(k.methods, methods...)
		}
	}
}

func newProperty(c csdlProperty, link bool) *property {
	p := &property{of: c.Type, link: link, nullable: c.Nullable != "false"}
	if of, ok := strings.CutPrefix(c.Type, "Collection("); ok {
		p.of, p.array = strings.TrimSuffix(of, ")"), true
	}
	p.required = c.Terms.find("Redfish.Required") != nil && c.Terms.revised("Deprecated") == ""
	p.embedded = c.Terms.find("OData.AutoExpand") != nil
	if may := c.Terms.find("OData.Permissions"); may != nil {
		p.hidden = strings.HasSuffix(may.EnumMember, "/Write") || strings.HasSuffix(may.EnumMember, "/None")
	}
	p.words = simple[p.of]
	p.bound(c.Terms)
	if x := c.Terms.find("Redfish.ExcerptCopy"); x != nil {
		p.copies = &x.String
	}
	p.excerptOnly = c.Terms.find("Redfish.ExcerptCopyOnly") != nil
	p.excerpt = p.excerptOnly
	if x := c.Terms.find("Redfish.Excerpt"); x != nil {
		p.excerpt = true
		if x.String != "" {
			p.kinds = strings.Split(x.String, ",")
		}
	}
	return p
}

// newest returns the newest type of a name: for one of the resource's namespace, the
// newest up to the resource's version.
func (s *typeSet) newest(t testing.TB, resource, name string) *objectType {
	space, _, _ := strings.Cut(name, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	var limit []int
	if strings.HasPrefix(resource, space+".") {
		limit = versionOf(resource)
	}
	best, found := []int(nil), ""
	for _, n := range slices.Sorted(maps.Keys(s.file(t, name).objects)) {
		if n[strings.LastIndexByte(n, '.')+1:] != last {
			continue
		}
		v := versionOf(n)
		if limit != nil && slices.Compare(v, limit) > 0 {
			continue
		}
		if found == "" || slices.Compare(v, best) > 0 {
			best, found = v, n
		}
	}
	return s.kind(t, found)
}

var versionPart = regexp.MustCompile(`v(\d+)_(\d+)_(\d+)`)

// versionOf returns the version in a name, or nil, which sorts first.
func versionOf(name string) []int {
	var out []int
	if m := versionPart.FindStringSubmatch(name); m != nil {
		for _, n := range m[1:] {
			i, _ := strconv.Atoi(n) // the pattern matches digits only
			out = append(out, i)
		}
	}
	return out
}

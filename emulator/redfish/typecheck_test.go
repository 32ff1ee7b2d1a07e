package redfish

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// shown is a resource as a client read it.
type shown struct {
	uri   string
	allow string
	body  map[string]any
}

// typed returns the beginning of a body's @odata.type; "" for none.
func (r shown) typed() string {
	name, _ := r.body["@odata.type"].(string)
	return strings.TrimPrefix(name, "#")
}

// typeCheck compares resources with the types that their @odata.type names.
type typeCheck struct {
	t     testing.TB
	types *typeSet
	found map[string]shown
	read  func(uri string) (shown, bool)
	// settings and capabilities are the URIs that annotations link to: these resources
	// have the type of the annotated resource (DSP0266, "Settings resource"), and
	// capabilities have no required properties.
	settings, capabilities map[string]bool
	meant                  map[string]string // the types of resources by the links to them
	at                     shown
	resource               string // type of the resource, or of an object in it
	out                    []fault
}

// checkTypes reports what differs from DMTF's types and the vendor's OEM types.
// allowed excuses properties.
func checkTypes(t testing.TB, s *Service, d *dialect.Record, uris []string, allowed func(of, path string) bool) {
	t.Helper()
	c := newTypeCheck(t, s, d)
	var queue []shown
	for _, uri := range uris {
		if r, ok := c.get(uri); ok {
			queue = append(queue, r)
		}
	}
	for i := 0; i < len(queue); i++ { // registries are not followed
		for _, uri := range documents(queue[i].body) {
			if _, known := c.found[uri]; !known {
				if r, ok := c.get(uri); ok {
					queue = append(queue, r)
				} else {
					t.Errorf("%s: nothing is at %s", queue[i].uri, uri)
				}
			}
		}
	}
	for _, r := range queue {
		c.annotated(r.body)
	}
	report := func(of, uri string, bad fault) {
		if !allowed(of, bad.path) {
			t.Errorf("%s: %s: %s", uri, bad.path, bad.text)
		}
	}
	for _, r := range queue {
		if r.typed() == "" {
			continue
		}
		for _, bad := range c.faults(r) {
			report(resource.TypeName(r.typed()), r.uri, bad)
		}
	}
	for _, r := range queue {
		if r.typed() == "" {
			report(resource.TypeName(c.meant[r.uri]), r.uri, fault{"@odata.type", "is not there"})
		}
	}
}

func newTypeCheck(t testing.TB, s *Service, d *dialect.Record) *typeCheck {
	c := &typeCheck{
		t: t, types: newTypes(t, d), found: map[string]shown{}, settings: map[string]bool{}, capabilities: map[string]bool{}, meant: map[string]string{},
	}
	c.read = func(uri string) (shown, bool) {
		w := call(t, s, "admin", "GET", uri, "", "Accept-Encoding", "gzip") // some documents are sent compressed only
		r := shown{uri: uri, allow: w.Header().Get("Allow")}
		if w.Code >= 300 || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			return r, false
		}
		body := io.Reader(w.Body)
		if w.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(w.Body)
			must(t, err)
			body = z
		}
		d := json.NewDecoder(body)
		d.UseNumber()
		must(t, d.Decode(&r.body))
		return r, true
	}
	return c
}

// documents returns the URIs in a body that name documents, not resources.
func documents(value any) (out []string) {
	switch x := value.(type) {
	case []any:
		for _, y := range x {
			out = append(out, documents(y)...)
		}
	case map[string]any:
		if of, _ := x["@odata.type"].(string); strings.HasPrefix(of, "#JsonSchemaFile.") {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if text, _ := x[name].(string); name == "Uri" && strings.HasPrefix(text, "/redfish/") {
				out = append(out, text)
			}
			out = append(out, documents(x[name])...)
		}
	}
	return out
}

func (c *typeCheck) get(uri string) (shown, bool) {
	if r, ok := c.found[uri]; ok {
		return r, r.body != nil
	}
	r, ok := c.read(uri)
	c.found[uri] = r
	return r, ok
}

// annotated collects the URIs that annotations link to.
func (c *typeCheck) annotated(value any) {
	switch x := value.(type) {
	case []any:
		for _, y := range x {
			c.annotated(y)
		}
	case map[string]any:
		for name, y := range x {
			if to, ok := y.(map[string]any); ok {
				uri, _ := to["@odata.id"].(string)
				c.settings[uri] = c.settings[uri] || name == "SettingsObject"
				c.capabilities[uri] = c.capabilities[uri] || name == "CapabilitiesObject"
			}
			c.annotated(y)
		}
	}
}

func (c *typeCheck) wrong(path, text string, args ...any) {
	c.out = append(c.out, fault{path, fmt.Sprintf(text, args...)})
}

// faults returns the differences between a resource and its type. A type without a schema
// is not checked.
func (c *typeCheck) faults(r shown) []fault {
	c.at, c.resource, c.out = r, r.typed(), nil
	k := c.types.kind(c.t, r.typed())
	if k == nil {
		if len(c.types.file(c.t, r.typed()).objects) > 0 {
			c.wrong("@odata.type", "there is no %s", r.typed())
		}
		return c.out
	}
	c.object("", r.body, k, nil)
	c.address(k)
	for method := range strings.SplitSeq(r.allow, ", ") {
		_, oem := r.body["Oem"]
		changes := slices.Contains([]string{"POST", "PATCH", "PUT", "DELETE"}, method)
		if changes && k.methods != nil && !slices.Contains(k.methods, method) && (!oem || method == "POST" || method == "DELETE") {
			c.wrong("Allow", "%s is for no %s", method, k.name)
		}
	}
	return c.out
}

// address checks that a resource's URI is one of its type, and that Id is the last
// segment of the URI.
func (c *typeCheck) address(k *objectType) {
	uri, _ := c.at.body["@odata.id"].(string)
	uri = strings.TrimSuffix(uri, "/")
	if len(k.uris) == 0 || uri == "" || c.settings[c.at.uri] || c.capabilities[c.at.uri] {
		return
	}
	i := slices.IndexFunc(k.uris, func(p string) bool { return fits([]string{strings.TrimSuffix(p, "/")}, uri) })
	if i < 0 {
		if !strings.Contains(uri, "/Oem/") {
			c.wrong("@odata.id", "no %s is at %s", k.name, uri)
		}
		return
	}
	if id, ok := c.at.body["Id"].(string); ok && strings.HasSuffix(k.uris[i], "}") && id != uri[strings.LastIndexByte(uri, '/')+1:] {
		c.wrong("Id", "is %s at %s", id, uri)
	}
}

func below(path, name string) string { return strings.TrimPrefix(path+"/"+name, "/") }

// object checks an object of a type, or an excerpt of it.
func (c *typeCheck) object(path string, body map[string]any, k *objectType, excerpt *string) {
	for _, name := range slices.Sorted(maps.Keys(body)) {
		at, p := below(path, name), k.properties[name]
		switch {
		case p != nil:
		case strings.HasPrefix(name, "#") && (strings.HasSuffix("/"+path, "/Actions") || strings.HasSuffix("/"+path, "/Actions/Oem")):
			c.action(at, name[1:], body[name])
			continue
		case strings.Contains(name, "@"): // annotations and properties of the protocol
			continue
		case k.others != nil && k.pattern.MatchString(name):
			p = k.others
		default:
			c.wrong(at, "%s has no such property", k.name)
			continue
		}
		if excerpt == nil && p.excerptOnly || excerpt != nil && (!p.excerpt || p.kinds != nil && !slices.Contains(p.kinds, *excerpt)) {
			c.wrong(at, "is wrong here: it is of an excerpt (%t), or of none", p.excerpt)
			continue
		}
		all, array := body[name].([]any)
		switch {
		case array != p.array:
			c.wrong(at, "is an array: %t, and should not be so", array)
		case array:
			for i, x := range all {
				c.value(below(at, strconv.Itoa(i)), x, body, p)
			}
		default:
			c.value(at, body[name], body, p)
		}
	}
	document := slices.Contains([]string{"MessageRegistry", "PrivilegeRegistry", "AttributeRegistry"}, resource.TypeName(k.name))
	for _, name := range slices.Sorted(maps.Keys(k.properties)) {
		p := k.properties[name]
		_, ok := body[name]
		if ok || !p.required || excerpt != nil || p.excerptOnly || c.capabilities[c.at.uri] || document && name == "@odata.id" {
			continue
		}
		c.wrong(below(path, name), "is not there, and %s requires it", k.name)
	}
	if id, ok := body["MemberId"].(string); ok && path != "" {
		if last := path[strings.LastIndexByte(path, '/')+1:]; id != last {
			c.wrong(below(path, "MemberId"), "is %s, want %s", id, last)
		}
		if want := c.at.uri + "#/" + path; body["@odata.id"] != nil && body["@odata.id"] != want {
			c.wrong(below(path, "@odata.id"), "is %s, want %s", body["@odata.id"], want)
		}
	}
}

// action checks the object of an action in a resource (DSP0266, "Actions property").
func (c *typeCheck) action(path, name string, value any) {
	body, ok := value.(map[string]any)
	if !ok {
		c.wrong(path, "is no object")
		return
	}
	if strings.Contains(path, "Actions/Oem/") {
		return // an OEM resource whose actions have no schema
	}
	since, ok := c.types.file(c.t, name).actions[name]
	if !ok || resource.TypeName(name) != resource.TypeName(c.resource) || slices.Compare(versionOf(c.resource), versionOf(since)) < 0 {
		c.wrong(path, "is no action of a %s", c.resource)
		return
	}
	for _, p := range slices.Sorted(maps.Keys(body)) {
		if _, text := body[p].(string); !strings.Contains(p, "@Redfish.") && (p != "target" && p != "title" || !text) {
			c.wrong(below(path, p), "is in no action")
		}
	}
	target, _ := body["target"].(string)
	want := strings.TrimSuffix(c.at.uri, "/") + "/" + strings.ReplaceAll(path, "#", "")
	if strings.HasPrefix(path, "Actions/") && strings.TrimSuffix(target, "/") != want || target == "" {
		c.wrong(below(path, "target"), "is %q, want %s", target, want)
	}
}

// value checks one value of a property.
func (c *typeCheck) value(path string, value any, in map[string]any, p *property) {
	if value == nil {
		if !p.nullable {
			c.wrong(path, "is null")
		}
		return
	}
	is := p.words
	values := "" // the type that declares the values
	if is.basic == "" {
		w := c.types.file(c.t, p.of).words[p.of]
		if w == nil {
			c.part(path, value, p)
			return
		}
		is, values = *w, p.of
	}
	if p.hidden {
		c.wrong(path, "can be written alone: it must be null")
		return
	}
	if !isBasic(is.basic, value) {
		c.wrong(path, "%v is no %s", value, is.basic)
		return
	}
	if n, ok := value.(json.Number); ok {
		f, err := n.Float64()
		must(c.t, err)
		if is.min != nil && f < *is.min || is.max != nil && f > *is.max {
			c.wrong(path, "%v is too small or too large", n)
		}
	}
	text, ok := value.(string)
	if !ok {
		return
	}
	if path[strings.LastIndexByte(path, '/')+1:] == "DurableName" {
		is.pattern = durable[fmt.Sprint(in["DurableNameFormat"])]
	}
	if is.pattern != nil && !is.pattern.MatchString(text) {
		c.wrong(path, "%q does not match %s", text, is.pattern)
	}
	if is.values == nil {
		return
	}
	if since, ok := is.since[text]; !slices.Contains(is.values, text) {
		c.wrong(path, "%q is none of %q", text, is.values)
	} else if ok && resource.TypeName(values) == resource.TypeName(c.resource) && slices.Compare(versionOf(c.resource), versionOf(since)) < 0 {
		c.wrong(path, "%q is there since %s, and this is a %s", text, since, c.resource)
	}
}

// durable has the formats of worldwide names (DSP0268, Resource,
// "DurableNameFormat").
var durable = map[string]*regexp.Regexp{
	"NAA": regexp.MustCompile(`^([0-9A-Fa-f]{16}){1,2}$`), "NGUID": regexp.MustCompile(`^[0-9A-Fa-f]{32}$`), "UUID": simple["Edm.Guid"].pattern,
	"EUI": octets(8), "FC_WWN": octets(8), "MACAddress": octets(6),
}

func octets(n int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`^([0-9A-Fa-f]{2}[:-]){%d}[0-9A-Fa-f]{2}$`, n-1))
}

func isBasic(want string, value any) bool {
	switch x := value.(type) {
	case string:
		return want == "string" || want == "any"
	case bool:
		return want == "boolean" || want == "any"
	case json.Number:
		return want == "number" || want == "any" || want == "integer" && !strings.ContainsAny(x.String(), ".eE")
	}
	return false
}

// part checks an object in a property: a complete one, an excerpt, or a link.
func (c *typeCheck) part(path string, value any, p *property) {
	k := c.types.newest(c.t, c.resource, p.of)
	body, ok := value.(map[string]any)
	switch {
	case k == nil:
		c.wrong(path, "is of a type that is not there: %s", p.of)
		return
	case !ok:
		c.wrong(path, "is no object")
		return
	case p.link && p.copies == nil && !p.embedded:
		c.link(path, body, p.of)
		return
	}
	before := c.resource
	if of, _ := body["@odata.type"].(string); of != "" {
		declared := c.types.kind(c.t, strings.TrimPrefix(of, "#"))
		switch {
		case declared == nil && p.of == "Resource.OemObject":
			return // a type without a schema
		case declared == nil || !declared.is(p.of):
			c.wrong(below(path, "@odata.type"), "%s is no %s", of, p.of)
			return
		}
		k, c.resource = declared, declared.name
	} else if p.of == "Resource.OemObject" {
		return
	}
	c.object(path, body, k, p.copies)
	c.resource = before
}

// link checks that a link has no other properties, and that it leads to a resource of the
// type.
func (c *typeCheck) link(path string, body map[string]any, of string) {
	uri, _ := body["@odata.id"].(string)
	if len(body) != 1 || uri == "" {
		c.wrong(path, "is no link alone: %v", body)
		return
	}
	if !strings.HasPrefix(uri, "/") || strings.Contains(uri, "#") {
		return
	}
	to, ok := c.get(uri)
	if !ok {
		if !strings.HasSuffix("/"+path, "/OriginOfCondition") { // the origin may have been deleted
			c.wrong(path, "leads to %s, where nothing is", uri)
		}
		return
	}
	if to.typed() == "" {
		c.meant[uri] = of
		return
	}
	if k := c.types.kind(c.t, to.typed()); k != nil && !k.is(of) {
		c.wrong(path, "leads to %s, which is no %s", uri, of)
	}
}

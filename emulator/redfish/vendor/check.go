package vendor

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// standardTree returns a tree without a service, to check records with.
var standardTree = sync.OnceValues(func() (*resource.Tree, error) { return resource.NewTree(nil, slog.New(slog.DiscardHandler)) })

// Check checks the OEM of a record against the standard service: the standard URIs
// that resources are based on, aliases lead to and effects send requests to must
// exist, and accept the methods. The error joins a yamlfile.Error for each mistake;
// its Field is the key as a dialect file has it.
func Check(d *dialect.Record) error {
	if d.OEM.IsEmpty() {
		return nil
	}
	t, err := standardTree()
	if err != nil {
		return err
	}
	c := &checker{o: newOEM(t, d, newPresentation(t, d))}
	for i, r := range d.OEM.Resources {
		c.resource(fmt.Sprintf("oem.resources[%d]", i), r)
	}
	for i, a := range d.OEM.Actions {
		field := fmt.Sprintf("oem.actions[%d]", i)
		c.action(field, a)
		c.effects(field, a.Effects, parsePattern(a.ResourceURI, d))
	}
	for i, w := range d.OEM.WritableProperties {
		field := fmt.Sprintf("oem.writableProperties[%d]", i)
		standard := slices.ContainsFunc(t.Rows, func(r resource.Row) bool { return resource.TypeName(r.Schema) == w.ResourceType && r.Patch != nil })
		oem := slices.ContainsFunc(d.OEM.Resources, func(r dialect.Resource) bool { return resource.TypeName(r.Type) == w.ResourceType })
		c.need(standard || oem, field+".resourceType", "%q, of %s: must be the type of a resource that accepts PATCH", w.ResourceType, w.Path)
		c.effects(field, w.Effects, nil)
	}
	for i, m := range d.OEM.URIAliases {
		c.need(isOEMResource(d, m.To) || c.find(m.To, parsePattern(m.From, d)) != nil, fmt.Sprintf("oem.uriAliases[%d].to", i), "%q: must be the standard URI of a resource, or that of an OEM resource, with no variables but those of from", m.To)
	}
	return errors.Join(c.errs...)
}

// checker collects the mistakes of a record.
type checker struct {
	o    *oem
	errs []error
}

func (c *checker) need(ok bool, field, form string, args ...any) {
	if !ok {
		c.errs = append(c.errs, yamlfile.Errorf(field, form, args...))
	}
}

var variableInBraces = regexp.MustCompile(`\{[^{}]*\}`)

// find returns the match of a standard URI pattern in the tree. It returns nil when
// there is none, or when the pattern has a variable that neither the pattern from nor
// singletons have.
func (c *checker) find(text string, from pattern) *resource.Match {
	known := c.o.singletons(namesAsValues(from))
	for _, name := range variableInBraces.FindAllString(text, -1) {
		name, _, _ = strings.Cut(strings.Trim(name, "{}"), ":")
		if _, ok := known[name]; !ok && !strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "=") && name != "self" {
			return nil
		}
	}
	return c.o.tree.Find(&url.URL{Path: variableInBraces.ReplaceAllString(c.o.parseStandard(text).fill(known), "x")})
}

func (c *checker) resource(field string, r dialect.Resource) {
	uri := parsePattern(r.URI, c.o.d)
	if r.BasedOn == "" {
		deletes := r.StoredAs != "" && slices.Equal(r.PassedMethods, []string{http.MethodDelete})
		c.need(len(r.PassedMethods) == 0 || deletes, field+".passedMethods", "%q: must be empty without basedOn, or [DELETE] with storedAs", r.PassedMethods)
		for _, name := range uri.variables() {
			c.need(resource.Members[name] != nil, field+".uri", "%q: {%s} is no variable of standard URIs", r.URI, name)
		}
		return
	}
	m := c.find(r.BasedOn, uri)
	if m == nil || m.Action != nil || m.Members || m.Raw != nil {
		c.need(false, field+".basedOn", "%q: must be the standard URI of a resource, with no variables but those of uri", r.BasedOn)
		return
	}
	for i, method := range r.PassedMethods {
		c.need((method == http.MethodPatch || method == http.MethodDelete) && slices.Contains(m.Methods, method),
			fmt.Sprintf("%s.passedMethods[%d]", field, i), "%q: must be PATCH or DELETE, and %s must accept it", method, r.BasedOn)
	}
}

func (c *checker) action(field string, a dialect.Action) {
	if isOEMResource(c.o.d, a.ResourceURI) {
		return
	}
	on := parsePattern(a.ResourceURI, c.o.d)
	uri := on.fill(namesAsValues(on))
	if c.o.presentation != nil {
		uri = c.o.presentation.toStandardURI(uri)
	}
	m := c.o.tree.Find(&url.URL{Path: uri})
	c.need(uri != "" && m != nil && m.Action == nil, field+".resourceURI", "%q, of %s: there is no such resource", a.ResourceURI, a.Name)
}

// effects checks the requests of effects. on is the pattern of the URI of the action's
// resource; nil for a writable property, which any resource of its type may have.
func (c *checker) effects(field string, all []dialect.Effect, on pattern) {
	for i, e := range all {
		for j, s := range e.Requests {
			if strings.Contains(s.URI, "{$") || strings.Contains(s.URI, "{=") {
				continue // the URI depends on the request
			}
			from := on
			if from == nil {
				from = c.o.parseStandard(s.URI)
			}
			m := c.find(s.URI, from)
			c.need(m != nil && slices.Contains(m.Methods, s.Method), fmt.Sprintf("%s.effects[%d].requests[%d]", field, i, j), "the standard service accepts no %s of %s", s.Method, s.URI)
		}
	}
}

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
)

// standardTree is a tree that serves nobody.
var standardTree = sync.OnceValues(func() (*resource.Tree, error) { return resource.NewTree(nil, slog.New(slog.DiscardHandler)) })

// Check says what is wrong with what a record has of its own that only the tree
// can tell: what it is like, what its actions do and where they are.
func Check(d *dialect.Record) error {
	if d.OEM.IsEmpty() {
		return nil
	}
	t, err := standardTree()
	if err != nil {
		return err
	}
	c := &checked{o: newOEM(t, d, newPresentation(t, d))}
	for _, r := range d.OEM.Resources {
		c.resource(r)
	}
	for _, a := range d.OEM.Actions {
		c.action(a)
		c.effects("Actions: "+a.Name, a.Effects, PatternOf(a.ResourceURI, d))
	}
	for _, w := range d.OEM.WritableProperties {
		known := slices.ContainsFunc(t.Rows, func(r resource.Row) bool { return resource.TypeName(r.Schema) == w.ResourceType && r.Patch != nil })
		own := slices.ContainsFunc(d.OEM.Resources, func(r dialect.Resource) bool { return resource.TypeName(r.Type) == w.ResourceType })
		c.need(known || own, "Writes: %s %s: there is no resource of that type that can be changed", w.ResourceType, w.Path)
		c.effects("Writes: "+w.Path, w.Effects, nil)
	}
	for _, m := range d.OEM.URIAliases {
		c.need(c.at(m.To, PatternOf(m.From, d)) != nil, "Also: %s: the tree has no %s", m.From, m.To)
	}
	return errors.Join(c.errs...)
}

type checked struct {
	o    *oem
	errs []error
}

func (c *checked) need(ok bool, form string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf("redfish: %s: Own.%s", c.o.d.Name, fmt.Sprintf(form, args...)))
	}
}

var inBraces = regexp.MustCompile(`\{[^{}]*\}`)

// at is what the tree has at addresses of a pattern, whose variables those of
// another give; nil where there is nothing.
func (c *checked) at(text string, from pattern) *resource.Match {
	known := c.o.ids(placeholders(from))
	for _, name := range inBraces.FindAllString(text, -1) {
		name, _, _ = strings.Cut(strings.Trim(name, "{}"), ":")
		if _, ok := known[name]; !ok && !strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "=") && name != "self" {
			return nil
		}
	}
	return c.o.tree.Find(&url.URL{Path: inBraces.ReplaceAllString(c.o.patternOf(text).Write(known), "x")})
}

func (c *checked) resource(r dialect.Resource) {
	at := PatternOf(r.URI, c.o.d)
	if r.BasedOn == "" {
		deletes := r.StoredAs != "" && slices.Equal(r.PassedMethods, []string{http.MethodDelete})
		c.need(len(r.PassedMethods) == 0 || deletes, "Resources: %s: Takes: it is like nothing that takes it", r.URI)
		for _, name := range at.names() {
			c.need(resource.Members[name] != nil, "Resources: %s: {%s} stands for nothing in the tree", r.URI, name)
		}
		return
	}
	m := c.at(r.BasedOn, at)
	if m == nil || m.Action != nil || m.Members || m.Raw != nil {
		c.need(false, "Resources: %s: Like: the tree has no %s, or At not its variables", r.URI, r.BasedOn)
		return
	}
	for _, method := range r.PassedMethods {
		c.need((method == http.MethodPatch || method == http.MethodDelete) && slices.Contains(m.Methods, method), "Resources: %s: Takes: %s does not take %s", r.URI, r.BasedOn, method)
	}
}

func (c *checked) action(a dialect.Action) {
	on := PatternOf(a.ResourceURI, c.o.d)
	own := slices.ContainsFunc(c.o.d.OEM.Resources, func(r dialect.Resource) bool { return patternText(PatternOf(r.URI, c.o.d)) == patternText(on) })
	if own {
		return
	}
	at := on.Write(placeholders(on))
	if c.o.presentation != nil {
		at = c.o.presentation.toStandardURI(at)
	}
	m := c.o.tree.Find(&url.URL{Path: at})
	c.need(at != "" && m != nil && m.Action == nil, "Actions: %s: there is no %s", a.Name, a.ResourceURI)
}

// effects looks at what is done: each step must be one that the tree takes.
func (c *checked) effects(field string, all []dialect.Effect, on pattern) {
	for _, e := range all {
		for _, s := range e.Requests {
			if strings.Contains(s.URI, "{$") || strings.Contains(s.URI, "{=") {
				continue // only a request tells
			}
			from := on
			if from == nil { // of a write, whose address any of its type has
				from = c.o.patternOf(s.URI)
			}
			m := c.at(s.URI, from)
			c.need(m != nil && slices.Contains(m.Methods, s.Method), "%s: Steps: the tree takes no %s of %s", field, s.Method, s.URI)
		}
	}
}

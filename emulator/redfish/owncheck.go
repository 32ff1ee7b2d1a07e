package redfish

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// nowhere is a rack without hosts.
type nowhere struct{}

// At implements Rack.
func (nowhere) At(netip.AddrPort) (Host, bool) { return nil, false }

// bare is a service that serves nobody, of which only the tree is looked at.
var bare = sync.OnceValues(func() (*Service, error) { return New(Config{Rack: nowhere{}}) })

// Check says what is wrong with what a record has of its own that only the tree
// can tell: what it is like, what its actions do and where they are.
func Check(d *dialect.Record) error {
	if d.Own.Plain() {
		return nil
	}
	s, err := bare()
	if err != nil {
		return err
	}
	c := &checked{o: newVendor(s, d)}
	for _, r := range d.Own.Resources {
		c.resource(r)
	}
	for _, a := range d.Own.Actions {
		c.action(a)
		c.effects("Actions: "+a.Name, a.Does, patternOf(a.On, d))
	}
	for _, w := range d.Own.Writes {
		known := slices.ContainsFunc(s.tree, func(r resource) bool { return typeName(r.schema) == w.Of && r.patch != nil })
		own := slices.ContainsFunc(d.Own.Resources, func(r dialect.Resource) bool { return typeName(r.Type) == w.Of })
		c.need(known || own, "Writes: %s %s: there is no resource of that type that can be changed", w.Of, w.Path)
		c.effects("Writes: "+w.Path, w.Does, nil)
	}
	for _, m := range d.Own.Also {
		c.need(c.at(m.To, patternOf(m.From, d)) != nil, "Also: %s: the tree has no %s", m.From, m.To)
	}
	return errors.Join(c.errs...)
}

type checked struct {
	o    *vendor
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
func (c *checked) at(text string, from pattern) *match {
	known := c.o.ids(placeholders(from))
	for _, name := range inBraces.FindAllString(text, -1) {
		name, _, _ = strings.Cut(strings.Trim(name, "{}"), ":")
		if _, ok := known[name]; !ok && !strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "=") && name != "self" {
			return nil
		}
	}
	return c.o.s.find(&url.URL{Path: inBraces.ReplaceAllString(c.o.patternOf(text).write(known), "x")})
}

func (c *checked) resource(r dialect.Resource) {
	at := patternOf(r.At, c.o.d)
	if r.Like == "" {
		deletes := r.Kept != "" && slices.Equal(r.Takes, []string{http.MethodDelete})
		c.need(len(r.Takes) == 0 || deletes, "Resources: %s: Takes: it is like nothing that takes it", r.At)
		for _, name := range at.names() {
			c.need(things[name] != nil, "Resources: %s: {%s} stands for nothing in the tree", r.At, name)
		}
		return
	}
	m := c.at(r.Like, at)
	if m == nil || m.action != nil || m.members || m.raw != nil {
		c.need(false, "Resources: %s: Like: the tree has no %s, or At not its variables", r.At, r.Like)
		return
	}
	for _, method := range r.Takes {
		c.need((method == http.MethodPatch || method == http.MethodDelete) && slices.Contains(m.methods, method), "Resources: %s: Takes: %s does not take %s", r.At, r.Like, method)
	}
}

func (c *checked) action(a dialect.Action) {
	on := patternOf(a.On, c.o.d)
	own := slices.ContainsFunc(c.o.d.Own.Resources, func(r dialect.Resource) bool { return patternText(patternOf(r.At, c.o.d)) == patternText(on) })
	if own {
		return
	}
	at := on.write(placeholders(on))
	if f := faceOf(c.o.d); f != nil {
		at = f.inside(c.o.s, at)
	}
	m := c.o.s.find(&url.URL{Path: at})
	c.need(at != "" && m != nil && m.action == nil, "Actions: %s: there is no %s", a.Name, a.On)
}

// effects looks at what is done: each step must be one that the tree takes.
func (c *checked) effects(field string, all []dialect.Effect, on pattern) {
	for _, e := range all {
		for _, s := range e.Steps {
			if strings.Contains(s.At, "{$") || strings.Contains(s.At, "{=") {
				continue // only a request tells
			}
			from := on
			if from == nil { // of a write, whose address any of its type has
				from = c.o.patternOf(s.At)
			}
			m := c.at(s.At, from)
			c.need(m != nil && slices.Contains(m.methods, s.Method), "%s: Steps: the tree takes no %s of %s", field, s.Method, s.At)
		}
	}
}

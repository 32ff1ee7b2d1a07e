package vendor

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// router routes the URIs of a vendor's OEM resources and OEM actions.
type router struct {
	mux    *mux.Router
	routes map[*mux.Route]*oemRoute
}

// newRouter builds the router. Actions that are posted to the URI of a resource come
// before that resource.
func (o *oem) newRouter() *router {
	r := &router{mux: mux.NewRouter(), routes: map[*mux.Route]*oemRoute{}}
	add := func(t *oemRoute) *mux.Route {
		to := r.mux.Path(muxTemplate(t.uri, o.uriCase()))
		if t.ofStandard {
			to.MatcherFunc(func(q *http.Request, _ *mux.RouteMatch) bool { return o.standardOf(t, q.URL.Path) != nil })
		}
		r.routes[to] = t
		return to
	}
	for i := range o.routes {
		if t := &o.routes[i]; t.postsToResource() {
			add(t).Methods(http.MethodPost)
		}
	}
	for i := range o.routes {
		if t := &o.routes[i]; !t.postsToResource() {
			add(t)
		}
	}
	return r
}

// muxTemplate returns a pattern as a path template of gorilla/mux. mux has no option
// to ignore the case of letters, so with IgnoreCase each text becomes a variable, with
// a number as its name, that matches the text in any case.
func muxTemplate(p pattern, c letterCase) string {
	var b strings.Builder
	addText := func(text string) {
		if c == ignoreCase && text != "" {
			fmt.Fprintf(&b, "{%d:(?i:%s)}", b.Len(), regexp.QuoteMeta(text))
			return
		}
		b.WriteString(text)
	}
	for _, s := range p {
		b.WriteByte('/')
		addText(s.lead)
		for _, v := range s.vars {
			if v.width > 0 {
				fmt.Fprintf(&b, "{%s:[^/]{%d}}", v.name, v.width)
			} else {
				fmt.Fprintf(&b, "{%s:[^/]+?}", v.name)
			}
			addText(v.tail)
		}
	}
	return b.String()
}

// postsToResource reports whether the route is that of an action that is posted to
// the URI of its resource.
func (t *oemRoute) postsToResource() bool { return t.Action != nil && t.Action.Target() == "" }

func (o *oem) uriCase() letterCase { return letterCase(o.d.Presentation.IgnoreURICase) }

// match returns the OEM resource or action at a path, or nil.
func (o *oem) match(method, path string) *resource.Match {
	r := o.router()
	var found mux.RouteMatch
	if !r.mux.Match(&http.Request{Method: method, URL: &url.URL{Path: path}}, &found) {
		return nil
	}
	t := r.routes[found.Route]
	vars := map[string]string{}
	for _, s := range t.uri {
		for _, v := range s.vars {
			vars[v.name] = found.Vars[v.name]
			if v.width > 0 {
				vars[v.name] = trimZeros(vars[v.name])
			}
		}
	}
	uri := t.uri.fill(vars) // with the letter case of the pattern
	if !strings.EqualFold(uri, path) {
		return nil // a variable that occurs twice has two values, of which mux returns the last
	}
	m := &resource.Match{Route: t.Route, URI: uri, IDs: o.singletons(vars)}
	if t.Action != nil {
		m.URI = uri[:len(uri)-len(t.Action.Target())]
	}
	if !t.ofStandard {
		return m
	}
	m.Base = o.standardOf(t, uri)
	route, row := *m.Route, *m.Row
	row.Schema = m.Base.Schema
	route.Row, m.Route = &row, &route
	maps.Copy(m.IDs, m.Base.IDs)
	return m
}

// standardOf returns the standard resource that an action belongs to, by the URI of
// the action's target; nil when there is none.
func (o *oem) standardOf(t *oemRoute, target string) *resource.Match {
	uri := target[:len(target)-len(t.Action.Target())]
	if o.presentation != nil {
		uri = o.presentation.toStandardURI(uri)
	}
	m := o.tree.Find(&url.URL{Path: uri})
	if uri == "" || m == nil || m.Action != nil || m.Members {
		return nil
	}
	return m
}

// find returns the OEM resource or action at a path, or else the standard URI that
// the path leads to; nil and "" when the vendor has nothing there.
func (o *oem) find(path, method string) (m *resource.Match, standard string) {
	if len(path) > 1 {
		path = strings.TrimRight(path, "/")
	}
	p, known := o.places.Get(path)
	if !known {
		p = o.locate(path)
		o.places.Put(path, p)
	}
	if method == http.MethodPost && p.post != nil {
		return p.post, ""
	}
	return p.m, p.standard
}

// locate is find without the cache, for all methods.
func (o *oem) locate(path string) place {
	p := place{m: o.match(http.MethodGet, path), post: o.match(http.MethodPost, path)}
	if p.m != nil {
		if p.post != nil && p.post.Action != nil && !slices.Contains(p.m.Methods, http.MethodPost) {
			p.m = allowPost(p.m)
		}
		return p
	}
	if standard, ok := mapURIWith(o.aliases, path, o.singletons(nil), o.uriCase()); ok {
		if p.m = o.match(http.MethodGet, standard); p.m == nil {
			p.standard = standard
		}
		return p
	}
	for _, m := range o.below {
		if len(splitPath(path)) <= len(m.from) {
			continue
		}
		if standard, ok := mapURIWith([]uriMapping{m}, path, o.singletons(nil), o.uriCase()); ok {
			p.standard = standard
			return p
		}
	}
	return p
}

// allowPost returns a match whose Allow header has POST too.
func allowPost(m *resource.Match) *resource.Match {
	t := *m.Route
	t.Methods = append(slices.Clip(t.Methods), http.MethodPost)
	t.Allow = []string{strings.Join(slices.DeleteFunc(slices.Clone(t.Methods), t.IsUnadvertised), ", ")}
	return &resource.Match{Route: &t, URI: m.URI, IDs: m.IDs}
}

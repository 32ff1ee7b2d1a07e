package vendor

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/cache"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// presentation is a dialect.Presentation with parsed patterns. Rows, matches and
// links inside the service have standard URIs; presentation translates between them
// and what clients of the vendor see.
type presentation struct {
	d               *dialect.Record
	tree            *resource.Tree
	treePatterns    []pattern    // patterns of the tree; empty unless IgnoreURICase
	toClient        []uriMapping // from standard URIs to the vendor's
	toStandard      []uriMapping // from the vendor's URIs to standard ones
	hidden          []pattern
	transforms      map[string][]transform // by resource type
	rejectRules     []rejectRule
	refusedMethods  []rejectRule // those that answer a method of a resource 405 always
	unwritable      []rejectRule // those that answer every PATCH of a resource, or of a property, with an error
	gzipOnly        []pattern
	successMessages []successMessage
	inputAliases    []inputAlias
	actions         []oemAction                  // OEM actions that standard resources show
	dependencies    sync.Map                     // schema → resource.Parts, of dependsOn
	successBodies   sync.Map                     // *dialect.VendorMessage → []byte, of Success
	standardURIs    *cache.Cache[string, string] // results of toStandardURI, by the client's URI
}

// newPresentation returns the presentation of a record, or nil when it changes
// nothing.
func newPresentation(t *resource.Tree, d *dialect.Record) *presentation {
	if d.Presentation.IsStandard() && len(d.Protocol.GzipOnly)+len(d.OEM.Actions) == 0 {
		return nil
	}
	f := &presentation{d: d, tree: t, transforms: map[string][]transform{}, standardURIs: cache.New[string](1<<12, func(string) int { return 1 })}
	for _, m := range d.Presentation.URIMappings {
		from, to := parsePattern(m.From, d), parsePattern(m.To, d)
		f.toClient = append(f.toClient, uriMapping{from, to, m.TrailingSlash})
		f.toStandard = append(f.toStandard, uriMapping{from: to, to: from})
	}
	sortByLength(f.toClient)
	sortByLength(f.toStandard)
	for _, p := range d.Presentation.Hidden {
		f.hidden = append(f.hidden, parsePattern(p, d))
	}
	for _, s := range d.Presentation.Transforms {
		f.transforms[s.ResourceType] = append(f.transforms[s.ResourceType], transform{s, parsePattern(s.URI, d)})
	}
	for _, r := range d.Presentation.RejectRules {
		rule := rejectRule{r, parsePattern(r.URI, d)}
		f.rejectRules = append(f.rejectRules, rule)
		if r.Status == http.StatusMethodNotAllowed && rule.isUnconditional() {
			f.refusedMethods = append(f.refusedMethods, rule)
		}
		if whole := (rejectRule{RejectRule: r}); r.Method == http.MethodPatch {
			if whole.SendsAny = nil; whole.isUnconditional() {
				f.unwritable = append(f.unwritable, rule)
			}
		}
	}
	for _, a := range d.Presentation.InputAliases {
		f.inputAliases = append(f.inputAliases, inputAlias{a, parsePattern(a.URI, d)})
	}
	for _, p := range d.Protocol.GzipOnly {
		f.gzipOnly = append(f.gzipOnly, parsePattern(p, d))
	}
	for _, m := range d.Presentation.Errors.SuccessMessages {
		f.successMessages = append(f.successMessages, successMessage{m, parsePattern(m.URI, d)})
	}
	f.actions = visibleActions(d)
	if d.Presentation.IgnoreURICase {
		for _, r := range t.All {
			f.treePatterns = append(f.treePatterns, parsePattern(r.Pattern, &dialect.Record{SystemID: "{system}", ManagerID: "{manager}", ChassisID: "{chassis}"}))
		}
	}
	return f
}

// render applies the presentation to a standard body, and returns the body.
func (f *presentation) render(o resource.Object, s *sources) resource.Object {
	if len(f.hidden) > 0 {
		f.removeHidden(o)
	}
	f.applyTransforms(o, s)
	MapTexts(o, f.clientURI)
	if f.d.Presentation.DateTimeFormat == dialect.CompactZone {
		MapTexts(o, resource.CompactDate)
	}
	return o
}

func (f *presentation) isHidden(uri string) bool { return coversAny(f.hidden, uri) }

// removeHidden removes the links, collection members and actions that name hidden
// URIs from a value. It reports whether the value itself is one, and its owner has
// to remove it.
func (f *presentation) removeHidden(v any) (hidden bool) {
	switch x := v.(type) {
	case string:
		path, _, _ := strings.Cut(x, "#")
		return strings.HasPrefix(path, "/redfish/v1/") && f.isHidden(path)
	case resource.Object:
		for name, value := range x {
			switch all := value.(type) {
			case []any:
				left := slices.DeleteFunc(all, f.removeHidden)
				if _, counted := x[name+"@odata.count"]; counted && len(left) < len(all) {
					x[name+"@odata.count"] = len(left)
				}
				x[name] = left
			default:
				if f.removeHidden(value) {
					delete(x, name)
					hidden = hidden || name == "@odata.id" || name == "target"
				}
			}
		}
	}
	return hidden
}

// MapTexts replaces every text in a value by what to returns for it, and returns the value. It
// changes objects in place, and arrays never: bodies share lists of texts, such as the values
// that a property may have, with each other.
func MapTexts(v any, to func(string) string) any {
	switch x := v.(type) {
	case string:
		return to(x)
	case resource.Object:
		for name, value := range x {
			x[name] = MapTexts(value, to)
		}
	case resource.Document:
		for i := range x.Fields {
			x.Fields[i].Value = MapTexts(x.Fields[i].Value, to)
		}
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = MapTexts(x[i], to)
		}
		return out
	case []resource.Object:
		for i := range x {
			MapTexts(x[i], to)
		}
	case []string:
		for i, text := range x {
			if text = to(text); text == x[i] {
				continue
			}
			out := slices.Clone(x)
			for j := i; j < len(out); j++ {
				out[j] = to(out[j])
			}
			return out
		}
	}
	return v
}

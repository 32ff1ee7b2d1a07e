package redfish

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// vendorWrite is a dialect.Write, ready for use.
type vendorWrite struct {
	dialect.WritableProperty
	at pattern
}

// Writes takes the vendor's own writable properties out of a PATCH. It returns how
// each is to be written, the rest of the PATCH, and what is wrong.
func (v *Vendor) Writes(m *match, in document) (all []*execution, rest document, bad []refusal) {
	rest = in
	if v.oem == nil {
		return nil, rest, nil
	}
	for i := range v.oem.writes {
		w := &v.oem.writes[i]
		if w.ResourceType != typeName(m.schema) || w.at != nil && !w.at.holds(m.uri) {
			continue
		}
		value, sent := in.inside(w.Path)
		if !sent {
			continue
		}
		rest = rest.less(w.Path)
		if !isOf(w.Type, value) {
			bad = append(bad, refusal{path: strings.Split(w.Path, "/"), why: wrongType, value: echo(value)})
			continue
		}
		q := &execution{effects: w.Effects, sent: normal(value), about: w.Path, write: true, inner: within, whole: object{}}
		setAt(q.whole, w.Path, q.sent)
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, rest, bad
	}
	for _, f := range in.fields { // which clients send back as they have read them
		if strings.HasPrefix(f.name, "@odata.") {
			rest = rest.less(f.name)
		}
	}
	return all, rest, bad
}

// Write writes a property that Writes has returned.
func (v *Vendor) Write(ctx context.Context, c operation, q *execution) (reply, error) {
	q.c, q.v = c, v.oem.full(c.match, look(c.host))
	return v.oem.carryOut(ctx, q)
}

// full is a view of all that there is, at the address of a resource of the
// tree.
func (o *oem) full(m *match, at *snapshot) view {
	return view{host: at.h, tree: o.tree, d: at.d, m: at.m, b: at.b, now: at.now, uri: m.uri, ids: o.ids(m.ids)}
}

// isOf says whether a value has a type.
func isOf(t dialect.ParameterType, value any) bool {
	var ok bool
	switch t {
	case dialect.StringParameter:
		_, ok = value.(string)
	case dialect.BooleanParameter:
		_, ok = value.(bool)
	case dialect.ObjectParameter:
		_, ok = value.(document)
	case dialect.ArrayParameter:
		_, ok = value.([]any)
	case dialect.IntegerParameter:
		var n json.Number
		if n, ok = value.(json.Number); ok {
			_, ok = wholeNumber(n)
		}
	}
	return ok
}

// changes says whether clients may write the property at a path.
func (w *vendorRow) changes(path string) bool {
	if slices.Contains(w.Writable, path) {
		return true
	}
	slash := strings.LastIndexByte(path, '/')
	return slash >= 0 && slices.Contains(w.Writable, path[:slash]+"/*")
}

// allows says whether a vendor lets a property have a value.
func (w *vendorRow) allows(path string, value any) bool {
	all, ok := w.AllowableValues[path]
	return !ok || slices.Contains(all, fmt.Sprint(value))
}

// sorted is what a client has sent to a vendor's own resource.
type sorted struct {
	changes map[string]any // by paths
	rest    document       // for what the resource is like
	bad     []refusal
}

// sort sorts a PATCH. shown is the part of the resource at the path above.
func (w *vendorRow) sort(in document, above []string, shown object, to *sorted) document {
	var rest document
	for _, f := range in.fields {
		path := append(slices.Clip(above), f.name)
		at := strings.Join(path, "/")
		is, known := shown[f.name]
		below, isObject := f.value.(document)
		group, isGroup := is.(object)
		refuse := func(y why) { to.bad = append(to.bad, refusal{path: path, why: y, value: echo(f.value)}) }
		switch {
		case strings.Contains(f.name, "@odata."):
		case f.twice:
			refuse(duplicate)
		case w.changes(at) && known:
			if y := allowed(f.value, is, shown[f.name+allowable]); y != "" || !w.allows(at, f.value) {
				y = cmp.Or(y, notListed)
				refuse(y)
				continue
			}
			to.changes[at] = normal(f.value)
		case isObject && isGroup:
			if less := w.sort(below, path, group, to); len(less.fields) > 0 {
				rest.put(f.name, less)
			}
		case w.forwards:
			rest.put(f.name, f.value)
		case known:
			refuse(readOnly)
		default:
			refuse(unknown)
		}
	}
	return rest
}

// allowed says what is wrong with a value that is to stand in the place of
// another; "" nothing is.
func allowed(value, is, list any) why {
	if is != nil && !alike(value, is) {
		return wrongType
	}
	if all := elements(list); len(all) > 0 && !slices.ContainsFunc(all, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(value) }) {
		return notListed
	}
	return ""
}

// alike says whether two JSON values are of one type.
func alike(a, b any) bool {
	kind := func(v any) string {
		switch v.(type) {
		case string:
			return "string"
		case bool:
			return "boolean"
		case nil:
			return "null"
		case document, object:
			return "object"
		case []any, []string, []object:
			return "array"
		}
		return "number"
	}
	return kind(a) == kind(b)
}

// overlay shows what clients have written.
func (w *vendorRow) overlay(o object, v view) {
	is, _ := v.kept(v.uri)
	all, _ := is.(object)
	for path, value := range all {
		if was, known := valueAt(o, path); known && w.changes(path) && (was == nil || alike(value, was)) {
			setAt(o, path, value)
		}
	}
}

// Patch carries out a PATCH of a vendor's own resource. It returns what was wrong,
// and whether something was done.
func (v *Vendor) Patch(ctx context.Context, c operation) (bad []refusal, done bool, err error) {
	w := vendorRowOf(c.match)
	to := &sorted{changes: map[string]any{}}
	to.rest = w.sort(c.in, nil, c.match.object(c.view), to)
	switch {
	case len(to.changes)+len(to.rest.fields)+len(to.bad) == 0:
		return nil, false, decline(http.StatusBadRequest, message.NoOperation.With())
	case len(to.changes)+len(to.rest.fields) == 0:
		return to.bad, false, nil
	}
	if len(to.changes) > 0 {
		is, _ := c.view.kept(c.view.uri)
		all, _ := is.(object)
		if all == nil {
			all = object{}
		}
		maps.Copy(all, to.changes)
		if _, err := c.host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.view.uri: all}}); err != nil {
			return nil, false, err
		}
	}
	if len(to.rest.fields) > 0 {
		body, _ := normal(to.rest).(object)
		a := c.x.Do(ctx, "", within, http.MethodPatch, w.like.write(c.view.ids), body)
		if a.status >= http.StatusBadRequest || a.status == http.StatusAccepted {
			return nil, false, &stepFailed{a}
		}
	}
	return to.bad, true, nil
}

// vendorRowOf is what the vendor says of a resource; nil for one of the tree.
func vendorRowOf(m *match) *vendorRow {
	w, _ := m.vendor.(*vendorRow)
	return w
}

// remove deletes what a vendor's resource is like.
func (w *vendorRow) remove(ctx context.Context, c operation) (reply, error) {
	if w.StoredAs != "" {
		_, err := c.host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.view.fill(w.StoredAs): nil}})
		return reply{}, err
	}
	a := c.x.Do(ctx, "", within, http.MethodDelete, w.like.write(c.view.ids), nil)
	if a.status >= http.StatusBadRequest {
		return reply{}, &stepFailed{a}
	}
	if a.status != http.StatusNoContent {
		return reply{made: a}, nil
	}
	return reply{}, nil
}

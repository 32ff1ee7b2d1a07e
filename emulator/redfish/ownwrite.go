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

// written carries out what a PATCH sets of a vendor's own properties, and then
// the rest. It says whether it has answered.
func (x *exchange) written(in document, v view, at *snapshot, free func()) bool {
	if x.inner != "" || len(at.d.OEM.WritableProperties) == 0 {
		return false
	}
	o := x.s.vendorOf(at.d)
	rest := in
	var all []*request
	var bad []refusal
	for i := range o.writes {
		w := &o.writes[i]
		if w.ResourceType != typeName(x.match.schema) || w.at != nil && !w.at.holds(x.match.uri) {
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
		q := &request{effects: w.Effects, sent: normal(value), about: w.Path, write: true, inner: within, whole: object{}}
		setAt(q.whole, w.Path, q.sent)
		all = append(all, q)
	}
	switch {
	case len(bad) > 0:
		x.refuseAll(bad)
		return true
	case len(all) == 0:
		return false
	}
	for _, f := range in.fields { // which clients send back as they have read them
		if strings.HasPrefix(f.name, "@odata.") {
			rest = rest.less(f.name)
		}
	}
	c := x.operation(in, v, nil)
	var last reply // of one that has more to say than that it was done
	for _, q := range all {
		q.c = c
		q.v = o.full(x.match, look(x.host))
		out, err := o.carryOut(x.context(), q)
		if err != nil {
			x.fail(err)
			return true
		}
		if out.job != "" || out.made != nil || out.body != nil {
			last = out
		}
	}
	says := last.job != "" || last.made != nil || last.body != nil
	switch {
	case len(rest.fields) == 0 && says:
		x.answer(c, last, nil, nil)
	case len(rest.fields) == 0:
		x.changed(c, nil)
	case says && x.match.vendor == nil:
		body, _ := normal(rest).(object)
		if a := x.step(x.context(), within, http.MethodPatch, x.match.uri, body); a.status >= http.StatusBadRequest {
			x.relay(a)
		} else {
			x.answer(c, last, nil, nil)
		}
	default:
		x.change(rest, x.match.view(look(x.host)), free)
	}
	return true
}

// full is a view of all that there is, at the address of a resource of the
// tree.
func (o *vendor) full(m *match, at *snapshot) view {
	return view{host: at.h, served: m.served, d: at.d, m: at.m, b: at.b, now: at.now, uri: m.uri, ids: o.ids(m.ids)}
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

// alter carries out a PATCH of a vendor's own resource.
func (x *exchange) alter(in document, v view) {
	w := x.match.vendor
	to := &sorted{changes: map[string]any{}}
	to.rest = w.sort(in, nil, x.match.object(v), to)
	switch {
	case len(to.changes)+len(to.rest.fields)+len(to.bad) == 0:
		x.refuse(http.StatusBadRequest, message.NoOperation.With())
		return
	case len(to.changes)+len(to.rest.fields) == 0:
		x.refuseAll(to.bad)
		return
	}
	c := x.operation(in, v, nil)
	if len(to.changes) > 0 {
		is, _ := v.kept(v.uri)
		all, _ := is.(object)
		if all == nil {
			all = object{}
		}
		maps.Copy(all, to.changes)
		if _, err := x.host.ApplyBMC(x.context(), bmc.SetOEMValues{Values: map[string]any{v.uri: all}}); err != nil {
			x.fail(err)
			return
		}
	}
	if len(to.rest.fields) > 0 {
		body, _ := normal(to.rest).(object)
		a := x.step(x.context(), within, http.MethodPatch, w.like.write(v.ids), body)
		if a.status >= http.StatusBadRequest || a.status == http.StatusAccepted {
			x.relay(a)
			return
		}
	}
	x.changed(c, to.bad)
}

// remove deletes what a vendor's resource is like.
func (w *vendorRow) remove(ctx context.Context, c operation) (reply, error) {
	if w.StoredAs != "" {
		_, err := c.host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.view.fill(w.StoredAs): nil}})
		return reply{}, err
	}
	a := c.x.step(ctx, within, http.MethodDelete, w.like.write(c.view.ids), nil)
	if a.status >= http.StatusBadRequest {
		return reply{}, &stepFailed{a}
	}
	if a.status != http.StatusNoContent {
		return reply{made: a}, nil
	}
	return reply{}, nil
}

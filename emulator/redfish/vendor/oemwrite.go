package vendor

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
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// vendorWrite is a dialect.Write, ready for use.
type vendorWrite struct {
	dialect.WritableProperty
	at pattern
}

// Writes takes the vendor's own writable properties out of a PATCH. It returns how
// each is to be written, the rest of the PATCH, and what is wrong.
func (v *Vendor) Writes(m *resource.Match, in resource.Document) (all []*execution, rest resource.Document, bad []resource.InputError) {
	rest = in
	if v.oem == nil {
		return nil, rest, nil
	}
	for i := range v.oem.writes {
		w := &v.oem.writes[i]
		if w.ResourceType != resource.TypeName(m.Schema) || w.at != nil && !w.at.holds(m.URI) {
			continue
		}
		value, sent := in.Lookup(w.Path)
		if !sent {
			continue
		}
		rest = rest.WithoutValue(w.Path)
		if !isOf(w.Type, value) {
			bad = append(bad, resource.InputError{Path: strings.Split(w.Path, "/"), Problem: resource.WrongType, Value: resource.Echo(value)})
			continue
		}
		q := &execution{effects: w.Effects, sent: resource.Normalize(value), subject: w.Path, write: true, inner: resource.InnerHoldingLock, whole: resource.Object{}}
		resource.SetAt(q.whole, w.Path, q.sent)
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, rest, bad
	}
	for _, f := range in.Fields { // which clients send back as they have read them
		if strings.HasPrefix(f.Name, "@odata.") {
			rest = rest.WithoutValue(f.Name)
		}
	}
	return all, rest, bad
}

// Write writes a property that Writes has returned.
func (v *Vendor) Write(ctx context.Context, c resource.Call, q *execution) (resource.Result, error) {
	q.c, q.v = c, v.oem.full(c.Match, resource.TakeSnapshot(c.Host))
	return v.oem.carryOut(ctx, q)
}

// full is a view of all that there is, at the address of a resource of the
// tree.
func (o *oem) full(m *resource.Match, at *resource.Snapshot) resource.View {
	return resource.View{Host: at.Host, Tree: o.tree, Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, URI: m.URI, IDs: o.ids(m.IDs)}
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
		_, ok = value.(resource.Document)
	case dialect.ArrayParameter:
		_, ok = value.([]any)
	case dialect.IntegerParameter:
		var n json.Number
		if n, ok = value.(json.Number); ok {
			_, ok = resource.WholeNumber(n)
		}
	}
	return ok
}

// changes says whether clients may write the property at a path.
func (w *oemResource) changes(path string) bool {
	if slices.Contains(w.Writable, path) {
		return true
	}
	slash := strings.LastIndexByte(path, '/')
	return slash >= 0 && slices.Contains(w.Writable, path[:slash]+"/*")
}

// allows says whether a vendor lets a property have a value.
func (w *oemResource) allows(path string, value any) bool {
	all, ok := w.AllowableValues[path]
	return !ok || slices.Contains(all, fmt.Sprint(value))
}

// sorted is what a client has sent to a vendor's own resource.
type sorted struct {
	changes map[string]any    // by paths
	rest    resource.Document // for what the resource is like
	bad     []resource.InputError
}

// sort sorts a PATCH. shown is the part of the resource at the path above.
func (w *oemResource) sort(in resource.Document, above []string, shown resource.Object, to *sorted) resource.Document {
	var rest resource.Document
	for _, f := range in.Fields {
		path := append(slices.Clip(above), f.Name)
		at := strings.Join(path, "/")
		is, known := shown[f.Name]
		below, isObject := f.Value.(resource.Document)
		group, isGroup := is.(resource.Object)
		refuse := func(y resource.Problem) {
			to.bad = append(to.bad, resource.InputError{Path: path, Problem: y, Value: resource.Echo(f.Value)})
		}
		switch {
		case strings.Contains(f.Name, "@odata."):
		case f.Duplicate:
			refuse(resource.Duplicate)
		case w.changes(at) && known:
			if y := allowed(f.Value, is, shown[f.Name+resource.AllowableValues]); y != "" || !w.allows(at, f.Value) {
				y = cmp.Or(y, resource.NotListed)
				refuse(y)
				continue
			}
			to.changes[at] = resource.Normalize(f.Value)
		case isObject && isGroup:
			if less := w.sort(below, path, group, to); len(less.Fields) > 0 {
				rest.Put(f.Name, less)
			}
		case w.passesPatch:
			rest.Put(f.Name, f.Value)
		case known:
			refuse(resource.ReadOnly)
		default:
			refuse(resource.Unknown)
		}
	}
	return rest
}

// allowed says what is wrong with a value that is to stand in the place of
// another; "" nothing is.
func allowed(value, is, list any) resource.Problem {
	if is != nil && !alike(value, is) {
		return resource.WrongType
	}
	if all := resource.Elements(list); len(all) > 0 && !slices.ContainsFunc(all, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(value) }) {
		return resource.NotListed
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
		case resource.Document, resource.Object:
			return "object"
		case []any, []string, []resource.Object:
			return "array"
		}
		return "number"
	}
	return kind(a) == kind(b)
}

// showWritten shows what clients have written.
func (w *oemResource) showWritten(o resource.Object, v resource.View) {
	is, _ := v.OEMValue(v.URI)
	all, _ := is.(resource.Object)
	for path, value := range all {
		if was, known := resource.ValueAt(o, path); known && w.changes(path) && (was == nil || alike(value, was)) {
			resource.SetAt(o, path, value)
		}
	}
}

// Patch carries out a PATCH of a vendor's own resource. It returns what was wrong,
// and whether something was done.
func (v *Vendor) Patch(ctx context.Context, c resource.Call) (bad []resource.InputError, done bool, err error) {
	w := oemResourceOf(c.Match)
	to := &sorted{changes: map[string]any{}}
	to.rest = w.sort(c.Body, nil, c.Match.Object(c.View), to)
	switch {
	case len(to.changes)+len(to.rest.Fields)+len(to.bad) == 0:
		return nil, false, resource.Reject(http.StatusBadRequest, message.NoOperation.With())
	case len(to.changes)+len(to.rest.Fields) == 0:
		return to.bad, false, nil
	}
	if len(to.changes) > 0 {
		is, _ := c.View.OEMValue(c.View.URI)
		all, _ := is.(resource.Object)
		if all == nil {
			all = resource.Object{}
		}
		maps.Copy(all, to.changes)
		if _, err := c.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.View.URI: all}}); err != nil {
			return nil, false, err
		}
	}
	if len(to.rest.Fields) > 0 {
		body, _ := resource.Normalize(to.rest).(resource.Object)
		a := c.Request.Do(ctx, "", resource.InnerHoldingLock, http.MethodPatch, w.basedOn.Write(c.View.IDs), body)
		if a.Status >= http.StatusBadRequest || a.Status == http.StatusAccepted {
			return nil, false, &resource.InnerError{InnerResponse: a}
		}
	}
	return to.bad, true, nil
}

// oemResourceOf is what the vendor says of a resource; nil for one of the tree.
func oemResourceOf(m *resource.Match) *oemResource {
	w, _ := m.OEM.(*oemResource)
	return w
}

// remove deletes what a vendor's resource is like.
func (w *oemResource) remove(ctx context.Context, c resource.Call) (resource.Result, error) {
	if w.StoredAs != "" {
		_, err := c.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.View.Fill(w.StoredAs): nil}})
		return resource.Result{}, err
	}
	a := c.Request.Do(ctx, "", resource.InnerHoldingLock, http.MethodDelete, w.basedOn.Write(c.View.IDs), nil)
	if a.Status >= http.StatusBadRequest {
		return resource.Result{}, &resource.InnerError{InnerResponse: a}
	}
	if a.Status != http.StatusNoContent {
		return resource.Result{Inner: a}, nil
	}
	return resource.Result{}, nil
}

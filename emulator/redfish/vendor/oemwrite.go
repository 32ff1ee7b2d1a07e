package vendor

import (
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

// writableProperty is a dialect.WritableProperty with its pattern parsed.
type writableProperty struct {
	dialect.WritableProperty
	uri pattern
}

// Writes takes the vendor's writable properties out of the body of a PATCH. It returns
// an execution for each, for Write, the rest of the body, and the properties whose
// values have the wrong type.
func (v *Vendor) Writes(m *resource.Match, in resource.Document) (all []*Execution, rest resource.Document, bad []resource.InputError) {
	rest = in
	if v.oem == nil {
		return nil, rest, nil
	}
	for i := range v.oem.writable {
		w := &v.oem.writable[i]
		if w.ResourceType != resource.TypeName(m.Schema) || w.uri != nil && !w.uri.covers(m.URI) {
			continue
		}
		value, sent := in.Lookup(w.Path)
		if !sent {
			continue
		}
		rest = rest.WithoutValue(w.Path)
		if !hasType(value, w.Type) {
			bad = append(bad, resource.InputError{Path: strings.Split(w.Path, "/"), Problem: resource.WrongType, Value: resource.Echo(value)})
			continue
		}
		q := &Execution{effects: w.Effects, sent: resource.Normalize(value), subject: w.Path, isProperty: true, inner: resource.InnerHoldingLock, hookBody: resource.Object{}}
		resource.SetAt(q.hookBody, w.Path, q.sent)
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, rest, bad
	}
	for _, f := range in.Fields { // annotations that clients send back with what they have read
		if strings.HasPrefix(f.Name, "@odata.") {
			rest = rest.WithoutValue(f.Name)
		}
	}
	return all, rest, bad
}

// Write executes the write of a property that Writes has returned.
func (v *Vendor) Write(ctx context.Context, c resource.Call, q *Execution) (resource.Result, error) {
	q.call, q.view = c, v.oem.fullView(c.Match, resource.TakeSnapshot(c.Host))
	return v.oem.execute(ctx, q)
}

// fullView returns a view of the whole state at the URI of a standard resource,
// with the values of all variables that effects may refer to.
func (o *oem) fullView(m *resource.Match, at *resource.Snapshot) resource.View {
	return resource.View{Host: at.Host, Tree: o.tree, Dialect: at.Dialect, Machine: at.Machine, BMC: at.BMC, Now: at.Now, URI: m.URI, IDs: o.singletons(m.IDs)}
}

// hasType reports whether a value of a parsed request has a JSON type.
func hasType(value any, t dialect.ParameterType) bool {
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
			_, ok = resource.ParseInteger(n)
		}
	}
	return ok
}

// isWritable reports whether clients may write the property at a path.
func (w *oemResource) isWritable(path string) bool {
	if slices.Contains(w.Writable, path) {
		return true
	}
	slash := strings.LastIndexByte(path, '/')
	return slash >= 0 && slices.Contains(w.Writable, path[:slash]+"/*")
}

// allows reports whether AllowableValues has a value of a property, or does not
// restrict the property.
func (w *oemResource) allows(path string, value any) bool {
	all, ok := w.AllowableValues[path]
	return !ok || slices.Contains(all, fmt.Sprint(value))
}

// patch is the body of a PATCH of an OEM resource, sorted.
type patch struct {
	written map[string]any        // values of Writable properties, by path
	rest    resource.Document     // properties for the BasedOn
	bad     []resource.InputError // rejected properties
}

// sort adds the properties of an object of the body to p, and returns those for the
// BasedOn. path is the path of the object, present the same object of the resource.
func (w *oemResource) sort(in resource.Document, path []string, present resource.Object, p *patch) resource.Document {
	var rest resource.Document
	for _, f := range in.Fields {
		path := append(slices.Clip(path), f.Name)
		text := strings.Join(path, "/")
		value, known := present[f.Name]
		object, sentObject := f.Value.(resource.Document)
		presentObject, isObject := value.(resource.Object)
		reject := func(y resource.Problem) {
			p.bad = append(p.bad, resource.InputError{Path: path, Problem: y, Value: resource.Echo(f.Value)})
		}
		switch {
		case strings.Contains(f.Name, "@odata."):
		case f.Duplicate:
			reject(resource.Duplicate)
		case w.isWritable(text) && known:
			if y := checkValue(f.Value, value, present[f.Name+resource.AllowableValues]); y != "" {
				reject(y)
			} else if !w.allows(text, f.Value) {
				reject(resource.NotListed)
			} else {
				p.written[text] = resource.Normalize(f.Value)
			}
		case sentObject && isObject:
			if left := w.sort(object, path, presentObject, p); len(left.Fields) > 0 {
				rest.Put(f.Name, left)
			}
		case w.passesPatch:
			rest.Put(f.Name, f.Value)
		case known:
			reject(resource.ReadOnly)
		default:
			reject(resource.Unknown)
		}
	}
	return rest
}

// checkValue returns the problem with a value that is to replace present, or "".
// allowable is the value of the property's AllowableValues annotation.
func checkValue(value, present, allowable any) resource.Problem {
	if present != nil && !sameJSONType(value, present) {
		return resource.WrongType
	}
	if all := resource.Elements(allowable); len(all) > 0 && !slices.ContainsFunc(all, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(value) }) {
		return resource.NotListed
	}
	return ""
}

// sameJSONType reports whether two JSON values have the same type.
func sameJSONType(a, b any) bool {
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

// setWritten sets the properties that clients have written, as far as the body still
// has them with the same type.
func (w *oemResource) setWritten(o resource.Object, v resource.View) {
	value, _ := v.OEMValue(v.URI)
	written, _ := value.(resource.Object)
	for path, value := range written {
		if present, known := resource.ValueAt(o, path); known && w.isWritable(path) && (present == nil || sameJSONType(value, present)) {
			resource.SetAt(o, path, value)
		}
	}
}

// Patch executes a PATCH of an OEM resource. It returns the properties that it
// rejects, and whether it has changed anything.
func (v *Vendor) Patch(ctx context.Context, c resource.Call) (bad []resource.InputError, done bool, err error) {
	w := oemResourceOf(c.Match)
	p := &patch{written: map[string]any{}}
	p.rest = w.sort(c.Body, nil, c.Match.Object(c.View), p)
	switch {
	case len(p.written)+len(p.rest.Fields)+len(p.bad) == 0:
		return nil, false, resource.Reject(http.StatusBadRequest, message.NoOperation.With())
	case len(p.written)+len(p.rest.Fields) == 0:
		return p.bad, false, nil
	}
	if len(p.written) > 0 {
		value, _ := c.View.OEMValue(c.View.URI)
		written, _ := value.(resource.Object)
		if written == nil {
			written = resource.Object{}
		}
		maps.Copy(written, p.written)
		if _, err := c.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.View.URI: written}}); err != nil {
			return nil, false, err
		}
	}
	if len(p.rest.Fields) > 0 {
		body, _ := resource.Normalize(p.rest).(resource.Object)
		a := c.Request.Do(ctx, "", resource.InnerHoldingLock, http.MethodPatch, w.basedOn.fill(c.View.IDs), body)
		if a.Status >= http.StatusBadRequest || a.Status == http.StatusAccepted {
			return nil, false, &resource.InnerError{InnerResponse: a}
		}
	}
	return p.bad, true, nil
}

// oemResourceOf returns the OEM resource of a match, or nil for a standard one.
func oemResourceOf(m *resource.Match) *oemResource {
	w, _ := m.OEM.(*oemResource)
	return w
}

// remove executes a DELETE of an OEM resource: it removes the stored object, or else
// deletes the BasedOn.
func (w *oemResource) remove(ctx context.Context, c resource.Call) (resource.Result, error) {
	if w.StoredAs != "" {
		_, err := c.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: map[string]any{c.View.Fill(w.StoredAs): nil}})
		return resource.Result{}, err
	}
	a := c.Request.Do(ctx, "", resource.InnerHoldingLock, http.MethodDelete, w.basedOn.fill(c.View.IDs), nil)
	if a.Status >= http.StatusBadRequest {
		return resource.Result{}, &resource.InnerError{InnerResponse: a}
	}
	if a.Status != http.StatusNoContent {
		return resource.Result{Inner: a}, nil
	}
	return resource.Result{}, nil
}

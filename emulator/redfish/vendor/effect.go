package vendor

import (
	"cmp"
	"context"
	"errors"
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

// Execution is a request to an OEM action, or a write of an OEM property, whose
// effects are to be carried out.
type Execution struct {
	call       resource.Call
	view       resource.View
	effects    []dialect.Effect
	sent       any             // body of the action, value of the property
	hookBody   resource.Object // body that hooks get; nil: sent
	subject    string          // name of the action, path of the property
	isProperty bool            // a write of a property, and not an action
	inner      resource.InnerKind
	stored     map[string]any // values of Effect.Store, by name; nil removes one
}

// execute carries out the first effect whose conditions hold.
func (o *oem) execute(ctx context.Context, q *Execution) (resource.Result, error) {
	e, err := o.selectEffect(q)
	if err != nil {
		return resource.Result{}, err
	}
	if e.Reject != nil {
		property, value := q.rejectArguments(e)
		m := NewMessage(*e.Reject, property, value)
		return resource.Result{}, resource.Reject(cmp.Or(e.Status, http.StatusBadRequest), m)
	}
	q.stored = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(e.Store)) {
		if value, ok := q.expand(e.Store[name]); ok {
			q.stored[q.expandText(name)] = value
		}
	}
	requests := make([]dialect.StandardRequest, 0, len(e.Requests))
	for _, s := range e.Requests {
		r := dialect.StandardRequest{Method: s.Method, URI: q.expandText(s.URI)}
		if s.Body != nil {
			r.Body = q.expandBody(s.Body)
		}
		requests = append(requests, r)
	}
	if e.Task != "" {
		if err := q.store(ctx); err != nil {
			return resource.Result{}, err
		}
		return q.startTask(ctx, e, requests)
	}
	out := resource.Result{Status: e.Status}
	for _, r := range requests {
		a := q.call.Request.Do(ctx, "", q.inner, r.Method, r.URI, r.Body)
		if a.Status >= http.StatusBadRequest {
			return resource.Result{}, &resource.InnerError{InnerResponse: a}
		}
		out.Inner = nil
		if r.Method == http.MethodPost && len(a.Body) > 0 || a.Status == http.StatusAccepted {
			out.Inner = a // a created resource or a task, which the client has to see
		}
	}
	if err := q.store(ctx); err != nil {
		return resource.Result{}, err
	}
	if e.EjectAfterBoots != 0 {
		if _, err := q.call.Host.ApplyBMC(ctx, bmc.EjectMediaAfterBoots{Slot: q.view.IDs["slot"], Boots: max(0, e.EjectAfterBoots)}); err != nil {
			return resource.Result{}, err
		}
	}
	if e.Body != nil {
		out.Body = q.expandBody(e.Body)
		out.Inner = nil
	}
	if out.Inner != nil && e.Status != 0 {
		out.Inner.Status = e.Status
	}
	return out, nil
}

// selectEffect returns the first effect whose conditions hold, or what its hook
// returns. The error is the response when there is none.
func (o *oem) selectEffect(q *Execution) (dialect.Effect, error) {
	at := q.view.Snapshot()
	wrong := "" // the first property that an effect has no value for
	for _, e := range q.effects {
		if path, ok := q.whenHolds(e); !ok {
			wrong = cmp.Or(wrong, path)
			continue
		}
		m := q.call.Match
		if m.Base != nil {
			m = m.Base
		}
		if !conditionHolds(e.While, e.For, m, at) {
			continue
		}
		if e.Hook == nil {
			return e, nil
		}
		return q.callHook(e)
	}
	switch {
	case wrong != "" && q.isProperty:
		return dialect.Effect{}, resource.Reject(http.StatusBadRequest, message.PropertyValueError.With(q.subject).About("#/"+q.subject))
	case wrong != "":
		return dialect.Effect{}, resource.Reject(http.StatusBadRequest, message.ActionParameterValueError.With(wrong, q.subject).About("#/"+wrong))
	}
	return dialect.Effect{}, resource.Reject(http.StatusConflict, message.ResourceInUse.With())
}

// callHook returns the effect that the hook of an effect returns, and makes its
// Rejection a response.
func (q *Execution) callHook(e dialect.Effect) (dialect.Effect, error) {
	body := q.hookBody
	if body == nil {
		body, _ = q.sent.(resource.Object)
	}
	if body == nil {
		body = resource.Object{}
	}
	effect, err := e.Hook(dialect.ActionCall{HookContext: hookContext(q.view), Body: resource.Clone(body).(resource.Object), Query: q.call.Request.Query()})
	var rejected *dialect.Rejection
	if errors.As(err, &rejected) {
		return e, resource.Reject(cmp.Or(rejected.Status, http.StatusBadRequest), newHookMessage(rejected.Message, rejected.Args...))
	}
	return effect, err
}

// whenHolds reports whether the properties of an effect's When have the values that
// it asks for, or returns the path of the first that does not.
func (q *Execution) whenHolds(e dialect.Effect) (path string, ok bool) {
	for _, path := range slices.Sorted(maps.Keys(e.When)) {
		text := ""
		if v, sent := q.valueAt(path); sent {
			text = fmt.Sprint(v)
		}
		if !slices.Contains(e.When[path], text) {
			return path, false
		}
	}
	return "", true
}

// rejectArguments returns the arguments of an effect's Reject: the name of the
// property that the effect is for, and its value.
func (q *Execution) rejectArguments(e dialect.Effect) (property, value string) {
	property = q.subject
	if all := slices.Sorted(maps.Keys(e.When)); len(all) > 0 && !q.isProperty {
		property = all[0]
		if v, sent := q.valueAt(property); sent {
			value = resource.Echo(v)
		}
	} else if q.isProperty {
		value = resource.Echo(q.sent)
	}
	return property[strings.LastIndexByte(property, '/')+1:], value
}

// valueAt returns the value that was sent at a path, and whether it was sent. "" and
// "$" name all of sent.
func (q *Execution) valueAt(path string) (any, bool) {
	if path == "" || path == "$" {
		return q.sent, q.sent != nil
	}
	o, ok := q.sent.(resource.Object)
	if !ok {
		return nil, false
	}
	return resource.ValueAt(o, path)
}

// storedValue returns the value that is stored under a name, or that this execution
// is going to store.
func (q *Execution) storedValue(name string) (any, bool) {
	if v, ok := q.stored[name]; ok {
		return v, v != nil
	}
	return q.view.OEMValue(name)
}

// expand returns a value of an effect with its references replaced: "$PATH" alone by
// the value that was sent, "=NAME" alone by the stored value, and the references
// within texts as in expandText. It returns false when the value refers to one that
// does not exist; objects and arrays leave such members out.
func (q *Execution) expand(v any) (any, bool) {
	switch x := v.(type) {
	case string:
		if path, ok := strings.CutPrefix(x, "$"); ok {
			return q.valueAt(q.view.Fill(path))
		}
		if name, ok := strings.CutPrefix(x, "="); ok {
			return q.storedValue(q.view.Fill(name))
		}
		return q.expandText(x), true
	case resource.Object:
		o := make(resource.Object, len(x))
		for name, member := range x {
			if value, ok := q.expand(member); ok {
				o[name] = value
			}
		}
		return o, true
	case []any:
		all := []any{}
		for _, member := range x {
			if value, ok := q.expand(member); ok {
				all = append(all, value)
			}
		}
		return all, true
	}
	return resource.Normalize(v), true
}

// expandBody is expand for the body of a request or response.
func (q *Execution) expandBody(body map[string]any) resource.Object {
	value, _ := q.expand(body)
	o, _ := value.(resource.Object)
	return o
}

// expandText fills in variables, {$PATH} and {=NAME} in a text. What does not exist
// becomes "".
func (q *Execution) expandText(s string) string {
	s = q.view.Fill(s)
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		reference, after, closed := strings.Cut(rest, "}")
		path, isPath := strings.CutPrefix(reference, "$")
		name, isName := strings.CutPrefix(reference, "=")
		if !closed || !isPath && !isName {
			b.WriteByte('{')
			s = rest
			continue
		}
		var v any
		if isPath {
			v, ok = q.valueAt(path)
		} else {
			v, ok = q.storedValue(name)
		}
		if ok {
			fmt.Fprint(&b, v)
		}
		s = after
	}
}

// store makes the BMC store the values of Effect.Store.
func (q *Execution) store(ctx context.Context) error {
	if len(q.stored) == 0 {
		return nil
	}
	_, err := q.call.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: q.stored})
	return err
}

// startTask starts a task that carries out the requests, one after the other, and
// returns it. The task fails with the first request that fails, and sends no further
// request after it has been ended from outside.
func (q *Execution) startTask(ctx context.Context, e dialect.Effect, requests []dialect.StandardRequest) (resource.Result, error) {
	open := q.call.OpenTask()
	open.Name, open.Lasts, open.Steps = q.expandText(e.Task), e.TaskDuration, true
	result := encodeTaskResult(e.TaskResult)
	x := q.call.Request
	x.Expect(http.StatusAccepted)
	x.Outlive()
	task, err := q.call.Host.RunTask(ctx, open, func(ctx context.Context, id string) bmc.CloseTask {
		if err := x.Wait(ctx, e.TaskDuration); err != nil {
			return bmc.CloseTask{Fault: "it was stopped"}
		}
		for _, r := range requests {
			t := resource.Find(q.call.Host.BMC().Tasks.All(), id, func(t bmc.Task) string { return t.ID })
			if t.State != bmc.TaskRunning {
				return bmc.CloseTask{Fault: "it was stopped"}
			}
			if a := x.Do(ctx, id, resource.InnerWithoutLock, r.Method, r.URI, r.Body); a.Status >= http.StatusBadRequest {
				return bmc.CloseTask{Fault: a.Reason()}
			}
		}
		return bmc.CloseTask{Result: result}
	})
	out := resource.Result{Task: task.ID}
	if e.Body != nil && err == nil {
		q.view.IDs = maps.Clone(q.view.IDs)
		q.view.IDs["job"] = task.ID
		out.Body = q.expandBody(e.Body)
	}
	return out, err
}

// encodeTaskResult returns an Effect.TaskResult as the body of a response: a text as
// it is, anything else as JSON.
func encodeTaskResult(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	o, _ := resource.Normalize(v).(resource.Object)
	return string(resource.Encode(o))
}

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

// execution is a request of a vendor's own, on its way to its effect.
type execution struct {
	c       resource.Call
	v       resource.View
	effects []dialect.Effect
	sent    any             // the body of an action, the value of a property
	whole   resource.Object // the body as hooks see it; nil: sent
	subject string          // name of the action, path of the property
	write   bool            // it is a property
	inner   resource.InnerKind
	stored  map[string]any // that it sets; nil forgets
}

// carryOut carries out the first effect whose conditions hold.
func (o *oem) carryOut(ctx context.Context, q *execution) (resource.Result, error) {
	e, err := o.effect(q)
	if err != nil {
		return resource.Result{}, err
	}
	if e.Reject != nil {
		property, value := q.condition(e)
		m := NewMessage(*e.Reject, property, value)
		return resource.Result{}, resource.Reject(cmp.Or(e.Status, http.StatusBadRequest), m)
	}
	q.stored = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(e.Store)) {
		is, ok := q.fill(e.Store[name])
		if ok {
			q.stored[q.text(name)] = is
		}
	}
	steps := make([]dialect.StandardRequest, 0, len(e.Requests))
	for _, s := range e.Requests {
		is := dialect.StandardRequest{Method: s.Method, URI: q.text(s.URI)}
		if s.Body != nil {
			body, _ := q.fill(s.Body)
			is.Body, _ = body.(resource.Object)
		}
		steps = append(steps, is)
	}
	if e.Task != "" {
		if err := q.store(ctx); err != nil {
			return resource.Result{}, err
		}
		return q.later(ctx, e, steps)
	}
	out := resource.Result{Status: e.Status}
	for _, s := range steps {
		a := q.c.Request.Do(ctx, "", q.inner, s.Method, s.URI, s.Body)
		if a.Status >= http.StatusBadRequest {
			return resource.Result{}, &resource.InnerError{InnerResponse: a}
		}
		out.Inner = nil
		if s.Method == http.MethodPost && len(a.Body) > 0 || a.Status == http.StatusAccepted {
			out.Inner = a // it says more than that it was done
		}
	}
	if err := q.store(ctx); err != nil {
		return resource.Result{}, err
	}
	if e.EjectAfterBoots != 0 {
		if _, err := q.c.Host.ApplyBMC(ctx, bmc.EjectMediaAfterBoots{Slot: q.v.IDs["slot"], Boots: max(0, e.EjectAfterBoots)}); err != nil {
			return resource.Result{}, err
		}
	}
	if e.Body != nil {
		body, _ := q.fill(e.Body)
		out.Body, _ = body.(resource.Object)
		out.Inner = nil
	}
	if out.Inner != nil && e.Status != 0 {
		out.Inner.Status = e.Status
	}
	return out, nil
}

// effect is what is to be done.
func (o *oem) effect(q *execution) (dialect.Effect, error) {
	at := q.v.Snapshot()
	unmet := "" // a property whose value none takes
	for _, e := range q.effects {
		if path, ok := q.holds(e); !ok {
			unmet = cmp.Or(unmet, path)
			continue
		}
		r := rejectRule{RejectRule: dialect.RejectRule{While: e.While, For: e.For}}
		m := q.c.Match
		if m.Base != nil {
			m = m.Base
		}
		if !r.during(m, at) {
			continue
		}
		if e.Hook == nil {
			return e, nil
		}
		whole, ok := q.sent.(resource.Object)
		if q.whole != nil {
			whole = q.whole
		} else if !ok {
			whole = resource.Object{}
		}
		says, err := e.Hook(dialect.ActionCall{HookContext: hookContext(q.v), Body: resource.Clone(whole).(resource.Object), Query: q.c.Request.Query()})
		var no *dialect.Rejection
		if errors.As(err, &no) {
			return e, resource.Reject(cmp.Or(no.Status, http.StatusBadRequest), newMessageWith(no.Message, no.Args...))
		}
		return says, err
	}
	switch {
	case unmet != "" && q.write:
		return dialect.Effect{}, resource.Reject(http.StatusBadRequest, message.PropertyValueError.With(q.subject).About("#/"+q.subject))
	case unmet != "":
		return dialect.Effect{}, resource.Reject(http.StatusBadRequest, message.ActionParameterValueError.With(unmet, q.subject).About("#/"+unmet))
	}
	return dialect.Effect{}, resource.Reject(http.StatusConflict, message.ResourceInUse.With())
}

// newMessageWith is a message of a vendor's with all arguments that there are.
func newMessageWith(s dialect.VendorMessage, args ...string) message.Message {
	for i := 0; ; i++ {
		if i == len(args) {
			if !strings.Contains(s.Text, fmt.Sprintf("%%%d", i+1)) {
				return NewMessage(s, args...)
			}
			args = append(args, "")
		}
	}
}

// holds says whether what was sent has the values that an effect is for, or
// which property has not.
func (q *execution) holds(e dialect.Effect) (path string, ok bool) {
	for _, path := range slices.Sorted(maps.Keys(e.When)) {
		is := ""
		if v, sent := q.at(path); sent {
			is = fmt.Sprint(v)
		}
		if !slices.Contains(e.When[path], is) {
			return path, false
		}
	}
	return "", true
}

// condition is the property that an effect is for, with its value.
func (q *execution) condition(e dialect.Effect) (property, value string) {
	property = q.subject
	if all := slices.Sorted(maps.Keys(e.When)); len(all) > 0 && !q.write {
		property = all[0]
		if v, sent := q.at(property); sent {
			value = resource.Echo(v)
		}
	} else if q.write {
		value = resource.Echo(q.sent)
	}
	return property[strings.LastIndexByte(property, '/')+1:], value
}

// at is what was sent at a path; "" is all of it.
func (q *execution) at(path string) (any, bool) {
	if path == "" || path == "$" {
		return q.sent, q.sent != nil
	}
	o, ok := q.sent.(resource.Object)
	if !ok {
		return nil, false
	}
	return resource.ValueAt(o, path)
}

// storedValue is what is remembered under a name, or will be.
func (q *execution) storedValue(name string) (any, bool) {
	if v, ok := q.stored[name]; ok {
		return v, v != nil
	}
	return q.v.OEMValue(name)
}

// fill is a value with all that stands for something filled in; false when it
// stands for what there is not.
func (q *execution) fill(v any) (any, bool) {
	switch x := v.(type) {
	case string:
		if path, ok := strings.CutPrefix(x, "$"); ok {
			return q.at(q.v.Fill(path))
		}
		if name, ok := strings.CutPrefix(x, "="); ok {
			return q.storedValue(q.v.Fill(name))
		}
		return q.text(x), true
	case resource.Object:
		o := make(resource.Object, len(x))
		for name, below := range x {
			if is, ok := q.fill(below); ok {
				o[name] = is
			}
		}
		return o, true
	case []any:
		all := []any{}
		for _, below := range x {
			if is, ok := q.fill(below); ok {
				all = append(all, is)
			}
		}
		return all, true
	}
	return resource.Normalize(v), true
}

// text fills in what stands in a text in braces.
func (q *execution) text(s string) string {
	s = q.v.Fill(s)
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		path, sent := strings.CutPrefix(name, "$")
		of, kept := strings.CutPrefix(name, "=")
		if !closed || !sent && !kept {
			b.WriteByte('{')
			s = rest
			continue
		}
		var v any
		if sent {
			v, ok = q.at(path)
		} else {
			v, ok = q.storedValue(of)
		}
		if ok {
			fmt.Fprint(&b, v)
		}
		s = after
	}
}

// store has the BMC keep what the request sets.
func (q *execution) store(ctx context.Context) error {
	if len(q.stored) == 0 {
		return nil
	}
	_, err := q.c.Host.ApplyBMC(ctx, bmc.SetOEMValues{Values: q.stored})
	return err
}

// later carries out steps under a job. It fails with the first of them that
// does, and does nothing more when it was ended meanwhile.
func (q *execution) later(ctx context.Context, e dialect.Effect, steps []dialect.StandardRequest) (resource.Result, error) {
	open := q.c.OpenTask()
	open.Name, open.Lasts, open.Steps = q.text(e.Task), e.TaskDuration, true
	result := resultText(e.TaskResult)
	x := q.c.Request
	x.Expect(http.StatusAccepted)
	x.Outlive()
	job, err := q.c.Host.Carry(ctx, open, func(ctx context.Context, id string) bmc.CloseTask {
		if err := x.Wait(ctx, e.TaskDuration); err != nil {
			return bmc.CloseTask{Fault: "it was stopped"}
		}
		for _, s := range steps {
			j := resource.Find(q.c.Host.BMC().Tasks.All(), id, func(j bmc.Task) string { return j.ID })
			if j.State != bmc.TaskRunning {
				return bmc.CloseTask{Fault: "it was stopped"}
			}
			if a := x.Do(ctx, id, resource.InnerWithoutLock, s.Method, s.URI, s.Body); a.Status >= http.StatusBadRequest {
				return bmc.CloseTask{Fault: a.Reason()}
			}
		}
		return bmc.CloseTask{Result: result}
	})
	out := resource.Result{Task: job.ID}
	if e.Body != nil && err == nil {
		q.v.IDs = maps.Clone(q.v.IDs)
		q.v.IDs["job"] = job.ID
		body, _ := q.fill(e.Body)
		out.Body, _ = body.(resource.Object)
	}
	return out, err
}

// resultText is what a job answers.
func resultText(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	o, _ := resource.Normalize(v).(resource.Object)
	return string(resource.Encode(o))
}

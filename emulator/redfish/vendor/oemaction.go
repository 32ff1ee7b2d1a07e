package vendor

import (
	"context"
	"math"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// action returns an OEM action as rows have actions. target is what its URI has
// behind that of the resource, unless the dialect has a Target.
func (o *oem) action(a dialect.Action, target string) resource.Action {
	if a.Target != "" {
		target = a.Target
	}
	return resource.Action{
		Name: a.Name, TargetPath: target, Hidden: a.Hidden, Inputs: actionInputs(a.Parameters), Slow: true,
		Apply: func(ctx context.Context, c resource.Call) (resource.Result, error) {
			return o.execute(ctx, &Execution{call: c, view: c.View, effects: a.Effects, sent: resource.Normalize(c.Body), subject: a.Name, inner: resource.InnerWithoutLock})
		},
	}
}

// actionInputs returns the parameters of an OEM action as inputs. A parameter whose
// name is a path becomes an input of an object.
func actionInputs(all []dialect.Parameter) []resource.Input {
	var out []resource.Input
	for _, p := range all {
		in := actionInput(p)
		path := strings.Split(p.Name, "/")
		to := &out
		for _, name := range path[:len(path)-1] {
			i := resource.InputOf(*to, name)
			if i < 0 {
				*to = append(*to, resource.Input{Name: name, Kind: resource.Group})
				i = len(*to) - 1
			}
			(*to)[i].Required = (*to)[i].Required || p.Required
			to = &(*to)[i].Of
		}
		in.Name = path[len(path)-1]
		*to = append(*to, in)
	}
	return out
}

// actionInput returns a parameter as an input without a name.
func actionInput(p dialect.Parameter) resource.Input {
	in := resource.Input{Required: p.Required, Secret: p.Secret}
	switch p.Type {
	case dialect.StringParameter:
		in.Kind = resource.Text
		if len(p.AllowableValues) > 0 {
			in.Allowed = resource.OneOf(p.AllowableValues...)
		}
	case dialect.IntegerParameter:
		in.Kind, in.Min, in.Max = resource.Integer, math.MinInt64, math.MaxInt64
	case dialect.BooleanParameter:
		in.Kind = resource.Boolean
	case dialect.ObjectParameter:
		in.Kind = resource.AnyObject
	case dialect.ArrayParameter:
		in.Kind = resource.AnyArray
		if len(p.AllowableValues) > 0 {
			in.AcceptsSingle = p.AcceptsSingle
			in.Kind, in.Of = resource.Array, []resource.Input{{Kind: resource.Text, Allowed: resource.OneOf(p.AllowableValues...)}}
		}
	}
	return in
}

// oemAction is an OEM action that a standard resource shows in Actions/Oem.
type oemAction struct {
	resourceURI pattern // as clients see it
	name        string
	target      string // what the action's URI has behind that of the resource
	inputs      []resource.Input
}

// visibleActions returns the OEM actions that standard resources show.
func visibleActions(d *dialect.Record) []oemAction {
	var out []oemAction
	for _, a := range d.OEM.Actions {
		if a.Hidden || isOEMResource(d, a.ResourceURI) {
			continue
		}
		s := oemAction{resourceURI: parsePattern(a.ResourceURI, d), name: a.Name, target: "/Actions/Oem/" + a.Name, inputs: actionInputs(a.Parameters)}
		switch a.Target {
		case "":
		case "/":
			s.target = ""
		default:
			s.target = a.Target
		}
		out = append(out, s)
	}
	return out
}

// showActions adds the vendor's actions to the body of the standard resource at the
// standard URI self.
func (f *presentation) showActions(o resource.Object, self string) {
	if len(f.actions) == 0 {
		return
	}
	uri, _ := mapURI(f.toClient, self)
	for i := range f.actions {
		a := &f.actions[i]
		if _, ok := a.resourceURI.match(uri, exactCase); !ok {
			continue
		}
		body := resource.Object{"target": self + a.target}
		resource.AddAllowableValues(body, a.inputs, resource.View{})
		objectIn(objectIn(o, "Actions"), "Oem")["#"+a.name] = body
	}
}

// objectIn returns the object that a property holds. It adds the property when it is
// missing or no object.
func objectIn(o resource.Object, name string) resource.Object {
	in, ok := o[name].(resource.Object)
	if !ok {
		in = resource.Object{}
		o[name] = in
	}
	return in
}

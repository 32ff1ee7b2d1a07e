package vendor

import (
	"context"
	"math"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// action is a vendor's action as a row has it. at is where it is posted to if
// the vendor does not say.
func (o *oem) action(a dialect.Action, at string) resource.Action {
	if a.Target != "" {
		at = a.Target
	}
	return resource.Action{
		Name: a.Name, TargetPath: at, Hidden: a.Hidden, Inputs: vendorInputs(a.Parameters), Slow: true,
		Apply: func(ctx context.Context, c resource.Call) (resource.Result, error) {
			return o.carryOut(ctx, &execution{c: c, v: c.View, effects: a.Effects, sent: resource.Normalize(c.Body), subject: a.Name, inner: resource.InnerWithoutLock})
		},
	}
}

// vendorInputs are the parameters of a vendor's action. A name that is a path
// is one within an object.
func vendorInputs(all []dialect.Parameter) []resource.Input {
	var out []resource.Input
	for _, of := range all {
		in := vendorInput(of)
		path := strings.Split(of.Name, "/")
		to := &out
		for _, name := range path[:len(path)-1] {
			i := resource.InputOf(*to, name)
			if i < 0 {
				*to = append(*to, resource.Input{Name: name, Kind: resource.Group})
				i = len(*to) - 1
			}
			(*to)[i].Required = (*to)[i].Required || of.Required
			to = &(*to)[i].Of
		}
		in.Name = path[len(path)-1]
		*to = append(*to, in)
	}
	return out
}

func vendorInput(of dialect.Parameter) resource.Input {
	in := resource.Input{Required: of.Required, Secret: of.Secret}
	switch of.Type {
	case dialect.StringParameter:
		in.Kind = resource.Text
		if len(of.AllowableValues) > 0 {
			in.Allowed = resource.OneOf(of.AllowableValues...)
		}
	case dialect.IntegerParameter:
		in.Kind, in.Min, in.Max = resource.Integer, math.MinInt64, math.MaxInt64
	case dialect.BooleanParameter:
		in.Kind = resource.Boolean
	case dialect.ObjectParameter:
		in.Kind = resource.AnyObject
	case dialect.ArrayParameter:
		in.Kind = resource.AnyArray
		if len(of.AllowableValues) > 0 {
			in = resource.Input{Required: of.Required, Secret: of.Secret, Kind: resource.Array, Of: []resource.Input{{Kind: resource.Text, Allowed: resource.OneOf(of.AllowableValues...)}}}
		}
	}
	return in
}

// shownAction is a vendor's action that a resource of the standard's shows.
type shownAction struct {
	on     pattern
	name   string
	target string // behind the address of the resource
	inputs []resource.Input
}

// shownActions are those of a record.
func shownActions(d *dialect.Record) []shownAction {
	own := map[string]bool{}
	for _, r := range d.OEM.Resources {
		own[patternText(PatternOf(r.URI, d))] = true
	}
	var out []shownAction
	for _, a := range d.OEM.Actions {
		on := PatternOf(a.ResourceURI, d)
		if a.Hidden || own[patternText(on)] {
			continue
		}
		s := shownAction{on: on, name: a.Name, target: "/Actions/Oem/" + a.Name, inputs: vendorInputs(a.Parameters)}
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

// showActions adds a vendor's actions to a resource of the standard's.
func (f *presentation) showActions(o resource.Object, self string) {
	if len(f.actions) == 0 {
		return
	}
	at, _ := mapURI(f.out, self)
	for i := range f.actions {
		a := &f.actions[i]
		if _, ok := a.on.Is(at, ExactCase); !ok {
			continue
		}
		shown := resource.Object{"target": self + a.target}
		resource.AddAllowableValues(shown, a.inputs, resource.View{})
		all, ok := o["Actions"].(resource.Object)
		if !ok {
			all = resource.Object{}
			o["Actions"] = all
		}
		oem, ok := all["Oem"].(resource.Object)
		if !ok {
			oem = resource.Object{}
			all["Oem"] = oem
		}
		oem["#"+a.name] = shown
	}
}

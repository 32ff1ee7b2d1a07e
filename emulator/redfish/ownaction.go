package redfish

import (
	"context"
	"math"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// action is a vendor's action as a row has it. at is where it is posted to if
// the vendor does not say.
func (o *oem) action(a dialect.Action, at string) action {
	if a.Target != "" {
		at = a.Target
	}
	return action{
		name: a.Name, at: at, hidden: a.Hidden, inputs: vendorInputs(a.Parameters), slow: true,
		apply: func(ctx context.Context, c operation) (reply, error) {
			return o.carryOut(ctx, &execution{c: c, v: c.view, effects: a.Effects, sent: normal(c.in), about: a.Name, inner: beside})
		},
	}
}

// vendorInputs are the parameters of a vendor's action. A name that is a path
// is one within an object.
func vendorInputs(all []dialect.Parameter) []input {
	var out []input
	for _, of := range all {
		in := vendorInput(of)
		path := strings.Split(of.Name, "/")
		to := &out
		for _, name := range path[:len(path)-1] {
			i := inputOf(*to, name)
			if i < 0 {
				*to = append(*to, input{name: name, kind: group})
				i = len(*to) - 1
			}
			(*to)[i].required = (*to)[i].required || of.Required
			to = &(*to)[i].of
		}
		in.name = path[len(path)-1]
		*to = append(*to, in)
	}
	return out
}

func vendorInput(of dialect.Parameter) input {
	in := input{required: of.Required, secret: of.Secret}
	switch of.Type {
	case dialect.StringParameter:
		in.kind = text
		if len(of.AllowableValues) > 0 {
			in.values = oneOf(of.AllowableValues...)
		}
	case dialect.IntegerParameter:
		in.kind, in.min, in.max = integer, math.MinInt64, math.MaxInt64
	case dialect.BooleanParameter:
		in.kind = boolean
	case dialect.ObjectParameter:
		in.kind = anyObject
	case dialect.ArrayParameter:
		in.kind = anyArray
		if len(of.AllowableValues) > 0 {
			in = input{required: of.Required, secret: of.Secret, kind: array, of: []input{{kind: text, values: oneOf(of.AllowableValues...)}}}
		}
	}
	return in
}

// shownAction is a vendor's action that a resource of the standard's shows.
type shownAction struct {
	on     pattern
	name   string
	target string // behind the address of the resource
	inputs []input
}

// shownActions are those of a record.
func shownActions(d *dialect.Record) []shownAction {
	own := map[string]bool{}
	for _, r := range d.OEM.Resources {
		own[patternText(patternOf(r.URI, d))] = true
	}
	var out []shownAction
	for _, a := range d.OEM.Actions {
		on := patternOf(a.ResourceURI, d)
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
func (f *face) showActions(o object, self string) {
	if len(f.acts) == 0 {
		return
	}
	at, _ := moved(f.out, self)
	for i := range f.acts {
		a := &f.acts[i]
		if _, ok := a.on.is(at, exact); !ok {
			continue
		}
		shown := object{"target": self + a.target}
		listing(shown, a.inputs, view{})
		all, ok := o["Actions"].(object)
		if !ok {
			all = object{}
			o["Actions"] = all
		}
		oem, ok := all["Oem"].(object)
		if !ok {
			oem = object{}
			all["Oem"] = oem
		}
		oem["#"+a.name] = shown
	}
}

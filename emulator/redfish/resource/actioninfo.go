package resource

import (
	"maps"
	"strings"
)

// Allowable is the annotation that lists what an input takes (DSP0266,
// "Allowable values").
const Allowable = "@Redfish.AllowableValues"

// listed are the values that an input takes as text, of an array those of its
// elements; nil when any may do or they are no text.
func (i *Input) listed(v View) []string {
	of := i
	if i.Kind == Array {
		of = &i.Of[0]
	}
	if of.Kind != Text || of.Allowed == nil {
		return nil
	}
	return of.Allowed(v)
}

// Annotate adds to a body what its properties take that can be written, where
// the body does not say so itself.
func Annotate(o Object, inputs []Input, v View) {
	for i := range inputs {
		in := &inputs[i]
		shown, there := o[in.Name]
		if !there {
			continue
		}
		if below, ok := shown.(Object); ok && in.Kind == Group {
			below = maps.Clone(below) // it may be another body's too
			Annotate(below, in.Of, v)
			o[in.Name] = below
			continue
		}
		if values := in.listed(v); values != nil && o[in.Name+Allowable] == nil {
			o[in.Name+Allowable] = values
		}
	}
}

// object is an action as its resource shows it, with what its parameters take
// both inline and by a link (DSP0266, "Actions property").
func (a *Action) object(v View) Object {
	o := Object{"target": v.URI + a.Target()}
	if len(a.Inputs) > 0 {
		o["@Redfish.ActionInfo"] = v.URI + "/" + a.verb() + "ActionInfo"
	}
	Listing(o, a.Inputs, v)
	if a.extraProperties != nil {
		maps.Copy(o, a.extraProperties(v))
	}
	return o
}

// Listing adds what parameters take, of groups in an object of their own.
func Listing(o Object, inputs []Input, v View) {
	for i := range inputs {
		in := &inputs[i]
		if !in.isParameter() {
			continue
		}
		if values := in.listed(v); values != nil {
			o[in.Name+Allowable] = values
		}
		if below := (Object{}); in.Kind == Group {
			if Listing(below, in.Of, v); len(below) > 0 {
				o[in.Name] = below
			}
		}
	}
}

// isParameter tells parameters from annotations, of which the standard has its
// own ways to tell.
func (i *Input) isParameter() bool { return !strings.HasPrefix(i.Name, "@") }

// dataTypes are the kinds as ActionInfo.ParameterTypes spells them.
var dataTypes = map[kind]string{
	Text: "String", Boolean: "Boolean", Integer: "Number", Number: "Number",
	Group: "Object", Link: "Object", Named: "Object", Free: "Object", AnyObject: "Object",
	AnyArray: "ObjectArray",
}

// Described is a parameter as ActionInfo.Parameters tells it.
func (i *Input) Described(v View) Object {
	p := Object{"Name": i.Name, "Required": i.Required, "DataType": dataTypes[i.Kind]}
	of := i
	if i.Kind == Array {
		of = &i.Of[0]
		p["DataType"] = dataTypes[of.Kind] + "Array"
		if of.Kind == Boolean { // of which the schema knows no array
			delete(p, "DataType")
		}
		p["ArraySizeMinimum"], p["ArraySizeMaximum"] = i.Min, i.most()
	}
	if of.Allowed != nil {
		p["AllowableValues"] = of.Allowed(v)
	}
	if of.Kind == Integer || of.Kind == Number && (of.Min != 0 || of.Max != 0) {
		p["MinimumValue"], p["MaximumValue"] = of.Min, of.Max
	}
	return p
}

// actionInfo is the resource that describes the parameters of an action.
func actionInfo(r *Row, a *Action) *Row {
	return &Row{
		URI: r.URI + "/" + a.verb() + "ActionInfo", Schema: "ActionInfo.v1_5_0", Privileges: managerPrivileges, DependsOn: r.DependsOn, Uncached: r.Uncached,
		When: func(v View) bool { return (r.When == nil || r.When(v)) && (a.when == nil || a.when(v)) },
		Read: func(v View) Object {
			var parameters []Object
			for i := range a.Inputs {
				if a.Inputs[i].isParameter() {
					parameters = append(parameters, a.Inputs[i].Described(v))
				}
			}
			return Object{"Name": a.verb() + " Action Info", "Parameters": parameters}
		},
	}
}

package redfish

import (
	"maps"
	"strings"
)

// allowable is the annotation that lists what an input takes (DSP0266,
// "Allowable values").
const allowable = "@Redfish.AllowableValues"

// listed are the values that an input takes as text, of an array those of its
// elements; nil when any may do or they are no text.
func (i *input) listed(v view) []string {
	of := i
	if i.kind == array {
		of = &i.of[0]
	}
	if of.kind != text || of.values == nil {
		return nil
	}
	return of.values(v)
}

// annotate adds to a body what its properties take that can be written, where
// the body does not say so itself.
func annotate(o object, inputs []input, v view) {
	for i := range inputs {
		in := &inputs[i]
		shown, there := o[in.name]
		if !there {
			continue
		}
		if below, ok := shown.(object); ok && in.kind == group {
			below = maps.Clone(below) // it may be another body's too
			annotate(below, in.of, v)
			o[in.name] = below
			continue
		}
		if values := in.listed(v); values != nil && o[in.name+allowable] == nil {
			o[in.name+allowable] = values
		}
	}
}

// object is an action as its resource shows it, with what its parameters take
// both inline and by a link (DSP0266, "Actions property").
func (a *action) object(v view) object {
	o := object{"target": v.uri + a.target()}
	if len(a.inputs) > 0 {
		o["@Redfish.ActionInfo"] = v.uri + "/" + a.verb() + "ActionInfo"
	}
	listing(o, a.inputs, v)
	if a.beside != nil {
		maps.Copy(o, a.beside(v))
	}
	return o
}

// listing adds what parameters take, of groups in an object of their own.
func listing(o object, inputs []input, v view) {
	for i := range inputs {
		in := &inputs[i]
		if !in.isParameter() {
			continue
		}
		if values := in.listed(v); values != nil {
			o[in.name+allowable] = values
		}
		if below := (object{}); in.kind == group {
			if listing(below, in.of, v); len(below) > 0 {
				o[in.name] = below
			}
		}
	}
}

// isParameter tells parameters from annotations, of which the standard has its
// own ways to tell.
func (i *input) isParameter() bool { return !strings.HasPrefix(i.name, "@") }

// dataTypes are the kinds as ActionInfo.ParameterTypes spells them.
var dataTypes = map[kind]string{
	text: "String", boolean: "Boolean", integer: "Number", number: "Number",
	group: "Object", link: "Object", named: "Object", free: "Object", anyObject: "Object",
	anyArray: "ObjectArray",
}

// described is a parameter as ActionInfo.Parameters tells it.
func (i *input) described(v view) object {
	p := object{"Name": i.name, "Required": i.required, "DataType": dataTypes[i.kind]}
	of := i
	if i.kind == array {
		of = &i.of[0]
		p["DataType"] = dataTypes[of.kind] + "Array"
		if of.kind == boolean { // of which the schema knows no array
			delete(p, "DataType")
		}
		p["ArraySizeMinimum"], p["ArraySizeMaximum"] = i.min, i.most()
	}
	if of.values != nil {
		p["AllowableValues"] = of.values(v)
	}
	if of.kind == integer || of.kind == number && (of.min != 0 || of.max != 0) {
		p["MinimumValue"], p["MaximumValue"] = of.min, of.max
	}
	return p
}

// actionInfo is the resource that describes the parameters of an action.
func actionInfo(r *resource, a *action) *resource {
	return &resource{
		uri: r.uri + "/" + a.verb() + "ActionInfo", schema: "ActionInfo.v1_5_0", needs: ofManager, shows: r.shows, fresh: r.fresh,
		when: func(v view) bool { return (r.when == nil || r.when(v)) && (a.when == nil || a.when(v)) },
		read: func(v view) object {
			var parameters []object
			for i := range a.inputs {
				if a.inputs[i].isParameter() {
					parameters = append(parameters, a.inputs[i].described(v))
				}
			}
			return object{"Name": a.verb() + " Action Info", "Parameters": parameters}
		},
	}
}

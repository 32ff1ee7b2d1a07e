package resource

import (
	"maps"
	"slices"
	"strings"
)

// AllowableValues is the suffix of the annotation that lists the values of a
// property or parameter (DSP0266, "Allowable values").
const AllowableValues = "@Redfish.AllowableValues"

// allowableValues returns the strings that an input, or each element of an
// array, accepts. It returns nil when any string is valid or the input is not a
// string.
func (i *Input) allowableValues(v View) []string {
	of := i
	if i.Kind == Array {
		of = &i.Of[0]
	}
	if of.Kind != Text || of.Allowed == nil {
		return nil
	}
	return of.Allowed(v)
}

// annotateAllowableValues adds @Redfish.AllowableValues to the writable
// properties in a body that do not have it.
func annotateAllowableValues(o Object, inputs []Input, v View) {
	for i := range inputs {
		in := &inputs[i]
		shown, there := o[in.Name]
		if !there {
			continue
		}
		if below, ok := shown.(Object); ok && in.Kind == Group {
			below = maps.Clone(below) // other bodies may share it
			annotateAllowableValues(below, in.Of, v)
			o[in.Name] = below
			continue
		}
		if values := in.allowableValues(v); values != nil && o[in.Name+AllowableValues] == nil {
			o[in.Name+AllowableValues] = values
		}
	}
}

// WriteableProperties is the annotation that lists the properties that a PATCH may
// change, of a resource or of an object in it. In an array of objects only the first
// has it (RedfishExtensions, WriteableProperties).
const WriteableProperties = "@Redfish.WriteableProperties"

// annotateWriteable adds WriteableProperties to a body, and to the objects in it that
// have writable properties. It lists those that the body shows; others has names that the
// body will get.
func annotateWriteable(o Object, inputs []Input, others []string) {
	names := []string{}
	for i := range inputs {
		in := &inputs[i]
		shown, there := o[in.Name]
		if !there && !slices.Contains(others, in.Name) || !in.isParameter() {
			continue
		}
		names = append(names, in.Name)
		switch {
		case in.Kind == Group:
			if below, ok := shown.(Object); ok {
				o[in.Name] = withWriteable(below, in.Of)
			}
		case in.Kind == Array && in.Of[0].Kind == Group:
			if all := Elements(shown); len(all) > 0 {
				if first, ok := all[0].(Object); ok {
					all = slices.Clone(all)
					all[0] = withWriteable(first, in.Of[0].Of)
					o[in.Name] = all
				}
			}
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		o[WriteableProperties] = names
	}
}

// withWriteable returns a copy of an object, which other bodies may share, with
// WriteableProperties.
func withWriteable(o Object, inputs []Input) Object {
	o = maps.Clone(o)
	annotateWriteable(o, inputs, nil)
	return o
}

// object returns the action as the Actions property of its resource shows it:
// the allowable values of its parameters inline, and the link to its ActionInfo
// (DSP0266, "Actions property").
func (a *Action) object(v View) Object {
	o := Object{"target": v.URI + a.Target()}
	if len(a.Inputs) > 0 {
		o["@Redfish.ActionInfo"] = v.URI + "/" + a.verb() + "ActionInfo"
	}
	AddAllowableValues(o, a.Inputs, v)
	if a.extraProperties != nil {
		maps.Copy(o, a.extraProperties(v))
	}
	return o
}

// AddAllowableValues adds the allowable values of parameters to an object; those
// of a group go to an object below it.
func AddAllowableValues(o Object, inputs []Input, v View) {
	for i := range inputs {
		in := &inputs[i]
		if !in.isParameter() {
			continue
		}
		if values := in.allowableValues(v); values != nil {
			o[in.Name+AllowableValues] = values
		}
		if below := (Object{}); in.Kind == Group {
			if AddAllowableValues(below, in.Of, v); len(below) > 0 {
				o[in.Name] = below
			}
		}
	}
}

// isParameter reports whether an input is a parameter and not an annotation;
// ActionInfo does not describe annotations.
func (i *Input) isParameter() bool { return !strings.HasPrefix(i.Name, "@") }

// dataTypes maps input kinds to the values of ActionInfo.ParameterTypes.
var dataTypes = map[kind]string{
	Text: "String", Boolean: "Boolean", Integer: "Number", Number: "Number",
	Group: "Object", Link: "Object", StringMap: "Object", ScalarMap: "Object", AnyObject: "Object",
	AnyArray: "ObjectArray",
}

// ParameterInfo returns the input as ActionInfo.Parameters describes it.
func (i *Input) ParameterInfo(v View) Object {
	p := Object{"Name": i.Name, "Required": i.Required, "DataType": dataTypes[i.Kind]}
	of := i
	if i.Kind == Array {
		of = &i.Of[0]
		p["DataType"] = dataTypes[of.Kind] + "Array"
		if of.Kind == Boolean { // the schema has no BooleanArray
			delete(p, "DataType")
		}
		p["ArraySizeMinimum"], p["ArraySizeMaximum"] = i.Min, i.maxElements()
	}
	if values := i.allowableValues(v); values != nil { // only strings have AllowableValues (DSP2046, ActionInfo.AllowableValues)
		p["AllowableValues"] = values
	}
	if of.Kind == Integer || of.Kind == Number && (of.Min != 0 || of.Max != 0) {
		p["MinimumValue"], p["MaximumValue"] = of.Min, of.Max
	}
	return p
}

// actionInfo returns the row of the ActionInfo resource that describes the
// parameters of an action.
func actionInfo(r *Row, a *Action) *Row {
	return &Row{
		URI: r.URI + "/" + a.verb() + "ActionInfo", Schema: "ActionInfo.v1_5_0", Privileges: managerPrivileges, DependsOn: r.DependsOn, Uncached: r.Uncached,
		When: func(v View) bool { return (r.When == nil || r.When(v)) && (a.when == nil || a.when(v)) },
		Read: func(v View) Object {
			var parameters []Object
			for i := range a.Inputs {
				if a.Inputs[i].isParameter() {
					parameters = append(parameters, a.Inputs[i].ParameterInfo(v))
				}
			}
			return Object{"Name": a.verb() + " Action Info", "Parameters": parameters}
		},
	}
}

package redfish

// object is an action as its resource shows it, with what its parameters take
// both inline and by a link (DSP0266, "Actions property").
func (a *action) object(v view) object {
	o := object{"target": v.uri + "/Actions/" + a.name}
	if len(a.inputs) > 0 {
		o["@Redfish.ActionInfo"] = v.uri + "/" + a.verb() + "ActionInfo"
	}
	for i := range a.inputs {
		if in := &a.inputs[i]; in.kind == text && in.values != nil {
			o[in.name+"@Redfish.AllowableValues"] = in.values(v)
		}
	}
	return o
}

// dataTypes are the kinds as ActionInfo.ParameterTypes spells them.
var dataTypes = map[kind]string{
	text: "String", boolean: "Boolean", integer: "Number", group: "Object", number: "Number", link: "Object", named: "Object", free: "Object",
}

func (i *input) dataType() string {
	if i.kind == array {
		return dataTypes[i.of[0].kind] + "Array"
	}
	return dataTypes[i.kind]
}

// actionInfo is the resource that describes the parameters of an action.
func actionInfo(r *resource, a *action) *resource {
	return &resource{
		uri: r.uri + "/" + a.verb() + "ActionInfo", schema: "ActionInfo.v1_5_0", needs: ofManager, shows: r.shows,
		read: func(v view) object {
			var parameters []object
			for i := range a.inputs {
				in := &a.inputs[i]
				p := object{"Name": in.name, "Required": in.required, "DataType": in.dataType()}
				if in.values != nil {
					p["AllowableValues"] = in.values(v)
				}
				if in.kind == integer {
					p["MinimumValue"], p["MaximumValue"] = in.min, in.max
				}
				parameters = append(parameters, p)
			}
			return object{"Name": a.verb() + " Action Info", "Parameters": parameters}
		},
	}
}

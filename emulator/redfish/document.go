package redfish

import "slices"

// document is a JSON object that a client sent.
type document struct {
	names  []string        // in order, each once
	twice  map[string]bool // those that were sent more than once
	values map[string]any
}

// redacted is the document as a job remembers it: without what is secret.
func (in document) redacted(m *match) string {
	var inputs []input
	switch {
	case m.action != nil:
		inputs = m.action.inputs
	case m.patch != nil:
		inputs = m.patch.inputs
	case m.create != nil:
		inputs = m.create.inputs
	}
	if len(in.names) == 0 {
		return ""
	}
	return string(encode(in.without(inputs)))
}

// without is the document but for the inputs that are secret, and for what no
// input takes.
func (in document) without(inputs []input) object {
	o := object{}
	for _, name := range in.names {
		i := slices.IndexFunc(inputs, func(i input) bool { return i.name == name })
		if i >= 0 && !inputs[i].secret {
			o[name] = inputs[i].told(in.values[name])
		}
	}
	return o
}

// told is a value as a job remembers it.
func (i *input) told(value any) any {
	switch x := value.(type) {
	case document:
		if i.kind == link {
			return object{"@odata.id": x.values["@odata.id"]}
		}
		if i.kind == named || i.kind == free {
			o := object{}
			for _, name := range x.names {
				o[name] = echo(x.values[name])
			}
			return o
		}
		return x.without(i.of)
	case []any:
		all := []any{}
		for _, y := range x {
			if len(i.of) == 1 {
				all = append(all, i.of[0].told(y))
			}
		}
		return all
	case string:
		return withoutPassword(x)
	}
	return value
}

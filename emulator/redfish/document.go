package redfish

import "slices"

// document is a JSON object that a client sent.
type document struct {
	names  []string        // in order, each once
	twice  map[string]bool // those that were sent more than once
	values map[string]any
}

// redacted is the document as a job remembers it, and whether something secret
// was taken out.
func (in document) redacted(m *match) (body string, hidden bool) {
	var inputs []input
	switch {
	case m.action != nil:
		inputs = m.action.inputs
	case m.patch != nil:
		inputs = m.patch.inputs
	case m.create != nil:
		inputs = m.create.inputs
	case m.upload != nil:
		inputs = m.upload.inputs
	}
	if len(in.names) == 0 {
		return "", false
	}
	less := in.without(inputs, &hidden)
	return string(encode(less)), hidden
}

// without is the document but for the inputs that are secret, and for what no
// input takes.
func (in document) without(inputs []input, hidden *bool) object {
	o := object{}
	for _, name := range in.names {
		i := slices.IndexFunc(inputs, func(i input) bool { return i.name == name })
		switch {
		case i < 0:
		case inputs[i].secret:
			*hidden = true
		default:
			o[name] = inputs[i].told(in.values[name], hidden)
		}
	}
	return o
}

// told is a value as a job remembers it.
func (i *input) told(value any, hidden *bool) any {
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
		return x.without(i.of, hidden)
	case []any:
		all := []any{}
		for _, y := range x {
			if len(i.of) == 1 {
				all = append(all, i.of[0].told(y, hidden))
			}
		}
		return all
	case string:
		less := withoutPassword(x)
		*hidden = *hidden || less != x
		return less
	}
	return value
}

package redfish

import "maps"

// fragment is some properties of a body that follow from some parts of the state
// alone.
type fragment struct {
	in    string // the property whose object has them; "": the body itself. Fragments of one property stand one after the other
	shows shows
	of    func(v view) object
}

// addFragments adds the properties of all fragments to the rest of a body.
func (m *match) addFragments(o object, v view) {
	for _, f := range m.fragments {
		below := o
		if f.in != "" {
			if o[f.in] == nil {
				o[f.in] = object{}
			}
			below = o[f.in].(object)
		}
		maps.Copy(below, f.of(v))
	}
}

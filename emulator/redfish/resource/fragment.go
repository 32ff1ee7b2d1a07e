package resource

import "maps"

// fragment is some properties of a body that follow from some parts of the state
// alone.
type fragment struct {
	In    string // the property whose object has them; "": the body itself. Fragments of one property stand one after the other
	Shows Parts
	Of    func(v View) Object
}

// addFragments adds the properties of all fragments to the rest of a body.
func (m *Match) addFragments(o Object, v View) {
	for _, f := range m.Fragments {
		below := o
		if f.In != "" {
			if o[f.In] == nil {
				o[f.In] = Object{}
			}
			below = o[f.In].(Object)
		}
		maps.Copy(below, f.Of(v))
	}
}

package resource

import "maps"

// fragment is a group of properties of a body that depends on some parts of the
// state only. It is rendered separately from the rest.
type fragment struct {
	In    string // the object property that holds them; "": the body itself. Fragments of one property are adjacent
	Shows Parts
	Of    func(v View) Object
}

// addFragments adds the properties of all fragments to a body.
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

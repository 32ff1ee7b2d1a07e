package resource

import "maps"

// fragment is a group of properties that package render encodes on its own, because
// it depends on few parts of the state.
type fragment struct {
	In         string              // the object property that contains the group; "": the body itself. Fragments of one property are adjacent
	DependsOn  Parts               // the parts of the state that the properties depend on
	Properties func(v View) Object // returns the properties
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
		maps.Copy(below, f.Properties(v))
	}
}

// fragmentNames returns the names of the properties that fragments add to the body.
func (m *Match) fragmentNames(v View) []string {
	var names []string
	for _, f := range m.Fragments {
		if f.In != "" {
			names = append(names, f.In)
			continue
		}
		for name := range f.Properties(v) {
			names = append(names, name)
		}
	}
	return names
}

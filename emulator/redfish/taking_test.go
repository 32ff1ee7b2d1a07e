package redfish

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is taken from a resource without the rest of it is what the whole shows.
func TestBriefPropertiesAreThoseOfTheWhole(t *testing.T) {
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			h := newHost(t)
			state.make(t, h)
			s, at, seen := newService(t, h), look(h), 0
			for i := range s.tree {
				r := &s.tree[i]
				if r.brief == nil {
					continue
				}
				for _, m := range s.instances(r, at) {
					whole := decode(encode(m.object(m.view(at))))
					for name, of := range r.brief {
						seen++
						if diff := cmp.Diff(whole[name], decode(encode(object{name: of(m.view(at))}))[name]); diff != "" {
							t.Errorf("%s: %s: the whole, and alone: %s", m.uri, name, diff)
						}
					}
				}
			}
			if seen < 5 {
				t.Errorf("%d properties were compared, want 5 at least", seen)
			}
		})
	}
}

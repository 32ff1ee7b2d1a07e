package firmware

import "testing"

// A dependency may make an attribute immutable (DSP2046, MapToProperty).
func TestADependencyMakesAnAttributeImmutable(t *testing.T) {
	r, err := ParseRegistry("r.yaml", []byte(broken("property: ReadOnly, value: true", "property: Immutable, value: true")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"a": "", "b": "firmware: attribute Count: set by other values: Mode"} {
		f, err := New(&Model{Read: held(r)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Apply(origin, SetAttributes{Settings: set("Count", 4, "Mode", mode)})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("with Mode %s: Apply() = %q, want %q", mode, got, want)
		}
	}
}

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecodedLayerIsThatOfDecode compares a layer that is decoded again with the plain way, after
// its caller has changed what it got, and after the layer has changed.
func TestDecodedLayerIsThatOfDecode(t *testing.T) {
	var d decoded
	for _, tree := range []Tree{
		{"etc": {Mode: 0o755 | 1<<31}, "etc/a": File(0o644, "1"), "etc/gone": {Removed: true}},
		{"etc/a": File(0o600, "2"), "etc/b": File(0o644, "3")},
		{},
	} {
		layer, err := tree.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want, err := Decode(layer)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			got, err := d.decode(layer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decoded layer (-plain +kept):\n%s", diff)
			}
			delete(got, "etc/a")
			got["etc/new"] = File(0o644, "new")
		}
	}
	if _, err := d.decode([]byte("damaged")); err == nil {
		t.Error("a damaged layer is decoded")
	}
}

// TestUsedCompressorGivesTheSameBytes encodes trees with a compressor that has encoded another.
func TestUsedCompressorGivesTheSameBytes(t *testing.T) {
	encode := func(tree Tree) string {
		b, err := tree.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	a, b := Tree{"a": File(0o644, "a")}, Tree{"b": File(0o600, "bb")}
	first := encode(a)
	for range 5 {
		encode(b)
		if got := encode(a); got != first {
			t.Fatalf("Encode = %q, want %q as before", got, first)
		}
	}
}

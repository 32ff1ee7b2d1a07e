package steps

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestMissingNamesTheFirstDifference(t *testing.T) {
	const object = "{a: {b: 1, c: [x, {z: true}]}, d: text}"
	for _, tt := range []struct{ want, lacks string }{
		{"{}", ""},
		{"{d: text}", ""},
		{object, ""},
		{"{a: {c: [x, {}]}}", ""},
		{"{a: {b: 2}}", ".a.b is 1, want 2"},
		{"{a: {e: 1}}", ".a.e is missing"},
		{"{a: {c: [x]}}", ".a.c is [x map[z:true]], want [x]"},
		{"{a: {c: [x, {z: false}]}}", ".a.c[1].z is true, want false"},
		{"{a: {c: {}}}", ".a.c is [x map[z:true]], not an object"},
		{"{d: [text]}", ".d is text, want [text]"},
	} {
		if lacks := missing("", parsed(t, tt.want), parsed(t, object)); lacks != tt.lacks {
			t.Errorf("missing(%s) = %q, want %q", tt.want, lacks, tt.lacks)
		}
	}
}

func parsed(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

package resource

import (
	"slices"
	"testing"
)

// A part is shown by one resource, never by the collection that it is in.
func TestOriginsOfConditionAreResources(t *testing.T) {
	rows := Rows()
	for part, pattern := range originPatterns {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.URI == pattern })
		if i < 0 || rows[i].memberVariable != "" || rows[i].Schema == "" {
			t.Errorf("%s: %s is not the row of a resource", part, pattern)
		}
	}
}

package vendor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Bodies that are shown at the same time share their lists with each other, and with tables.
func TestMapTextsLeavesListsAsTheyAre(t *testing.T) {
	texts, values := []string{"On", "/a", "Off", "/a/b"}, []any{"/a", 1, []string{"/a"}}
	o := resource.Object{"Texts": texts, "Values": values, "Plain": []string{"On"}, "Text": "/a"}
	got := MapTexts(o, func(text string) string { return strings.ReplaceAll(text, "/a", "/x") })
	want := resource.Object{"Texts": []string{"On", "/x", "Off", "/x/b"}, "Values": []any{"/x", 1, []string{"/x"}}, "Plain": []string{"On"}, "Text": "/x"}
	if d := cmp.Diff(any(want), got); d != "" {
		t.Errorf("MapTexts (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"On", "/a", "Off", "/a/b"}, texts); d != "" {
		t.Errorf("the list of texts has changed (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]any{"/a", 1, []string{"/a"}}, values); d != "" {
		t.Errorf("the list of values has changed (-want +got):\n%s", d)
	}
}

package statements

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestStatementNumbersAreFoundInFeaturesAndTests(t *testing.T) {
	got := newCredits()
	tree := os.DirFS("testdata")
	for _, read := range []func() error{
		func() error { return got.readFeature(tree, "some.feature") },
		func() error { return got.readTest(tree, "some_test.go.txt") },
	} {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	want := Credits{
		Scenarios: map[string][]string{
			"B-01": {"First (some.feature)", "Second (some.feature)", "Third (some.feature)"},
			"B-02": {"First (some.feature)"},
			"B-05": {"First (some.feature)", "Second (some.feature)", "Third (some.feature)"},
			"A7":   {"First (some.feature)"},
			"B-06": {"Second (some.feature)"},
			"B-49": {"Second (some.feature)"},
			"B-50": {"Second (some.feature)"},
			"I42":  {"Second (some.feature)"},
			"Q17":  {"Third (some.feature)"},
			"B-07": {"Third (some.feature)"},
		},
		Tests: map[string][]string{
			"B-13": {". TestOne"}, "B-110": {". TestOne"}, "B-112": {". TestOne"}, "B-20": {". some_test.go.txt"},
			"A4": {". TestOne"}, "tool-3": {". TestOne"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("credits (-want +got):\n%s", diff)
	}
}

func TestRangeOfStatementsIsRefusedWithFileAndLine(t *testing.T) {
	tree := fstest.MapFS{
		"a_test.go": {Data: []byte("package a\n\n// B-20 and B-21, but not B-30 to\n// B-32 nor B-40–49.\n")},
		"a.feature": {Data: []byte("Feature: B-20 to 25\n")},
	}
	got := newCredits()
	for name, tt := range map[string]struct {
		read func(fs.FS, string) error
		want string
	}{
		"a_test.go": {got.readTest, "a_test.go:3: \"B-30 to B-32\" is a range: name each statement that is shown by its number\n" +
			"a_test.go:4: \"B-40–49\" is a range: name each statement that is shown by its number"},
		"a.feature": {got.readFeature, `a.feature:1: "B-20 to 25" is a range: name each statement that is shown by its number`},
	} {
		if err := tt.read(tree, name); err == nil || err.Error() != tt.want {
			t.Errorf("%s: error = %v\nwant %s", name, err, tt.want)
		}
	}
	if _, err := ReadCredits(tree); err == nil {
		t.Error("ReadCredits returned no error")
	}
	if len(got.Tests)+len(got.Scenarios) > 0 {
		t.Errorf("credits %v, want none", got)
	}
}

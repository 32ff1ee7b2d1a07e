package cloudinit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// mergeCase is a case for testdata/merge.py: parts are a text and a header each.
type mergeCase struct {
	Parts  [][2]string `json:"parts"`
	Vendor string      `json:"vendor"`
}

// merged returns what parts of cloud-configs are together.
func (c mergeCase) merged(t *testing.T) (any, []string) {
	t.Helper()
	r := Result{}
	d, vendor := document{}, document{}
	for _, p := range c.Parts {
		d.merge(part{label: "part", content: []byte(p[0]), merge: p[1]}, &r)
	}
	vendor.merge(part{label: "vendor", content: []byte(c.Vendor)}, &r)
	d.below(vendor)
	v, err := new(reader).yaml(d.node(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return v, r.Ignored
}

func TestCloudConfigsAreMergedAsByCloudInit(t *testing.T) {
	python := prerequisites.Need(t, "cloud-init 22.4.2")
	var cases []mergeCase
	const base = "a: 1\nl: [1, [2], {x: 1}, s]\nd: {k: 1, e: {f: 1}, l: [1], t: ab}\ns: one\nn: 5\n"
	const more = "a: 2\nl: [9, [8, 7], {y: 2}, t, u]\nd: {k: 2, e: {f: 2, g: 3}, l: [2], t: cd, z: 1}\ns: two\nn: [1]\nq: 1\n"
	for _, how := range []string{
		"", "list(append)+dict(recurse_array,no_replace)", "list(append)+dict(no_replace,recurse_list)+str()", "dict(replace)+list(append)",
		"dict(recurse_array)+list(prepend)", "dict(recurse_array,recurse_str)+list(replace,recurse_array,recurse_dict,recurse_str)+str(append)",
		"list()+dict()+str()", "dict(recurse_array)+list(no_replace)", "list(append)", "str(append)", "dict(allow_delete)", "dict(replace,allow_delete)",
		" Dict( Recurse-Array )+LIST(append)", "dict(recurse_str)+str(append)", "nope(x)", "dict", "dict(recurse_array)+list(replace,recurse_dict)",
	} {
		cases = append(cases,
			mergeCase{Parts: [][2]string{{base, ""}, {more, how}}},
			mergeCase{Parts: [][2]string{{base, ""}, {"merge_how: '" + how + "'\n" + more, ""}}},
			mergeCase{Parts: [][2]string{{base, ""}, {"merge_type: '" + how + "'\nd: null\nl: null\ns: null\n", ""}}},
		)
	}
	cases = append(cases,
		mergeCase{Parts: [][2]string{{base, ""}, {"merge_how: [{name: list, settings: [append]}, {name: dict, settings: [recurse_array]}]\n" + more, ""}}},
		mergeCase{Parts: [][2]string{{base, ""}, {"merge_how: [[list, append], [dict, recurse_array]]\n" + more, "dict(replace)"}}},
		mergeCase{Parts: [][2]string{{base, ""}, {"[1]", ""}, {"", ""}, {"x: 1", ""}}},
		mergeCase{Parts: [][2]string{{base, ""}}, Vendor: more},
		mergeCase{Parts: [][2]string{{more, ""}}, Vendor: base + "v: {w: 1}\n"},
	)
	question, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/merge.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(question), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseJSON(answer)
	if err != nil {
		t.Fatal(err)
	}
	for n, w := range want.([]any) {
		got, ignored := cases[n].merged(t)
		if d := cmp.Diff(got, w); d != "" {
			t.Errorf("%q (-got +want):\n%s%q", cases[n], d, ignored)
		}
	}
}

// A way to merge that there is not loses its part, and says so.
func TestMergeErrors(t *testing.T) {
	for how, want := range map[string]string{
		"merge_how: nope(x)":                     `merge_how: there is no way to merge called "nope"`,
		"merge_how: dict":                        `"dict" is no way to merge: write one such as list(append)`,
		"merge_type: 5":                          "merge_type: line 1: it is no text or list",
		"merge_how: [{settings: [append]}]":      "merge_how: line 1: it has no name",
		"merge_how: [[]]":                        "merge_how: line 1: it has no name",
		"merge_how: [{name: x, settings: null}]": `there is no way to merge called "x"`,
	} {
		_, ignored := mergeCase{Parts: [][2]string{{how + "\na: 1", ""}}}.merged(t)
		if len(ignored) != 1 || !strings.Contains(ignored[0], want) {
			t.Errorf("%s: ignored %q, want %q", how, ignored, want)
		}
	}
}

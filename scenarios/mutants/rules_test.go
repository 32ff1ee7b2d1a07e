package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const definitions = `# A definition and a policy.
kind: CustomResourceDefinition
spec:
  schema:
    properties:
      spec:
        x-kubernetes-validations:
        - rule: self.a == oldSelf.a
          message: a is kept
        - message: b is
            small
          rule: >-
            self.b
            < 3

        # A comment.
        - rule: "true || self.c"
      size:
        x-kubernetes-validations:
        - {rule: self > 0}
---
kind: ValidatingAdmissionPolicy
spec:
  variables:
  - name: d
    expression: object.d
  validations:
  - expression: variables.d
    reason: Forbidden
`

// block are the definitions without the rule in braces.
var block = strings.Replace(definitions, "- {rule: self > 0}", "- rule: self > 0", 1)

func TestFindRules(t *testing.T) {
	found, err := findRules("d.yaml", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.String())
	}
	want := []string{
		"d.yaml:8: rule self.a == oldSelf.a is left out",
		"d.yaml:12: rule self.b < 3 is left out",
		"d.yaml:17: rule true || self.c is left out",
		"d.yaml:20: rule self > 0 is left out",
		"d.yaml:28: expression variables.d is left out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findRules (-want +got):\n%s", diff)
	}
	if _, err := findRules("d.yaml", []byte(definitions)); err == nil || !strings.Contains(err.Error(), "d.yaml:20: a rule on one line with braces") {
		t.Errorf("findRules of a rule in braces: %v", err)
	}
	if _, err := findRules("d.yaml", []byte("a: [")); err == nil || !strings.HasPrefix(err.Error(), "d.yaml: ") {
		t.Errorf("findRules of no YAML: %v", err)
	}
}

// All objects fulfil a rule that is left out; all else stays, in its line.
func TestRuleThatIsLeftOutIsTrue(t *testing.T) {
	found, err := findRules("d.yaml", []byte(block))
	if err != nil || len(found) < 2 {
		t.Fatal(found, err)
	}
	want := strings.Replace(block, "          rule: >-\n            self.b\n            < 3\n\n        # A comment.\n", "          rule: \"true\"\n\n\n\n        # A comment.\n", 1)
	if diff := cmp.Diff(want, string(found[1].Apply([]byte(block)))); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	again, err := findRules("d.yaml", []byte(want))
	if err != nil || len(again) != len(found) || again[1].Change != "rule true is left out" || again[2].Line != found[2].Line {
		t.Errorf("the mutated file has the rules %v, %v", again, err)
	}
}

// The files of rules are in programs by go:embed, which takes them from the overlay.
func TestRunLeavesOutRules(t *testing.T) {
	files := map[string]string{
		"go.mod":         module["go.mod"],
		"b/b.go":         "package b\n\nimport _ \"embed\"\n\n//go:embed rules/b.yaml\nvar Rules string\n\nfunc Use() int {\n\tn := 0\n\tn++\n\treturn n\n}\n",
		"b/b_test.go":    "package b\n\nimport (\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestRules(t *testing.T) {\n\tUse()\n\tif !strings.Contains(Rules, \"self > 2\") {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
		"b/rules/b.yaml": "x-kubernetes-validations:\n- rule: self > 1\n- rule: self > 2\n",
	}
	f := Family{Name: "b", Packages: []string{"./b"}, Rules: []string{"b/rules"}, RuleSuites: []string{"./b"}}
	var out strings.Builder
	err := run(t.Context(), write(t, files), config{families: []Family{f}, seed: "7", count: 40}, limit, &out)
	if err == nil || err.Error() != "2 of 3 mutations survived; 2 of 40 may" {
		t.Errorf("run: %v", err)
	}
	for _, want := range []string{
		"family b: 1 mutations of covered code\n",
		"family b: 2 rules\n",
		"survived  b/rules/b.yaml:2: rule self > 1 is left out\n",
		"seen      b/rules/b.yaml:3: rule self > 2 is left out (by b: TestRules)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &out)
		}
	}
}

func TestMixDrawsRules(t *testing.T) {
	all := func(kind string, n int) (out []candidate) {
		for range n {
			out = append(out, candidate{Mutation: Mutation{Change: kind}})
		}
		return out
	}
	for _, tt := range []struct {
		code, rules int
		want        string
	}{
		{9, 2, "ccccrccccrc"}, {2, 3, "ccrrr"}, {3, 0, "ccc"}, {0, 2, "rr"},
	} {
		var got strings.Builder
		for _, c := range mix(all("c", tt.code), all("r", tt.rules)) {
			got.WriteString(c.Change)
		}
		if got.String() != tt.want {
			t.Errorf("mix of %d and %d = %s, want %s", tt.code, tt.rules, &got, tt.want)
		}
	}
}

// Each rule of the families can be left out.
func TestFamiliesHaveRules(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	te := &tester{root: root}
	for _, f := range families {
		found, err := te.rules(f, "")
		if err != nil || (len(found) == 0) != (len(f.Rules) == 0) {
			t.Errorf("family %s: %d rules, %v", f.Name, len(found), err)
		}
		for _, c := range found {
			src, err := os.ReadFile(filepath.Join(root, c.File))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := findRules(c.File, c.Apply(src)); err != nil || len(again) == 0 {
				t.Errorf("%v: the mutated file: %v", c, err)
			}
		}
	}
}

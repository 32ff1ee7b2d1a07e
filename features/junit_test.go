package features

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// junitSchema repeats the rules for JUnit of Jenkins' xUnit plugin (junit-10.xsd), which others
// follow, for the elements that the runner writes: the elements in one, in this order, and its
// attributes. It was written after the schema by hand.
var junitSchema = map[string]struct {
	within, required, optional []string
}{
	"testsuites": {within: []string{"testsuite"}, optional: []string{"name", "time", "tests", "failures", "disabled", "errors"}},
	"testsuite": {within: []string{"properties", "testcase", "system-out", "system-err"}, required: []string{"name", "tests"},
		optional: []string{"failures", "errors", "group", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"}},
	"testcase": {within: []string{"skipped", "error", "failure", "system-out", "system-err"}, required: []string{"name"},
		optional: []string{"assertions", "time", "classname", "status", "class", "file", "line", "log", "group", "url"}},
	"skipped":    {optional: []string{"type", "message"}},
	"error":      {optional: []string{"type", "message"}},
	"failure":    {optional: []string{"type", "message"}},
	"system-out": {},
}

// junitTypes are the types of attributes.
var junitTypes = map[string]*regexp.Regexp{
	"tests": regexp.MustCompile(`^\d+$`), "failures": regexp.MustCompile(`^\d+$`), "errors": regexp.MustCompile(`^\d+$`), "skipped": regexp.MustCompile(`^\d+$`),
	"time": regexp.MustCompile(`^(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?$`),
}

// checkJUnit returns how a document deviates from the schema, and from what CI systems make of
// a test: it has a class, a name, and at most one result.
func checkJUnit(document []byte) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	type open struct {
		name   string
		last   int // index of the last element in the schema's order
		result int
	}
	var path []open
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return problems
		}
		if err != nil {
			return append(problems, err.Error())
		}
		switch x := token.(type) {
		case xml.StartElement:
			name := x.Name.Local
			rule, known := junitSchema[name]
			if !known || len(path) == 0 && name != "testsuites" {
				report("the element %s", name)
			}
			if len(path) > 0 {
				in := &path[len(path)-1]
				at := slices.Index(junitSchema[in.name].within, name)
				if at < in.last {
					report("%s in %s, or its order", name, in.name)
				}
				in.last = at
				if in.name == "testcase" && name != "system-out" {
					in.result++
				}
			}
			have := map[string]string{}
			for _, a := range x.Attr {
				have[a.Name.Local] = a.Value
			}
			required := rule.required
			if name == "testcase" {
				required = []string{"name", "classname"}
			}
			for _, a := range required {
				if have[a] == "" {
					report("%s has no %s", name, a)
				}
			}
			for _, a := range slices.Sorted(maps.Keys(have)) {
				if !slices.Contains(rule.required, a) && !slices.Contains(rule.optional, a) {
					report("%s has the attribute %s", name, a)
				}
				if is := junitTypes[a]; is != nil && !is.MatchString(have[a]) {
					report("%s of %s is %q", a, name, have[a])
				}
			}
			path = append(path, open{name: name})
		case xml.EndElement:
			if in := path[len(path)-1]; in.result > 1 {
				report("a testcase has %d results", in.result)
			}
			path = path[:len(path)-1]
		}
	}
}

const ranAllWays = `[
 {"uri": "./ours/a.feature", "name": "First", "elements": [
  {"name": "Good", "steps": [{"keyword": "Given ", "name": "a lab", "result": {"status": "passed", "duration": 1500000000}}]},
  {"name": "Row", "steps": [
   {"keyword": "Then ", "name": "<it>", "result": {"status": "failed", "error_message": "after scenario hook failed: the lab's record, step error: its own", "duration": 2000}},
   {"keyword": "And ", "name": "more", "result": {"status": "skipped"}}]},
  {"name": "Row", "steps": [
   {"keyword": "Given ", "name": "a lab", "result": {"status": "passed"}},
   {"keyword": "Then ", "name": "unknown", "result": {"status": "undefined"}},
   {"keyword": "And ", "name": "more", "result": {"status": "skipped"}}]},
  {"name": "Later", "steps": [{"keyword": "Then ", "name": "to do", "result": {"status": "pending"}}, {"keyword": "And ", "name": "more", "result": {"status": "skipped"}}]},
  {"name": "Two", "steps": [{"keyword": "Then ", "name": "twice", "result": {"status": "ambiguous", "error_message": "two match"}}]},
  {"name": "Not here", "steps": [{"keyword": "Given ", "name": "a program", "result": {"status": "skipped"}}]}]},
 {"uri": "b.feature", "name": "Second", "elements": []}
]`

func TestJUnitHasOneResultForEachScenario(t *testing.T) {
	var b bytes.Buffer
	if err := writeJUnit(&b, []byte(ranAllWays)); err != nil {
		t.Fatal(err)
	}
	if problems := checkJUnit(b.Bytes()); len(problems) > 0 {
		t.Errorf("the document has %q:\n%s", problems, &b)
	}
	for _, want := range []string{
		`<testsuites name="features" tests="6" failures="1" errors="3" time="1.500">`,
		`<testsuite name="First" tests="6" failures="1" errors="3" skipped="1" time="1.500">`,
		`<testcase classname="ours.a" name="Row #1" `, `<testcase classname="ours.a" name="Row #2" `,
		"<failure message=\"failed: Then &lt;it&gt;\" type=\"failed\">its own&#xA;the lab&#39;s record</failure>",
		`<error message="undefined: Then unknown" type="undefined"></error>`, `<error message="pending: Then to do" type="pending"></error>`,
		`<error message="ambiguous: Then twice" type="ambiguous">two match</error>`, `<skipped message="skipped: Given a program"></skipped>`,
		"<system-out>failed    Then &lt;it&gt;&#xA;skipped   And more&#xA;</system-out>",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the document lacks %s:\n%s", want, &b)
		}
	}
	if err := writeJUnit(&b, []byte("{")); err == nil {
		t.Error("writeJUnit of invalid JSON = nil error")
	}
}

// The check sees what godog's own formatter writes.
func TestJUnitSchemaIsChecked(t *testing.T) {
	for document, want := range map[string]string{
		`<testsuites skipped="0"></testsuites>`: "testsuites has the attribute skipped",
		`<testsuites><testsuite name="a" tests="1"><testcase name="b"></testcase></testsuite></testsuites>`:                                   "testcase has no classname",
		`<testsuites><testsuite name="a" tests="1" time="1.2345"></testsuite></testsuites>`:                                                   `time of testsuite is "1.2345"`,
		`<testsuites><testsuite name="a" tests="1"><testcase classname="c" name="b"><error/><failure/></testcase></testsuite></testsuites>`:   "a testcase has 2 results",
		`<testsuites><testsuite name="a" tests="1"><testcase classname="c" name="b"><failure/><skipped/></testcase></testsuite></testsuites>`: "skipped in testcase, or its order",
		`<testsuites><testsuite name="a" tests="1">`:                                                                                          "unexpected EOF",
	} {
		if got := checkJUnit([]byte(document)); len(got) == 0 || !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("checkJUnit(%s) = %q, want %q", document, got, want)
		}
	}
}

package features

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Results as CI systems read them: the elements and attributes that JUnit's Ant task has made
// customary, and that the schema of Jenkins' xUnit plugin allows.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"` // seconds
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct { // a feature
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct { // a scenario: it has at most one of skipped, error and failure
		ClassName string       `xml:"classname,attr"`
		Name      string       `xml:"name,attr"`
		Time      string       `xml:"time,attr"`
		Skipped   *junitReason `xml:"skipped"`
		Error     *junitReason `xml:"error"`
		Failure   *junitReason `xml:"failure"`
		Steps     string       `xml:"system-out"` // each step with its status
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"` // status of the step
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes the results of godog's cucumber formatter as XML. godog's own formatter has
// no class names, and an error for each step that was skipped after a failure.
func writeJUnit(out io.Writer, cucumber []byte) error {
	var all []feature
	if err := json.Unmarshal(cucumber, &all); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	sum, took := junitSuites{Name: "features"}, time.Duration(0)
	for _, f := range all {
		if len(f.Elements) == 0 { // the tag expression excludes all scenarios
			continue
		}
		s, d := f.junit()
		sum.Suites = append(sum.Suites, s)
		sum.Tests, sum.Failures, sum.Errors = sum.Tests+s.Tests, sum.Failures+s.Failures, sum.Errors+s.Errors
		took += d
	}
	sum.Time = seconds(took)
	b, err := xml.MarshalIndent(sum, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(out, "%s%s\n", xml.Header, b)
	}
	if err != nil {
		return err
	}
	return nil
}

func (f feature) junit() (s junitSuite, took time.Duration) {
	s.Name = f.Name
	times, nth := map[string]int{}, map[string]int{}
	for _, e := range f.Elements {
		times[e.Name]++
	}
	for _, e := range f.Elements {
		c := e.junit()
		c.ClassName = strings.ReplaceAll(strings.Trim(strings.TrimSuffix(f.URI, ".feature"), "./"), "/", ".")
		if times[e.Name] > 1 { // rows of an outline
			nth[e.Name]++
			c.Name += fmt.Sprintf(" #%d", nth[e.Name])
		}
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
		s.Tests++
		took += e.Took()
		s.Cases = append(s.Cases, c)
	}
	s.Time = seconds(took)
	return s, took
}

// junit returns a scenario as its first step that did not pass makes it: those after it are
// skipped.
func (e element) junit() junitCase {
	c := junitCase{Name: e.Name, Time: seconds(e.Took())}
	var steps strings.Builder
	for _, s := range e.Steps {
		fmt.Fprintf(&steps, "%-9s %s%s\n", s.Result.Status, s.Keyword, s.Name)
		if s.Result.Status == "passed" || c.Failure != nil || c.Error != nil || c.Skipped != nil {
			continue
		}
		why := &junitReason{Message: s.Result.Status + ": " + s.Keyword + s.Name, Type: s.Result.Status, Text: s.Reason()}
		switch s.Result.Status {
		case "failed":
			c.Failure = why
		case "skipped":
			why.Type = "" // a skipped test has none
			c.Skipped = why
		default: // undefined, pending, ambiguous
			c.Error = why
		}
	}
	c.Steps = steps.String()
	return c
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }

// Reason returns the error of a step, and then that of the hook that runs after a scenario, which
// godog puts before it.
func (r result) Reason() string { return reason(r.Result.Error) }

// reason turns an error of godog's around.
func reason(text string) string {
	const hook, step = "after scenario hook failed: ", ", step error: "
	if i := strings.LastIndex(text, step); i >= 0 && strings.HasPrefix(text, hook) {
		return text[i+len(step):] + "\n" + text[len(hook):i]
	}
	return text
}

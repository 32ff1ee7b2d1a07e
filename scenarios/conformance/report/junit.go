package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		Suites  []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`

		seconds float64
	}
	testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure,omitempty"`
		Error   *message `xml:"error,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
		Out     string   `xml:"system-out,omitempty"`
	}
	message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as JUnit XML: a suite for each group of checks. A warning
// passes; its text is the output of its test.
func JUnit(w io.Writer, d *Document) error {
	all := suites{Name: "conformance of " + d.Target.Title}
	for _, c := range d.Checks {
		at := slices.IndexFunc(all.Suites, func(s suite) bool { return s.Name == c.Group() })
		if at < 0 {
			at = len(all.Suites)
			all.Suites = append(all.Suites, suite{Name: c.Group()})
		}
		all.Suites[at].add(c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *suite) add(c Check) {
	t := testcase{Class: c.ID, Name: c.Title, Time: fmt.Sprintf("%.3f", c.Seconds)}
	text := &message{Message: printable(c.Reason)}
	switch c.Verdict {
	case conformance.Fail:
		text.Text = printable(fmt.Sprintf("It breaks the step %s: %s.\nRemedy: %s", c.Step, c.Predicts, c.Remedy))
		t.Failure = text
		s.Failures++
	case conformance.Broken:
		t.Error = text
		s.Errors++
	case conformance.Skip:
		t.Skipped = text
		s.Skipped++
	case conformance.Warn:
		t.Out = printable("warning: " + c.Reason)
	case conformance.Pass:
		t.Out = printable(c.Reason)
	}
	s.Cases = append(s.Cases, t)
	s.Tests++
	s.seconds += c.Seconds
	s.Time = fmt.Sprintf("%.3f", s.seconds)
}

// printable removes characters that XML cannot hold.
func printable(text string) string {
	out := make([]rune, 0, len(text))
	for _, r := range text {
		if r == '\n' || r == '\t' || r >= 0x20 && r != 0xFFFE && r != 0xFFFF {
			out = append(out, r)
		}
	}
	return string(out)
}

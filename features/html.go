package features

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/features/steps"
)

// Results as godog's cucumber formatter writes them.
type (
	feature struct {
		URI         string    `json:"uri"`
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Elements    []element `json:"elements"`
	}
	element struct {
		Name string `json:"name"`
		Line int    `json:"line"`
		Tags []struct {
			Name string `json:"name"`
		} `json:"tags"`
		Steps []result `json:"steps"`
	}
	result struct {
		Keyword string `json:"keyword"`
		Name    string `json:"name"`
		Result  struct {
			Status   string `json:"status"`
			Error    string `json:"error_message"`
			Duration int64  `json:"duration"` // nanoseconds
		} `json:"result"`
		Link string `json:"-"` // link to the moment of the recording at which the step failed; "" for none
		Rows []struct {
			Cells []string `json:"cells"`
		} `json:"rows"`
		DocString struct {
			Value string `json:"value"`
		} `json:"doc_string"`
	}
)

// Passed reports whether all steps have passed.
func (e element) Passed() bool {
	for _, s := range e.Steps {
		if s.Result.Status != "passed" {
			return false
		}
	}
	return true
}

// Took returns how long the steps took.
func (e element) Took() time.Duration {
	var sum time.Duration
	for _, s := range e.Steps {
		sum += time.Duration(s.Result.Duration)
	}
	return sum.Round(time.Millisecond)
}

// Labels returns the tags, separated by blanks.
func (e element) Labels() string {
	var all []string
	for _, t := range e.Tags {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

// Failed returns how many scenarios did not pass.
func (f feature) Failed() (n int) {
	for _, e := range f.Elements {
		if !e.Passed() {
			n++
		}
	}
	return n
}

//go:embed report.html.tmpl
var page string

var report = template.Must(template.New("report").Parse(page))

// link links each failed step to the moment of its recording. Links are relative to the
// directory of the page of the results.
func link(all []feature, recorded []steps.Recorded, dir string) error {
	for _, f := range all {
		for _, e := range f.Elements {
			for i := range e.Steps {
				s := &e.Steps[i]
				for _, r := range recorded {
					if r.Page == "" || !names(s.Result.Error, r.View) {
						continue
					}
					to, err := relative(dir, r.Page)
					if err != nil {
						return err
					}
					s.Link = to + r.Fragment
				}
			}
		}
	}
	return nil
}

// names reports whether an error of a step names a recording. godog puts the step's own error
// behind that of the hook, which names it.
func names(failure, view string) bool {
	return strings.Contains(failure+"\n", view+"\n") || strings.Contains(failure, view+", step error: ")
}

// relative returns a file as a link in a page of a directory.
func relative(dir, file string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err == nil {
		file, err = filepath.Rel(dir, file)
	}
	if err != nil {
		return "", fmt.Errorf("the link of a recording: %w", err)
	}
	return (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath(), nil
}

// writeHTML writes a page with the results of godog's cucumber formatter, with links to what
// was recorded.
func writeHTML(out io.Writer, cucumber []byte, recorded []steps.Recorded, dir string) error {
	var all []feature
	if err := json.Unmarshal(cucumber, &all); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := link(all, recorded, dir); err != nil {
		return err
	}
	var sum struct {
		Features          []feature
		Scenarios, Failed int
		Took              time.Duration
	}
	for _, f := range all {
		if len(f.Elements) == 0 { // the tag expression excludes all scenarios
			continue
		}
		sum.Features = append(sum.Features, f)
		sum.Scenarios += len(f.Elements)
		sum.Failed += f.Failed()
		for _, e := range f.Elements {
			sum.Took += e.Took()
		}
	}
	if err := report.Execute(out, sum); err != nil {
		return err
	}
	return nil
}

package features

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"
	"github.com/cucumber/godog/colors"
	messages "github.com/cucumber/messages/go/v21"
)

// prettyName is the name of our pretty formatter. godog's own tells a failure twice
// and shows the Go function of each step, which says nothing to an operator.
const prettyName = "metalab-pretty"

// registerPretty makes the formatter known to godog.
var registerPretty = sync.OnceFunc(func() {
	godog.Format(prettyName, "each step when it ends", func(_ string, out io.Writer) godog.Formatter {
		return &pretty{out: out, features: map[string]string{}, keywords: map[string]string{}, lines: map[string]int64{}, counts: map[string]int{}}
	})
})

// pretty writes each scenario, its steps and, once, why one failed. Scenarios that
// run in parallel reach it one after the other; features may reach it before the
// scenarios of the feature before have.
type pretty struct {
	out      io.Writer
	began    time.Time
	features map[string]string // name by URI
	keywords map[string]string // keyword of each step, by the step's ID
	lines    map[string]int64  // line of each scenario and row, by its ID
	uri      string            // URI of the feature last written
	at, name string            // location (URI:LINE) and name of the scenario last written
	total    int
	failed   []string
	counts   map[string]int // number of steps, by result
}

func (p *pretty) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

func (p *pretty) TestRunStarted() { p.began = time.Now() }

// Feature remembers a feature.
func (p *pretty) Feature(doc *messages.GherkinDocument, uri string, _ []byte) {
	p.features[uri] = doc.Feature.Name
	scenario := func(s *messages.Scenario) {
		p.lines[s.Id] = s.Location.Line
		for _, e := range s.Examples {
			for _, r := range e.TableBody {
				p.lines[r.Id] = r.Location.Line
			}
		}
		p.addSteps(s.Steps)
	}
	for _, c := range doc.Feature.Children {
		switch {
		case c.Background != nil:
			p.addSteps(c.Background.Steps)
		case c.Scenario != nil:
			scenario(c.Scenario)
		case c.Rule != nil:
			for _, r := range c.Rule.Children {
				if r.Background != nil {
					p.addSteps(r.Background.Steps)
				} else {
					scenario(r.Scenario)
				}
			}
		}
	}
}

func (p *pretty) addSteps(all []*messages.Step) {
	for _, s := range all {
		p.keywords[s.Id] = strings.TrimSpace(s.Keyword)
	}
}

// Pickle writes the name of a scenario, after that of its feature if it is another
// one than the last.
func (p *pretty) Pickle(s *messages.Pickle) {
	if s.Uri != p.uri {
		p.uri = s.Uri
		p.printf("Feature: %s\n", p.features[s.Uri])
	}
	p.total++
	p.at, p.name = fmt.Sprintf("%s:%d", s.Uri, p.lines[s.AstNodeIds[len(s.AstNodeIds)-1]]), s.Name
	p.printf("\n  Scenario: %s  %s\n", s.Name, colors.Black("# "+p.at))
}

func (p *pretty) Defined(*messages.Pickle, *messages.PickleStep, *godog.StepDefinition) {}

func (p *pretty) Passed(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition) {
	p.step(s, "passed", colors.Green)
}

func (p *pretty) Skipped(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition) {
	p.step(s, "skipped", colors.Cyan)
}

func (p *pretty) Pending(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition) {
	p.step(s, "pending", colors.Yellow)
}

func (p *pretty) Undefined(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition) {
	p.step(s, "undefined", colors.Yellow)
}

// Failed writes a step and why it failed.
func (p *pretty) Failed(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition, err error) {
	p.step(s, "failed", colors.Red)
	p.reason(err)
}

// Ambiguous writes a step that several definitions match.
func (p *pretty) Ambiguous(_ *messages.Pickle, s *messages.PickleStep, _ *godog.StepDefinition, err error) {
	p.step(s, "ambiguous", colors.Red)
	p.reason(err)
}

func (p *pretty) step(s *messages.PickleStep, result string, colour func(any) string) {
	p.counts[result]++
	text := p.keywords[s.AstNodeIds[0]] + " " + s.Text
	if result != "passed" {
		text += "  (" + result + ")"
	}
	p.printf("    %s\n", colour(text))
	if s.Argument == nil {
		return
	}
	if doc := s.Argument.DocString; doc != nil {
		p.printf("%s", indent("\"\"\"\n"+doc.Content+"\n\"\"\""))
	}
	if table := s.Argument.DataTable; table != nil {
		for _, row := range table.Rows {
			var cells []string
			for _, c := range row.Cells {
				cells = append(cells, c.Value)
			}
			p.printf("      | %s |\n", strings.Join(cells, " | "))
		}
	}
}

func (p *pretty) reason(err error) {
	p.failed = append(p.failed, p.at+"  "+p.name)
	p.printf("%s", indent(reason(err.Error())))
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n      ") + "\n"
}

// results are the results of steps in the order of a summary.
var results = []string{"passed", "failed", "ambiguous", "undefined", "pending", "skipped"}

// Summary writes how many scenarios and steps passed, and which failed.
func (p *pretty) Summary() {
	var steps []string
	for _, r := range results {
		if n := p.counts[r]; n > 0 {
			steps = append(steps, fmt.Sprintf("%d %s", n, r))
		}
	}
	p.printf("\n%d of %d scenarios passed (steps: %s) in %s\n", p.total-len(p.failed), p.total, strings.Join(steps, ", "), time.Since(p.began).Round(100*time.Millisecond))
	for i, name := range p.failed {
		if i == 0 {
			p.printf("\n%s\n", colors.Red("Failed:"))
		}
		p.printf("  %s\n", name)
	}
}

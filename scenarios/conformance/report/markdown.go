package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// Markdown writes the report for an issue or a wiki.
func Markdown(w io.Writer, d *Document) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Conformance of %s\n\n", cell(d.Target.Title))
	for _, p := range d.Profiles {
		fmt.Fprintf(&b, "- **%s**\n", cell(p.String()))
	}
	fmt.Fprintf(&b, "\nLevel %s, %d requests, %.1f s, labctl %s. %s.\n", d.Level, d.Requests, d.Seconds, cell(d.Tool), d.SummaryText())
	if len(d.Unrestored) > 0 {
		fmt.Fprintf(&b, "\n**Not taken back** (`labctl conformance restore` tries again):\n\n")
		for _, u := range d.Unrestored {
			fmt.Fprintf(&b, "- %s\n", cell(u))
		}
	}
	if len(d.Quirks) > 0 {
		b.WriteString("\nQuirks:")
		for _, q := range d.Quirks {
			fmt.Fprintf(&b, " `%s`", q.Name)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| check | verdict | what holds | why |\n|---|---|---|---|\n")
	for _, c := range d.Checks {
		why := c.Reason
		if c.Remedy != "" {
			why += ". Remedy: " + c.Remedy
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.ID, c.Verdict, cell(c.Title), cell(why))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns a text as it may stand in a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;").Replace(s)
}

// verdicts are all verdicts, as a summary lists them.
var verdicts = []conformance.Verdict{conformance.Pass, conformance.Fail, conformance.Warn, conformance.Skip, conformance.Broken}

// SummaryText counts the verdicts: "40 pass, 2 fail, 1 warn, 82 skip, 0 error".
func (d *Document) SummaryText() string {
	var parts []string
	for _, v := range verdicts {
		parts = append(parts, fmt.Sprintf("%d %s", d.Summary[string(v)], v))
	}
	return strings.Join(parts, ", ")
}

// Package statements reads the numbered statements of the pages beside it:
// what Metal3, Redfish, IPMI, MOSK's day-2 operations, Elemental and machine configuration demand of the product, and the
// quirks of real BMCs. It also reads the scenarios and tests that name them, so that tests can
// show each statement beside those. It knows nothing of what they check.
package statements

import (
	"embed"
	"regexp"
	"slices"
	"strings"
)

// Statement is one numbered statement.
type Statement struct {
	ID    string // "B-40", "A7", "I42", "Q17", "H12", "E-13", "M8", "tool-10", "fault-1"
	Title string
	Text  string // Markdown: paragraphs, and at times a table

	// NotBuilt names the parts of the text that are not built, and why. It is the
	// paragraph that begins with "Not built: ", without these words and in one
	// line, and is not part of Text. Empty: all is built.
	NotBuilt string
}

// Section is a heading of a page with its statements, in order. A section
// without statements is not returned.
type Section struct {
	Title      string
	Statements []Statement
}

//go:embed *.md
var pages embed.FS

// The pages that have statements.
const (
	Metal3  = "metal3.md"
	Redfish = "redfish.md"
	IPMI    = "ipmi.md"
	Quirks  = "quirks.md"
	MOSK    = "mosk.md"

	Elemental     = "elemental.md"
	MachineConfig = "machine-config.md"
)

// Pages lists them.
var Pages = []string{Metal3, Redfish, IPMI, Quirks, MOSK, Elemental, MachineConfig}

// Read returns the sections of a page. It panics when there is no such page:
// the pages are part of the program.
func Read(page string) []Section {
	b, err := pages.ReadFile(page)
	if err != nil {
		panic(err)
	}
	return Parse(string(b))
}

var heading = regexp.MustCompile(`^### ([A-Z]\d+|B-\d+|E-\d+|tool-\d+|fault-\d+) (.+)$`)

// Parse returns the sections of the text of a page. A statement is a heading
// of the third level that begins with its number; its text ends at the next
// heading or anchor.
func Parse(text string) []Section {
	var sections []Section
	var title string
	var body []string
	var current *Statement
	end := func() {
		if current != nil {
			current.Text, current.NotBuilt = splitNotBuilt(strings.Join(body, "\n"))
		}
		current, body = nil, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch m := heading.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "## "):
			end()
			title = strings.TrimPrefix(line, "## ")
		case m != nil:
			end()
			if n := len(sections); n == 0 || sections[n-1].Title != title {
				sections = append(sections, Section{Title: title})
			}
			in := &sections[len(sections)-1]
			in.Statements = append(in.Statements, Statement{ID: m[1], Title: m[2]})
			current = &in.Statements[len(in.Statements)-1]
		case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "<a id="):
			end()
		default:
			body = append(body, line)
		}
	}
	end()
	return sections
}

const notBuilt = "Not built: "

// splitNotBuilt returns the text of a statement without its paragraph that begins
// with "Not built: ", and the reason that the paragraph gives.
func splitNotBuilt(body string) (text, reason string) {
	paragraphs := strings.Split(strings.TrimSpace(body), "\n\n")
	paragraphs = slices.DeleteFunc(paragraphs, func(p string) bool {
		why, found := strings.CutPrefix(strings.TrimSpace(p), notBuilt)
		if found {
			reason = strings.Join(strings.Fields(why), " ")
		}
		return found
	})
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n")), reason
}

// Anchor is the address of a statement in its page, from the directory of the
// pages.
func (s Statement) Anchor(page string) string { return page + "#" + s.ID }

// Quote is the text as a Markdown block quote.
func (s Statement) Quote() string {
	return strings.ReplaceAll("> "+strings.ReplaceAll(s.Text, "\n", "\n> "), "> \n", ">\n")
}

// Range is a range of numbers in a text.
type Range struct {
	Line int // from 1
	Text string
}

const numbers = `(?:B-\d{2,3}|E-\d{2}|[A-Z]\d+|tool-\d+|fault-\d+)`

// ranges matches two numbers B-… or E-… with a word or a dash between them; numbers of the
// other pages only after the word "statement". A comment may break the line in
// between.
var ranges = regexp.MustCompile(`\b(?:B-\d{2,3}|E-\d{2}|statements? (?:` + numbers + `(?:, | and ))*` + numbers + `)` +
	`(?:\s+(?://\s*)?(?:to|through|until)\s+(?://\s*)?|\s*(?:–|—|…|\.\.+)\s*|-)` + `(?:` + numbers + `|\d+\b)`)

var wrapped = regexp.MustCompile(`\s+(?://\s*)?`)

// Ranges returns the ranges of numbers in a text, in order. Sources must name each
// number that they show: a range also credits those that they do not.
func Ranges(text string) []Range {
	var out []Range
	for _, at := range ranges.FindAllStringIndex(text, -1) {
		out = append(out, Range{
			Line: 1 + strings.Count(text[:at[0]], "\n"),
			Text: wrapped.ReplaceAllString(text[at[0]:at[1]], " "),
		})
	}
	return out
}

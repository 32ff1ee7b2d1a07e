package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// format is the output format of a command.
type format string

const (
	table      format = "table"
	wide       format = "wide" // a table with every column, cells in full
	jsonFormat format = "json"
	yamlFormat format = "yaml"
)

// formats are all formats.
var formats = []string{string(table), string(wide), string(jsonFormat), string(yamlFormat)}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	v, err := choice("--output", s, formats)
	if err != nil {
		return notAllowed("--output", s, formats)
	}
	*f = format(v)
	return nil
}

// text reports whether the output is a table, and not for programs.
func (f format) text() bool { return f == table || f == wide }

// Marks that begin the header of a column.
const (
	onlyWide = "+" // only a wide table has it
	ifRoom   = "?" // a table that is too wide for the terminal is without it
	uncut    = "=" // its cells are never cut
)

// whole is the width of a table whose cells are not cut, as in a pipe.
const whole = 0

// widthOf returns the width of a terminal in characters, and whole for all else.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return whole
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return whole
	}
	return width
}

// print writes v as JSON or YAML, or the rows as a table that fits the terminal. The first row
// is the header; headers that begin with onlyWide are of columns that only -o wide shows.
func (f format) print(w io.Writer, v any, rows [][]string) error {
	return f.printWithin(w, widthOf(w), v, rows)
}

// printWithin is print for a terminal of so many characters. It says so when cells are cut.
func (f format) printWithin(w io.Writer, width int, v any, rows [][]string) error {
	switch f {
	case jsonFormat:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case yamlFormat:
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	rows, left := columns(rows, f == wide, width)
	note := ""
	switch {
	case f == wide || len(rows) == 0:
	case width == whole || len(rows[0]) < 3: // two columns are a name and its value
		rows = fit(rows, math.MaxInt)
	default:
		if len(left) > 0 {
			note = fmt.Sprintf("There is no room for %s: -o wide shows all columns.\n", strings.Join(left, " and "))
		}
		if rows = fit(rows, width); slices.ContainsFunc(rows, func(row []string) bool { return slices.ContainsFunc(row, isCut) }) {
			note += "Texts that end with … are cut: -o wide shows them whole.\n"
		}
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	if err := tw.Flush(); err != nil || note == "" {
		return err
	}
	_, err := io.WriteString(w, note)
	return err
}

// columns returns the rows with the columns that a table has which is so wide, or a wide one, and
// the names of those for which there is no room.
func columns(rows [][]string, all bool, width int) (out [][]string, left []string) {
	if len(rows) == 0 {
		return nil, nil
	}
	hidden := map[int]bool{}
	for i, name := range rows[0] {
		hidden[i] = !all && strings.HasPrefix(name, onlyWide)
	}
	for i, name := range slices.Backward(rows[0]) {
		if short, ok := strings.CutPrefix(name, ifRoom); ok && !all && width != whole && widthOfRows(rows, hidden) > width {
			hidden[i], left = true, append(left, short)
		}
	}
	out = make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			if n == 0 {
				cell = strings.TrimPrefix(strings.TrimPrefix(cell, onlyWide), ifRoom)
				if all {
					cell = strings.TrimPrefix(cell, uncut)
				}
			}
			if !hidden[i] {
				out[n] = append(out[n], cell)
			}
		}
	}
	return out, left
}

// widthOfRows returns the width in characters of a table without its hidden columns.
func widthOfRows(rows [][]string, hidden map[int]bool) int {
	var widths []int
	for n, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n == 0 {
				cell = strings.TrimLeft(cell, onlyWide+ifRoom+uncut)
			}
			if !hidden[i] {
				widths[i] = max(widths[i], 2+utf8.RuneCountInString(cell))
			}
		}
	}
	total := -2 // after the last column there is no gap
	for _, n := range widths {
		total += n
	}
	return total
}

// least is the width in characters below which a column is not cut.
const least = 16

// fit cuts the widest columns until the rows are at most so many characters wide. It
// never cuts the first column, which names the thing, nor one marked uncut.
func fit(rows [][]string, width int) [][]string {
	if len(rows) == 0 {
		return nil
	}
	fixed := map[int]bool{0: true}
	for i, name := range rows[0] {
		if short, ok := strings.CutPrefix(name, uncut); ok {
			fixed[i], rows[0][i] = true, short
		}
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for total > width {
		widest := 0
		for i := range widths {
			if !fixed[i] && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 || widths[widest] <= least {
			break
		}
		widths[widest]--
		total--
	}
	out := make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			out[n] = append(out[n], cut(cell, widths[i]))
		}
	}
	return out
}

// isCut reports whether a cell was shortened.
func isCut(cell string) bool { return strings.HasSuffix(cell, "…") }

// cut shortens a text to so many characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

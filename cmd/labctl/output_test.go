package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/cmd/usage"
)

func TestTableFitsItsWidth(t *testing.T) {
	const width = 100
	long := strings.Repeat("ä", 90)
	notice := "Texts that end with … are cut: -o wide shows them whole.\n"
	for name, tt := range map[string]struct {
		format format
		rows   [][]string
		want   string
	}{
		"short":      {table, [][]string{{"A", "+B", "C"}, {"a", "b", "c"}}, "A  C\na  c\n"},
		"wide":       {wide, [][]string{{"A", "+B", "=C"}, {"a", "b", long + long}}, "A  B  C\na  b  " + long + long + "\n"},
		"cut":        {table, [][]string{{"A", "B", "C"}, {"a", long, long}}, ""},
		"first":      {table, [][]string{{"A", "B", "C"}, {long + long, "b", "c"}}, ""},
		"uncut":      {table, [][]string{{"A", "=B", "C"}, {"a", long, long}}, ""},
		"name value": {table, [][]string{{"NAME", "VALUE"}, {"a", long + long}}, "NAME  VALUE\na     " + long + long + "\n"},
		"room":       {table, [][]string{{"A", "?B", "C"}, {"a", "b", "c"}}, "A  B  C\na  b  c\n"},
		"no room":    {table, [][]string{{"A", "=B", "?C", "D"}, {"a", long, "c12", "d12"}}, "A  B" + strings.Repeat(" ", 91) + "D\na  " + long + "  d12\nThere is no room for C: -o wide shows all columns.\n"},
		"just room":  {table, [][]string{{"A", "=B", "?C"}, {"a", long, "c1234"}}, "A  B" + strings.Repeat(" ", 91) + "C\na  " + long + "  c1234\n"},
		"wide room":  {wide, [][]string{{"A", "?B"}, {"a", long + long}}, "A  B\na  " + long + long + "\n"},
		"none":       {table, nil, ""},
	} {
		var b bytes.Buffer
		if err := tt.format.printWithin(&b, width, nil, tt.rows); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "cut":
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("%s: a line has %d characters: %s", name, n, line)
				}
			}
			if strings.Count(b.String(), "…") != 3 || !strings.HasSuffix(b.String(), notice) {
				t.Errorf("%s: %s", name, &b)
			}
		case "first":
			if !strings.Contains(b.String(), long+long) {
				t.Errorf("%s: the name is cut: %s", name, &b)
			}
		case "uncut":
			if !strings.Contains(b.String(), "  "+long+"  ") || strings.Count(b.String(), "…") != 2 {
				t.Errorf("%s: %s", name, &b)
			}
		default:
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// In a pipe a table is as wide as its cells: programs and files read it.
func TestTableIsWholeInAPipe(t *testing.T) {
	long := strings.Repeat("x", 300)
	var b bytes.Buffer
	if err := table.print(&b, nil, [][]string{{"A", "=B", "+C", "?D"}, {"a", long, "c", long}}); err != nil {
		t.Fatal(err)
	}
	if want := "a  " + long + "  " + long + "\n"; !strings.HasSuffix(b.String(), want) || strings.ContainsAny(b.String(), "…=+?") {
		t.Errorf("in a pipe: %s", &b)
	}
}

func TestChoiceFoldsCaseAndNamesWhatIsAllowed(t *testing.T) {
	if got, err := choice("RESET", "forceoff", resetTypes); got != "ForceOff" || err != nil {
		t.Errorf("choice = %q, %v", got, err)
	}
	_, err := choice("RESET", "Onn", []string{"On", "ForceOff"})
	want := `RESET "Onn" is not one of On, ForceOff. Did you mean On? (see --help)`
	if bad := new(usage.Error); !errors.As(err, &bad) || err.Error() != want {
		t.Errorf("choice: %v, want %s", err, want)
	}
}

func TestProgressIsSparseInAPipe(t *testing.T) {
	var b bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&b, "hosts", 100)
	p.now, p.began = func() time.Time { return now }, now
	for range 100 {
		now = now.Add(300 * time.Millisecond)
		p.add(1)
	}
	p.end()
	if diff := cmp.Diff("4 of 100 hosts\n38 of 100 hosts\n72 of 100 hosts\n100 of 100 hosts\n", b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.Reset()
	p = newProgress(&b, "hosts", 2)
	p.add(2)
	if p.end(); b.Len() > 0 {
		t.Errorf("work that takes no time shows %q", &b)
	}
}

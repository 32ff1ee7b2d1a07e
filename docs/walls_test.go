package docs

import (
	"strings"
	"testing"
)

// TestEveryWallHasATest reads the table of walls.md: each row names tests, or functions of tests, that
// exist.
func TestEveryWallHasATest(t *testing.T) {
	known := declarations(t)
	covered := 0
	for line := range strings.SplitSeq(read(t, "docs/walls.md"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || strings.Count(line, " |") != 5 || cells[0] == "controller" {
			continue
		}
		names := inline.FindAllStringSubmatch(line[strings.LastIndex(strings.TrimSuffix(line, " |"), " |"):], -1)
		switch {
		case len(names) == 0:
			t.Errorf("%s: %s: the row names no test", cells[0], cells[2])
		default:
			covered++
		}
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("%s: there is no test %s", cells[0], name[1])
			}
		}
	}
	if covered < 20 {
		t.Errorf("%d rows are covered: the table has another form", covered)
	}
}

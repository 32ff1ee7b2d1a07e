package steps

import (
	"strings"
	"testing"
)

func TestCordonsAreComparedWithTheOrder(t *testing.T) {
	rows := []cordonRow{{[]string{"c"}, 1}, {[]string{"a", "b"}, 2}}
	one := []cordonRow{{[]string{"c"}, 1}, {[]string{"a", "b"}, 1}}
	for _, tt := range []struct {
		name    string
		history [][]string
		rows    []cordonRow
		done    bool
		err     string
	}{
		{"nothing yet", nil, rows, false, ""},
		{"the first is out", [][]string{{"c"}}, rows, false, ""},
		{"one row is through", [][]string{{"c"}, {}}, rows, false, ""},
		{"all are through", [][]string{{"c"}, {}, {"b"}, {"b", "a"}, {"a"}, {}}, rows, true, ""},
		{"all were out, and one still is", [][]string{{"c"}, {}, {"b"}, {"b", "a"}, {"a"}}, rows, false, ""},
		{"one at a time", [][]string{{"c"}, {}, {"b"}, {}, {"a"}, {}}, one, true, ""},
		{"too many", [][]string{{"c"}, {}, {"b"}, {"b", "a"}}, one, false, "2 nodes were cordoned at a time"},
		{"a later row first", [][]string{{"a"}}, rows, false, "before its turn"},
		{"a later row at the same time", [][]string{{"c"}, {"c", "a"}}, rows, false, "before its turn"},
		{"a node of no row", [][]string{{"c"}, {}, {"x"}}, rows, false, "before its turn"},
		{"a node of no row at the end", [][]string{{"c"}, {}, {"b"}, {}, {"a"}, {}, {"x"}}, rows, false, "before its turn"},
		{"twice", [][]string{{"c"}, {}, {"c"}}, rows, false, "cordoned twice"},
	} {
		done, err := cordonedInOrder(tt.history, tt.rows)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if done != tt.done || (tt.err == "") != (err == nil) || !strings.Contains(text, tt.err) {
			t.Errorf("%s: cordonedInOrder(%v) = %t, %v; want %t, %q", tt.name, tt.history, done, err, tt.done, tt.err)
		}
	}
}

package event

import (
	"testing"
	"time"
)

func TestNotesReadAsText(t *testing.T) {
	n := Note{At: time.Unix(1, 0), Kind: PowerOn}
	if n.Text() != "The system was switched on." || n.Severity() != OK || !n.Time().Equal(time.Unix(1, 0)) {
		t.Errorf("note = %q, %s, %v", n.Text(), n.Severity(), n.Time())
	}
}

func TestEveryKindHasASeverity(t *testing.T) {
	for k, row := range Kinds {
		if row.Text == "" || row.Severity != OK && row.Severity != Warning && row.Severity != Critical {
			t.Errorf("%s: %+v", k, row)
		}
	}
}

package steps

import (
	"fmt"
	"testing"

	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func TestFreeLabsAreBounded(t *testing.T) {
	var l Labs
	labs := make([]*testLab, maxFreeLabs+2)
	for i := range labs {
		labs[i] = &testLab{kind: labKind{profile: fmt.Sprint(i)}, servers: make([]control.Host, 2)}
		var want *testLab
		if i >= maxFreeLabs {
			want = labs[i-maxFreeLabs]
		}
		if got := l.keep(labs[i]); got != want {
			t.Errorf("keep(lab %d) = %v, want the lab that has been free for the longest once %d are free: %v", i, got, maxFreeLabs, want)
		}
	}
	if b := l.find(labs[0].kind, 1); b != nil {
		t.Errorf("find returns a lab that keep gave up: %v", b)
	}
}

func TestLabThatWasReleasedLastIsFoundFirst(t *testing.T) {
	var l Labs
	older, newer := &testLab{servers: make([]control.Host, 2)}, &testLab{servers: make([]control.Host, 1)}
	l.keep(older)
	l.keep(newer)
	for i, want := range []struct {
		servers int
		lab     *testLab
	}{{2, older}, {1, newer}, {1, nil}} {
		if got := l.find(labKind{}, want.servers); got != want.lab {
			t.Errorf("find %d = %v, want %v", i, got, want.lab)
		}
	}
}

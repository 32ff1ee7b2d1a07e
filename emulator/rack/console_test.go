package rack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// A further line stores the block that it is in, not the whole console, and a rack
// that is opened again has all of it.
func TestConsoleOutputIsStoredByTheBlock(t *testing.T) {
	l := open(t, Config{})
	h := l.hosts[0]
	if err := h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}); err != nil {
		t.Fatal(err)
	}
	for h.Machine().Phase != machine.Selecting {
		at, _ := h.machine.Deadline()
		l.clock.Advance(at.Sub(l.clock.Now()))
		if err := h.advance(); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Apply(t.Context(), machine.Loaded{Boot: 1, Source: *h.Machine().CurrentSource, Name: "system"}); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		was := h.state()
		if err := h.Apply(t.Context(), machine.Print{Boot: 1, Text: fmt.Sprintf("this is line %d\n", i)}); err != nil {
			t.Fatal(err)
		}
		if is := h.state(); len(is.changedParts(h.Name(), &was)) > 4 { // the head, two blocks, and one that was dropped
			t.Fatalf("line %d is stored with more than 4 values", i)
		}
	}
	want, from := h.Machine().Console.Since(0)
	if !strings.HasSuffix(string(want), "this is line 499\r\n") || from == 0 {
		t.Fatalf("the console has, from %d on, %q", from, want)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Config{Dir: l.dir, Clock: clock.NewVirtual(l.clock.Now()), Listen: "lo:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, at := l.hosts[0].Machine().Console.Since(0); string(got) != string(want) || at != from {
		t.Errorf("opened again it has, from %d on, %q; want from %d on %q", at, got, from, want)
	}
}

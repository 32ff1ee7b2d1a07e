package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
)

func TestGuardReportsChangesOfOwnedFiles(t *testing.T) {
	h, err := sys.OpenHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := h.Put(sys.File{Name: name, Mode: 0o644, Content: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(by string, do func()) []string {
		t.Helper()
		g, err := NewGuard(h)
		if err != nil {
			t.Fatal(err)
		}
		do()
		err = g.End(by)
		if conflict := new(ConflictError); errors.As(err, &conflict) {
			if conflict.Owner != "MachineConfig r1" {
				t.Errorf("owner = %q, want MachineConfig r1", conflict.Owner)
			}
			return conflict.Files
		}
		if err != nil {
			t.Fatal(err)
		}
		return nil
	}
	check := func(when string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: conflicts (-want +got):\n%s", when, diff)
		}
	}
	write("/etc/x", "1")
	write("/etc/y", "1")
	check("nobody owns files", change("item a", func() { write("/etc/x", "0") }), nil)
	write("/etc/x", "1")
	if err := Claim(h, "MachineConfig r1", map[string][]byte{"/etc/x": []byte("1"), "/etc/y": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	check("another file", change("item a", func() { write("/etc/z", "1") }), nil)
	check("an owned file", change("item a", func() { write("/etc/x", "2") }), []string{"/etc/x"})
	check("the same again, which changes nothing", change("item a", func() {}), []string{"/etc/x"})
	check("another item", change("item b", func() { write("/etc/y", "2") }), []string{"/etc/y"})
	write("/etc/x", "1")
	check("the file is restored", change("item a", func() {}), nil)
	if r, err := Load(h); err != nil || r.Changed["/etc/y"] != "item b" {
		t.Errorf("record = %+v, %v, want /etc/y changed by item b", r, err)
	}
	if err := Claim(h, "MachineConfig r1", map[string][]byte{"/etc/x": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	check("a file that nobody owns any more", change("item b", func() {}), nil)
}

package rackfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The parts of a definition have its hosts, each once, with the names and order of the complete.
func TestPartsHaveAllHostsOfTheDefinition(t *testing.T) {
	l, err := Parse("f.yaml", []byte("kind: Lab\nhosts: [{count: 3}]\nracks:\n- {name: r1, hosts: [{count: 2}, {namePrefix: node, count: 2}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	complete := l.Each()
	for _, size := range []int{1, 2, 3, 7, 10} {
		var all []Host
		for first := 0; first < len(complete); first += size {
			part := l
			part.Part = &Part{First: first, Count: size}
			hosts := part.Each()
			if len(hosts) != part.Len() {
				t.Errorf("part of %d hosts from %d on: Each has %d hosts, Len is %d", size, first, len(hosts), part.Len())
			}
			for i, h := range hosts {
				if h.Index != i {
					t.Errorf("host %d of the part from %d on has the index %d", i, first, h.Index)
				}
				h.Index += part.First() // as in the complete
				all = append(all, h)
			}
		}
		if diff := cmp.Diff(complete, all); diff != "" {
			t.Errorf("parts of %d hosts (-complete +parts):\n%s", size, diff)
		}
	}
	for i, h := range complete {
		if at, ok := l.Find(h.Name); !ok || at != i {
			t.Errorf("Find(%s) = %d, %t, want %d", h.Name, at, ok, i)
		}
	}
	for _, none := range []string{"", "node", "node-", "node-5", "node-00", "node--1", "r1-node-2", "nodes-0"} {
		if at, ok := l.Find(none); ok {
			t.Errorf("Find(%q) = %d", none, at)
		}
	}
	l.Part = &Part{}
	if n := len(l.Each()); n != 0 || l.Total() != len(complete) {
		t.Errorf("a part of no hosts has %d, of %d", n, l.Total())
	}
}

// A lab is not started as another part of the same definition.
func TestDiffNamesThePart(t *testing.T) {
	a, b := Default(4), Default(4)
	a.Part, b.Part = &Part{First: 0, Count: 2}, &Part{First: 2, Count: 2}
	if got := strings.Join(Diff(a, b), "; "); !strings.Contains(got, "part: 0 in this lab, 2 asked") {
		t.Errorf("Diff = %q, want the part", got)
	}
	b.Part.First, b.Hosts[0].Count = 0, 8
	if got := Diff(a, b); len(got) != 0 {
		t.Errorf("Diff with more hosts in other parts = %q, want none", got)
	}
	a.Part = &Part{First: -1, Count: -1}
	for _, want := range []string{"part.first", "part.count"} {
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want %s", err, want)
		}
	}
}

// Families come to a lab that is there, and do not go.
func TestFamiliesAreAdded(t *testing.T) {
	a, b := Default(1), Default(1)
	b.With = []string{"hoc"}
	if got := Diff(a, b); len(got) != 0 {
		t.Errorf("Diff() of an added family = %q", got)
	}
	if got := Diff(b, a); len(got) != 1 || !strings.Contains(got[0], "with: [hoc] in this lab, [] asked") {
		t.Errorf("Diff() of a family that goes = %q", got)
	}
	if a.Adopt(b); len(a.With) != 1 {
		t.Errorf("Adopt() leaves %q", a.With)
	}
}

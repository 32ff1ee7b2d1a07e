package cpio

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

var sample = []Entry{
	{Name: "init", Mode: File | 0o755, Content: []byte("#!/bin/sh\n")},
	{Name: "a/b/c", Mode: File | 0o600, Content: []byte("x")},
	{Name: "a/link", Mode: Symlink | 0o777, Content: []byte("b/c")},
	{Name: "dev/console", Mode: Character | 0o600, Major: 5, Minor: 1},
}

func names(entries []Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func TestReadReturnsTheAppendedEntries(t *testing.T) {
	b := Append(nil, sample...)
	b = append(b, 0, 0, 0, 0)
	b = Append(b, Entry{Name: "/a/b/c", Mode: File, Content: []byte("newer")})
	b = append(b, "compressed"...)
	got, rest, err := Read(b)
	if err != nil || string(rest) != "compressed" {
		t.Fatalf("Read = rest %q, %v", rest, err)
	}
	if want := "init a a/b a/b/c a/link dev dev/console a a/b a/b/c"; names(got) != want {
		t.Errorf("names %q, want %q", names(got), want)
	}
	if d := cmp.Diff(sample[3], got[6], cmp.Comparer(bytes.Equal)); d != "" {
		t.Errorf("device node (-want +got):\n%s", d)
	}
	if c, ok := Find(got, "/a/b/c"); !ok || string(c) != "newer" {
		t.Errorf("Find(/a/b/c) = %q, %v: want the later one", c, ok)
	}
	if _, ok := Find(got, "a/link"); ok {
		t.Error("Find(a/link) found a link: want files only")
	}
}

// GNU cpio, another implementation, lists the same names.
func TestGNUCpioListsTheArchive(t *testing.T) {
	cpio := prerequisites.Need(t, "cpio")
	cmd := exec.CommandContext(t.Context(), cpio, "-t", "--quiet")
	cmd.Stdin = bytes.NewReader(Append(nil, sample...))
	out, err := cmd.Output()
	if want := "init\na\na/b\na/b/c\na/link\ndev\ndev/console\n"; err != nil || string(out) != want {
		t.Errorf("cpio -t = %q, %v: want %q", out, err, want)
	}
}

func TestBrokenArchivesAreRefused(t *testing.T) {
	good := Append(nil, sample[0])
	for name, b := range map[string][]byte{
		"cut":              good[:60],
		"no trailer":       good[:headerLen+8+12],
		"huge content":     bytes.Replace(good, []byte("0000000a"), []byte("ffffffff"), 1),
		"name without end": append([]byte(magic+strings.Repeat("0", 11*8)+"00000004"+"00000000"), "abcd"...),
		"no number":        append([]byte(magic), bytes.Repeat([]byte("x"), 200)...),
	} {
		if _, _, err := Read(b); !errors.Is(err, errFormat) {
			t.Errorf("%s: Read = %v, want %v", name, err, errFormat)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Append(nil, sample...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _, err := Read(b)
		if err != nil {
			return
		}
		again, rest, err := Read(Append(nil, entries...))
		if err != nil || len(rest) != 0 {
			t.Fatalf("Read(Append(%q)) = rest %d, %v", names(entries), len(rest), err)
		}
		for _, e := range entries {
			if e.Mode&kind != File || strings.Contains(e.Name, trailer) {
				continue
			}
			want, _ := Find(entries, e.Name)
			if got, ok := Find(again, e.Name); !ok || !bytes.Equal(got, want) {
				t.Fatalf("Find(%q) = %q, %v after another turn, want %q", e.Name, got, ok, want)
			}
		}
	})
}

package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestNewUpdateChoosesAFreeID(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(host, text string) (*Incoming, string) {
		t.Helper()
		in, id, err := s.NewUpdate(host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatal(err)
		}
		return in, id
	}
	a, first := write("a/b", "one")
	b, second := write("a/b", "two") // while the first is being written
	c, other := write("c", "three")
	if first == second || first != other {
		t.Errorf("IDs = %s, %s and of another host %s", first, second, other)
	}
	for _, in := range []*Incoming{a, c} {
		if err := in.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Drop(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update("a/b", second); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Update() of one that was dropped = %v", err)
	}
	f, err := s.Update("a/b", first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); string(got) != "one" || err != nil {
		t.Errorf("the image holds %q, %v", got, err)
	}
	if err := s.KeepUpdates([]Image{{"c", other}}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(s.dir, string(updatesDir))); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v stay, want one", entries, err)
	}
	for range 2 { // removing twice is no error
		if err := s.RemoveUpdate("c", other); err != nil {
			t.Error(err)
		}
	}
}

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 6, time.UTC)

type value struct{ N int }

func newStore(t *testing.T, c Config) *Store {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// pages returns how often the store has written.
func pages(s *Store) int64 {
	s.commit.Lock()
	defer s.commit.Unlock()
	return int64(s.log.writes)
}

func TestSaveAndLoad(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		dir := t.TempDir()
		s := newStore(t, Config{Dir: dir, Fsync: fsync})
		if found, err := s.Load(Hosts, "a", new(value)); found || err != nil {
			t.Errorf("Load() of nothing = %v, %v", found, err)
		}
		if err := s.Save(origin, Put{Kind: Hosts, Key: "b", Value: value{2}}, Put{Kind: Hosts, Key: "a", Value: value{1}}, Put{Kind: Meta, Key: "x", Value: value{9}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = newStore(t, Config{Dir: dir, Fsync: fsync})
		var got value
		if found, err := s.Load(Hosts, "b", &got); !found || err != nil || got.N != 2 {
			t.Errorf("Load(b) = %v, %v, %v", found, err, got)
		}
		var all []string
		if err := s.Each(Hosts, func(key string, v []byte) error {
			all = append(all, fmt.Sprintf("%s=%s", key, v))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{`a={"N":1}`, `b={"N":2}`}, all); d != "" {
			t.Errorf("Each() (-want +got):\n%s", d)
		}
		if found, err := s.Load(Hosts, "b", new(string)); found || err == nil || !strings.Contains(err.Error(), "host b") {
			t.Errorf("Load() into a wrong type = %v, %v, want an error that names it", found, err)
		}
	}
}

// Each stops at the first error, and names the value.
func TestEachReturnsTheFirstError(t *testing.T) {
	s := newStore(t, Config{})
	if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: 1}, Put{Kind: Hosts, Key: "b", Value: 2}, Put{Kind: Hosts, Key: "c", Value: 3}); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	var seen []string
	err := s.Each(Hosts, func(key string, _ []byte) error {
		seen = append(seen, key)
		if key == "b" {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || err.Error() != "host b: wrong" || len(seen) != 2 {
		t.Errorf("Each() error = %v after %q, want that of b", err, seen)
	}
}

func TestCallsOfAClosedStoreFail(t *testing.T) {
	s := newStore(t, Config{})
	if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // closed again, it stays closed
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func() error{
		"Save":   func() error { return s.Save(origin, Put{Kind: Hosts, Key: "a", Value: 2}) },
		"Load":   func() error { _, err := s.Load(Hosts, "a", new(int)); return err },
		"Each":   func() error { return s.Each(Hosts, func(string, []byte) error { return nil }) },
		"Frozen": func() error { return s.Frozen(func() error { return nil }) },
	} {
		if err := call(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: error = %v, want %v", name, err, fs.ErrClosed)
		}
	}
}

func TestSavedTimeNeverGoesBack(t *testing.T) {
	dir := t.TempDir()
	if at, err := LastTime(dir); !at.IsZero() || err != nil {
		t.Errorf("LastTime() of an empty directory = %v, %v", at, err)
	}
	s := newStore(t, Config{Dir: dir})
	for _, at := range []time.Time{origin, origin.Add(time.Hour), origin.Add(time.Minute)} {
		if err := s.Save(at); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Last(), origin.Add(time.Hour); !got.Equal(want) {
		t.Errorf("Last() = %v, want %v", got, want)
	}
	if _, err := LastTime(dir); err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("LastTime() of an open store = %v, want an error that says so", err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("Open() of an open store = %v, want an error that says so", err)
	}
	s.Close()
	if got, err := LastTime(dir); err != nil || !got.Equal(origin.Add(time.Hour)) {
		t.Errorf("LastTime() = %v, %v, want %v", got, err, origin.Add(time.Hour))
	}
}

// A value that has not changed costs no commit.
func TestSavingAnUnchangedValueWritesNothing(t *testing.T) {
	s := newStore(t, Config{})
	put := Put{Kind: Hosts, Key: "a", Value: value{1}}
	if err := s.Save(origin, put); err != nil {
		t.Fatal(err)
	}
	before := pages(s)
	if err := s.Save(origin.Add(time.Hour), put); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(origin); err != nil {
		t.Fatal(err)
	}
	if got := pages(s); got != before {
		t.Errorf("%d pages written, want none", got-before)
	}
}

func TestSavesShareCommits(t *testing.T) {
	s := newStore(t, Config{})
	const savers = 200
	before := pages(s)
	s.commit.Lock() // all of them arrive during a commit
	var all sync.WaitGroup
	for i := range savers {
		all.Go(func() {
			if err := s.Save(origin.Add(time.Duration(i)), Put{Kind: Hosts, Key: fmt.Sprint(i), Value: value{i}}); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < savers; {
		s.mu.Lock()
		waiting = len(s.pending)
		s.mu.Unlock()
	}
	s.commit.Unlock()
	all.Wait()
	if n := pages(s) - before; n > 20 {
		t.Errorf("%d saves wrote %d pages: they did not share a commit", savers, n)
	}
	for i := range savers {
		var got value
		if found, err := s.Load(Hosts, fmt.Sprint(i), &got); !found || err != nil || got.N != i {
			t.Errorf("Load(%d) = %v, %v, %v", i, found, err, got)
		}
	}
	if want := origin.Add(savers - 1); !s.Last().Equal(want) {
		t.Errorf("Last() = %v, want %v", s.Last(), want)
	}
}

func TestSaveRefusesWrongValues(t *testing.T) {
	s := newStore(t, Config{})
	if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: make(chan int)}); err == nil || !strings.Contains(err.Error(), "host a") {
		t.Errorf("Save() of a channel = %v, want an error that names the key", err)
	}
	if err := s.Save(origin, Put{Kind: Hosts, Key: "", Value: value{}}); err == nil {
		t.Error("Save() without a key = nil, want an error")
	}
	s.Close()
	if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: value{}}); err == nil {
		t.Error("Save() after Close = nil, want an error")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte("not a database, but as long as one: "+strings.Repeat("x", 1<<14)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Open() of another file = %v, want an error that names it", err)
	}
	if _, err := Open(Config{Dir: filepath.Join(dir, file)}); err == nil {
		t.Error("Open() of a file as directory = nil, want an error")
	}
}

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled returns the directory of a store with a tree of several levels, large values and
// values in its log.
func filled(t *testing.T, end func(*testing.T, *Store)) string {
	t.Helper()
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	for i := range 400 {
		size := 100
		if i%50 == 0 {
			size = 20_000
		}
		if err := s.Save(origin, Put{Kind: Hosts, Key: fmt.Sprintf("node-%d/bmc", i), Value: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Load(Hosts, "a", nil); err != nil { // flushes the log
		t.Fatal(err)
	}
	if err := s.Save(origin, Put{Kind: Hosts, Key: "late", Value: 1}); err != nil {
		t.Fatal(err)
	}
	end(t, s)
	return dir
}

func closed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A database that was cut off, emptied, removed or replaced is refused by name, whether
// the store was closed or killed.
func TestDamagedDatabaseIsRefused(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Store){"closed": closed, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t, end)
			path := filepath.Join(dir, file)
			all, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for what, damage := range map[string]func() error{
				"empty":       func() error { return os.WriteFile(path, nil, 0o600) },
				"half":        func() error { return os.WriteFile(path, all[:len(all)/2], 0o600) },
				"a page less": func() error { return os.WriteFile(path, all[:len(all)-4096], 0o600) },
				"one byte":    func() error { return os.WriteFile(path, all[:1], 0o600) },
				"missing":     func() error { return os.Remove(path) },
				"a directory": func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
				"no meta":     func() error { return os.WriteFile(path, append(make([]byte, 8192), all[8192:]...), 0o600) },
			} {
				if err := damage(); err != nil {
					t.Fatal(err)
				}
				_, lastErr := LastTime(dir)
				_, err := Open(Config{Dir: dir})
				for _, err := range []error{err, lastErr} {
					var damage *DamageError
					if !errors.As(err, &damage) || damage.Path != path || !strings.Contains(damage.Fix, "restore a snapshot") {
						t.Errorf("%s: %v, want a DamageError of %s", what, err, path)
					}
				}
				if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, all, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			var got int
			if _, err := newStore(t, Config{Dir: dir}).Load(Hosts, "late", &got); err != nil || got != 1 {
				t.Errorf("put back: Load(late) = %d, %v", got, err)
			}
		})
	}
}

// Whatever byte of the structure of a database changes, opening it ends with a value or
// an error, and not with a fault in bbolt.
func TestChangedBytesOfTheDatabase(t *testing.T) {
	dir := filled(t, closed)
	path := filepath.Join(dir, file)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for page := 0; page < len(all); page += 4096 {
		for off := page; off < min(page+64, len(all)); off += 3 {
			b := bytes.Clone(all)
			b[off] ^= 0x81
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Config{Dir: dir})
			if err != nil {
				refused++
				continue
			}
			_ = s.Each(Hosts, func(string, []byte) error { return nil }) // an error is fine, a fault is not
			if err := s.Close(); err != nil {
				t.Errorf("byte %d: Close() = %v", off, err)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d changes were refused", refused)
	}
}

// No store is where none was made, and a kill while it is made leaves none.
func TestOpenMakesAStoreOfAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{file: nil, file + ".part": []byte("half")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, newStore(t, Config{Dir: dir}))
	if found, err := checkFiles(dir); err != nil || !found {
		t.Errorf("checkFiles() = %v, %v", found, err)
	}
}

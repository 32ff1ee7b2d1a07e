package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// killed abandons a store as a kill does: nothing is flushed, and its lock is
// released.
func killed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.log.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Saved values are there after a kill, wherever the log was cut.
func TestLogIsReplayedAfterAKill(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	for i := range 10 {
		if err := s.Save(origin.Add(time.Duration(i)*time.Hour), Put{Kind: Hosts, Key: "a", Value: value{i}}, Put{Kind: Hosts, Key: "b" + string(rune('0'+i)), Value: value{i}}); err != nil {
			t.Fatal(err)
		}
	}
	killed(t, s)
	all, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil || len(all) == 0 {
		t.Fatalf("log of %d bytes, %v", len(all), err)
	}
	if at, err := LastTime(dir); err != nil || !at.Equal(origin.Add(9*time.Hour)) {
		t.Errorf("LastTime() = %v, %v, want what the log says", at, err)
	}
	for _, cut := range []struct {
		name string
		log  []byte
		last int
	}{
		{"complete", all, 9},
		{"cut within the last batch", all[:len(all)-3], 8},
		{"cut within a length", all[:len(all)*9/10+5], -1},
		{"a byte of the last batch changed", append(bytes.Clone(all[:len(all)-1]), all[len(all)-1]^1), 8},
		{"followed by garbage", append(bytes.Clone(all), 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5), 9},
	} {
		into := t.TempDir()
		db, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{file: db, logFile: cut.log} {
			if err := os.WriteFile(filepath.Join(into, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := newStore(t, Config{Dir: into})
		var got value
		if found, err := s.Load(Hosts, "a", &got); !found || err != nil || cut.last >= 0 && got.N != cut.last {
			t.Errorf("%s: Load(a) = %v, %v, %v, want %d", cut.name, found, err, got, cut.last)
		}
		if want := origin.Add(time.Duration(got.N) * time.Hour); !s.Last().Equal(want) {
			t.Errorf("%s: Last() = %v, want %v, as its last batch", cut.name, s.Last(), want)
		}
		if err := s.Save(origin.Add(time.Hour*24), Put{Kind: Hosts, Key: "a", Value: value{99}}); err != nil {
			t.Errorf("%s: Save() afterwards = %v", cut.name, err)
		}
		killed(t, s)
		s = newStore(t, Config{Dir: into})
		if _, err := s.Load(Hosts, "a", &got); err != nil || got.N != 99 {
			t.Errorf("%s: after another kill Load(a) = %v, %v, want 99", cut.name, got, err)
		}
	}
}

// A large log is flushed to bbolt, and nothing is lost.
func TestLogIsFlushedWhenLarge(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	big := string(bytes.Repeat([]byte("x"), 100<<10))
	for i := range 100 {
		if err := s.Save(origin.Add(time.Duration(i)), Put{Kind: Hosts, Key: "a", Value: map[string]any{"i": i, "big": big}}); err != nil {
			t.Fatal(err)
		}
		if s.log.size > maxLog+200<<10 {
			t.Fatalf("the log has %d bytes after %d saves", s.log.size, i+1)
		}
	}
	if s.fail != nil {
		t.Error(s.fail)
	}
	killed(t, s)
	var got struct{ I int }
	if _, err := newStore(t, Config{Dir: dir}).Load(Hosts, "a", &got); err != nil || got.I != 99 {
		t.Errorf("Load() after a kill = %+v, %v, want 99", got, err)
	}
}

func FuzzBatch(f *testing.F) {
	f.Add(appendBatch(nil, 7, origin, []rawPut{{kind: Hosts, key: "a", value: []byte("1")}, {kind: Meta, key: "b"}, {kind: Hosts, key: "c", value: []byte("2"), more: true}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		number, at, puts, err := parseBatch(b)
		if err != nil {
			return
		}
		same, again, more, err := parseBatch(appendBatch(nil, number, at, puts))
		if err != nil || same != number || !again.Equal(at) || len(more) != len(puts) {
			t.Fatalf("parseBatch(% x) = %d, %v, %d puts; once more: %d, %v, %d, %v", b, number, at, len(puts), same, again, len(more), err)
		}
		for i := range puts {
			if d := cmp.Diff(puts[i], more[i], cmp.AllowUnexported(rawPut{})); d != "" && len(puts[i].value)+len(more[i].value) > 0 {
				t.Fatalf("put %d (-want +got):\n%s", i, d)
			}
		}
	})
}

// An addition to a value is applied once, wherever the store was killed.
func TestMoreAppendsToAValue(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	save := func(puts ...Put) {
		t.Helper()
		if err := s.Save(origin, puts...); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(when, want string) {
		t.Helper()
		got := ""
		err := s.Each(Hosts, func(key string, value []byte) error {
			got += key + "=" + string(value) + ";"
			return nil
		})
		if err != nil || got != want {
			t.Errorf("%s: the store holds %s, %v, want %s", when, got, err, want)
		}
	}
	more := func(key string, n int) Put { return Put{Kind: Hosts, Key: key, Value: n, More: true} }
	save(more("a", 1), more("b", 1))
	save(more("a", 2))
	save(more("a", 2)) // an equal addition counts again
	holds("added", "a=122;b=1;")
	save(more("a", 3))
	save(Put{Kind: Hosts, Key: "b", Value: Gone}, more("b", 7), more("b", 8))
	holds("emptied and started again", "a=1223;b=78;")
	save(Put{Kind: Hosts, Key: "a", Value: 5})
	save(more("a", 6))
	save(Put{Kind: Hosts, Key: "b", Value: Gone})
	killed(t, s)
	s = newStore(t, Config{Dir: dir})
	holds("after a kill", "a=56;")

	// Killed after the flush to bbolt and before the log was emptied.
	save(more("a", 7))
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	holds("brought into bbolt", "a=567;")
	killed(t, s)
	if err := os.WriteFile(filepath.Join(dir, logFile), log, 0o600); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, Config{Dir: dir})
	holds("after a kill before the log was emptied", "a=567;")
	save(more("a", 8))
	holds("later", "a=5678;")
}

// A log of a build whose batches had no numbers.
func TestLogOfAnotherFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	when, err := time.Now().UTC().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	row := appendText(appendText(appendText(appendText(nil, when), "host"), "a"), "b")
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(row)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(row, castagnoli))
	if err := os.WriteFile(filepath.Join(dir, logFile), append(b, row...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lastTime(dir); !errors.Is(err, errBatch) {
		t.Errorf("lastTime() error = %v, want %v", err, errBatch)
	}
}

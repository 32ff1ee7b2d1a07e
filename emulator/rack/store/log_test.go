package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
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
	at := batchOffsets(t, all)
	for _, cut := range []struct {
		name string
		log  []byte
		last int
	}{
		{"complete", all, 9},
		{"cut within the last batch", all[:len(all)-3], 8},
		{"cut within a length", all[:at[9]+2], 8},
		{"cut within a checksum", all[:at[9]+6], 8},
		{"followed by zeros, as after a power cut", append(bytes.Clone(all), make([]byte, 4096)...), 9},
		{"the last batch ends in zeros, as after a power cut", append(bytes.Clone(all[:at[9]+20]), make([]byte, 600)...), 8},
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

// batchOffsets returns where the batches of a log begin.
func batchOffsets(t *testing.T, log []byte) (at []int) {
	t.Helper()
	for off := logHead; off < len(log); {
		row, ok := rowAt(log[off:])
		if !ok {
			t.Fatalf("no batch at byte %d", off)
		}
		at, off = append(at, off), off+rowHead+len(row)
	}
	return at
}

// A log that no kill leaves is refused, with the byte at which it is damaged and a way to
// go on. The file stays as it is.
func TestDamagedLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	for i := range 5 {
		if err := s.Save(origin.Add(time.Duration(i)*time.Hour), Put{Kind: Hosts, Key: "a", Value: value{i}}); err != nil {
			t.Fatal(err)
		}
	}
	killed(t, s)
	path := filepath.Join(dir, logFile)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := batchOffsets(t, all)
	flip := func(i int) []byte {
		b := bytes.Clone(all)
		b[i] ^= 0x10
		return b
	}
	for _, tt := range []struct {
		name   string
		log    []byte
		offset int
	}{
		{"a byte in the middle", flip(len(all) / 2), at[2]},
		{"a byte of the first batch", flip(at[0] + 20), at[0]},
		{"a byte of the last batch", flip(at[4] + 20), at[4]},
		{"a length that is too small", flip(at[1]), at[1]},
		{"a length beyond the end", flip(at[1] + 2), at[1]},
		{"the length of the last batch", flip(at[4] + 1), at[4]},
		{"a checksum", flip(at[1] + 5), at[1]},
		{"the checksum of the last batch", flip(at[4] + 5), at[4]},
		{"the magic number", flip(0), 0},
		{"the number in the header", flip(len(logMagic)), 0},
		{"a batch is missing", append(bytes.Clone(all[:at[1]]), all[at[2]:]...), at[1]},
		{"the beginning is missing", all[at[1]:], 0},
		{"garbage follows", append(bytes.Clone(all), 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5), len(all)},
		{"it is empty", nil, 0},
		{"a part of the header", all[:logHead-3], 0},
	} {
		if err := os.WriteFile(path, tt.log, 0o600); err != nil {
			t.Fatal(err)
		}
		_, lastErr := LastTime(dir)
		s, err := Open(Config{Dir: dir})
		if err == nil {
			err = s.Close()
			t.Errorf("%s: Open() works, and Close() = %v", tt.name, err)
			continue
		}
		for _, err := range []error{err, lastErr} {
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Path != path || damage.Offset != int64(tt.offset) || damage.Fix == "" {
				t.Errorf("%s: %v, want a DamageError of %s at byte %d", tt.name, err, path, tt.offset)
			}
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, tt.log) {
			t.Errorf("%s: the refused log was changed (%v)", tt.name, err)
		}
	}

	// The fix that the error names works.
	if err := os.WriteFile(path, flip(at[3]+20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(at[3])); err != nil {
		t.Fatal(err)
	}
	var got value
	s = newStore(t, Config{Dir: dir})
	if _, err := s.Load(Hosts, "a", &got); err != nil || got.N != 2 {
		t.Errorf("cut before the damage: Load(a) = %v, %v, want 2", got, err)
	}
}

// A rack goes on without a log that the user has moved away, and says so.
func TestMissingLogIsReported(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	for i := range 2 {
		if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: value{i}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.Load(Hosts, "a", new(value)); err != nil { // flushes the log
				t.Fatal(err)
			}
		}
	}
	killed(t, s)
	if err := os.Remove(filepath.Join(dir, logFile)); err != nil {
		t.Fatal(err)
	}
	var messages bytes.Buffer
	s = newStore(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&messages, nil))})
	var got value
	if _, err := s.Load(Hosts, "a", &got); err != nil || got.N != 0 || !strings.Contains(messages.String(), "lacks the last 1 changes that were acknowledged") {
		t.Errorf("Load(a) = %v, %v, and the log says %q", got, err, messages.String())
	}
}

// A log without a header, of an earlier release.
func TestLogWithoutHeaderIsReplayed(t *testing.T) {
	dir := t.TempDir()
	if err := newStore(t, Config{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := open(dir, &bbolt.Options{NoFreelistSync: true})
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(Meta)).Delete([]byte(phaseKey)) })
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var log []byte
	for i := range 3 {
		row := appendBatch(nil, uint64(i+1), origin, []rawPut{{kind: Hosts, key: "a", value: []byte{'0' + byte(i)}}})
		log = binary.LittleEndian.AppendUint32(log, uint32(len(row)))
		log = append(binary.LittleEndian.AppendUint32(log, crc32.Checksum(row, castagnoli)), row...)
	}
	if err := os.WriteFile(filepath.Join(dir, logFile), log, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, Config{Dir: dir})
	got := 0
	if _, err := s.Load(Hosts, "a", &got); err != nil || got != 2 {
		t.Errorf("Load(a) = %d, %v, want 2", got, err)
	}
	if c, _, err := readLog(dir); err != nil || c.first != 4 {
		t.Errorf("the log now begins with batch %d, %v, want 4", c.first, err)
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
	if _, _, err := readLog(dir); !errors.Is(err, errBatch) {
		t.Errorf("readLog() error = %v, want %v", err, errBatch)
	}
}

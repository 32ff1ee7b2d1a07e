package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyOf returns a directory with the files of a store.
func copyOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// filesOf reads the files of a store.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{file, logFile, markFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}

// killedWith returns the files of a store that was killed with batches in its log.
func killedWith(t *testing.T, batches int) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	s := newStore(t, Config{Dir: dir})
	for i := range batches {
		if err := s.Save(origin, Put{Kind: Hosts, Key: "a", Value: value{i}}); err != nil {
			t.Fatal(err)
		}
	}
	killed(t, s)
	return filesOf(t, dir)
}

// A log that was cut anywhere, or removed, misses changes that were acknowledged: with Fsync the store
// is opened only by AcceptLoss; without it the message has their number.
func TestCutLogIsNoticed(t *testing.T) {
	const batches = 5
	files := killedWith(t, batches)
	whole := files[logFile]
	at := append(batchOffsets(t, whole), len(whole))
	for cut := logHead; cut <= len(whole); cut += 5 { // a batch has more bytes
		there := 0
		for _, end := range at[1:] {
			if end <= cut {
				there++
			}
		}
		files[logFile] = whole[:cut]
		checkLoss(t, files, uint64(batches-there), there-1)
	}
	delete(files, logFile)
	checkLoss(t, files, batches, -1)
}

// checkLoss opens a store that misses changes. n is the value that is left; -1 is none.
func checkLoss(t *testing.T, files map[string][]byte, missing uint64, n int) {
	t.Helper()
	var loss *LossError
	s, err := Open(Config{Dir: copyOf(t, files), Fsync: true})
	if missing == 0 {
		if err != nil || s.Close() != nil {
			t.Errorf("nothing is missing: %v", err)
		}
	} else if !errors.As(err, &loss) || loss.Missing != missing || !strings.Contains(err.Error(), "labctl up --accept-loss") {
		t.Errorf("the log of %d bytes: Open() = %v, want a LossError of %d changes", len(files[logFile]), err, missing)
	}
	for _, c := range []Config{{Fsync: true, AcceptLoss: true}, {}} {
		var messages bytes.Buffer
		c.Dir, c.Log = copyOf(t, files), slog.New(slog.NewTextHandler(&messages, nil))
		s := newStore(t, c)
		var got value
		found, err := s.Load(Hosts, "a", &got)
		if err != nil || found != (n >= 0) || found && got.N != n || strings.Contains(messages.String(), "acknowledged") != (missing > 0) {
			t.Errorf("the log of %d bytes: Load(a) = %v, %t, %v, want %d; the log says %s", len(files[logFile]), got, found, err, n, &messages)
		}
		if err := s.Close(); err != nil { // the rest counts as whole from now on
			t.Error(err)
		}
		if s, err = Open(Config{Dir: c.Dir, Fsync: true}); err != nil {
			t.Errorf("Open() after the loss was accepted = %v", err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A batch that a kill has torn was never acknowledged; nor is a log without batches a loss.
func TestTornBatchIsNoLoss(t *testing.T) {
	files := killedWith(t, 3)
	whole := bytes.Clone(files[logFile])
	at := batchOffsets(t, whole)
	for n := range len(whole) - at[2] { // a prefix of another batch
		files[logFile] = append(bytes.Clone(whole), whole[at[2]:at[2]+n]...)
		if s, err := Open(Config{Dir: copyOf(t, files), Fsync: true}); err != nil || s.Close() != nil {
			t.Errorf("%d bytes of a batch: Open() = %v", n, err)
		}
	}
	files = killedWith(t, 0)
	delete(files, logFile)
	if s, err := Open(Config{Dir: copyOf(t, files), Fsync: true}); err != nil || s.Close() != nil {
		t.Errorf("a log without batches: Open() = %v", err)
	}
}

// Without the mark it is not known whether the log is whole. A closed store needs none.
func TestMissingMark(t *testing.T) {
	for what, mark := range map[string][]byte{
		"it is missing": nil, "it has 7 bytes": make([]byte, 7), "it was changed": bytes.Repeat([]byte{1}, markSize),
	} {
		files := killedWith(t, 3)
		if files[markFile] = mark; mark == nil {
			delete(files, markFile)
		}
		var loss *LossError
		if _, err := Open(Config{Dir: copyOf(t, files), Fsync: true}); !errors.As(err, &loss) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), markFile) {
			t.Errorf("%s: Open() = %v, want a LossError", what, err)
		}
		dir := copyOf(t, files)
		closed(t, newStore(t, Config{Dir: dir}))
		if err := os.Remove(filepath.Join(dir, markFile)); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(Config{Dir: dir, Fsync: true}); err != nil || s.Close() != nil {
			t.Errorf("%s: a closed store: Open() = %v", what, err)
		}
	}
}

// Package store holds what a lab must know when it is started again: JSON values by
// kind and key in one bbolt file with a write-ahead log, the lab's time at the last
// save, the content of disks as sparse files, and the images of virtual media and of
// firmware updates. It does not know what its values mean.
package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Kind is a kind of value. Each kind has a bucket.
type Kind string

// The kinds of values. The constants are stored.
const (
	Meta  Kind = "lab"  // of the lab itself
	Hosts Kind = "host" // by name
)

const (
	file = "state.db"
	// Keys in Meta.
	timeKey  = "time"
	batchKey = "batch" // number of the last batch of the log that was flushed to bbolt
)

// patience is how long Open waits for another process to close the file.
const patience = time.Second

// Config says where and how a Store keeps its values.
type Config struct {
	Dir string
	// Fsync makes every save survive a power cut of the computer that the lab
	// runs on. Without it a save survives the death of the process only.
	Fsync bool
}

// Store is the durable state of one lab. It is safe for concurrent use.
type Store struct {
	dir   string
	fsync bool
	db    *bbolt.DB
	files *openFiles

	mu      sync.Mutex
	pending []*save    // not written yet
	commit  sync.Mutex // held while saves are written

	// Guarded by commit.
	last      time.Time // highest lab time that was saved
	log       *writeAheadLog
	unflushed map[valueKey]*pendingValue // what is in the log and not in bbolt yet
	fail      error                      // of the last flush
}

// pendingValue is what the log says about a value of bbolt.
type pendingValue struct {
	value []byte // empty: the key is removed
	more  bool   // value is appended to what bbolt holds
}

// valueKey identifies a value.
type valueKey struct {
	kind Kind
	key  string
}

// Put is one value to store.
type Put struct {
	Kind  Kind
	Key   string
	Value any // encoded as JSON; Gone removes the key
	// More appends the JSON to what the key holds, so that a save of a growing value
	// writes only what is new.
	More bool
}

// Gone as a Put's Value removes the key.
var Gone = gone{}

type gone struct{}

// save is one call of Save.
type save struct {
	at   time.Time
	puts []rawPut
	done bool // guarded by Store.commit
	err  error
}

// rawPut is an encoded Put.
type rawPut struct {
	kind  Kind
	key   string
	value []byte // empty: the key is removed
	more  bool   // value is appended to what the key holds
}

// Open opens the store in a directory, and makes it when there is none.
func Open(c Config) (*Store, error) {
	for _, d := range []string{c.Dir, filepath.Join(c.Dir, disksDir), filepath.Join(c.Dir, string(mediaDir)), filepath.Join(c.Dir, string(updatesDir))} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	db, err := open(c.Dir, &bbolt.Options{
		Timeout: patience, NoSync: !c.Fsync, NoGrowSync: !c.Fsync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{dir: c.Dir, fsync: c.Fsync, db: db, files: newFiles(openDisks, c.Fsync), unflushed: map[valueKey]*pendingValue{}}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, k := range []Kind{Meta, Hosts} {
			if _, err := tx.CreateBucketIfNotExists([]byte(k)); err != nil {
				return err
			}
		}
		s.last, err = readTime(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", filepath.Join(c.Dir, file), errors.Join(err, db.Close()))
	}
	if err := s.replay(); err != nil {
		return nil, fmt.Errorf("store: %s: %w", filepath.Join(c.Dir, logFile), errors.Join(err, db.Close()))
	}
	return s, nil
}

// replay flushes to bbolt what the last process left in the log.
func (s *Store) replay() (err error) {
	if s.log, err = openLog(s.dir, s.fsync); err != nil {
		return err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		s.log.batch, _ = binary.Uvarint(tx.Bucket([]byte(Meta)).Get([]byte(batchKey)))
		return nil
	})
	if err == nil {
		err = s.log.each(func(batch uint64, at time.Time, puts []rawPut) error {
			if batch > s.log.batch { // else the process was killed before it emptied the log
				s.log.batch = batch
				s.remember(at, puts)
			}
			return nil
		})
	}
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		return errors.Join(err, s.log.f.Close())
	}
	return nil
}

// remember adds a batch of the log to what is not in bbolt yet. It copies the values:
// those of replay are parts of one buffer.
func (s *Store) remember(at time.Time, puts []rawPut) {
	for _, p := range puts {
		at := valueKey{p.kind, p.key}
		is := s.unflushed[at]
		switch {
		case is == nil:
			s.unflushed[at] = &pendingValue{value: bytes.Clone(p.value), more: p.more}
		case p.more:
			is.value = append(is.value, p.value...)
		default:
			is.value, is.more = bytes.Clone(p.value), false
		}
	}
	if at.After(s.last) {
		s.last = at
	}
}

// flush moves what the log holds to bbolt, and empties the log. The caller holds
// s.commit, or nobody else knows of s yet.
func (s *Store) flush() error {
	if len(s.unflushed) == 0 && s.log.size == 0 {
		return s.log.empty()
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, at := range slices.SortedFunc(maps.Keys(s.unflushed), valueKey.compare) {
			bucket := tx.Bucket([]byte(at.kind))
			if bucket == nil {
				return fmt.Errorf("%s %s: there is no such kind", at.kind, at.key)
			}
			if err := s.unflushed[at].flush(bucket, []byte(at.key)); err != nil {
				return fmt.Errorf("%s %s: %w", at.kind, at.key, err)
			}
		}
		v, err := json.Marshal(s.last)
		if err != nil {
			return err
		}
		meta := tx.Bucket([]byte(Meta))
		return errors.Join(meta.Put([]byte(timeKey), v), meta.Put([]byte(batchKey), binary.AppendUvarint(nil, s.log.batch)))
	})
	if err != nil {
		return err
	}
	clear(s.unflushed)
	return s.log.empty()
}

// flush does to a key in bbolt what the log says.
func (v *pendingValue) flush(bucket *bbolt.Bucket, key []byte) error {
	switch {
	case v.more: // bbolt keeps a reference to the value until the commit
		return bucket.Put(key, slices.Concat(bucket.Get(key), v.value))
	case len(v.value) == 0:
		return bucket.Delete(key)
	}
	return bucket.Put(key, v.value)
}

// compare orders keys as bbolt does.
func (p valueKey) compare(q valueKey) int {
	return cmp.Or(strings.Compare(string(p.kind), string(q.kind)), strings.Compare(p.key, q.key))
}

func open(dir string, o *bbolt.Options) (*bbolt.DB, error) {
	path := filepath.Join(dir, file)
	db, err := bbolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("store: %s: another process has it open", path)
	case err != nil:
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	return db, nil
}

// LastTime returns the highest lab time that was saved in a directory, which no
// process may have open. It is zero when there is none.
func LastTime(dir string) (time.Time, error) {
	if _, err := os.Stat(filepath.Join(dir, file)); errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	db, err := open(dir, &bbolt.Options{Timeout: patience, ReadOnly: true})
	if err != nil {
		return time.Time{}, err
	}
	defer db.Close()
	var at time.Time
	err = db.View(func(tx *bbolt.Tx) error {
		at, err = readTime(tx)
		return err
	})
	if err != nil {
		return at, err
	}
	late, err := lastTime(dir)
	if err != nil {
		return at, fmt.Errorf("store: %s: %w", filepath.Join(dir, logFile), err)
	}
	if late.After(at) {
		at = late
	}
	return at, nil
}

func readTime(tx *bbolt.Tx) (at time.Time, err error) {
	b := tx.Bucket([]byte(Meta))
	if b == nil {
		return at, nil
	}
	v := b.Get([]byte(timeKey))
	if v == nil {
		return at, nil
	}
	if err := json.Unmarshal(v, &at); err != nil {
		return at, fmt.Errorf("store: saved time: %w", err)
	}
	return at, nil
}

// Last returns the highest lab time that was saved, or zero when there is none.
func (s *Store) Last() time.Time {
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.last
}

// Save stores all of the values or none, and the lab's time. It returns when they are
// committed. Values that have not changed cost no commit. Concurrent saves share one
// commit, in no particular order: a caller that saves a key twice must wait for the
// first save.
func (s *Store) Save(at time.Time, puts ...Put) error {
	w := &save{at: at}
	for _, p := range puts {
		if p.Key == "" {
			return fmt.Errorf("store: %s: a value needs a key", p.Kind)
		}
		put := rawPut{kind: p.Kind, key: p.Key, more: p.More}
		if p.Value != Gone {
			var err error
			if put.value, err = json.Marshal(p.Value); err != nil {
				return fmt.Errorf("store: %s %s: %w", p.Kind, p.Key, err)
			}
		}
		w.puts = append(w.puts, put)
	}
	s.mu.Lock()
	s.pending = append(s.pending, w)
	s.mu.Unlock()

	s.commit.Lock()
	defer s.commit.Unlock()
	if w.done { // another caller has written it
		return w.err
	}
	s.mu.Lock()
	batch := s.pending
	s.pending = nil
	s.mu.Unlock()
	err := s.write(batch)
	for _, b := range batch {
		b.done, b.err = true, err
	}
	return err
}

// write writes a batch of saves to the log. The caller holds s.commit.
func (s *Store) write(batch []*save) error {
	if s.log == nil {
		return fmt.Errorf("store: %w", fs.ErrClosed)
	}
	last := s.last
	var puts []rawPut
	for i, w := range batch {
		changed, err := s.changed(w.puts)
		if err != nil {
			return err
		}
		if i == 0 {
			puts = changed
		} else {
			puts = append(puts, changed...)
		}
		if w.at.After(last) && (len(changed) > 0 || len(w.puts) == 0) {
			last = w.at
		}
	}
	if len(puts) == 0 && last.Equal(s.last) {
		return nil
	}
	if err := s.log.add(last, puts); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.remember(last, puts)
	if s.log.size > maxLog {
		s.fail = s.flush() // what was saved is in the log even if this fails
	}
	return nil
}

// changed returns the puts whose values the store does not hold already. A recent
// value is likely to be unflushed, which is the cheaper place to look.
func (s *Store) changed(puts []rawPut) ([]rawPut, error) {
	out := puts[:0]
	var tx *bbolt.Tx
	for _, p := range puts {
		if !p.more {
			var was []byte
			is := s.unflushed[valueKey{p.kind, p.key}]
			if is != nil {
				was = is.value
			} else {
				if tx == nil {
					var err error
					if tx, err = s.db.Begin(false); err != nil {
						return nil, fmt.Errorf("store: %w", err)
					}
				}
				was = tx.Bucket([]byte(p.kind)).Get([]byte(p.key))
			}
			if (is == nil || !is.more) && bytes.Equal(was, p.value) {
				continue
			}
		}
		out = append(out, p)
	}
	if tx != nil {
		if err := tx.Rollback(); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	return out, nil
}

// viewFlushed calls f with a view of bbolt that holds everything that was saved.
func (s *Store) viewFlushed(f func(tx *bbolt.Tx) error) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.flush(); err != nil {
		return err
	}
	return s.db.View(f)
}

// Load reads the value of a key into v. It returns false when the key has none.
func (s *Store) Load(k Kind, key string, v any) (bool, error) {
	found := false
	err := s.viewFlushed(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(k)).Get([]byte(key))
		found = b != nil
		if !found {
			return nil
		}
		return json.Unmarshal(b, v)
	})
	if err != nil {
		return false, fmt.Errorf("store: %s %s: %w", k, key, err)
	}
	return found, nil
}

// Each calls f for every value of a kind, in the order of their keys. The value is
// valid until f returns.
func (s *Store) Each(k Kind, f func(key string, value []byte) error) error {
	err := s.viewFlushed(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(k)).ForEach(func(key, value []byte) error {
			if err := f(string(key), value); err != nil {
				return fmt.Errorf("%s %s: %w", k, key, err)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Close closes the store and its disks after the calls that are under way. Later
// calls fail.
func (s *Store) Close() error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.log == nil { // closed already
		return nil
	}
	err := errors.Join(s.flush(), s.log.f.Close(), s.files.close(), s.db.Close())
	s.log = nil
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// DisksDir is the directory of the disks in a store's directory. It holds a directory
// for each host, whose name is the host's, escaped as in a URL path.
const DisksDir = disksDir

// Holds reports whether a file in a store's directory belongs to the store. The name
// is relative to that directory and has slashes.
func Holds(name string) bool {
	dir, _, below := strings.Cut(name, "/")
	if below {
		return dir == disksDir || imageDir(dir) == mediaDir || imageDir(dir) == updatesDir
	}
	return name == file || name == logFile
}

// Frozen calls f while nothing is saved and the files hold everything that was. It
// does not hold back writes to disks.
func (s *Store) Frozen(f func() error) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.flush(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return f()
}

// Package store owns what a lab must still know when it is started again: JSON
// values by kind and key in one bbolt file, the lab's time at the last save, the
// content of disks as sparse files, and the images that virtual media hold. It
// does not know what its values mean.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Kind is a kind of value; each has a bucket of its own.
type Kind string

// The kinds. Values are stored.
const (
	Meta  Kind = "lab"  // of the lab itself
	Hosts Kind = "host" // by name
)

const (
	file    = "state.db"
	timeKey = "time" // in Meta
)

// patience is how long Open waits for another process to let go of the file.
const patience = time.Second

// Config says where and how to store.
type Config struct {
	Dir string
	// Fsync makes every save survive a power cut of the computer that the lab
	// runs on. Without it a save survives the death of the lab only.
	Fsync bool
}

// Store is the durable state of one lab. It is safe for concurrent use.
type Store struct {
	dir   string
	fsync bool
	db    *bbolt.DB
	files *files

	mu      sync.Mutex
	pending []*save // not begun yet
	commit  sync.Mutex
	last    time.Time // highest lab time that was saved; guarded by commit
}

// Put is one value to be stored.
type Put struct {
	Kind  Kind
	Key   string
	Value any // JSON is made of it
}

// save is what one caller of Save waits for.
type save struct {
	at   time.Time
	puts []raw
	done bool // guarded by Store.commit
	err  error
}

type raw struct {
	kind       Kind
	key, value []byte
}

// Open opens the store in a directory, which it makes if need be.
func Open(c Config) (*Store, error) {
	for _, d := range []string{c.Dir, filepath.Join(c.Dir, disksDir), filepath.Join(c.Dir, mediaDir)} {
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
	s := &Store{dir: c.Dir, fsync: c.Fsync, db: db, files: newFiles(openDisks, c.Fsync)}
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
	return s, nil
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

// LastTime is the highest lab time that was saved in a directory that nobody
// has open; zero when there is none.
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
	return at, err
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

// Last is the highest lab time that was saved; zero when there is none.
func (s *Store) Last() time.Time {
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.last
}

// Save stores values, all or none, and the lab's time; it returns when they are
// committed. Values that are stored already cost no commit. Saves of several
// callers share one commit; who saves the same key twice waits in between.
func (s *Store) Save(at time.Time, puts ...Put) error {
	w := &save{at: at}
	for _, p := range puts {
		v, err := json.Marshal(p.Value)
		if err != nil {
			return fmt.Errorf("store: %s %s: %w", p.Kind, p.Key, err)
		}
		w.puts = append(w.puts, raw{kind: p.Kind, key: []byte(p.Key), value: v})
	}
	if len(puts) > 0 && s.holds(w.puts) {
		return nil
	}
	s.mu.Lock()
	s.pending = append(s.pending, w)
	s.mu.Unlock()

	s.commit.Lock()
	defer s.commit.Unlock()
	if w.done { // by one who held commit before
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

func (s *Store) holds(puts []raw) bool {
	same := true
	err := s.db.View(func(tx *bbolt.Tx) error {
		for _, p := range puts {
			same = same && bytes.Equal(tx.Bucket([]byte(p.kind)).Get(p.key), p.value)
		}
		return nil
	})
	return err == nil && same
}

// write commits a batch. It holds s.commit.
func (s *Store) write(batch []*save) error {
	last, empty := s.last, true
	for _, w := range batch {
		if w.at.After(last) {
			last = w.at
		}
		empty = empty && len(w.puts) == 0
	}
	if empty && last.Equal(s.last) {
		return nil
	}
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, w := range batch {
			for _, p := range w.puts {
				if err := tx.Bucket([]byte(p.kind)).Put(p.key, p.value); err != nil {
					return fmt.Errorf("%s %s: %w", p.kind, p.key, err)
				}
			}
		}
		if last.Equal(s.last) {
			return nil
		}
		v, err := json.Marshal(last)
		if err != nil {
			return err
		}
		return tx.Bucket([]byte(Meta)).Put([]byte(timeKey), v)
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.last = last
	return nil
}

// Load reads the value of a key into v; false when there is none.
func (s *Store) Load(k Kind, key string, v any) (bool, error) {
	found := false
	err := s.db.View(func(tx *bbolt.Tx) error {
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

// Each calls f for every value of a kind, in the order of their keys. The JSON
// is f's only until it returns.
func (s *Store) Each(k Kind, f func(key string, value []byte) error) error {
	err := s.db.View(func(tx *bbolt.Tx) error {
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

// Close closes the store and its disks. What is under way is finished first;
// what comes later fails.
func (s *Store) Close() error {
	if err := errors.Join(s.files.close(), s.db.Close()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

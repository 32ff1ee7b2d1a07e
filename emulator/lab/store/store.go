// Package store owns what a lab must still know when it is started again: JSON
// values by kind and key in one bbolt file with a log before it, the lab's time
// at the last save, the content of disks as sparse files, and the images that
// virtual media hold and firmware is updated with. It does not know what its values mean.
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

// Kind is a kind of value; each has a bucket of its own.
type Kind string

// The kinds. Values are stored.
const (
	Meta  Kind = "lab"  // of the lab itself
	Hosts Kind = "host" // by name
)

const (
	file = "state.db"
	// In Meta.
	timeKey  = "time"
	batchKey = "batch" // number of the last batch of the log that is in bbolt
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

	// Guarded by commit.
	spare []*save   // room for what is pending next
	last  time.Time // highest lab time that was saved
	log   *journal
	late  map[place]*held // what is in the log and not in bbolt yet
	order []place         // room for its places
	rooms []*held         // room for what is next
	fail  error           // of the last try to bring it there
}

// held is what the log does to a value of bbolt.
type held struct {
	value []byte // none takes the key out
	more  bool   // it is added to what bbolt holds
}

// place is where a value is.
type place struct {
	kind Kind
	key  string
}

// Put is one value to be stored.
type Put struct {
	Kind  Kind
	Key   string
	Value any // JSON is made of it; Gone takes the key out
	// More says that the JSON is added, behind it, to what the key holds: it
	// grows, and each save writes no more than is new.
	More bool
}

// appender is a value that makes its JSON itself.
type appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// Gone is no value.
var Gone = gone{}

type gone struct{}

// save is what one caller of Save waits for.
type save struct {
	at   time.Time
	puts []raw
	room []byte // for their values
	done bool   // guarded by Store.commit
	err  error
}

// saves are those that are over, with their room.
var saves = sync.Pool{New: func() any { return new(save) }}

// These bound the room that is kept, in bytes: of a save, and of all that the
// log held.
const (
	maxRoom  = 16 << 10
	maxRooms = 2 << 20
)

// over gives a save back.
func (w *save) over() {
	clear(w.puts)
	if *w = (save{puts: w.puts[:0], room: w.room[:0]}); cap(w.room) <= maxRoom {
		saves.Put(w)
	}
}

type raw struct {
	kind  Kind
	key   string
	value []byte // none takes the key out
	more  bool   // it is added to what the key holds
}

// Open opens the store in a directory, which it makes if need be.
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
	s := &Store{dir: c.Dir, fsync: c.Fsync, db: db, files: newFiles(openDisks, c.Fsync), late: map[place]*held{}}
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

// replay brings into bbolt what the last user of the store left in its log.
func (s *Store) replay() (err error) {
	if s.log, err = openJournal(s.dir, s.fsync); err != nil {
		return err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		s.log.batch, _ = binary.Uvarint(tx.Bucket([]byte(Meta)).Get([]byte(batchKey)))
		return nil
	})
	if err == nil {
		err = s.log.each(func(batch uint64, at time.Time, puts []raw) error {
			if batch > s.log.batch { // else its user was killed before the log was emptied
				s.log.batch = batch
				s.note(at, puts)
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

// note remembers what is in the log and not in bbolt yet.
func (s *Store) note(at time.Time, puts []raw) {
	for _, p := range puts {
		at := place{p.kind, p.key}
		is := s.late[at]
		switch {
		case is == nil:
			is = &held{}
			if n := len(s.rooms); n > 0 {
				is, s.rooms = s.rooms[n-1], s.rooms[:n-1]
			}
			is.value, is.more = append(is.value[:0], p.value...), p.more
			s.late[at] = is
		case p.more:
			is.value = append(is.value, p.value...)
		default:
			is.value, is.more = append(is.value[:0], p.value...), false
		}
	}
	if at.After(s.last) {
		s.last = at
	}
}

// flush brings the log into bbolt. It holds s.commit, or nobody else has s.
func (s *Store) flush() error {
	if len(s.late) > 0 || s.log.size > 0 {
		err := s.db.Update(func(tx *bbolt.Tx) error {
			s.order = slices.AppendSeq(s.order[:0], maps.Keys(s.late))
			slices.SortFunc(s.order, place.compare)
			for _, at := range s.order {
				bucket := tx.Bucket([]byte(at.kind))
				if bucket == nil {
					return fmt.Errorf("%s %s: there is no such kind", at.kind, at.key)
				}
				var err error
				is := s.late[at]
				switch {
				case is.more: // what bbolt is given stays its own until the commit
					err = bucket.Put([]byte(at.key), slices.Concat(bucket.Get([]byte(at.key)), is.value))
				case len(is.value) == 0:
					err = bucket.Delete([]byte(at.key))
				default:
					err = bucket.Put([]byte(at.key), is.value)
				}
				if err != nil {
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
	}
	kept := 0
	for _, is := range s.rooms {
		kept += cap(is.value)
	}
	for _, is := range s.late {
		if kept += cap(is.value); kept > maxRooms {
			break
		}
		s.rooms = append(s.rooms, is)
	}
	clear(s.late)
	clear(s.order) // of their texts
	return s.log.empty()
}

// compare orders places as bbolt keeps them.
func (p place) compare(q place) int {
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
	w := saves.Get().(*save)
	defer w.over()
	w.at = at
	for _, p := range puts {
		if p.Key == "" {
			return fmt.Errorf("store: %s: a value needs a key", p.Kind)
		}
		put := raw{kind: p.Kind, key: p.Key, more: p.More}
		if p.Value != Gone {
			var err error
			if own, ok := p.Value.(appender); ok {
				from := len(w.room)
				w.room, err = own.AppendJSON(w.room)
				put.value = w.room[from:]
			} else {
				put.value, err = json.Marshal(p.Value)
			}
			if err != nil {
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
	if w.done { // by one who held commit before
		return w.err
	}
	s.mu.Lock()
	batch := s.pending
	s.pending = s.spare
	s.mu.Unlock()
	err := s.write(batch)
	for i, b := range batch {
		b.done, b.err = true, err
		batch[i] = nil
	}
	s.spare = batch[:0]
	return err
}

// write makes a batch durable. It holds s.commit.
func (s *Store) write(batch []*save) error {
	if s.log == nil {
		return fmt.Errorf("store: %w", fs.ErrClosed)
	}
	last := s.last
	var puts []raw
	for i, w := range batch {
		fresh, err := s.fresh(w.puts)
		if err != nil {
			return err
		}
		if i == 0 {
			puts = fresh
		} else {
			puts = append(puts, fresh...)
		}
		if w.at.After(last) && (len(fresh) > 0 || len(w.puts) == 0) {
			last = w.at
		}
	}
	if len(puts) == 0 && last.Equal(s.last) {
		return nil
	}
	if err := s.log.add(last, puts); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.note(last, puts)
	if s.log.size > maxLog {
		s.fail = s.flush() // what was saved is safe in the log all the same
	}
	return nil
}

// fresh are those of some puts that the store does not hold already. What was
// saved last is likely to be in the log still, where looking costs less.
func (s *Store) fresh(puts []raw) ([]raw, error) {
	out := puts[:0]
	var tx *bbolt.Tx
	for _, p := range puts {
		if !p.more {
			var was []byte
			is := s.late[place{p.kind, p.key}]
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

// settled lets f read bbolt when all that was saved is there.
func (s *Store) settled(f func(tx *bbolt.Tx) error) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.flush(); err != nil {
		return err
	}
	return s.db.View(f)
}

// Load reads the value of a key into v; false when there is none.
func (s *Store) Load(k Kind, key string, v any) (bool, error) {
	found := false
	err := s.settled(func(tx *bbolt.Tx) error {
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
	err := s.settled(func(tx *bbolt.Tx) error {
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
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.log == nil { // closed before
		return nil
	}
	err := errors.Join(s.flush(), s.log.f.Close(), s.files.close(), s.db.Close())
	s.log = nil
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// DisksDir is where the disks are in a store's directory: a directory for each
// host, by its name as a path of a URL has it.
const DisksDir = disksDir

// Holds says whether a file in a store's directory, named from there with
// slashes, is the store's.
func Holds(name string) bool {
	dir, _, below := strings.Cut(name, "/")
	if below {
		return dir == disksDir || images(dir) == mediaDir || images(dir) == updatesDir
	}
	return name == file || name == logFile
}

// Frozen calls f while nothing is saved and the files hold all that was. What
// disks hold is not its concern.
func (s *Store) Frozen(f func() error) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.flush(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return f()
}

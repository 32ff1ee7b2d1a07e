// Package store holds what a rack must know when it is started again: JSON values by
// kind and key in one bbolt file with a write-ahead log, the lab's time at the last
// save, the content of disks as sparse files, and the images of virtual media and of
// firmware updates. It does not know what its values mean.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
)

// Kind is a kind of value. Each kind has a bucket.
type Kind string

// The kinds of values. The constants are stored.
const (
	Meta  Kind = "lab"  // values of the rack itself
	Hosts Kind = "host" // by name
)

const (
	file = "state.db"
	// Keys in Meta.
	timeKey  = "time"
	batchKey = "batch" // number of the last batch of the log that was flushed to bbolt
	phaseKey = "phase" // phaseOpen or phaseClosed; none from an earlier release
	sumsKey  = "sums"  // see digest
	markKey  = "mark"  // there is a mark; none from an earlier release, and without space
)

// Values of phaseKey.
const (
	phaseOpen   = "open"   // the store is open, or its process was killed: the log may hold more
	phaseClosed = "closed" // the store was closed: all is in bbolt
)

// patience is how long Open waits for another process to close the file.
const patience = time.Second

// Config says where and how a Store keeps its values.
type Config struct {
	Dir string
	// Fsync makes every save survive a power cut of the computer that the rack
	// runs on. Without it a save survives the death of the process only.
	Fsync bool
	// AcceptLoss opens a store that misses acknowledged changes. Without Fsync it is opened anyway.
	AcceptLoss bool
	// Emptied, if not nil, accepts the hosts whose disks are about to be removed: they may be damaged.
	Emptied func(host string) bool
	Log     *slog.Logger // nil: none
	// Use, if not nil, is called before n bytes of a disk or an image are written. Its
	// error refuses the write.
	Use func(n int) error
}

// Store is the durable state of one rack. It is safe for concurrent use.
type Store struct {
	dir        string
	fsync      bool
	acceptLoss bool
	marked     bool // there is a mark
	plain      bool // values may have no checksum
	messages   *slog.Logger
	use        func(n int) error
	db         *bbolt.DB
	files      *openFiles

	mu      sync.Mutex
	pending []*save    // not written yet
	commit  sync.Mutex // held while saves are written

	// Guarded by commit.
	last      time.Time // highest lab time that was saved
	log       *writeAheadLog
	unflushed map[valueKey]*pendingValue // what is in the log and not in bbolt yet
	fail      error                      // error of the last flush
	saves     uint64                     // that were written
	commits   uint64                     // writes of the log
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

// Open opens the store in a directory, and makes it when there is none. The error is a
// *DamageError when another program has changed a file of the store, and with Config.Fsync
// a *LossError when acknowledged changes are missing.
func Open(c Config) (*Store, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	found, err := checkFiles(c.Dir)
	if err == nil && !found {
		err = create(c.Dir)
	}
	if err != nil {
		return nil, err
	}
	for _, d := range []string{disksDir, string(mediaDir), string(updatesDir)} {
		if err := makeDir(filepath.Join(c.Dir, d)); err != nil {
			return nil, err
		}
	}
	db, err := open(c.Dir, &bbolt.Options{
		Timeout: patience, NoSync: !c.Fsync, NoGrowSync: !c.Fsync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	if c.Use == nil {
		c.Use = func(int) error { return nil }
	}
	s := &Store{dir: c.Dir, fsync: c.Fsync, acceptLoss: c.AcceptLoss, messages: c.Log, use: c.Use, db: db, files: newFiles(openDisks, c.Fsync), plain: true, unflushed: map[valueKey]*pendingValue{}}
	killed, err := s.replay()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if killed { // the owner of a store that was closed compares the files with its list
		err = s.checkDisks(c.Emptied)
	}
	if err != nil && c.AcceptLoss {
		s.messages.Warn("the lab goes on with damaged disks", "err", err)
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, s.log.close(), db.Close())
	}
	return s, nil
}

// Last returns the highest lab time that was saved, or zero when there is none.
func (s *Store) Last() time.Time {
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.last
}

// Stats returns how many saves were written and in how many commits, and the size of the
// database and its log in bytes.
func (s *Store) Stats() (saves, commits uint64, size int64) {
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.log != nil {
		size = s.log.size
	}
	if st, err := os.Stat(filepath.Join(s.dir, DatabaseFile)); err == nil {
		size += st.Size()
	}
	return s.saves, s.commits, size
}

// Save stores all of the values or none, and the lab's time. It returns when they are
// committed. Values that have not changed cost no commit. Concurrent saves share one
// commit, in no particular order: a caller that saves a key twice must wait for the
// first save.
func (s *Store) Save(at time.Time, puts ...Put) error {
	w := &save{at: at}
	for _, p := range puts {
		if p.Key == "" {
			return fmt.Errorf("%s: a value needs a key", p.Kind)
		}
		put := rawPut{kind: p.Kind, key: p.Key, more: p.More}
		if p.Value != Gone {
			var err error
			if put.value, err = json.Marshal(p.Value); err != nil {
				return fmt.Errorf("%s %s: %w", p.Kind, p.Key, err)
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
		return fs.ErrClosed
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
		return err
	}
	s.saves, s.commits = s.saves+uint64(len(batch)), s.commits+1
	s.remember(last, puts)
	if s.log.size > maxLog {
		s.fail = s.flush() // what was saved is in the log even if this fails
	}
	return nil
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
		b := valueOf(tx.Bucket([]byte(k)), key)
		found = b != nil
		if !found {
			return nil
		}
		return json.Unmarshal(b, v)
	})
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", k, key, err)
	}
	return found, nil
}

// Each calls f for every value of a kind, in the order of their keys. The value is
// valid until f returns.
func (s *Store) Each(k Kind, f func(key string, value []byte) error) error {
	err := s.viewFlushed(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(k)).ForEach(func(key, sealed []byte) error {
			if err := f(string(key), unseal(sealed)); err != nil {
				return fmt.Errorf("%s %s: %w", k, key, err)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return nil
}

// Keys returns the keys of a kind that begin with a prefix, sorted.
func (s *Store) Keys(k Kind, prefix string) (keys []string, err error) {
	err = s.viewFlushed(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(k)).Cursor()
		for key, _ := c.Seek([]byte(prefix)); strings.HasPrefix(string(key), prefix) && key != nil; key, _ = c.Next() {
			keys = append(keys, string(key))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// Close closes the store and its disks after the calls that are under way. Later
// calls fail. On a full disk the batches of the log stay there until the next Open.
func (s *Store) Close() error {
	disks := s.files.close() // writes that are under way may save their disk's record
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.log == nil { // closed already
		return disks
	}
	err := s.flushTo(s.log.batch, phaseClosed)
	if err == nil {
		err = s.log.empty()
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		s.messages.Warn("the log is kept: there is no space to empty it", "err", err)
		err = nil
	}
	err = errors.Join(err, s.log.close(), disks, s.db.Close())
	s.log = nil
	if err != nil {
		return err
	}
	return nil
}

// Names in a store's directory.
const (
	DatabaseFile = file
	LogFile      = logFile
	MarkFile     = markFile
	// DisksDir holds a directory for each host, whose name is the host's, escaped as in
	// a URL path.
	DisksDir = disksDir
	// MediaDir and UpdatesDir hold images, whose names are the host's and the ID,
	// escaped in the same way, with a dash between them.
	MediaDir   = string(mediaDir)
	UpdatesDir = string(updatesDir)
)

// Holds reports whether a file in a store's directory belongs to the store. The name
// is relative to that directory and has slashes.
func Holds(name string) bool {
	dir, _, below := strings.Cut(name, "/")
	if below {
		return dir == disksDir || imageDir(dir) == mediaDir || imageDir(dir) == updatesDir
	}
	return name == file || name == logFile || name == markFile
}

// Frozen calls f while nothing is saved and the files hold everything that was. It
// does not hold back writes to disks.
func (s *Store) Frozen(f func() error) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.flush(); err != nil {
		return err
	}
	return f()
}

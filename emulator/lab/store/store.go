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
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	phaseKey = "phase" // phaseOpen or phaseClosed; none from an earlier release
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
	// Fsync makes every save survive a power cut of the computer that the lab
	// runs on. Without it a save survives the death of the process only.
	Fsync bool
	Log   *slog.Logger // nil: none
	// Use, if not nil, is called before n bytes of a disk or an image are written. Its
	// error refuses the write.
	Use func(n int) error
}

// Store is the durable state of one lab. It is safe for concurrent use.
type Store struct {
	dir      string
	fsync    bool
	messages *slog.Logger
	use      func(n int) error
	db       *bbolt.DB
	files    *openFiles

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

// Open opens the store in a directory, and makes it when there is none. The error is a
// *DamageError when another program has changed a file of the store.
func Open(c Config) (*Store, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
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
	s := &Store{dir: c.Dir, fsync: c.Fsync, messages: c.Log, use: c.Use, db: db, files: newFiles(openDisks, c.Fsync), unflushed: map[valueKey]*pendingValue{}}
	if err := s.replay(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// create makes an empty database. Its file has its name when it is complete, so that no
// kill leaves a part of it.
func create(dir string) error {
	path := filepath.Join(dir, file)
	part := path + ".part"
	err := os.RemoveAll(part)
	if err == nil {
		var db *bbolt.DB
		if db, err = bbolt.Open(part, 0o600, &bbolt.Options{Timeout: patience, NoFreelistSync: true}); err == nil {
			err = db.Close()
		}
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", path, err)
	}
	return nil
}

// makeDir makes a directory of the store.
func makeDir(path string) error {
	err := os.MkdirAll(path, 0o700)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return &DamageError{Path: path, Offset: -1, Detail: "it is no directory", Fix: "move it away, and " + restoreFix}
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// content is read from the files of a store when it is opened.
type content struct {
	batch    uint64 // number of the last batch in bbolt
	last     time.Time
	replayed []loggedBatch // of the log, later than batch
	torn     int64         // bytes at the end of the log: a batch that was cut
	log      bool          // there is a log with a header
	lost     bool          // the store was not closed, and its log is gone
}

// inspect reads the last batch and time of a database and its log.
func inspect(dir string, db *bbolt.DB) (c content, err error) {
	phase := ""
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(Meta))
		if meta == nil { // the store was just created
			return nil
		}
		phase = string(meta.Get([]byte(phaseKey)))
		c.batch, _ = binary.Uvarint(meta.Get([]byte(batchKey)))
		c.last, err = readTime(tx)
		return err
	})
	if err != nil {
		return c, fmt.Errorf("store: %s: %w", filepath.Join(dir, file), err)
	}
	logged, found, err := readLog(dir)
	path := filepath.Join(dir, logFile)
	var damage *DamageError
	switch {
	case errors.As(err, &damage) && phase == phaseClosed && damage.Offset >= 0:
		return c, nil // everything is in bbolt: the log is made anew
	case err != nil:
		return c, err
	case logged.first > c.batch+1:
		return c, &DamageError{
			Path: filepath.Join(dir, file), Offset: -1, Fix: restoreFix,
			Detail: fmt.Sprintf("it is older than %s: it ends with batch %d, and the log begins with batch %d", path, c.batch, logged.first),
		}
	case phase == phaseOpen && found && logged.first == 0:
		return c, &DamageError{
			Path: path, Offset: 0, Detail: "its beginning is missing",
			Fix: "restore a snapshot (labctl snapshot restore FILE); or move the file away, and the lab goes on without the changes in it",
		}
	}
	c.log, c.lost, c.torn = logged.first > 0, !found && phase == phaseOpen, logged.torn
	for _, b := range logged.batches {
		if b.number > c.batch { // else the process was killed before it emptied the log
			c.replayed = append(c.replayed, b)
		}
	}
	return c, nil
}

// replay flushes to bbolt what the last process left in the log.
func (s *Store) replay() error {
	c, err := inspect(s.dir, s.db)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, logFile)
	if c.torn > 0 {
		s.messages.Warn("the last change was not stored completely before the lab was killed: it is left out", "file", path, "bytes", c.torn)
	}
	if c.lost {
		s.messages.Warn("the log of a lab that was killed is gone: changes since then are lost", "file", path, "time", c.last)
	}
	s.last = c.last
	batch := c.batch
	for _, b := range c.replayed {
		batch = b.number
		s.remember(b.at, b.puts)
	}
	if err := s.flushTo(batch, phaseOpen); err != nil {
		return fmt.Errorf("store: %s: %w", filepath.Join(s.dir, file), err)
	}
	if s.log, err = openLog(s.dir, s.fsync, batch, !c.log); err != nil {
		return fmt.Errorf("store: %w", err)
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
// s.commit.
func (s *Store) flush() error {
	if s.log == nil {
		return fs.ErrClosed
	}
	if len(s.unflushed) == 0 && s.log.size == int64(logHead) {
		return nil
	}
	if err := s.flushTo(s.log.batch, phaseOpen); err != nil {
		return err
	}
	return s.log.empty()
}

// flushTo moves the batches of the log up to a given one to bbolt.
func (s *Store) flushTo(batch uint64, phase string) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for _, k := range []Kind{Meta, Hosts} {
			if _, err := tx.CreateBucketIfNotExists([]byte(k)); err != nil {
				return err
			}
		}
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
		return errors.Join(
			meta.Put([]byte(timeKey), v),
			meta.Put([]byte(batchKey), binary.AppendUvarint(nil, batch)),
			meta.Put([]byte(phaseKey), []byte(phase)),
		)
	})
	if err != nil {
		return err
	}
	clear(s.unflushed)
	return nil
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
	if found, err := checkFiles(dir); err != nil || !found {
		return time.Time{}, err
	}
	db, err := open(dir, &bbolt.Options{Timeout: patience, ReadOnly: true})
	if err != nil {
		return time.Time{}, err
	}
	defer db.Close()
	c, err := inspect(dir, db)
	for _, b := range c.replayed {
		if b.at.After(c.last) {
			c.last = b.at
		}
	}
	return c.last, err
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
// calls fail. On a full disk the batches of the log stay there until the next Open.
func (s *Store) Close() error {
	s.commit.Lock()
	defer s.commit.Unlock()
	if s.log == nil { // closed already
		return nil
	}
	err := s.flushTo(s.log.batch, phaseClosed)
	if err == nil {
		err = s.log.empty()
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		s.messages.Warn("the log is kept: there is no space to empty it", "err", err)
		err = nil
	}
	err = errors.Join(err, s.log.f.Close(), s.files.close(), s.db.Close())
	s.log = nil
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Names in a store's directory.
const (
	DatabaseFile = file
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

package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A store is recovered when it is opened: its database is compared with its log, and
// what a process that was killed has left in the log goes to the database.

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
		return fmt.Errorf("%s: %w", path, err)
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
		return err
	}
	return nil
}

// content is read from the files of a store when it is opened.
type content struct {
	batch    uint64 // number of the last batch in bbolt
	last     time.Time
	replayed []loggedBatch // batches of the log, later than batch
	torn     int64         // bytes at the end of the log: a batch that was cut
	log      bool          // there is a log with a header
	killed   bool          // the last process did not close the store
	loss     *LossError    // acknowledged changes that are missing; nil: none
}

// inspect reads the last batch and time of a database and its log.
func inspect(dir string, db *bbolt.DB) (c content, err error) {
	phase, marked := "", false
	err = db.View(func(tx *bbolt.Tx) error {
		detail, err := checkDigest(tx)
		if err != nil {
			return err
		}
		if detail != "" {
			return &DamageError{Path: filepath.Join(dir, file), Offset: -1, Detail: detail, Fix: restoreFix}
		}
		meta := tx.Bucket([]byte(Meta))
		if meta == nil { // the store was just created
			return nil
		}
		phase, marked = string(valueOf(meta, phaseKey)), valueOf(meta, markKey) != nil
		c.killed = phase == phaseOpen
		c.batch, _ = binary.Uvarint(valueOf(meta, batchKey))
		c.last, err = readTime(tx)
		return err
	})
	var damage *DamageError
	if errors.As(err, &damage) {
		return c, damage
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, file), err)
	}
	logged, found, err := readLog(dir)
	path := filepath.Join(dir, logFile)
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
			Fix: "restore a snapshot (labctl snapshot restore FILE); or move the file away and start with labctl up --accept-loss, and the lab goes on without the changes in it",
		}
	}
	c.log, c.torn = logged.first > 0, logged.torn
	last := c.batch
	for _, b := range logged.batches {
		if b.number > c.batch { // else the process was killed before it emptied the log
			c.replayed = append(c.replayed, b)
			last = b.number
		}
	}
	switch {
	case phase != phaseOpen:
	case marked:
		c.loss, err = loss(dir, last)
	case !found:
		c.loss = &LossError{Path: path, Reason: "it is missing"}
	}
	return c, err
}

// replay flushes to bbolt what the last process left in the log, and reports whether it was killed.
func (s *Store) replay() (killed bool, err error) {
	c, err := inspect(s.dir, s.db)
	if err != nil {
		return false, err
	}
	path := filepath.Join(s.dir, logFile)
	if c.torn > 0 {
		s.messages.Warn("the last change was not stored completely before the lab was killed: it is left out", "file", path, "bytes", c.torn)
	}
	if c.loss != nil {
		if s.fsync && !s.acceptLoss {
			return false, c.loss
		}
		s.messages.Warn("the lab goes on without changes that were acknowledged before it was killed", "missing", c.loss.missing())
	}
	s.last = c.last
	batch := c.batch
	for _, b := range c.replayed {
		batch = b.number
		s.remember(b.at, b.puts)
	}
	m, err := openMark(s.dir, batch)
	if err != nil {
		return false, err
	}
	s.marked = m != nil
	if err := s.flushTo(batch, phaseOpen); err != nil {
		return false, errors.Join(fmt.Errorf("%s: %w", filepath.Join(s.dir, file), err), m.close())
	}
	if s.log, err = openLog(s.dir, s.fsync, batch, !c.log); err != nil {
		return false, errors.Join(err, m.close())
	}
	s.log.mark = m
	return c.killed, nil
}

func open(dir string, o *bbolt.Options) (*bbolt.DB, error) {
	path := filepath.Join(dir, file)
	db, err := bbolt.Open(path, 0o600, o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%s: another process has it open", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
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
	v := valueOf(b, timeKey)
	if v == nil {
		return at, nil
	}
	if err := json.Unmarshal(v, &at); err != nil {
		return at, fmt.Errorf("saved time: %w", err)
	}
	return at, nil
}

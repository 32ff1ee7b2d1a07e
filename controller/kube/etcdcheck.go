package kube

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// etcdFix is the end of errors about damaged data of etcd: the user's choices.
const etcdFix = "put back a copy of %s, or move that directory away: the API then begins without objects"

// checkEtcd returns an error that names the file when etcd's data in a directory are
// damaged. etcd ends the process over most damage, without a word of the file; and a
// write-ahead log that was cut off it takes for that of a crash, although the database has
// later changes.
func checkEtcd(data string) error {
	logs, db := filepath.Join(data, "member", "wal"), filepath.Join(data, "member", "snap", "db")
	damaged := func(path string, err error) error {
		return fmt.Errorf("etcd: %s: %w: "+etcdFix, path, err, data)
	}
	entries, err := os.ReadDir(logs)
	if errors.Is(err, fs.ErrNotExist) {
		// A new etcd, or one that was killed before it had anything: it makes the database
		// first.
		if applied, err := lastApplied(db, newLogged(0, false)); err == nil && applied > 0 {
			return damaged(logs, fmt.Errorf("is missing, and the database has entry %d", applied))
		}
		return nil
	}
	if err != nil {
		return damaged(logs, err)
	}
	if len(entries) == 0 {
		return damaged(logs, errors.New("is empty"))
	}
	log, err := readChanges(logs)
	if err != nil {
		return damaged(logs, err)
	}
	applied, err := lastApplied(db, log)
	if err != nil {
		return damaged(db, err)
	}
	if applied > log.last {
		return damaged(logs, fmt.Errorf("ends with entry %d, and the database has entry %d", log.last, applied))
	}
	return nil
}

// mostChanges is how many changes readChanges reads from the beginning of a log: they are in memory
// for a moment, some kilobytes each.
const mostChanges = 20_000

// readChanges reads etcd's write-ahead log, and checks the checksums of its entries. It reads all of
// a log that begins with the first change, and else the entries after the last snapshot.
func readChanges(dir string) (*logged, error) {
	log := zap.NewNop()
	snaps, err := wal.ValidSnapshotEntries(log, dir)
	if err != nil {
		return nil, err
	}
	from := &walpb.Snapshot{}
	if n := len(snaps); n > 0 && (snaps[0].GetIndex() > 0 || snaps[n-1].GetIndex() > mostChanges) {
		from = snaps[n-1]
	}
	w, err := wal.OpenForRead(log, dir, from)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // the last write may have been cut by a crash
		return nil, err
	}
	out := newLogged(from.GetIndex(), from.GetIndex() == 0)
	for _, e := range entries {
		if err := out.add(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lastApplied returns the index of the last entry that is in etcd's database, and checks the
// database against its log. It does not read the pages of a file that was cut off: bbolt maps the
// file, and such a page ends the process. bbolt panics at a page with other content than the others
// say.
func lastApplied(path string, log *logged) (index uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is damaged: %v", p)
		}
	}()
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, err
	case !st.Mode().IsRegular():
		return 0, errors.New("is no file")
	case st.Size() == 0:
		return 0, errors.New("is empty")
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: lockGrace})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > st.Size() {
			return fmt.Errorf("has %d bytes of %d", st.Size(), tx.Size())
		}
		index, err = checkContent(tx, log)
		return err
	})
	return index, err
}

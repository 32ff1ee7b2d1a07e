package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
)

// DiskPart begins the part of a host's keys that the store itself keeps: HOST/disk/DRIVE, a
// diskRecord.
const DiskPart = "disk"

// diskFix is the user's choice when the file of a disk is damaged.
const diskFix = "restore a snapshot (labctl snapshot restore FILE), or reset the server (labctl snapshot reset HOST), which empties its disks"

// acceptFix is a choice when the store is opened.
const acceptFix = ", or go on with what is there (labctl up --accept-loss)"

// diskRecord has the least that the file of a drive must hold. The files of a lab that was closed are
// listed (package integrity), but not those of a lab that was killed: an empty file would be an
// empty drive, and one that was cut after the last sector would have no system's files.
type diskRecord struct {
	Size    int64 `json:"size"` // bytes, without what follows the last sector
	Systems bool  `json:"systems,omitempty"`
}

// record stores what the file has, unless that is stored. The file has it already when it is
// added, and has it still when it is removed, so that a kill in between leaves no record of what
// is not there.
func (d *Disk) record(f *diskFile, systems bool) error {
	f.recording.Lock()
	defer f.recording.Unlock()
	r := diskRecord{Size: d.size, Systems: systems}
	if f.recorded.Load() && f.hasRecord == r {
		return nil
	}
	if err := d.store.Save(d.store.Last(), Put{Kind: Hosts, Key: d.key, Value: r}); err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	f.hasRecord = r
	f.recorded.Store(true)
	return nil
}

func diskKey(host, drive string) string {
	return host + "/" + DiskPart + "/" + url.PathEscape(drive)
}

// checkDisks compares the files of disks with their records, without those of hosts that
// emptied, if not nil, accepts. The error has a *DamageError for each that is missing or cut off.
func (s *Store) checkDisks(emptied func(host string) bool) error {
	var errs []error
	err := s.Each(Hosts, func(key string, value []byte) error {
		host, rest, _ := strings.Cut(key, "/")
		part, name, _ := strings.Cut(rest, "/")
		if part != DiskPart || emptied != nil && emptied(host) {
			return nil
		}
		drive, err := url.PathUnescape(name)
		var r diskRecord
		if err == nil {
			err = json.Unmarshal(value, &r)
		}
		if err != nil {
			return err
		}
		errs = append(errs, r.check(s.disk(host, drive)))
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// check returns a *DamageError when a file lacks what the record says.
func (r diskRecord) check(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &DamageError{Path: path, Offset: -1, Detail: "it is missing, and the server has written to it", Fix: diskFix + acceptFix}
	}
	if err != nil {
		return unreadable(path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case st.Size() == 0 && r.Size > 0:
		return &DamageError{Path: path, Offset: 0, Detail: fmt.Sprintf("it is empty, and the drive has %d bytes", r.Size), Fix: diskFix + acceptFix}
	case st.Size() < r.Size:
		return &DamageError{Path: path, Offset: st.Size(), Detail: fmt.Sprintf("it ends there, and the drive has %d bytes", r.Size), Fix: diskFix + acceptFix}
	case !r.Systems:
		return nil
	}
	h, err := readHead(f, r.Size)
	if err == nil && (h.Length == 0 || st.Size() < r.Size+systemBlock+h.Off+h.Length) {
		err = cutSystems(path, st.Size(), acceptFix)
	}
	return err
}

// cutSystems is the error for a file that ends before, or in, the files of a system.
func cutSystems(path string, at int64, accept string) error {
	return &DamageError{Path: path, Offset: at, Detail: "it ends there, and the files of the server's operating system follow", Fix: diskFix + accept}
}

// endOf returns the error for a read of a system's files that failed.
func (f *diskFile) endOf(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("files of a system: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("files of a system: %w", err)
	}
	return cutSystems(f.path, st.Size(), "")
}

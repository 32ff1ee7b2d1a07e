package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The mark is the number of the last batch that was acknowledged. A log that ends before it was cut
// by another program, or by a power cut without Config.Fsync; one that ends in the midst of a batch
// after it was torn by a kill, and nobody was told that the batch is stored.
//
// The mark is a page of memory that is mapped to its file, which costs an acknowledged write two
// stores (BenchmarkSave), and which a kill leaves to the system. It is written after the log, so that
// a power cut leaves none that is ahead of what was synced.

const (
	markFile = "state.mark"
	markSize = 4096 // bytes; a file with all of its blocks, so that no store needs space
)

// mark is the open mark. A nil *mark marks nothing.
type mark struct {
	f      *os.File
	page   []byte  // the file, mapped
	number *uint64 // the number, in the byte order of the computer
	check  *uint64 // its complement: stored later
}

// openMark makes the mark, whose number is batch. It returns nil where the disk has no space for it.
func openMark(dir string, batch uint64) (*mark, error) {
	path := filepath.Join(dir, markFile)
	page := make([]byte, markSize)
	native.PutUint64(page, batch)
	native.PutUint64(page[8:], ^batch)
	err := os.WriteFile(path+".part", page, 0o600)
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil, errors.Join(remove(path+".part"), remove(path)) //nolint:nilnil // documented
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	m := &mark{f: f}
	if m.page, err = syscall.Mmap(int(f.Fd()), 0, markSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: mmap: %w", path, err), f.Close())
	}
	m.number, m.check = (*uint64)(unsafe.Pointer(&m.page[0])), (*uint64)(unsafe.Pointer(&m.page[8]))
	return m, nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// set marks a batch as acknowledged.
func (m *mark) set(batch uint64) {
	if m != nil {
		atomic.StoreUint64(m.number, batch)
		atomic.StoreUint64(m.check, ^batch)
	}
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return errors.Join(syscall.Munmap(m.page), m.f.Close())
}

// readMark reads the mark in a directory. problem is why there is none, for people.
func readMark(dir string) (batch uint64, problem string, err error) {
	path := filepath.Join(dir, markFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, "it is missing", nil
	case err != nil:
		return 0, "", unreadable(path, err)
	case len(b) != markSize:
		return 0, fmt.Sprintf("it has %d bytes, not %d", len(b), markSize), nil
	}
	number, before := native.Uint64(b), ^native.Uint64(b[8:])
	if number != before && number != before+1 { // a kill between the two stores
		return 0, "it was changed by another program", nil
	}
	return before, "", nil
}

// LossError means that the store misses changes that were acknowledged. Config.AcceptLoss opens it
// nevertheless.
type LossError struct {
	Path    string // the log
	Missing uint64 // changes; 0 when it is not known
	Reason  string // why it is not known
}

// Error implements error.
func (e *LossError) Error() string {
	return e.missing() + ": restore a snapshot (labctl snapshot restore FILE), or go on with what is there (labctl up --accept-loss)"
}

func (e *LossError) missing() string {
	if e.Missing == 0 {
		return fmt.Sprintf("%s may lack changes that were acknowledged: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s lacks the last %d changes that were acknowledged: it was cut or removed", e.Path, e.Missing)
}

// loss compares the mark with the last batch that is there. It returns nil when nothing is missing.
func loss(dir string, last uint64) (*LossError, error) {
	marked, problem, err := readMark(dir)
	e := &LossError{Path: filepath.Join(dir, logFile)}
	switch {
	case err != nil:
		return nil, err
	case problem != "":
		e.Reason = filepath.Join(dir, markFile) + ", which says how many there were: " + problem
		return e, nil
	case marked > last:
		e.Missing = marked - last
		return e, nil
	}
	return nil, nil //nolint:nilnil // documented
}

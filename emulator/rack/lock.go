package rack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// LockFile is the file in a lab's directory that the process with the rack open has locked.
const LockFile = "lock"

// HeldError means that another process has the rack in a directory open.
type HeldError struct {
	Dir string
	PID int // ID of the process; 0 when it is not known
}

// Error implements error.
func (e *HeldError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: end that with labctl down, or choose another directory", e.Dir, who)
}

// isLocked takes the lock for a moment, so lockDir tries several times.
const (
	lockTries = 5
	lockPause = 20 * time.Millisecond // real time
)

// lockDir locks a directory for this process until the file is closed or the process
// dies.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s is a directory: move it away: the lab makes a file there", filepath.Join(dir, LockFile))
	}
	if err != nil {
		return nil, err
	}
	for i := range lockTries {
		if i > 0 {
			pauseBriefly(ctx)
		}
		if err = flock(f, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &HeldError{Dir: dir, PID: lockOwner(f)}
	} else if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = fmt.Fprintln(f, os.Getpid())
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// lockOwner returns the process that wrote its ID into the lock file, or 0.
func lockOwner(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// isLocked reports whether a process has locked a directory.
func isLocked(dir string) (held bool, pid int, err error) {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_SH)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, lockOwner(f), nil
	}
	return false, 0, err
}

// Running reports whether a process has the rack in dir open.
func Running(dir string) (bool, error) {
	held, _, err := isLocked(dir)
	return held, err
}

// Released returns when no process has the rack in dir open, or with the context's
// error.
func Released(ctx context.Context, dir string) error {
	for {
		held, _, err := isLocked(dir)
		if err != nil || !held {
			return err
		}
		pauseBriefly(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// pauseBriefly waits for a moment of real time, which is the only time of other
// processes.
func pauseBriefly(ctx context.Context) {
	moment, cancel := context.WithTimeout(ctx, lockPause)
	defer cancel()
	<-moment.Done()
}

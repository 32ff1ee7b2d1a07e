package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockSuffix is that of the file beside an entry of a cache by which it is locked. The
// time of the file is that of the entry's last use.
const lockSuffix = ".lock"

// How an entry is locked: shared by those who use it, exclusive by the one who makes or
// removes it. The kernel releases the locks of a process that ends (flock(2)).
const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// errLocked means that another has a lock.
var errLocked = errors.New("locked")

// lockPause is how long one who waits pauses: flock(2) itself cannot be given up.
const lockPause = 20 * time.Millisecond

type lock struct{ f *os.File }

func (c *Cache) lockName(key string) string { return c.entry(key) + lockSuffix }

// try locks a key, or returns errLocked.
func (c *Cache) try(key string, how int) (*lock, error) {
	for {
		f, err := os.OpenFile(c.lockName(key), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("rootfs: cache: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if errors.Is(err, syscall.EINTR) {
			f.Close()
			continue
		}
		if err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, errLocked
			}
			return nil, fmt.Errorf("rootfs: cache: lock %s: %w", f.Name(), err)
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("rootfs: cache: %w", err)
		}
		if now, err := os.Stat(f.Name()); err == nil && os.SameFile(mine, now) {
			return &lock{f}, nil
		}
		f.Close() // another has removed it since: a lock on it locks nothing
	}
}

// wait locks a key as soon as others let it.
func (c *Cache) wait(ctx context.Context, key string, how int) (*lock, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("rootfs: cache: wait for %s: %w", key, err)
		}
		l, err := c.try(key, how)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		pause, cancel := context.WithTimeout(ctx, lockPause)
		<-pause.Done()
		cancel()
	}
}

// touch sets the time of the last use.
func (l *lock) touch() {
	now := time.Now()
	_ = os.Chtimes(l.f.Name(), now, now) // without it the entry is removed sooner
}

func (l *lock) release() { l.f.Close() }

// remove removes the file too: there is no entry. Only the one who has it exclusively may.
func (l *lock) remove() {
	_ = os.Remove(l.f.Name())
	l.f.Close()
}

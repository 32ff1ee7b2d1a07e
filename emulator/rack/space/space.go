// Package space watches the free space of the file system that a lab is on, and keeps a
// reserve of it. Below the reserve the lab refuses the requests of its clients and stores
// only steps of its own. The package knows neither the data nor the clients.
package space

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// period is how often Run looks, in real time.
const period = 500 * time.Millisecond

// step is how many bytes are written in bulk between two looks.
const step = 8 << 20

// BallastFile is a file in the watched directory that takes space while there is enough.
// Below the reserve it is emptied, which makes room for the writes that cannot be refused.
const BallastFile = "ballast"

// FullError means that the file system of a directory is full, or nearly so. It is
// syscall.ENOSPC.
type FullError struct {
	Dir  string
	Free int64 // bytes
	Need int64 // bytes that have to be free
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("no space left on the file system of %s: %s are free, %s are needed: make room, and the lab goes on by itself",
		e.Dir, Size(e.Free), Size(e.Need))
}

// Is makes errors.Is find syscall.ENOSPC.
func (*FullError) Is(target error) bool { return target == syscall.ENOSPC }

// Full reports whether an error means that a file system, or a user's share of it, is
// full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Size formats a number of bytes for people.
func Size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// Config has the directory to watch and its limits.
type Config struct {
	Dir     string
	Reserve int64 // bytes that stay free, apart from the ballast
	Ballast int64 // bytes
	// Free returns the bytes that are free. Nil asks the file system of Dir.
	Free func() (int64, error)
	Log  *slog.Logger // nil: none
}

// Watch knows how much space is free. It is safe for concurrent use; nil has as much as
// one wants.
type Watch struct {
	c       Config
	written atomic.Int64              // in bulk since the last look
	full    atomic.Pointer[FullError] // nil while there is enough

	mu      sync.Mutex // held while looking
	ballast bool       // the file has its size
	blind   bool       // the file system does not tell
}

// New returns a watch of a directory, which must exist. Until Run, Look looks.
func New(c Config) *Watch {
	if c.Free == nil {
		c.Free = func() (int64, error) { return free(c.Dir) }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Watch{c: c, ballast: c.Ballast > 0 && Held(c.Dir) >= c.Ballast}
}

// Require returns a *FullError unless need bytes are free.
func Require(dir string, need int64) error {
	n, err := free(dir)
	if err != nil || n >= need { // a file system that does not tell may have them
		return nil
	}
	return &FullError{Dir: dir, Free: n, Need: need}
}

// Held returns how many bytes the ballast in a directory takes.
func Held(dir string) int64 {
	st, err := os.Stat(filepath.Join(dir, BallastFile))
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	return st.Size()
}

// Run looks from time to time, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		w.Look()
		pause, cancel := context.WithTimeout(ctx, period)
		<-pause.Done()
		cancel()
	}
	return nil
}

// Look finds out how much space is free.
func (w *Watch) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written.Store(0)
	n, err := w.c.Free()
	if err != nil {
		if !w.blind {
			w.c.Log.Warn("free space not known: it is not watched", "dir", w.c.Dir, "err", err)
		}
		w.blind = true
		return
	}
	was := w.full.Load()
	need := w.c.Reserve
	if !w.ballast {
		need += w.c.Ballast
	}
	if was != nil {
		need += w.c.Reserve / 4 // else it would be full and not in turns
	}
	if n >= need {
		w.full.Store(nil)
		w.takeBallast()
		if was != nil {
			w.c.Log.Warn("there is space again", "dir", w.c.Dir, "free", Size(n))
		}
		return
	}
	w.full.Store(&FullError{Dir: w.c.Dir, Free: n, Need: w.c.Reserve + w.c.Ballast + w.c.Reserve/4})
	if was == nil {
		w.c.Log.Error("no space left: requests that change something are refused until there is room",
			"dir", w.c.Dir, "free", Size(n), "needed", Size(w.full.Load().Need))
	}
	w.letGo()
}

// takeBallast makes the ballast, if there is none. Without it the watch works too.
func (w *Watch) takeBallast() {
	if w.ballast || w.c.Ballast == 0 {
		w.ballast = true
		return
	}
	f, err := os.OpenFile(filepath.Join(w.c.Dir, BallastFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(allocate(f, w.c.Ballast), f.Close())
	}
	w.ballast = err == nil
	if err != nil {
		w.c.Log.Debug("no ballast", "dir", w.c.Dir, "err", err)
	}
}

func (w *Watch) letGo() {
	if !w.ballast || w.c.Ballast == 0 {
		w.ballast = false
		return
	}
	err := os.Truncate(filepath.Join(w.c.Dir, BallastFile), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.c.Log.Warn("ballast not let go", "dir", w.c.Dir, "err", err)
		return
	}
	w.ballast = false
}

// Writable returns a *FullError when less than the reserve is free.
func (w *Watch) Writable() error {
	if w == nil {
		return nil
	}
	if full := w.full.Load(); full != nil {
		return full
	}
	return nil
}

// Use returns a *FullError when less than the reserve is free for n bytes that are about
// to be written. Others may take space faster than Run looks.
func (w *Watch) Use(n int) error {
	if w == nil {
		return nil
	}
	if w.written.Add(int64(n)) >= step {
		w.Look()
	}
	return w.Writable()
}

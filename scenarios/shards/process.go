package shards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// Durations in real time, which is the only time of other processes.
const (
	firstPause = 100 * time.Millisecond // before a shard that has ended is started again
	longPause  = 30 * time.Second       // the pause doubles up to this
	settled    = time.Minute            // a shard that ran for so long begins with the first pause
	stopWithin = 30 * time.Second       // then a shard is killed
)

// LogFile is the file in a shard's directory that has the output of its processes.
const LogFile = "lab.log"

// ReadyLine is the line that a shard writes when it is up.
const ReadyLine = "ready"

// Words for a shard that does not run.
const (
	starting   = "it starts: try again in a moment"
	restarting = "it has ended and is started again: try again in a moment; labctl status shows when it is up"
)

// shard is a shard and its process.
type shard struct {
	index int
	dir   string

	mu     sync.Mutex
	rack   rackfile.Lab
	client *control.Client // nil while it does not run
	off    string
	cancel context.CancelFunc // stops it; nil: it is not meant to run
	ctx    context.Context
	ended  chan struct{} // closed when it is not kept any more
	first  chan struct{} // closed when it was up once, or cannot be
	failed error         // why it cannot be
}

// begin marks a shard as one that is meant to run.
func (x *shard) begin(s *Set) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	x.off, x.failed = starting, nil
	x.first, x.ended = make(chan struct{}), make(chan struct{})
}

// end stops a shard, and returns when its process has ended.
func (x *shard) end() {
	x.mu.Lock()
	cancel, ended := x.cancel, x.ended
	x.cancel = nil
	x.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

// awaitFirst returns when the shard is up for the first time.
func (x *shard) awaitFirst(ctx context.Context) error {
	select {
	case <-x.first:
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *shard) describe() control.Shard {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := control.Shard{Name: Name(x.index), Rack: x.rack, Dir: x.dir, Client: x.client, Off: x.off}
	if x.cancel == nil {
		out.Client, out.Off = nil, control.ScaledIn
	}
	return out
}

func (x *shard) set(client *control.Client, off string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.client, x.off = client, off
}

// keep runs the processes of a shard, one after the other, until it is not meant to run.
func (s *Set) keep(x *shard) {
	defer close(x.ended)
	pause, wasUp := firstPause, false
	for {
		began := time.Now()
		up := func(c *control.Client) {
			x.set(c, "")
			if !wasUp {
				wasUp = true
				close(x.first)
			}
		}
		err := s.runOnce(x, up)
		x.set(nil, restarting)
		if x.ctx.Err() != nil || !wasUp {
			if !wasUp {
				x.mu.Lock()
				x.failed = err
				x.mu.Unlock()
				close(x.first)
			}
			return
		}
		if time.Since(began) > settled {
			pause = firstPause
		}
		s.c.Log.Warn("a shard has ended and is started again", "shard", Name(x.index), "pause", pause, "err", err)
		select {
		case <-x.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
}

// runOnce runs one process of a shard until it ends, and calls up when it is up.
func (s *Set) runOnce(x *shard, up func(*control.Client)) error {
	x.mu.Lock()
	definition := x.rack
	x.mu.Unlock()
	if err := rack.Released(x.ctx, x.dir); err != nil { // the process of a lab that was killed ends by itself
		return err
	}
	err := ShareAuthority(s.c.Dir, x.dir)
	if err == nil {
		err = s.c.Prepare(x.index, x.dir, definition)
	}
	if err == nil {
		err = os.Remove(filepath.Join(x.dir, AddressFile))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", Name(x.index), err)
	}
	log, err := os.OpenFile(filepath.Join(x.dir, LogFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	stdin, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer alive.Close() // then the process ends, also when this one is killed
	progress, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	defer progress.Close()
	c := s.c.Command(x.dir, filepath.Join(s.c.Dir, Dir, TokenFile))
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = stdin, log, log, []*os.File{out}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for this process alone
	err = c.Start()
	if err = errors.Join(err, stdin.Close(), out.Close()); err != nil {
		return fmt.Errorf("%s: %w", Name(x.index), err)
	}
	done := make(chan struct{})
	defer close(done)
	go s.endProcess(x, c, done)
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if lines.Text() != ReadyLine {
			continue
		}
		client, err := s.dial(x)
		if err != nil {
			return errors.Join(err, c.Process.Kill(), c.Wait())
		}
		up(client)
	}
	if err = c.Wait(); err == nil {
		err = errors.New("it has ended")
	}
	return fmt.Errorf("%s: %w: %s\nits log is %s", Name(x.index), err, lastLine(log.Name()), log.Name())
}

// endProcess ends a process when its shard is not meant to run any more.
func (s *Set) endProcess(x *shard, c *exec.Cmd, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-x.ctx.Done():
	}
	_ = c.Process.Signal(syscall.SIGTERM) // errors mean that it has ended
	select {
	case <-done:
	case <-time.After(stopWithin):
		s.c.Log.Warn("a shard that does not end is killed", "shard", Name(x.index))
		_ = c.Process.Kill()
	}
}

// dial returns a client of the shard that is up.
func (s *Set) dial(x *shard) (*control.Client, error) {
	at, err := os.ReadFile(filepath.Join(x.dir, AddressFile))
	if err != nil {
		return nil, err
	}
	ca, err := authorities(s.c.Dir)
	if err != nil {
		return nil, err
	}
	return control.DialRemote(strings.TrimSpace(string(at)), ca, s.token)
}

// lastLine returns the last line of a log, which says why a process has ended.
func lastLine(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return lines[len(lines)-1]
}

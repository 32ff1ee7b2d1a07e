package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"syscall"
	"time"
)

// Command is a program to run in a system.
type Command struct {
	Args   []string // the program first, by its name or path
	Env    []string // beside PATH, HOME and LANG
	Dir    string   // "": /root
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal gives the program a terminal instead of three streams. Its output goes to
	// Stdout.
	Terminal bool
	// StopTimeout is the time, in real time, between SIGTERM and SIGKILL when ctx ends the
	// command; 0: SIGKILL at once.
	StopTimeout time.Duration
	// Size is that of the terminal when the program starts. The zero value is none, which a
	// program takes for 80 columns and 24 rows.
	Size WindowSize
	// Resize has the later sizes of the client's window.
	Resize <-chan WindowSize

	service *attributes // of a service's process; nil: it is none
	started func(*session, int, int)
}

// attributes are how a service's process differs from a command (systemd.exec(5), systemd.kill(5)).
type attributes struct {
	Name           string // name that the program sees; "": the first argument
	As             bool   // it runs as UID, GID and Groups
	UID, GID       int
	Groups         []int
	UMask          int
	Stdin          string // path of a file; "": there is no input
	Stdout, Stderr output
	Forks          bool   // it counts as started when it has ended, and as ended with the last that it has started
	PIDFile        string // has the number of the process that stays then
	Notifies       bool   // it counts as started when it says so (sd_notify(3))
	NotifyAll      bool   // or when another process of its does

	// Of a request to kill it.
	MainOnly bool          // leaves what it has started
	Hangup   bool          // sends SIGHUP, too
	Rest     time.Duration // it has ended: what it has started gets SIGKILL after this time
}

// output is where a stream of a service goes. The zero value: to this program.
type output struct {
	File             string // a path
	Append, Truncate bool
	Same             bool // standard error goes where standard output does
	Console          bool // to the server's console, too
}

// environment is that of a command: a service has none but its own.
func (c Command) environment() []string {
	if c.service != nil {
		return c.Env
	}
	return lastAssignments(slices.Concat(environment, c.Env))
}

// hasStarted tells that a command has started, or that it counts as started: its ID in its session,
// and its process there.
func (c Command) hasStarted(r *session, id, pid int) {
	if c.started != nil {
		c.started(r, id, pid)
	}
}

// WindowSize is a terminal's size in characters.
type WindowSize struct{ Rows, Columns uint16 }

// Exit codes of commands that did not run or were ended (POSIX, Shell Command Language
// §2.8.2; env(1)).
const (
	CodeCannotRun = 126
	CodeNotFound  = 127
	codeSignal    = 128 // plus the signal's number
)

// A CannotRunError is the reason why this machine runs no commands in namespaces.
type CannotRunError struct{ Err error }

// Error implements error.
func (e *CannotRunError) Error() string {
	fix := ""
	switch { // of clone(2)
	case errors.Is(e.Err, syscall.ENOSPC):
		fix = "; raise sysctl user.max_user_namespaces"
	case errors.Is(e.Err, syscall.EPERM):
		fix = "; allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0"
	}
	return fmt.Sprintf("this machine runs no commands in namespaces: %v%s", e.Err, fix)
}

// Unwrap returns the refusal of the kernel.
func (e *CannotRunError) Unwrap() error { return e.Err }

// environment is the initial environment of every command.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "LANG=C.UTF-8"}

// Exec runs a command and returns its exit code: 128 plus the number of the signal that
// ended it, 127 if there is no such program, 126 if the kernel refuses namespaces. ctx
// ends it with all processes that it has started. err reports that the system is down, or
// that its files cannot be stored; the reason why a command did not run is on Stderr.
func (s *System) Exec(ctx context.Context, c Command) (code int, err error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return 0, errors.New("a command needs a program")
	}
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	if name := path.Base(c.Args[0]); withoutProcess(name) {
		by, err := s.callingOf(c)
		if err != nil {
			_, err := fmt.Fprintf(c.Stderr, "%s: %v\n", name, err)
			return 1, err
		}
		type answer struct {
			out  string
			code int
		}
		answered := make(chan answer, 1)
		go func() {
			defer s.Guard()
			out, code, _ := s.program(name, c.Args[1:], by)
			answered <- answer{out, code}
		}()
		select {
		case a := <-answered:
			out, problems := streamsOf(a.out)
			_, err := io.WriteString(c.Stdout, out)
			_, err2 := io.WriteString(c.Stderr, problems)
			return a.code, errors.Join(err, err2)
		case <-ctx.Done(): // it may wait for what has started it: a unit that restarts itself
			return codeSignal + int(syscall.SIGTERM), nil
		}
	}
	r, err := s.acquire()
	if cannot := (*CannotRunError)(nil); errors.As(err, &cannot) {
		_, err := fmt.Fprintln(c.Stderr, cannot)
		return CodeCannotRun, err
	}
	if err != nil {
		return 0, err
	}
	code, err = r.exec(ctx, c, s.now().Sub(s.c.Boot.Time))
	if errors.Is(err, ErrClosed) && !s.isClosed() { // the kernel has killed the first process, or refused it a thread
		code = codeSignal + int(syscall.SIGKILL)
		_, err = fmt.Fprintln(c.Stderr, "killed: the system has more processes or memory than its limits")
	}
	return code, errors.Join(err, s.release(r))
}

func (s *System) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// acquire returns the session of the running processes, and begins one if there is none.
func (s *System) acquire() (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if r := s.session; r != nil && r.hasEnded() { // something has killed its first process
		s.session = nil
		if err := errors.Join(s.saveSession(r), r.end(), s.removeDir()); err != nil {
			return nil, err
		}
	}
	if s.session == nil {
		v, err := s.load()
		if err != nil {
			return nil, err
		}
		r, err := newSession(s, v.layer)
		if err != nil {
			return nil, err
		}
		s.session = r
		go s.watch(r)
	}
	s.session.users++
	return s.session, nil
}

// release stores the files that a command has changed. The session ends with its last
// process.
func (s *System) release(r *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.users--
	if s.session != r {
		return ErrClosed
	}
	if err := s.saveSession(r); err != nil {
		return s.rollBack(r, err, killed)
	}
	if r.hasEnded() && r.users == 0 {
		s.session = nil
		return errors.Join(r.end(), s.removeDir())
	}
	return s.endIdle(r)
}

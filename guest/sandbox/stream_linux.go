package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the files of a command.
type streams struct {
	theirs []*os.File // for the command
	ours   []io.Closer
	copies sync.WaitGroup
	begin  []func()
}

// newStreams makes a pipe for each stream, or a pseudoterminal of the session.
func (r *session) newStreams(c Command) (*streams, error) {
	s := &streams{}
	if c.Terminal {
		if err := s.terminal(c, r); err != nil {
			s.close()
			return nil, fmt.Errorf("terminal: %w", err)
		}
		return s, nil
	}
	in, toIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.theirs = append(s.theirs, in)
	s.ours = append(s.ours, toIn)
	s.begin = append(s.begin, func() {
		go func() { // a command need not read its input to its end
			if c.Stdin != nil {
				_, _ = io.Copy(toIn, c.Stdin)
			}
			_ = toIn.Close()
		}()
	})
	for i, w := range []io.Writer{c.Stdout, c.Stderr} {
		if i == 1 && same(c.Stdout, c.Stderr) { // one writer is written to by one copy
			s.theirs = append(s.theirs, s.theirs[1])
			break
		}
		from, out, err := os.Pipe()
		if err != nil {
			s.close()
			return nil, err
		}
		s.theirs = append(s.theirs, out)
		s.ours = append(s.ours, from)
		s.begin = append(s.begin, func() { s.copies.Go(func() { _, _ = io.Copy(w, from) }) })
	}
	return s, nil
}

// started closes the command's ends here and begins to copy.
func (s *streams) started() {
	for _, f := range s.theirs {
		_ = f.Close()
	}
	s.theirs = nil
	for _, begin := range s.begin {
		begin()
	}
}

// wait returns when all output was copied, or a second after the command has ended, when
// another process of it still holds the streams.
func (s *streams) wait() {
	done := make(chan struct{})
	go func() { s.copies.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
		for _, f := range s.ours { // which ends the copies: nothing is written after the command
			_ = f.Close()
		}
		<-done
	}
}

// same reports whether two writers are one. Types that cannot be compared are not.
func same(a, b io.Writer) (equal bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (s *streams) close() {
	for _, f := range s.theirs {
		_ = f.Close()
	}
	for _, c := range s.ours {
		_ = c.Close()
	}
}

// terminal gives the command the other end of a pseudoterminal as its streams. It is one of
// the session's instance of devpts: programs find it in their /dev/pts (ttyname(3)).
func (s *streams) terminal(c Command, r *session) error {
	master, err := r.open("dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.ours = append(s.ours, master)
	raw, err := master.SyscallConn() // Fd would make it block, and Close could not end a read
	if err != nil {
		return err
	}
	control := func(do func(fd int) error) error { // control calls do with the master's descriptor, until the master is closed
		var done error
		err := raw.Control(func(fd uintptr) { done = do(int(fd)) })
		return errors.Join(err, done)
	}
	resize := func(size WindowSize) error {
		return control(func(fd int) error {
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
		})
	}
	var peer uintptr
	err = control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		var errno unix.Errno
		if peer, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC); errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.theirs = append(s.theirs, os.NewFile(peer, "pts"))
	if c.Size != (WindowSize{}) { // before the program asks
		if err := resize(c.Size); err != nil {
			return err
		}
	}
	s.begin = append(s.begin, func() {
		if c.Stdin != nil {
			go func() { _, _ = io.Copy(master, c.Stdin) }()
		}
		s.copies.Go(func() { _, _ = io.Copy(c.Stdout, master) })
		if c.Resize != nil {
			go func() {
				for size := range c.Resize {
					_ = resize(size) // else the command has ended
				}
			}()
		}
	})
	return nil
}

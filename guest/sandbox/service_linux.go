package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file starts and ends the processes of services, in the first process.

// attributes sets what a service's process has beside its arguments. The caller calls done when the
// process has started.
func (p *first) attributes(r *request, attr *syscall.ProcAttr) (done func(), err error) {
	var opened []int
	done = func() {
		for _, fd := range opened {
			_ = unix.Close(fd)
		}
	}
	a := r.Service
	if a == nil {
		return done, nil
	}
	if a.As {
		c := &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
		for _, g := range a.Groups {
			c.Groups = append(c.Groups, uint32(g))
		}
		attr.Sys.Credential = c
	}
	open := func(name string, flags int) error {
		// No file makes this process wait: a named pipe without a reader is refused.
		fd, err := unix.Open(name, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o666)
		if err != nil {
			return &fs.PathError{Op: "open", Path: name, Err: err}
		}
		opened = append(opened, fd)
		// This process has rights that commands do not have: below /proc it would open its own memory.
		var st unix.Statfs_t
		if err := unix.Fstatfs(fd, &st); err != nil {
			return &fs.PathError{Op: "open", Path: name, Err: err}
		}
		if st.Type == unix.PROC_SUPER_MAGIC {
			return &fs.PathError{Op: "open", Path: name, Err: errors.New("a file of /proc cannot be given to a service: let its program open it")}
		}
		return unix.SetNonblock(fd, false)
	}
	input := a.Stdin
	if input == "" {
		input = os.DevNull
	}
	if err := open(input, unix.O_RDONLY); err != nil {
		return done, fmt.Errorf("StandardInput=: %w", err)
	}
	attr.Files[0] = uintptr(opened[0])
	for i, o := range []output{a.Stdout, a.Stderr} {
		key := []string{"StandardOutput=", "StandardError="}[i]
		switch {
		case i == 1 && o.Same:
			attr.Files[2] = attr.Files[1]
		case o.File != "":
			flags := unix.O_WRONLY | unix.O_CREAT
			if o.Append {
				flags |= unix.O_APPEND
			}
			if o.Truncate {
				flags |= unix.O_TRUNC
			}
			if err := open(o.File, flags); err != nil {
				return done, fmt.Errorf("%s: %w", key, err)
			}
			attr.Files[1+i] = uintptr(opened[len(opened)-1])
		}
	}
	return done, nil
}

// fork starts a program.
func (p *first) fork(program string, r request, attr *syscall.ProcAttr) (pid int, err error) {
	args := r.Args
	if a := r.Service; a != nil {
		if a.Name != "" {
			args = append([]string{a.Name}, args[1:]...)
		}
		defer unix.Umask(unix.Umask(a.UMask)) // this process itself writes no files meanwhile
	}
	return syscall.ForkExec(program, args, attr)
}

// restEvery is the time between two looks for the processes that a command has started.
const restEvery = 50 * time.Millisecond

// await reports whether something has happened within a time of this machine.
func await(limit time.Duration, happened func() bool) bool {
	until := time.NewTimer(limit)
	defer until.Stop()
	look := time.NewTicker(restEvery)
	defer look.Stop()
	for !happened() {
		select {
		case <-look.C:
		case <-until.C:
			return happened()
		}
	}
	return true
}

// killService sends a signal to a command, as its service asks.
func (p *first) killService(r request, signal unix.Signal) {
	a := r.Service
	if a == nil {
		p.kill(r.ID, signal)
		return
	}
	if a.Rest > 0 { // a service that starts again must not find its port in use
		defer p.stops(r.ID)()
	}
	p.mu.Lock()
	pid := p.running[r.ID]
	p.mu.Unlock()
	send := func(signal unix.Signal) (sent bool) {
		if a.MainOnly {
			return pid != 0 && unix.Kill(pid, signal) == nil
		}
		members, _ := processesOf(r.ID, pid)
		for q := range members {
			sent = unix.Kill(q, signal) == nil || sent
		}
		return sent
	}
	sent := send(signal)
	if a.Hangup {
		send(unix.SIGHUP)
	}
	if a.Rest == 0 || !sent {
		return
	}
	if !await(a.Rest, func() bool { return nothingOf(r.ID) }) {
		endProcesses(r.ID, 0)
		await(infinity, func() bool { members, _ := processesOf(r.ID, 0); return len(members) == 0 }) // which waits for disks
	}
}

// endWithRest reports the end of a command that is stopped, when nothing is left of what it has
// started.
func (p *first) endWithRest(end response, nothing <-chan struct{}) {
	<-nothing
	_ = p.send(end) // else the system has ended
}

// outlive reports the main process of a service whose first has ended, and its end when no process
// of it is left.
func (p *first) outlive(id int, a *attributes) {
	pid := 0
	if a.PIDFile != "" {
		await(pidFileTimeout, func() bool { pid = pidOf(a.PIDFile); return pid != 0 })
	}
	left, _ := processesOf(id, pid)
	switch {
	case a.PIDFile != "" && pid == 0:
		_ = p.send(response{ID: id, Code: CodeCannotRun, Error: fmt.Sprintf("PIDFile=%s: it has no number of a process %v after the start", a.PIDFile, pidFileTimeout)})
		return
	case pid == 0:
		for q := range left {
			if pid == 0 || q < pid {
				pid = q
			}
		}
	}
	if len(left) == 0 {
		_ = p.send(response{ID: id}) // nothing is left: it has ended as a program does
		return
	}
	p.mu.Lock()
	p.running[id] = pid
	p.mu.Unlock()
	_ = p.send(response{ID: id, Started: true, Code: pid}) // else the system has ended
	await(infinity, func() bool { return unix.Kill(pid, 0) != nil || parentOf(pid) == 0 })
	p.mu.Lock()
	stopping := p.stopping[id]
	delete(p.running, id)
	p.mu.Unlock()
	p.reportSysctl()
	if stopping != nil {
		p.endWithRest(response{ID: id}, stopping)
		return
	}
	_ = p.send(response{ID: id}) // as above
}

// pidFileTimeout is how long a service has to write its PIDFile= after its first process has ended.
const pidFileTimeout = 5 * time.Second

// pidOf reads a PID file; 0: it has no number of a process.
func pidOf(name string) int {
	b, err := readRegular(name, 64)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 || unix.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// notifySocket takes the messages of sd_notify(3).
const notifySocket = "/run/metalab-notify.sock"

// serveNotifications tells which services say that they are ready.
func (p *first) serveNotifications() error {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notifySocket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var option error
	err = raw.Control(func(fd uintptr) { option = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	if err := errors.Join(err, option, os.Chmod(notifySocket, 0o777)); err != nil {
		return err
	}
	go func() {
		message, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
		for {
			n, k, _, _, err := conn.ReadMsgUnix(message, rights)
			if err != nil {
				return
			}
			if from := senderOf(rights[:k]); from > 1 {
				p.notified(from, string(message[:n]))
			}
		}
	}()
	return nil
}

func senderOf(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if c, err := unix.ParseUnixCredentials(&m); err == nil {
			return int(c.Pid)
		}
	}
	return 0
}

// notified takes a message of a process.
func (p *first) notified(from int, message string) {
	ready, main := false, 0
	for line := range strings.Lines(message) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "READY":
			ready = value == "1"
		case "MAINPID":
			main, _ = strconv.Atoi(value) // else it is none
		}
	}
	if !ready {
		return
	}
	p.mu.Lock()
	id, pid := 0, 0
	for i, a := range p.services {
		if main := p.running[i]; a.Notifies && (main == from || a.NotifyAll && hasMarker(from, i)) {
			id, pid = i, main
		}
	}
	p.mu.Unlock()
	if main > 1 {
		pid = main
	}
	if id != 0 {
		_ = p.send(response{ID: id, Started: true, Code: pid}) // else the system has ended
	}
}

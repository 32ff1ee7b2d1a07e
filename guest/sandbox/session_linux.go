package sandbox

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// session is a running root: the first process of the namespaces, and the directories
// that its mounts consist of.
type session struct {
	dir     string
	command *exec.Cmd
	control *net.UnixConn
	root    *os.File // held open: the number of the first process may be that of another later
	groups  []group  // control groups of the processes
	usage   *usage   // that of the system
	users   int      // commands that run; guarded by System.mu
	left    atomic.Int64

	machine                 []string       // directories of this machine that the root shows
	base, programs, sysctls string         // directories of lower layers
	lowers                  []func() error // end their use

	mu      sync.Mutex // guards writing to control, and
	next    int
	waiting map[int]chan response
	changed map[string]string // the values under /proc/sys that differ, by path
	ended   error             // why there are no more responses
	done    chan struct{}     // closed when the first process has ended
	idle    chan struct{}     // has a token when the last process may have ended
}

// kill ends a command with all processes that it has started: by SIGTERM first if they have
// time to end.
func (r *session) kill(id int, timeout time.Duration, ended <-chan struct{}) {
	if timeout > 0 {
		_ = r.send(request{ID: id, Kill: true, Signal: int(unix.SIGTERM)}) // else the session has ended
		t := time.NewTimer(timeout)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ended: // others that it has started may ignore the signal
		}
	}
	_ = r.send(request{ID: id, Kill: true}) // else the session has ended
}

// request asks the first process for something.
type request struct {
	ID       int
	Args     []string
	Env      []string
	Dir      string
	Terminal bool
	Kill     bool   // the command of this ID; 0: all
	Signal   int    // by which it is killed; 0: SIGKILL
	Reason   string // shown by those that are killed
	Service  *attributes
	Hostname string // the host name is this from now on
	// Answer to a program's message.
	Output string
	Code   int
}

// response is a result of the first process, or a request of a program.
type response struct {
	ID        int
	Ready     bool   // the root is mounted
	Error     string // the root is not mounted, or the command did not start
	Started   bool   // with the terminal, if one was asked for
	Code      int
	Processes int  // that are left
	Idle      bool // the last process has ended, which was no command
	Sysctl    map[string]string
	Program   []string // a program asks: its name and arguments
	Calling   calling  // how it was called
}

// maxResponse is how many bytes a response may have: the values under /proc/sys are most.
const maxResponse = 64 << 20

// setup has the arguments by which the first process mounts the root.
type setup struct {
	Dir      string // has root, upper, work, …
	Root     string // lowest layer of the root; "": this machine has /usr
	Base     string // lower layer of the root
	Programs string // lower layer of /usr, with a Root of all
	Sysctls  string // lower layer of /proc/sys, which the first process makes if it is not there
	Machine  []string
	Program  string // file of this program
	Hostname string
	Limits   Limits
	Sysctl   map[string]string
	Hardware []hardwareFile
	BootID   string
}

// dirsOf names the directories of a session below its Dir.
const (
	rootDir     = "root"
	ownDir      = "own"
	privateDir  = "private" // which no command sees
	upperDir    = "upper"
	workDir     = "work"
	uptimeFile  = "uptime"
	cmdlineName = "cmdline" // absent: the machine's is seen
	modulesName = "modules"
)

// newSession mounts the root of a system with a layer, and returns when commands can run.
func newSession(s *System, layer Tree) (_ *session, err error) {
	r := &session{dir: s.c.Dir, usage: &s.usage, waiting: map[int]chan response{}, changed: s.sysctl(), done: make(chan struct{}), idle: make(chan struct{}, 1)}
	if err := s.removeDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.removeDir())
		}
	}()
	below := ""
	if s.root != nil {
		below = s.root.Dir
	} else {
		r.machine = realMachineDirs()
	}
	if err := r.makeDirs(s, layer); err != nil {
		return nil, errors.Join(err, r.leaveLowers())
	}
	m, err := s.bottom()
	if err != nil {
		return nil, errors.Join(err, r.leaveLowers())
	}
	hostname, v := "localhost", view{layer, s.lower, m}
	if b, err := v.readFile("etc/hostname", maxConfig); err == nil {
		hostname = firstWord(string(b), hostname)
	}
	s.values.Lock()
	hostname = cmp.Or(s.values.hostname, hostname)
	s.values.Unlock()
	self, err := os.Executable()
	var hardware []hardwareFile
	if err == nil {
		hardware, err = s.readHardware()
	}
	if err != nil {
		return nil, errors.Join(err, r.leaveLowers())
	}
	if err := r.start(s); errors.As(err, new(*LimitsError)) {
		return nil, errors.Join(err, r.leaveLowers())
	} else if err != nil {
		return nil, &CannotRunError{errors.Join(err, r.leaveLowers())}
	}
	s.usage.begin(r)
	first := make(chan response, 1)
	r.waiting[0] = first
	go r.receive(s)
	err = r.send(setup{
		Dir: r.dir, Root: below, Base: r.base, Programs: r.programs, Sysctls: r.sysctls, Machine: r.machine, Program: self, Hostname: hostname, Limits: s.c.Limits, Sysctl: r.changed, Hardware: hardware, BootID: s.c.Boot.ID,
	})
	if err != nil {
		return nil, &CannotRunError{errors.Join(err, r.end())}
	}
	if err := r.ready(first); err != nil {
		return nil, &CannotRunError{errors.Join(err, r.end())}
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", r.command.Process.Pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &CannotRunError{errors.Join(err, r.end())}
	}
	r.root = os.NewFile(uintptr(root), "root")
	return r, nil
}

// startTimeout is how long the first process may take to mount the root. It waits for disks of
// this machine, and the system's lock is held meanwhile.
const startTimeout = time.Minute

// ready returns when the first process has mounted the root, or the reason why it has not.
func (r *session) ready(first <-chan response) error {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case answer, ok := <-first:
		switch {
		case !ok:
			return errors.New("the first process ended")
		case !answer.Ready:
			return errors.New(answer.Error)
		}
		return nil
	case <-timeout.C:
		return fmt.Errorf("the first process has not mounted the root after %v", startTimeout)
	}
}

// closeOnExec keeps from the first process what this process has inherited: a directory that the
// shell left open when it started this program would be a way out of the root. Whatever Go opens
// has the flag already.
var closeOnExec = sync.OnceValue(func() error {
	const first = 3 // behind the standard streams
	err := unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	open, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return err
})

// start starts the first process. Its error is a LimitsError, and the process has ended, where
// limits are required and cannot be made.
func (r *session) start(s *System) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return err
	}
	r.control = conn.(*net.UnixConn)
	if err := closeOnExec(); err != nil {
		return err
	}
	c := exec.Command("/proc/self/exe")
	c.Args = []string{initName}
	c.Env = []string{"PATH=/usr/bin:/bin"}
	c.ExtraFiles = []*os.File{theirs}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	groups := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	if os.Getuid() == 0 {
		ids = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 16}}
		groups = ids
	}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		UidMappings: ids, GidMappings: groups, GidMappingsEnableSetgroups: os.Getuid() == 0,
	}
	if err := c.Start(); err != nil {
		return errors.Join(err, r.control.Close())
	}
	r.command = c
	r.groups, err = joinGroups(s.cgroups, c.Process.Pid, s.c.Limits)
	switch {
	case err == nil:
	case s.c.RequireLimits:
		_ = errors.Join(r.control.Close(), c.Process.Kill()) // it waits for its setup
		_ = c.Wait()
		return errors.Join(&LimitsError{err}, removeGroups(r.groups))
	default:
		s.unlimited.Do(func() { s.report("%v; this program watches them", &LimitsError{err}) })
	}
	return nil
}

// rename gives a root in which processes run a host name.
func (r *session) rename(name string) {
	_ = r.send(request{Hostname: name}) // else the session has ended
}

func (r *session) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// newest returns the ID of the command that was started last of those that run; 0 if none does.
func (r *session) newest() (id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiting {
		id = max(id, i)
	}
	return id
}

func (r *session) processes() int { return int(r.left.Load()) }

// emptied reports whether no process is left, or will be soon: a command ends before those that
// were killed with it.
func (r *session) emptied(within time.Duration) bool {
	look, timeout := time.NewTicker(time.Millisecond), time.NewTimer(within)
	defer look.Stop()
	defer timeout.Stop()
	for r.processes() > 0 {
		select {
		case <-look.C:
		case <-timeout.C:
			return r.processes() == 0
		}
	}
	return true
}

// send sends a message with its length, and files.
func (r *session) send(m any, files ...*os.File) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	head := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	if _, _, err := r.control.WriteMsgUnix(head, rights, nil); err != nil {
		return err
	}
	_, err = r.control.Write(b)
	return err
}

// receive hands responses to those who wait for them, until the first process ends.
func (r *session) receive(s *System) {
	defer close(r.done)
	in := &io.LimitedReader{R: r.control}
	d := json.NewDecoder(in)
	for {
		in.N = maxResponse
		var a response
		if err := d.Decode(&a); err != nil {
			if !errors.Is(err, io.EOF) {
				s.report("a response of the system's first process: %v", err)
				_ = r.command.Process.Kill() // it may have ended
			}
			break
		}
		r.left.Store(int64(a.Processes))
		switch {
		case a.Idle:
			select {
			case r.idle <- struct{}{}:
			default:
			}
			continue
		case a.Program != nil:
			go func() {
				defer s.Guard()
				out, code, _ := s.program(a.Program[0], a.Program[1:], a.Calling)
				_ = r.send(request{ID: a.ID, Output: out, Code: code}) // else the program has ended
			}()
			continue
		case a.Sysctl != nil:
			s.setSysctl(a.Sysctl)
			continue
		}
		r.mu.Lock()
		w := r.waiting[a.ID]
		if !a.Started {
			delete(r.waiting, a.ID)
		}
		r.mu.Unlock()
		if w != nil {
			w <- a
		}
	}
	_ = r.command.Wait() // it was killed, or all its processes have ended
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = ErrClosed
	for _, w := range r.waiting {
		close(w)
	}
	clear(r.waiting)
}

// Times in which the first process must end: by itself, and after SIGKILL. The kernel keeps one
// that waits for a disk, and the system's lock may be held meanwhile.
const (
	endTimeout  = 5 * time.Second
	killTimeout = 10 * time.Second
)

// end ends all processes of the namespaces, and the mounts with them. Its error names a first
// process that the kernel does not end in time.
func (r *session) end() error {
	_ = r.control.CloseWrite() // the first process ends, and the kernel kills the others
	ended := r.endsWithin(endTimeout)
	if !ended {
		_ = r.command.Process.Kill()
		ended = r.endsWithin(killTimeout)
	}
	if r.root != nil {
		_ = r.root.Close() // it was read only
	}
	if !ended { // its groups are in use
		pid := r.command.Process.Pid
		return errors.Join(fmt.Errorf("process %d of a server has not ended %v after SIGKILL: see /proc/%d/stack", pid, killTimeout, pid), r.control.Close())
	}
	r.usage.finish(r)
	return errors.Join(r.control.Close(), removeGroups(r.groups), r.leaveLowers())
}

func (r *session) endsWithin(d time.Duration) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-r.done:
		return true
	case <-timeout.C:
		return false
	}
}

// exec runs a command.
func (r *session) exec(ctx context.Context, c Command, uptime time.Duration) (code int, err error) {
	if err := r.setUptime(uptime); err != nil {
		return 0, err
	}
	streams, err := r.newStreams(c)
	if err != nil {
		return 0, err
	}
	defer streams.close()
	r.mu.Lock()
	r.next++
	id, answer := r.next, make(chan response, 2)
	if r.ended != nil {
		r.mu.Unlock()
		return 0, r.ended
	}
	r.waiting[id] = answer
	r.mu.Unlock()
	dir := c.Dir
	if dir == "" {
		dir = "/root"
	}
	err = r.send(request{ID: id, Args: c.Args, Env: c.environment(), Dir: dir, Terminal: c.Terminal, Service: c.service}, streams.theirs...)
	if err != nil {
		return 0, errors.Join(ErrClosed, err)
	}
	streams.started()
	ended := make(chan struct{})
	defer close(ended)
	stop := context.AfterFunc(ctx, func() { r.kill(id, c.StopTimeout, ended) })
	defer stop()
	for a := range answer {
		if a.Error != "" {
			streams.wait()
			_, err := fmt.Fprintln(c.Stderr, a.Error)
			return a.Code, err
		}
		if !a.Started {
			streams.wait()
			return a.Code, nil
		}
		c.hasStarted(r, id, a.Code)
	}
	return 0, ErrClosed
}

package sandbox

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// initName is the name under which a program runs as the first process.
const initName = "metalab-sandbox-init"

// controlFD is the first process's connection to the program that has started it.
const controlFD = 3

// init runs the first process of a system's namespaces, or one of its programs, when this
// program was started as such. It does so before other packages are initialised: those of
// Kubernetes alone take longer than a command.
func init() {
	switch name := filepath.Base(os.Args[0]); {
	case name == initName && os.Getpid() == 1:
		err := runInit()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case slices.Contains(programNames, name), slices.Contains(hostPrograms, name):
		if _, err := os.Stat("/run/" + socketName); err == nil {
			os.Exit(runProgram(name, os.Args[1:]))
		}
	default:
		if self, err := os.Executable(); err == nil && self == "/"+programFile {
			fmt.Fprintf(os.Stderr, "%s: it runs as a service here: start its unit with systemctl\n", name)
			os.Exit(CodeCannotRun)
		}
	}
}

// first is the first process.
type first struct {
	control *net.UnixConn
	setup   setup

	mu       sync.Mutex
	out      *json.Encoder
	running  map[int]int // process of a command, by its ID
	codes    map[int]int // ID of a command, by its process
	asking   map[int]chan request
	nextAsk  int
	awaited  map[int]bool          // commands that have not started, and whether they were killed
	sysctl   map[string]string     // values under /proc/sys that are the server's own
	sysctls  *os.File              // directory of those and of what commands have changed
	reasons  map[int]string        // why commands were killed, by ID
	services map[int]*attributes   // of the commands that are services' processes
	stopping map[int]chan struct{} // of the commands that end with all that they have started; closed when nothing is left
	started  chan struct{}         // a process was started
}

// spareThreads are more than the goroutines of the first process that wait for the kernel at a time.
const spareThreads = 16

// makeThreads makes the threads that the first process will need. Later, processes that fork without
// an end may have taken all that the limit allows: a runtime that gets no thread ends its program.
func makeThreads() {
	var made sync.WaitGroup
	end := make(chan struct{})
	for range spareThreads {
		made.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread() // the runtime keeps the thread
			made.Done()
			<-end
		}()
	}
	made.Wait()
	close(end)
}

func runInit() error {
	runtime.LockOSThread() // commands inherit the attributes of this thread
	makeThreads()
	f := os.NewFile(controlFD, "control")
	conn, err := net.FileConn(f)
	if err != nil {
		return err
	}
	_ = f.Close()
	p := &first{control: conn.(*net.UnixConn), running: map[int]int{}, codes: map[int]int{}, asking: map[int]chan request{}, reasons: map[int]string{}, services: map[int]*attributes{}, stopping: map[int]chan struct{}{}, awaited: map[int]bool{}, started: make(chan struct{}, 1)}
	p.out = json.NewEncoder(p.control)
	if _, err := p.receive(&p.setup); err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return p.send(response{Error: err.Error()})
	}
	if err := p.send(response{Ready: true}); err != nil {
		return err
	}
	go p.reap()
	go p.watch()
	requests := make(chan func())
	go func() {
		defer close(requests)
		for {
			var r request
			files, err := p.receive(&r)
			if err != nil {
				return // the program that has started this one has ended, or ends it
			}
			p.mu.Lock()
			ask := p.asking[r.ID]
			p.mu.Unlock()
			switch {
			case r.Hostname != "":
				_ = unix.Sethostname([]byte(r.Hostname)) // the caller has checked it
			case r.Kill && r.ID == 0:
				p.killAll(r.Reason)
			case r.Kill:
				p.mu.Lock()
				if _, runs := p.running[r.ID]; runs && r.Reason != "" {
					p.reasons[r.ID] = r.Reason
				}
				p.mu.Unlock()
				go p.killService(r, cmp.Or(unix.Signal(r.Signal), unix.SIGKILL))
			case r.Args == nil && ask != nil:
				ask <- r
			default:
				p.mu.Lock()
				p.awaited[r.ID] = false
				p.mu.Unlock()
				requests <- func() { p.run(r, files) }
			}
		}
	}()
	for do := range requests { // on this thread
		do()
	}
	os.Exit(0)
	return nil
}

// prepare mounts the root and drops the capabilities that commands must not have.
func (p *first) prepare() error {
	if err := p.mount(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(p.setup.Hostname)); err != nil {
		return fmt.Errorf("host name %q: %w", p.setup.Hostname, err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	// Programs ask for systemd by this directory (sd_booted(3)), and by the name of process 1.
	if err := os.MkdirAll("/run/systemd/system", 0o755); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("systemd\x00")[0])), 0, 0, 0); err != nil {
		return fmt.Errorf("name of the first process: %w", err)
	}
	if err := p.serve(); err != nil {
		return err
	}
	if err := p.serveNotifications(); err != nil {
		return err
	}
	return restrict(p.setup.Limits)
}

func (p *first) send(a response) error {
	a.Processes = len(living())
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Encode(a)
}

// receive reads a message and the files that came with it.
func (p *first) receive(to any) ([]int, error) {
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4*4))
	n, k, _, _, err := p.control.ReadMsgUnix(head, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil && n < len(head) {
		_, err = io.ReadFull(p.control, head[n:])
	}
	if err != nil {
		return nil, err
	}
	var files []int
	messages, err := unix.ParseSocketControlMessage(rights[:k])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		files = append(files, fds...)
	}
	b := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(p.control, b); err != nil {
		return nil, err
	}
	return files, json.Unmarshal(b, to)
}

// run starts a command.
func (p *first) run(r request, files []int) {
	defer func() {
		for _, fd := range files {
			_ = unix.Close(fd)
		}
	}()
	fail := func(code int, err error) {
		p.mu.Lock()
		delete(p.awaited, r.ID)
		p.mu.Unlock()
		_ = p.send(response{ID: r.ID, Code: code, Error: err.Error()})
	}
	program, err := lookPath(r.Args[0], r.Env)
	switch {
	case errors.Is(err, fs.ErrPermission):
		fail(CodeCannotRun, fmt.Errorf("%s: permission denied", r.Args[0]))
		return
	case err != nil:
		fail(CodeNotFound, fmt.Errorf("%s: command not found", r.Args[0]))
		return
	}
	if st, err := os.Stat(r.Dir); err != nil || !st.IsDir() {
		fail(CodeCannotRun, fmt.Errorf("directory %s: no such directory", r.Dir))
		return
	}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: append(r.Env, marker(r.ID)), Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, fd := range files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	done, err := p.attributes(&r, attr)
	defer done()
	if err != nil {
		fail(CodeCannotRun, err)
		return
	}
	if r.Terminal {
		attr.Files = []uintptr{uintptr(files[0]), uintptr(files[0]), uintptr(files[0])}
		attr.Sys.Setctty = true
	}
	p.mu.Lock()
	killed := p.awaited[r.ID]
	delete(p.awaited, r.ID)
	if killed {
		p.mu.Unlock()
		fail(codeSignal+int(unix.SIGKILL), fmt.Errorf("%s: killed", r.Args[0]))
		return
	}
	pid, err := p.fork(program, r, attr)
	if err == nil {
		p.running[r.ID], p.codes[pid] = pid, r.ID
		if r.Service != nil {
			p.services[r.ID] = r.Service
		}
		// Before reap can report the end of a short command: System would take it for a command that
		// has not run, and would not kill the processes that it has started.
		_ = p.out.Encode(response{ID: r.ID, Started: true, Code: pid, Processes: len(living())}) // else the system has ended
	}
	p.mu.Unlock()
	if err != nil {
		fail(CodeCannotRun, fmt.Errorf("%s: %w", r.Args[0], err))
		return
	}
	select {
	case p.started <- struct{}{}:
	default:
	}
}

// lookPath finds a program as a shell does, with the command's PATH.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	found := fs.ErrNotExist
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if err == nil {
				return path, nil
			}
			if errors.Is(err, fs.ErrPermission) {
				found = err
			}
		}
	}
	return "", found
}

// reap waits for all processes, which the kernel makes children of the first when their
// parents end (pid_namespaces(7)).
func (p *first) reap() {
	for {
		pid, status, err := wait(0)
		if errors.Is(err, syscall.ECHILD) {
			<-p.started
			continue
		}
		others := false
		for ; pid > 0; pid, status, _ = wait(syscall.WNOHANG) { // a fork bomb leaves thousands
			others = !p.ended(pid, status) || others
		}
		if others && len(living()) == 0 {
			_ = p.send(response{Idle: true}) // else nobody waits any more
		}
	}
}

func wait(flags int) (pid int, status syscall.WaitStatus, err error) {
	pid, err = syscall.Wait4(-1, &status, flags, nil)
	return pid, status, err
}

// ended reports the end of a command. It returns false if the process was none.
func (p *first) ended(pid int, status syscall.WaitStatus) bool {
	p.mu.Lock()
	id, ok := p.codes[pid]
	reason := p.reasons[id]
	service := p.services[id]
	delete(p.codes, pid)
	delete(p.running, id)
	delete(p.reasons, id)
	delete(p.services, id)
	stopping := p.stopping[id]
	p.mu.Unlock()
	if !ok {
		return false
	}
	code := status.ExitStatus()
	if status.Signaled() {
		code = codeSignal + int(status.Signal())
		if service != nil {
			code = -int(status.Signal())
		}
	}
	p.reportSysctl()
	switch end := (response{ID: id, Code: code, Error: reason}); {
	case stopping != nil:
		go p.endWithRest(end, stopping)
		return true
	case service != nil && service.Forks && code == 0:
		go p.outlive(id, service)
		return true
	}
	_ = p.send(response{ID: id, Code: code, Error: reason}) // else nobody waits any more
	return true
}

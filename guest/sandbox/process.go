package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// exit is how a process has ended.
type exit struct {
	code   int
	signal syscall.Signal // 0: by itself
}

// signals are the names of signals (signal(7)).
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "ILL": syscall.SIGILL, "TRAP": syscall.SIGTRAP, "ABRT": syscall.SIGABRT,
	"BUS": syscall.SIGBUS, "FPE": syscall.SIGFPE, "KILL": syscall.SIGKILL, "USR1": 10, "SEGV": syscall.SIGSEGV, "USR2": 12, "PIPE": syscall.SIGPIPE,
	"ALRM": syscall.SIGALRM, "TERM": syscall.SIGTERM, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25,
	"VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
}

// signalOf reads a signal's name or number.
func signalOf(text string, none syscall.Signal) syscall.Signal {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if s, ok := signals[name]; ok {
		return s
	}
	if rest, ok := strings.CutPrefix(name, "RTMIN"); ok {
		return syscall.Signal(34 + number(strings.TrimPrefix(rest, "+"), 0))
	}
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n)
	}
	return none
}

// signalName returns the name of a signal.
func signalName(s syscall.Signal) string {
	for name, n := range signals {
		if n == s {
			return name
		}
	}
	return strconv.Itoa(int(s))
}

// clean reports a success (systemd.service(5), "SuccessExitStatus=").
func (e exit) clean(oneshot bool) bool {
	if e.signal != 0 {
		return !oneshot && slices.Contains([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE}, e.signal)
	}
	return e.code == 0
}

// exitNames are names of exit codes (systemd.exec(5), "Process Exit Codes").
var exitNames = map[string]int{
	"SUCCESS": 0, "FAILURE": 1, "INVALIDARGUMENT": 2, "NOTIMPLEMENTED": 3, "NOPERMISSION": 4, "NOTINSTALLED": 5, "NOTCONFIGURED": 6, "NOTRUNNING": 7,
	"USAGE": 64, "DATAERR": 65, "NOINPUT": 66, "NOUSER": 67, "NOHOST": 68, "UNAVAILABLE": 69, "SOFTWARE": 70, "OSERR": 71, "OSFILE": 72, "CANTCREAT": 73,
	"IOERR": 74, "TEMPFAIL": 75, "PROTOCOL": 76, "NOPERM": 77, "CONFIG": 78,
}

// in reports whether a list of codes and signals has this one.
func (e exit) in(list []string) bool {
	return slices.ContainsFunc(list, func(w string) bool {
		if n, err := strconv.Atoi(w); err == nil {
			return e.signal == 0 && e.code == n
		}
		if n, ok := exitNames[w]; ok {
			return e.signal == 0 && e.code == n
		}
		return e.signal != 0 && signalOf(w, 0) == e.signal
	})
}

// variables describe a service's end to ExecStopPost= (systemd.exec(5), "$SERVICE_RESULT").
func (r result) variables() []string {
	kind := r.kind
	if kind == "" {
		kind = "success"
	}
	if r.exit.signal != 0 {
		return []string{"SERVICE_RESULT=" + kind, "EXIT_CODE=killed", "EXIT_STATUS=" + signalName(r.exit.signal)}
	}
	return []string{"SERVICE_RESULT=" + kind, "EXIT_CODE=exited", "EXIT_STATUS=" + strconv.Itoa(r.exit.code)}
}

// process is a process of a service: a command in the system, or a program of the lab's.
type process struct {
	command command
	cancel  context.CancelFunc // ends it at once, with all that it has started
	ready   chan struct{}      // closed when its service counts as started
	ended   chan struct{}
	exit    exit // set before ended is closed, and
	err     error

	mu      sync.Mutex
	session *session // nil: it has not started as a process
	id      int
	pid     int
	reports int // how often it has started: a second time says that its service has
}

func (p *process) hasEnded() bool { return isDone(p.ended) }

func (p *process) isReady() bool { return isDone(p.ready) }

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// number returns its number in the system; 0: it has none.
func (p *process) number() int {
	if p == nil || p.hasEnded() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// signal sends a signal; false means that it is no process that can have one.
func (p *process) signal(signal syscall.Signal, a attributes) bool {
	p.mu.Lock()
	r, id := p.session, p.id
	p.mu.Unlock()
	return r != nil && r.send(request{ID: id, Kill: true, Signal: int(signal), Service: &a}) == nil
}

// stop sends SIGTERM, and SIGKILL after a time.
func (p *process) stop(timeout time.Duration) {
	if p.signal(syscall.SIGTERM, attributes{}) {
		p.await(timeout)
	}
	p.cancel()
}

func (p *process) await(timeout time.Duration) {
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
}

// kit has the settings that the processes of a service share.
type kit struct {
	as      credential
	env     []string
	dir     string
	umask   int
	outputs [2]output
	input   string
	remove  []string // directories that go with the service
}

// spawn starts a command of a service. more is added to its environment.
func (v *service) spawn(c command, main bool, more []string) (*process, error) {
	env := slices.Concat(v.kit.env, more)
	if pid := v.main.number(); pid != 0 {
		env = append(env, "MAINPID="+strconv.Itoa(pid))
	}
	args, err := c.argv(env)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(v.x.ctx)
	p := &process{command: c, cancel: func() { cancel(nil) }, ready: make(chan struct{}), ended: make(chan struct{})}
	kind := v.u.serviceType()
	forks, notifies := main && kind == "forking", main && strings.HasPrefix(kind, "notify")
	ready := sync.OnceFunc(func() { close(p.ready) })
	within, err := v.s.standsFor(v.u.name, args[0])
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if within {
		run, stop := context.WithCancelCause(ctx)
		context.AfterFunc(v.x.quit, func() { stop(context.Cause(v.x.quit)) })
		go func() {
			defer v.s.Guard()
			defer close(p.ended)
			defer stop(nil)
			ready()
			if p.err = v.s.c.Run(run, v.u.name, args, env); p.err != nil {
				p.exit.code = 1
				_, _ = fmt.Fprintf(&v.x.log, "%s: %v\n", path.Base(args[0]), p.err) // it fails never
			}
		}()
		return p, nil
	}
	a := &attributes{Name: c.name, UMask: v.kit.umask, Stdin: v.kit.input, Stdout: v.kit.outputs[0], Stderr: v.kit.outputs[1], Forks: forks, Notifies: notifies}
	if notifies {
		access := v.u.get("Service.NotifyAccess")
		a.NotifyAll = access == "all" || access == "exec"
		env = append(env, "NOTIFY_SOCKET="+notifyPath)
	}
	if pid := v.u.get("Service.PIDFile"); forks && pid != "" {
		a.PIDFile = path.Join("/run", pid)
		if path.IsAbs(pid) {
			a.PIDFile = pid
		}
	}
	if !c.privileged && (v.kit.as.uid > 0 || v.kit.as.gid > 0 || len(v.kit.as.groups) > 0) {
		a.As, a.UID, a.GID, a.Groups = true, v.kit.as.uid, v.kit.as.gid, v.kit.as.groups
	}
	var text lastLine
	out := &tee{a: &text, b: &v.x.log}
	if v.kit.outputs[0].Console || v.kit.outputs[1].Console {
		out.console = func(line string) {
			if v.s.c.Report != nil {
				v.s.c.Report(path.Base(args[0]) + ": " + line)
			}
		}
	}
	begun := func(r *session, id, pid int) {
		p.mu.Lock()
		p.session, p.id, p.pid = r, id, pid
		p.reports++
		n := p.reports
		p.mu.Unlock()
		if n > 1 || !forks && !notifies {
			ready()
		}
	}
	go func() {
		defer v.s.Guard()
		defer close(p.ended)
		code, err := v.s.Exec(ctx, Command{Args: args, Env: env, Dir: v.kit.dir, Stdout: out, Stderr: out, service: a, started: begun})
		if code < 0 {
			p.exit.signal = syscall.Signal(-code)
		} else {
			p.exit.code = code
		}
		switch {
		case err != nil:
			p.exit.code, p.err = 1, err
		case code < 0:
			p.err = fmt.Errorf("%s was killed by the signal %s %s", args[0], signalName(p.exit.signal), text.line())
		case code != 0:
			p.err = fmt.Errorf("%s ended with code %d %s", args[0], code, text.line())
		}
	}()
	return p, nil
}

// standsFor reports whether Config.Run runs a program of a service.
func (s *System) standsFor(unit, program string) (bool, error) {
	switch {
	case s.c.Run == nil:
		return false, nil
	case s.c.StandsFor != nil:
		return s.c.StandsFor(unit, program)
	}
	return slices.Contains(s.c.Programs, path.Base(program)), nil
}

// notifyPath is the socket of sd_notify(3) in a system.
const notifyPath = "/run/metalab-notify.sock"

// terminate ends the main process and all that the service's processes have started
// (systemd.kill(5)).
func (v *service) terminate() result {
	p := v.main
	if p == nil {
		return result{}
	}
	mode := v.u.get("Service.KillMode")
	a := attributes{MainOnly: mode == "process" || mode == "mixed" || mode == "none", Hangup: v.u.is("Service.SendSIGHUP")}
	if mode == "" || mode == "control-group" {
		a.Rest = v.stopTimeout()
	}
	signal := signalOf(v.u.get("Service.KillSignal"), syscall.SIGTERM)
	if p.hasEnded() {
		if mode != "process" && mode != "none" {
			a.MainOnly, a.Rest = false, v.stopTimeout()
			p.signal(signal, a)
		}
		return result{}
	}
	if mode == "none" {
		p.await(v.stopTimeout())
	} else if p.signal(signal, a) {
		p.await(v.stopTimeout())
	}
	late := !p.hasEnded()
	p.mu.Lock()
	late = late && p.session != nil
	p.mu.Unlock()
	p.cancel()
	<-p.ended
	if late && mode != "none" {
		return failure("timeout", errors.New("it has not ended after its signal and was killed"))
	}
	if mode == "mixed" {
		p.signal(syscall.SIGKILL, attributes{})
	}
	return result{}
}

// prepare reads the settings that a service's processes share, and makes its directories.
func (v *service) prepare() (err error) {
	k := kit{umask: 0o022}
	if text := v.u.get("Service.UMask"); text != "" {
		n, err := strconv.ParseUint(text, 8, 12)
		if err != nil {
			return fmt.Errorf("UMask=%s: give an octal number, such as 0027", text)
		}
		k.umask = int(n)
	}
	if k.outputs, err = v.u.outputs(); err != nil {
		return err
	}
	if k.input, err = v.u.input(); err != nil {
		return err
	}
	put := []string{}
	modes := Tree{}
	err = v.s.files(func(f files) error {
		if k.as, err = v.u.credential(f); err != nil {
			return err
		}
		own := k.as.variables()
		for _, d := range stateDirs {
			var all []string
			for _, name := range v.u.words("Service." + d.key) {
				name, _, _ = strings.Cut(name, ":")
				at := path.Join(d.root, path.Join("/", name))
				all = append(all, "/"+at)
				n := Node{Mode: fs.ModeDir | d.mode(v.u)}
				if d.key != "ConfigurationDirectory" {
					n.UID, n.GID = k.as.uid, k.as.gid
				}
				put, modes[at] = append(put, at), n
				if d.key == "RuntimeDirectory" && !v.u.is("Service.RuntimeDirectoryPreserve") && v.u.get("Service.RuntimeDirectoryPreserve") != "restart" && at != d.root {
					k.remove = append(k.remove, at)
				}
			}
			if len(all) > 0 {
				own = append(own, d.variable+"="+strings.Join(all, ":"))
			}
		}
		own = append(own, "INVOCATION_ID="+v.s.invocation(v.u.name))
		if k.env, err = v.u.variables(f, own); err != nil {
			return err
		}
		k.dir, err = v.u.workingDirectory(f, k.as, modes)
		return err
	})
	if err != nil {
		return err
	}
	for _, at := range put {
		if err := v.s.Put(Tree{at: modes[at]}); err != nil {
			return err
		}
	}
	v.kit = k
	return nil
}

func (v *service) removeDirs() {
	if len(v.kit.remove) == 0 {
		return
	}
	if err := v.s.Remove(v.kit.remove...); err != nil && !errors.Is(err, ErrClosed) {
		v.s.report("%s: RuntimeDirectory=: %v", v.u.name, err)
	}
}

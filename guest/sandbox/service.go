package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// States of a unit (systemctl(1), "is-active").
const (
	stateActive     = "active"
	stateActivating = "activating"
	stateFailed     = "failed"
)

// units are the units of a boot that were started.
type units struct {
	mu     sync.Mutex
	all    map[string]*started
	starts map[string][]instant // of each unit, the last ones
}

// instant is when a unit was started, by the system's clock and by that of this machine.
type instant struct{ system, machine time.Time }

type started struct {
	state string
	stop  func(error)   // ends it: nil in order, else by this cause
	done  chan struct{} // closed when it has ended
	paths map[string]string
}

func (u *units) state(name string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.all[name]; x != nil {
		return x.state
	}
	return ""
}

// begin adds a unit that is started; ok is false if it runs already. It is an error to start a unit
// more often than startBurst times within a limit of both clocks (systemd.unit(5),
// "StartLimitIntervalSec="): one that restarts itself would do so without an end, while a clock at
// max speed waits for it.
func (u *units) begin(name string, x *started, now time.Time, limit time.Duration) (ok bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := u.all[name]; old != nil && old.state != stateFailed && old.state != "" {
		return false, nil
	}
	if u.all == nil {
		u.all, u.starts = map[string]*started{}, map[string][]instant{}
	}
	starts := u.starts[name]
	if len(starts) == startBurst {
		if first := starts[0]; now.Sub(first.system) < limit && time.Since(first.machine) < limit {
			x.state = stateFailed
			u.all[name] = x
			return false, fmt.Errorf("%s: start request repeated too quickly: it was started %d times in %v", name, startBurst, limit)
		}
		starts = starts[1:]
	}
	u.starts[name] = append(starts, instant{now, time.Now()})
	u.all[name] = x
	return true, nil
}

func (u *units) set(x *started, state string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.state = state
}

func (u *units) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.all[name]; x != nil && x.state == stateFailed {
		delete(u.all, name)
	}
	delete(u.starts, name)
}

// stopAll ends all services without waiting for them: their processes are killed. cause is
// nil at an orderly shutdown.
func (u *units) stopAll(cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.all {
		x.stop(cause)
	}
	u.all, u.starts = nil, nil
}

func (s *System) startUnit(name string) error {
	u, err := s.readUnit(name)
	if err != nil {
		return err
	}
	for _, c := range u.keys["Unit.ConditionPathExists"] {
		path, want := strings.TrimPrefix(c, "!"), !strings.HasPrefix(c, "!")
		if _, err := s.Stat(path); (err == nil) != want {
			s.report("%s was skipped: ConditionPathExists=%s", name, c)
			return nil
		}
	}
	kind := strings.TrimPrefix(path.Ext(name), ".")
	start, ok := map[string]func(*System, unit) error{"service": (*System).startService, "path": (*System).startPath, "target": func(*System, unit) error { return nil }}[kind]
	if !ok {
		return fmt.Errorf("%s: units of the type %s are not started here: use .service or .path", name, kind)
	}
	return start(s, u)
}

func (s *System) stopUnit(name string) error {
	s.units.mu.Lock()
	x := s.units.all[name]
	delete(s.units.all, name)
	s.units.mu.Unlock()
	if x != nil {
		x.stop(nil)
		<-x.done
	}
	return nil
}

func (s *System) restartUnit(name string) error {
	return errors.Join(s.stopUnit(name), s.startUnit(name))
}

// reloadUnit runs the commands of ExecReload= of a unit (systemd.service(5)). One that does not
// run has nothing to reload.
func (s *System) reloadUnit(name string) error {
	u, err := s.readUnit(name)
	if err != nil || s.units.state(name) != stateActive {
		return err
	}
	lines := u.keys["Service.ExecReload"]
	if len(lines) == 0 {
		return fmt.Errorf("%s has no ExecReload=: restart it", name)
	}
	u.keys = map[string][]string{"Service.ExecStart": lines}
	return s.runService(context.Background(), u)
}

// startService starts the processes of a service. It returns when a oneshot has ended,
// and at once for others.
func (s *System) startService(u unit) error {
	if len(u.keys["Service.ExecStart"]) == 0 {
		return fmt.Errorf("%s has no ExecStart=", u.name)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	x := &started{state: stateActive, stop: cancel, done: make(chan struct{})}
	oneshot := u.get("Service.Type") == "oneshot"
	if oneshot {
		x.state = stateActivating
	}
	if ok, err := s.units.begin(u.name, x, s.now(), u.duration("Unit.StartLimitIntervalSec", startInterval)); !ok {
		close(x.done)
		cancel(nil)
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer s.Guard()
		defer close(x.done)
		defer cancel(nil)
		starts := []time.Time{s.now()}
		err := s.runService(ctx, u)
		for ctx.Err() == nil && restarts[u.get("Service.Restart")][err != nil] && !oneshot {
			if limit := u.duration("Unit.StartLimitIntervalSec", startInterval); len(starts) == startBurst && s.now().Sub(starts[0]) < limit {
				err = errors.Join(err, fmt.Errorf("start-limit-hit: it was started %d times in %v", startBurst, limit))
				break
			}
			if s.c.Sleep(ctx, u.duration("Service.RestartSec", restartDelay)) == nil {
				starts = append(starts, s.now())[max(0, len(starts)+1-startBurst):]
				err = s.runService(ctx, u)
			}
		}
		switch {
		case ctx.Err() != nil: // it was stopped
		case err != nil:
			s.units.set(x, stateFailed)
			s.report("%s failed: %v", u.name, err)
		case u.is("Service.RemainAfterExit"):
			s.units.set(x, stateActive)
		default:
			s.units.set(x, "")
		}
		ended <- err
	}()
	if !oneshot {
		return nil
	}
	<-x.done
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}

// stopTimeout is the default of TimeoutStopSec= in real time. systemd's default, 90 s, would
// make tests wait too long.
const stopTimeout = 10 * time.Second

// restarts are the values of Restart= that start a service again after it has ended, by
// whether it has failed (systemd.service(5), "Restart=").
var restarts = map[string]map[bool]bool{
	"always": {false: true, true: true}, "on-success": {false: true}, "on-failure": {true: true}, "on-abnormal": {true: true},
}

// Defaults of RestartSec=, StartLimitBurst= and StartLimitIntervalSec=
// (systemd-system.conf(5)).
const (
	restartDelay  = 100 * time.Millisecond
	startBurst    = 5
	startInterval = 10 * time.Second
)

// runService runs the commands of a service one after the other.
func (s *System) runService(ctx context.Context, u unit) error {
	var env []string
	for _, e := range u.keys["Service.Environment"] {
		env = append(env, splitWords(e)...)
	}
	for _, name := range u.keys["Service.EnvironmentFile"] {
		b, err := s.readAtMost(strings.TrimPrefix(name, "-"), maxConfig)
		if err != nil && !strings.HasPrefix(name, "-") {
			return fmt.Errorf("EnvironmentFile=%s: %w", name, err)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				env = append(env, strings.ReplaceAll(line, `"`, ""))
			}
		}
	}
	dir := u.get("Service.WorkingDirectory")
	if dir == "" {
		dir = "/"
	}
	for _, line := range slices.Concat(u.keys["Service.ExecStartPre"], u.keys["Service.ExecStart"]) {
		words, ignore, err := commandLine(line)
		if err != nil {
			return err
		}
		if s.c.Run != nil && slices.Contains(s.c.Programs, path.Base(words[0])) {
			if err := s.c.Run(ctx, u.name, words); err != nil && !ignore {
				return err
			}
			continue
		}
		var text lastLine
		code, err := s.Exec(ctx, Command{Args: words, Env: env, Dir: dir, Stdout: &text, Stderr: &text, StopTimeout: u.duration("Service.TimeoutStopSec", stopTimeout)})
		if err == nil && code != 0 && !ignore {
			err = fmt.Errorf("%s ended with code %d %s", words[0], code, text.line())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commandLine returns the words of a command of a unit, and whether its failure is ignored
// (systemd.service(5), "Command lines"). It is an error when no program follows the prefixes.
func commandLine(line string) (words []string, ignore bool, err error) {
	const prefixes = "-@+!:|"
	rest := strings.TrimLeft(line, prefixes)
	used := line[:len(line)-len(rest)]
	if words = splitWords(rest); len(words) == 0 || words[0] == "" {
		return nil, false, fmt.Errorf("the command %q names no program", line)
	}
	if strings.Contains(used, "@") { // the second word is what the program sees as its name
		words = slices.Delete(words, min(1, len(words)), min(2, len(words)))
	}
	return words, strings.Contains(used, "-"), nil
}

// lastLine remembers the last line that a service has written.
type lastLine struct {
	mu sync.Mutex
	b  []byte
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	const most = 4096
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	l.b = l.b[max(0, len(l.b)-most):]
	return len(p), nil
}

func (l *lastLine) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(string(l.b))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// splitWords splits a command line of a unit (systemd.service(5), "Command lines").
func splitWords(line string) (out []string) {
	var word strings.Builder
	quote, in := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				out = append(out, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		out = append(out, word.String())
	}
	return out
}

func (s *System) showUnit(name string) (string, error) {
	load, file, state := "loaded", "disabled", "inactive"
	u, err := s.readUnit(name)
	if err != nil {
		load, file = "not-found", ""
	} else if on, err := s.enabled(name); err == nil && on {
		file = "enabled"
	} else if len(u.installs()) == 0 {
		file = "static"
	}
	if now := s.units.state(name); now != "" {
		state = now
	}
	sub := map[string]string{stateActive: "running", stateFailed: "failed", stateActivating: "start"}[state]
	if sub == "" {
		sub = "dead"
	}
	fragment := ""
	if u.file != "" {
		fragment = "/" + u.file
	}
	return fmt.Sprintf("Id=%s\nLoadState=%s\nActiveState=%s\nSubState=%s\nUnitFileState=%s\nFragmentPath=%s\n", name, load, state, sub, file, fragment), nil
}

func (s *System) catUnit(name string) (string, error) {
	u, err := s.readUnit(name)
	if err != nil {
		return "", err
	}
	b, err := s.readAtMost(u.file, maxConfig)
	return "# /" + u.file + "\n" + string(b), err
}

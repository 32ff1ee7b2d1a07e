package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Defaults of RestartSec=, StartLimitBurst=, StartLimitIntervalSec= and TimeoutStartSec=
// (systemd-system.conf(5)), and of TimeoutStopSec=, for which systemd's, 90 s, would make tests wait
// too long. Time-outs are real time: processes run in it.
const (
	restartDelay  = 100 * time.Millisecond
	startBurst    = 5
	startInterval = 10 * time.Second
	startLimit    = 90 * time.Second
	stopTimeout   = 10 * time.Second
)

// service runs the processes of a unit.
type service struct {
	s   *System
	u   unit
	x   *started
	kit kit
	// main is its process, or the last of a oneshot's.
	main *process
}

// result is how a service has ended (systemd.exec(5), "$SERVICE_RESULT").
type result struct {
	kind string // "": success
	exit exit
	err  error
}

func failure(kind string, err error) result { return result{kind: kind, err: err} }

// resultSkipped means that ExecCondition= does not hold: the service has not failed.
const resultSkipped = "exec-condition"

// startService starts the processes of a service, whose start has ended when the unit's begun is
// closed: that of a oneshot when its processes have.
func (s *System) startService(u unit) (*started, error) {
	for _, c := range u.commands {
		if c.err != nil {
			return nil, fmt.Errorf("%s: %s=: %w", u.name, strings.TrimPrefix(c.key, "Service."), c.err)
		}
	}
	kind, main := u.serviceType(), u.lines("ExecStart")
	switch {
	case len(main) == 0 && (kind != "oneshot" || len(u.lines("ExecStop")) == 0 && len(u.lines("ExecStopPost")) == 0):
		return nil, fmt.Errorf("%s has no ExecStart=", u.name)
	case len(main) > 1 && kind != "oneshot":
		return nil, fmt.Errorf("%s has more than one ExecStart=: only Type=oneshot may", u.name)
	case !slices.Contains(serviceTypes, kind):
		return nil, fmt.Errorf("%s: Type=%s is not one of %s", u.name, kind, strings.Join(serviceTypes, ", "))
	case kind == "oneshot" && slices.Contains([]string{"always", "on-success"}, u.get("Service.Restart")):
		return nil, fmt.Errorf("%s: Restart=%s is not for Type=oneshot", u.name, u.get("Service.Restart"))
	case u.get("Service.User") != "" && s.c.Run != nil && len(main) > 0 && slices.Contains(s.c.Programs, path.Base(main[0].args[0])):
		s.report("%s: User= has no effect: %s is a program of the lab", u.name, main[0].args[0])
	case kind == "dbus":
		s.report("%s: Type=dbus: there is no bus: it counts as started when its process runs", u.name)
	}
	if len(main) == 1 && slices.Contains(daemonNames, path.Base(main[0].args[0])) {
		return s.startCron(u)
	}
	x := newStarted(u, stateActivating, "start")
	if ok, err := s.begin(x); !ok {
		return nil, err
	}
	go func() {
		defer s.Guard()
		s.serve(x)
	}()
	return x, nil
}

var serviceTypes = []string{"simple", "exec", "oneshot", "forking", "notify", "notify-reload", "idle", "dbus"}

// serviceType returns Type= or its default.
func (u unit) serviceType() string {
	switch t := u.get("Service.Type"); {
	case t != "":
		return t
	case u.get("Service.BusName") != "":
		return "dbus"
	case len(u.lines("ExecStart")) == 0:
		return "oneshot"
	}
	return "simple"
}

// lines returns the commands of a key.
func (u unit) lines(key string) (out []command) {
	for _, c := range u.commands {
		if c.key == "Service."+key {
			out = append(out, c)
		}
	}
	return out
}

// serve runs a service until it has ended and is not started again.
func (s *System) serve(x *started) {
	defer close(x.done)
	defer x.cancel(nil)
	u := x.unit
	starts := []time.Time{s.now()}
	var r result
	for {
		v := &service{s: s, u: u, x: x}
		if s.units.pace(x.quit, u.name) != nil { // it is to stop, and has not begun
			r = failure("canceled", errors.New("it was stopped before it had started"))
			break
		}
		r = v.once()
		if x.quit.Err() != nil || !restarts(u, r) {
			break
		}
		x.start(r.err) // the first of its starts has ended
		burst, limit := u.startLimit()
		if len(starts) >= burst && limit > 0 && s.now().Sub(starts[len(starts)-burst]) < limit {
			r = failure("start-limit-hit", errors.Join(r.err, fmt.Errorf("start-limit-hit: it was started %d times in %v", burst, limit)))
			break
		}
		s.set(x, stateActivating, "auto-restart")
		if s.c.Sleep(x.quit, u.duration("Service.RestartSec", restartDelay)) != nil {
			break
		}
		starts = append(starts, s.now())[max(0, len(starts)+1-max(burst, 1)):]
		s.units.restarted(x)
	}
	failed := r.kind != "" && r.kind != resultSkipped
	s.finish(x, r, x.quit.Err() == nil && failed)
	if x.quit.Err() == nil && failed {
		s.report("%s failed: %v", u.name, r.err)
	}
	x.start(r.err)
	if x.quit.Err() == nil {
		s.ended(x, failed)
	}
}

// ended starts and stops the units that follow one that has ended by itself.
func (s *System) ended(x *started, failed bool) {
	next := x.unit.words("Unit.OnSuccess")
	if failed {
		next = x.unit.words("Unit.OnFailure")
	}
	s.goOn(func() {
		for _, name := range s.units.bound(x.unit) {
			if err := s.stopUnit(name); err != nil {
				s.report("%v", err)
			}
		}
		for _, name := range next[:min(len(next), maxSteps)] {
			if err := s.startUnit(name); err != nil {
				s.report("%v", err)
			}
		}
	})
}

// goOn runs a function of the system beside its caller.
func (s *System) goOn(do func()) {
	go func() {
		defer s.Guard()
		do()
	}()
}

// startLimit returns StartLimitBurst= and StartLimitIntervalSec=, which old units have in [Service].
func (u unit) startLimit() (burst int, interval time.Duration) {
	interval = startInterval
	for _, key := range []string{"Service.StartLimitInterval", "Unit.StartLimitInterval", "Unit.StartLimitIntervalSec"} {
		interval = u.duration(key, interval)
	}
	burst = startBurst
	for _, key := range []string{"Service.StartLimitBurst", "Unit.StartLimitBurst"} {
		burst = number(u.get(key), burst)
	}
	if burst == 0 {
		interval = 0
	}
	return burst, interval
}

// restarts reports whether a service starts again after it has ended (systemd.service(5),
// "Restart=").
func restarts(u unit, r result) bool {
	if r.kind == resultSkipped {
		return false
	}
	if r.exit.in(u.words("Service.RestartPreventExitStatus")) {
		return false
	}
	if r.exit.in(u.words("Service.RestartForceExitStatus")) {
		return true
	}
	signalled := r.kind == "signal" || r.kind == "core-dump"
	switch u.get("Service.Restart") {
	case "always":
		return true
	case "on-success":
		return r.kind == ""
	case "on-failure":
		return r.kind != ""
	case "on-abnormal":
		return signalled || r.kind == "timeout" || r.kind == "watchdog"
	case "on-abort":
		return signalled
	case "on-watchdog":
		return r.kind == "watchdog"
	}
	return false
}

// once runs the commands of a service from its start to its end.
func (v *service) once() (r result) {
	if err := v.prepare(); err != nil {
		return failure("resources", err)
	}
	defer v.removeDirs()
	r = v.start()
	up := r.kind == ""
	switch {
	case !up:
	case v.oneshot() && !v.u.is("Service.RemainAfterExit"):
		v.x.start(nil)
	default:
		v.x.start(nil)
		v.s.set(v.x, stateActive, v.sub())
		r = v.stay()
	}
	if v.x.ctx.Err() != nil { // without power nothing more runs
		if v.main != nil {
			<-v.main.ended
		}
		return r
	}
	v.s.set(v.x, stateDeactivating, "stop")
	if up && r.kind == "" {
		if stop := v.commands(context.Background(), "ExecStop", v.stopTimeout(), nil); stop.kind != "" && r.kind == "" {
			r = stop
		}
	}
	v.s.set(v.x, stateDeactivating, "stop-sigterm")
	ended := v.terminate()
	if up && r.kind == "" && ended.kind != "" {
		r = ended
	}
	if v.main != nil {
		r.exit = v.main.exit
	}
	v.s.set(v.x, stateDeactivating, "stop-post")
	if post := v.commands(context.Background(), "ExecStopPost", v.stopTimeout(), r.variables()); post.kind != "" && r.kind == "" {
		r = post
	}
	return r
}

// sub returns the substate of a service that has started.
func (v *service) sub() string {
	if v.main == nil || v.main.hasEnded() {
		return "exited"
	}
	return "running"
}

func (v *service) oneshot() bool { return v.u.serviceType() == "oneshot" }

// start runs a service's commands until it counts as started.
func (v *service) start() result {
	limit := startLimit
	if v.oneshot() {
		limit = infinity
	}
	limit = v.u.duration("Service.TimeoutStartSec", v.u.duration("Service.TimeoutSec", limit))
	if limit == 0 {
		limit = infinity
	}
	ctx, cancel := context.WithCancel(v.x.quit)
	defer cancel()
	if limit != infinity {
		defer time.AfterFunc(limit, cancel).Stop()
	}
	timeout := func(r result) result {
		switch {
		case v.x.quit.Err() != nil:
			return failure("canceled", errors.New("it was stopped before it had started"))
		case ctx.Err() != nil:
			return failure("timeout", fmt.Errorf("it has not started in %v", limit))
		}
		return r
	}
	for _, key := range []string{"ExecCondition", "ExecStartPre"} {
		v.s.set(v.x, stateActivating, map[string]string{"ExecCondition": "condition", "ExecStartPre": "start-pre"}[key])
		if r := v.commands(ctx, key, infinity, nil); r.kind != "" {
			return timeout(r)
		}
	}
	v.s.set(v.x, stateActivating, "start")
	for _, c := range v.u.lines("ExecStart") {
		p, err := v.spawn(c, true, nil)
		if err != nil {
			return failure("resources", err)
		}
		v.main = p
		v.s.units.setMain(v.x, p)
		select {
		case <-p.ready:
		case <-p.ended:
		case <-ctx.Done():
			return timeout(result{})
		}
		if v.oneshot() {
			select {
			case <-p.ended:
			case <-ctx.Done():
				return timeout(result{})
			}
		}
		if !p.hasEnded() || !v.oneshot() && p.isReady() { // its end, however soon, is none of its start
			continue
		}
		if r := v.outcome(p); r.kind != "" {
			return r
		}
		if t := v.u.serviceType(); strings.HasPrefix(t, "notify") && !p.isReady() {
			return failure("protocol", errors.New("it has ended before it was ready"))
		}
	}
	v.s.set(v.x, stateActivating, "start-post")
	return timeout(v.commands(ctx, "ExecStartPost", infinity, nil))
}

// stay returns when the main process has ended and the unit with it, or when it is to stop.
func (v *service) stay() result {
	if v.main != nil {
		select {
		case <-v.main.ended:
		case <-v.x.quit.Done():
			return result{}
		}
		r := v.outcome(v.main)
		if r.kind != "" || !v.u.is("Service.RemainAfterExit") {
			return r
		}
		v.s.set(v.x, stateActive, "exited")
	}
	<-v.x.quit.Done()
	return result{}
}

// outcome is that of a process that has ended.
func (v *service) outcome(p *process) result {
	if p.command.ignore {
		return result{exit: p.exit}
	}
	r := result{exit: p.exit, err: p.err}
	switch {
	case p.exit.clean(v.oneshot()), p.exit.in(v.u.words("Service.SuccessExitStatus")):
		r.err = nil
	case p.exit.signal != 0:
		r.kind = "signal"
	default:
		r.kind = "exit-code"
	}
	return r
}

// commands runs the commands of a key one after the other, each for at most a time.
func (v *service) commands(parent context.Context, key string, limit time.Duration, more []string) result {
	for _, c := range v.u.lines(key) {
		ctx, cancel := context.WithCancel(parent)
		stop := context.AfterFunc(v.x.ctx, cancel)
		var timer *time.Timer
		if limit != infinity {
			timer = time.AfterFunc(limit, cancel)
		}
		r := v.commandOf(ctx, c, more)
		stop()
		cancel()
		if timer != nil && !timer.Stop() {
			r = failure("timeout", fmt.Errorf("%s has not ended in %v", c.args[0], limit))
		}
		if key == "ExecCondition" && r.kind == "exit-code" && r.exit.code < 255 {
			r.kind = resultSkipped
			v.s.report("%s was skipped: ExecCondition=%s ended with code %d", v.u.name, c.args[0], r.exit.code)
			r.err = nil
		}
		if r.kind != "" {
			return r
		}
	}
	return result{}
}

// commandOf runs a command beside the main process.
func (v *service) commandOf(ctx context.Context, c command, more []string) result {
	p, err := v.spawn(c, false, more)
	if err != nil {
		return failure("resources", err)
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.stop(v.stopTimeout())
		<-p.ended
	}
	if c.ignore {
		return result{exit: p.exit}
	}
	return v.outcome(p)
}

func (v *service) stopTimeout() time.Duration {
	limit := v.u.duration("Service.TimeoutStopSec", v.u.duration("Service.TimeoutSec", stopTimeout))
	if limit == 0 {
		return infinity
	}
	return limit
}

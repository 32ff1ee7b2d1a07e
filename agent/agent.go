// Package agent is the in-band agent: it asks the controller for work on the
// machine that it runs on, does the work and reports. It is only the loop: the
// plugins know the work, and Config.System is the machine, so that it runs on a
// real server's ramdisk and within an emulated server.
package agent

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/runner"
	"github.com/metalab-dev/metalab/agent/sys"
)

const (
	defaultPoll = 5 * time.Second
	maxBackoff  = time.Minute
)

// Clock is the part of k8s.io/utils/clock that the agent waits on. Network
// timeouts are wall time.
type Clock interface {
	NewTimer(d time.Duration) clock.Timer
}

// Config holds the parameters of Run. Only Media and System are required.
type Config struct {
	Media  job.Media
	System sys.System
	// Key identifies the agent to the controller. Agents of one boot have the same: see
	// LoadKey. Nil means a new one, which ends with Run.
	Key   ed25519.PrivateKey
	Clock Clock         // nil means real time
	HTTP  *http.Client  // for images; nil means Go's defaults
	Log   *slog.Logger  // nil means slog.Default
	Poll  time.Duration // between two requests for work, or two reports; 0 means 5 seconds
	// Enter, if set, is called before each request and each job, and the function
	// that it returns afterwards, so that a virtual clock stands still meanwhile.
	// It is not held while the agent waits on Clock: the timer is created before.
	// Calls may nest and come from several goroutines.
	Enter func() (leave func())
	// Turn, if set, returns when the agent may do a job, or when ctx ends; the
	// function that it returns is called when the job is done. It limits the jobs
	// of many agents in one process. While it blocks, the agent reports to the
	// controller that the job goes on.
	Turn func(ctx context.Context) (done func())
}

// Run leases jobs, does them and reports until ctx ends. Then it returns nil when
// everything that it started has ended. It returns an error only for an invalid
// Config; all later errors are logged and retried.
func Run(ctx context.Context, c Config) error {
	if c.System == nil {
		return errors.New("agent: no system")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Poll <= 0 {
		c.Poll = defaultPoll
	}
	if c.Enter == nil {
		c.Enter = func() func() { return func() {} }
	}
	if c.Turn == nil {
		c.Turn = func(context.Context) func() { return func() {} }
	}
	if c.HTTP == nil {
		t := &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSHandshakeTimeout: requestTimeout,
			ForceAttemptHTTP2:   true,
		}
		defer t.CloseIdleConnections()
		c.HTTP = &http.Client{Transport: t}
	}
	if c.Key == nil {
		var err error
		if c.Key, err = newKey(); err != nil {
			return fmt.Errorf("agent: key: %w", err)
		}
	}
	identity, err := certificate(c.Key)
	if err != nil {
		return err
	}
	controller, err := newClient(c.Media, identity)
	if err != nil {
		return err
	}
	defer controller.close()
	run, err := runner.New(runner.Config{System: c.System, HTTP: c.HTTP})
	if err != nil {
		return err
	}
	c.Log.Info("agent started", "controller", c.Media.Server, "boot", c.Media.Boot, "key", job.Fingerprint(identity.Leaf))
	a := &agent{Config: c, controller: controller, runner: run}
	a.loop(ctx)
	return nil
}

// agent is one running Run.
type agent struct {
	Config
	controller *client
	runner     *runner.Runner
	leave      func() // called when no work is in flight any more
}

func (a *agent) loop(ctx context.Context) {
	a.leave = a.Enter()
	defer func() { a.leave() }()
	wait, last, registered := a.Poll, "", false
	for ctx.Err() == nil {
		j, err := a.controller.lease(ctx)
		if err == nil && !registered {
			registered = true
			a.Log.Info("registered with the controller")
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.Log.Warn("no lease", "err", err, "retry", wait)
			a.pause(ctx, wait)
			wait = a.nextWait(wait)
			continue
		case j == nil:
			a.pause(ctx, a.Poll)
		default:
			// After a job the next request follows at once, unless the controller
			// offers a job that it cancelled or that is done.
			if noted := a.do(ctx, *j); !noted || j.ID == last {
				a.pause(ctx, a.Poll)
			}
			last = j.ID
		}
		wait = a.Poll
	}
}

// nextWait returns the wait after the next consecutive failure.
func (a *agent) nextWait(wait time.Duration) time.Duration {
	return min(2*wait, max(maxBackoff, a.Poll))
}

// pause waits on the clock. No work is in flight meanwhile, but the timer is
// created before that is signalled: a virtual clock may jump at once.
func (a *agent) pause(ctx context.Context, d time.Duration) {
	t := a.Clock.NewTimer(d)
	defer t.Stop()
	a.leave()
	select {
	case <-ctx.Done():
	case <-t.C():
	}
	a.leave = a.Enter()
}

// errCancelled ends a job that the controller no longer wants.
var errCancelled = errors.New("agent: the controller cancelled the job")

// do runs a job and reports whether the controller has acknowledged its result.
func (a *agent) do(ctx context.Context, j job.Job) (noted bool) {
	log := a.Log.With("job", j.ID, "kind", string(j.Kind))
	log.Info("job started")
	report, err := a.run(ctx, j)
	switch {
	case ctx.Err() != nil:
		return false
	case errors.Is(err, errCancelled):
		log.Info("job cancelled")
		return false
	case report.State == job.Failed:
		log.Warn("job failed", "err", report.Error)
	default:
		log.Info("job done")
	}
	for wait := a.Poll; ctx.Err() == nil; wait = a.nextWait(wait) {
		err := a.controller.report(ctx, j.ID, report)
		switch {
		case err == nil:
			return true
		case hasStatus(err, http.StatusGone, http.StatusUnauthorized, http.StatusForbidden):
			log.Warn("report refused", "err", err)
			return false
		}
		log.Warn("report not delivered", "err", err, "retry", wait)
		a.pause(ctx, wait)
	}
	return false
}

// run does the job while a second goroutine reports its progress, so that a slow
// controller does not slow the disk; of several values in the meantime it reports
// the last. The response may cancel the job, and so may a token that is not valid
// for this boot any more. An error is errCancelled.
func (a *agent) run(ctx context.Context, j job.Job) (job.Report, error) {
	defer a.Enter()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latest := make(chan int, 1)
	var reporter sync.WaitGroup
	reporter.Go(func() {
		// A job without progress for a while, such as a disk that erases itself,
		// is reported, too: otherwise the controller would take the machine for
		// dead. This is real time, as the work is.
		alive := clock.RealClock{}.NewTicker(a.Poll)
		defer alive.Stop()
		for percent, more := 0, true; ; {
			select {
			case p, ok := <-latest:
				percent, more = p, ok
			case <-alive.C():
			}
			if !more {
				return
			}
			leave := a.Enter()
			err := a.controller.report(ctx, j.ID, job.Report{State: job.Running, Percent: percent})
			leave()
			if hasStatus(err, http.StatusGone, http.StatusForbidden) {
				cancel(errCancelled)
			}
		}
	})
	done := a.Turn(ctx)
	logged := 0 // quarters of the job, for the log
	report := a.runner.Run(ctx, j, func(percent int) {
		if quarter := percent / 25; quarter > logged && quarter < 4 {
			logged = quarter
			a.Log.Info("job goes on", "job", j.ID, "percent", percent)
		}
		select {
		case <-latest: // not yet reported, and out of date
		default:
		}
		latest <- percent
	})
	done()
	close(latest)
	reporter.Wait() // a late Running must not overtake the final report
	if errors.Is(context.Cause(ctx), errCancelled) {
		return job.Report{}, errCancelled
	}
	return report, nil
}

// version returns the version of this module in the running program.
func version() string {
	const module = "github.com/metalab-dev/metalab"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	if info.Main.Path == module && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

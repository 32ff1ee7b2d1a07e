package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalab-dev/metalab/cmd/labctl/crash"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/space"
	"github.com/metalab-dev/metalab/lab"
)

// watchProcess describes this process, which is about to run the lab in a directory. A
// directory that another process has open remains as it is: the lab refuses to start.
func watchProcess(state, log string) (*crash.Watch, error) {
	running, err := rack.Running(state)
	if err != nil || running {
		return nil, err
	}
	w, err := crash.Begin(state, log, time.Now())
	if space.Full(err) { // the lab is refused on a full disk, with how much is free and needed
		return nil, nil
	}
	return w, err
}

// endProcess writes why the process has ended the lab: an error of the lab, or the
// signal that has ended ctx.
func endProcess(ctx context.Context, state string, w *crash.Watch, err error) error {
	switch {
	case w == nil, errors.As(err, new(*rack.HeldError)):
		return nil
	case !lab.HoldsLab(state): // it has never started, and the error has been shown
		err = nil
	case interrupted(ctx, err): // the user has ended it, and knows
		err = nil
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return w.End(err)
}

// interrupted reports whether Ctrl-C has ended ctx, and is all that an error says; nil says
// nothing else.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && strings.HasPrefix(context.Cause(ctx).Error(), os.Interrupt.String()) && byContext(ctx, err)
}

// byContext reports whether an error says no more than that ctx has ended.
func byContext(ctx context.Context, err error) bool {
	return err == nil || errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled)
}

// goodbye prints text when a signal has ended ctx, and then returns the exit status of a signal in
// place of an error that only repeats it.
func (o *options) goodbye(ctx context.Context, w io.Writer, err error, text string, args ...any) error {
	if ctx.Err() == nil || !byContext(ctx, err) {
		return err
	}
	o.say(w, "\n"+text+"\n", args...)
	if err == nil {
		return nil
	}
	return exitCode(1)
}

// staysUp makes a command that starts a lab, and its commands, say that the lab is still up when
// a signal ends them.
func (o *options) staysUp(c *cobra.Command) *cobra.Command {
	for _, each := range append(c.Commands(), c) {
		do := each.RunE
		each.RunE = func(c *cobra.Command, args []string) error {
			err := do(c, args)
			if running, failed := rack.Running(o.state); failed != nil || !running {
				return err
			}
			return o.goodbye(c.Context(), c.ErrOrStderr(), err, "Goodbye. The lab in %s is still up: labctl down ends it.", o.state)
		}
	}
	return c
}

// ending returns how the process of a lab that does not run ended, or nil when that
// needs no explanation.
func (o *options) ending() *crash.Ending {
	if running, err := rack.Running(o.state); err != nil || running || lab.KubeRuns(o.state) {
		return nil
	}
	e, err := crash.Last(o.state)
	if err != nil {
		return &crash.Ending{How: "ended in an unknown way: " + err.Error(), Fix: "start it again with labctl up"}
	}
	return e
}

// showEnding prints how the process of a lab ended that is about to start again.
func (o *options) showEnding(w io.Writer) {
	if e := o.ending(); e != nil {
		fmt.Fprintf(w, "The lab in %s had stopped: %s. It starts again as it was.\n", o.state, e)
	}
}

// endedError is control.ErrNoLab for a lab that does not run any more.
type endedError struct {
	dir   string
	cause string
	err   error
}

// Error implements error.
func (e *endedError) Error() string {
	return fmt.Sprintf("%s in %s: %s", control.ErrNoLab, e.dir, e.cause)
}

func (e *endedError) Unwrap() error { return e.err }

// explain returns an error for a lab that does not run which says why.
func (o *options) explain(err error) error {
	if !errors.Is(err, control.ErrNoLab) {
		return err
	}
	if running, failed := rack.Running(o.state); failed == nil && running {
		return &endedError{dir: o.state, cause: "it is starting or stopping: try again in a moment", err: err}
	}
	if lab.KubeRuns(o.state) {
		return &endedError{dir: o.state, cause: "its Kubernetes API runs alone, without servers: labctl kubectl --kubeconfig " + filepath.Join(o.state, lab.KubeDir, "kubeconfig") + " talks to it", err: err}
	}
	if e := o.ending(); e != nil {
		return &endedError{dir: o.state, cause: fmt.Sprintf("%s: %s", e, e.Fix), err: err}
	}
	if others := runningLabs(); len(others) > 0 {
		return &endedError{dir: o.state, cause: "start it with labctl up, or name one that runs: --state " + strings.Join(others, " or --state "), err: err}
	}
	return err
}

// runningLabs returns the state directories of this user's labs that run. A list that cannot be
// read has none: this is for a hint.
func runningLabs() (dirs []string) {
	states, _ := knownLabs()
	for _, state := range states {
		if running, err := rack.Running(state); err == nil && running {
			dirs = append(dirs, state)
		}
	}
	return dirs
}

// explainEnds makes all commands that find no running lab say why.
func (o *options) explainEnds(c *cobra.Command) {
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error { return o.explain(do(c, args)) }
	}
	for _, sub := range c.Commands() {
		o.explainEnds(sub)
	}
}

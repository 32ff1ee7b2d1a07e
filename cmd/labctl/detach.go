package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/cmd/labctl/crash"
	"github.com/metalab-dev/metalab/lab"
)

// readyLine is the last progress line of a lab that has started.
const readyLine = "ready"

// progressFD is the file descriptor of a detached lab's progress pipe: the first
// after standard error.
const progressFD = 3

// detach starts the lab in its own process session and returns when it is ready.
func detach(ctx context.Context, o *options, c *cobra.Command, progress io.Writer) error {
	args := []string{"up"}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "detach" && f.Name != "state" && f.Name != "output" {
			value := f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok { // whose String has brackets
				value = strings.Join(list.GetSlice(), ",")
			}
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return launch(ctx, o, args, progress)
}

// launch runs labctl with args as a lab that outlives this process.
func launch(ctx context.Context, o *options, args []string, progress io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := o.claim(); err != nil {
		return err
	}
	if err := needLoopback(); err != nil { // before the directory has a log
		return err
	}
	if err := os.MkdirAll(o.state, 0o700); err != nil {
		return err
	}
	name := filepath.Join(o.state, lab.LogFile)
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if errors.Is(err, syscall.EISDIR) {
		return fmt.Errorf("%s is a directory: move it away: the lab makes a file there", name)
	}
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	args = append(args, fmt.Sprintf("--progress-fd=%d", progressFD))
	if o.explicit {
		args = append(args, "--state", o.state)
	}
	child := exec.Command(self, args...)
	child.Env = append(os.Environ(), "METALAB_STATE="+o.state)
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{w}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		w.Close()
		return err
	}
	w.Close()
	stop := context.AfterFunc(ctx, func() { _ = child.Process.Signal(os.Interrupt) }) // as if it had the terminal
	defer stop()
	ready := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if ready = lines.Text() == readyLine; ready {
			break
		}
		fmt.Fprintln(progress, lines.Text())
	}
	if ready {
		return child.Process.Release()
	}
	err = child.Wait()
	if ctx.Err() != nil {
		return o.goodbye(ctx, progress, context.Cause(ctx), "Goodbye. The lab in %s had not come up yet, and is stopped: labctl up starts it again.", o.state)
	}
	if e, last := crash.Last(o.state); last == nil && e != nil && e.PID == child.Process.Pid && e.Report != "" {
		return fmt.Errorf("the lab did not come up: %s: %s", e, e.Fix) // the log ends with the stack
	}
	return fmt.Errorf("the lab did not come up (%w): %s\nits log is %s", err, lastLine(name), name)
}

// lastLine returns the last line of the log, which says why the lab ended.
func lastLine(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	last := ""
	for s := bufio.NewScanner(f); s.Scan(); {
		if s.Text() != "" {
			last = s.Text()
		}
	}
	return last
}

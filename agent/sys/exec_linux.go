package sys

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// outputDelay is how long Exec reads on from the output of a command that has ended, when
// processes that it has started have the output still.
const outputDelay = 2 * time.Second

// markEnv is an environment variable that marks the processes of one command, those that
// have left its session included.
const markEnv = "METALAB_AGENT_COMMAND"

// environment returns the environment of every command. The agent's is not inherited.
func environment() []string {
	home, err := os.UserHomeDir()
	if err != nil { // a service may have no HOME
		home = "/root"
	}
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LANG=C.UTF-8"}
}

// Exec runs a command in a session of its own, without a terminal, and returns its exit
// code: CodeSignal plus the number of the signal that ended it, CodeNotFound without such a
// program, CodeCannotRun and the reason if it cannot be run. ctx ends it with all processes
// that it has started.
func (h *Host) Exec(ctx context.Context, c Command) (int, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return 0, errors.New("sys: a command needs a program")
	}
	mark := markEnv + "=" + rand.Text()
	run := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	run.Env = append(append(environment(), c.Env...), mark)
	run.Stdin, run.Stdout, run.Stderr = c.Stdin, c.Stdout, c.Stderr
	if c.Dir != "" {
		run.Dir = h.Path(c.Dir)
		if _, err := os.Stat(run.Dir); err != nil { // else it reads as if there were no program
			return CodeCannotRun, fmt.Errorf("sys: %w", err)
		}
	}
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	run.WaitDelay = outputDelay
	run.Cancel = func() error {
		err := syscall.Kill(-run.Process.Pid, syscall.SIGKILL)
		killMarked(mark)
		return err
	}
	err := run.Run()
	if ctx.Err() != nil { // a process that was forked while the others were killed
		killMarked(mark)
	}
	if run.ProcessState == nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return CodeNotFound, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return CodeCannotRun, fmt.Errorf("sys: %w", err)
	}
	if status, ok := run.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return CodeSignal + int(status.Signal()), nil
	}
	return run.ProcessState.ExitCode(), nil
}

// killMarked ends the processes that have a mark in their environment, until there are no
// more.
func killMarked(mark string) {
	const rounds = 100 // a fork loop may win against any number
	for range rounds {
		found := false
		for _, pid := range marked(mark) {
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if !found {
			return
		}
	}
}

// marked returns the processes that have a mark in their environment as it was when they
// were started, and have not ended.
func marked(mark string) (out []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ") // empty for a process that has ended
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

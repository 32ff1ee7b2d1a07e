// Package crash finds out how the process of a lab ended. The process describes itself
// in a file of the lab's directory while it runs, and lets the Go runtime write a panic
// to another. A later process reads both. The package starts and stops no lab.
package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/statedir"
)

const (
	// ProcessFile describes the process of a lab, from its start to its orderly end.
	ProcessFile = "process.json"
	// reports match the files with panics, one of each process. Their names sort by time.
	reports = crashPrefix + "????????T??????Z-*.txt"
	// running match the files for panics of processes that run, or were not looked at yet. A
	// healthy lab has no file that is called a crash.
	running = runningPrefix + "????????T??????Z-*.txt"

	crashPrefix, runningPrefix = "crash-", "process-"

	// reportsStored is how many of them remain.
	reportsStored = 5
	// reportSpace is the space on the disk in bytes that a report has from the start: a
	// full disk is a frequent cause of a panic.
	reportSpace = 64 << 10
)

// Owned are the names of the files in a lab's directory that this package makes.
func Owned() statedir.Owned { return statedir.Owned{ProcessFile, reports, running} }

// process is the content of ProcessFile.
type process struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Report  string    `json:"report"`        // base name of the file for a panic
	Log     string    `json:"log,omitempty"` // file
	Boot    string    `json:"boot"`          // identifies the start of the computer; "" if unknown
	// MemoryEvents is the file in which the kernel counts the processes of this one's control
	// group that it kills for lack of memory; "" if there is none. OutOfMemory is their number.
	MemoryEvents string `json:"memoryEvents,omitempty"`
	OutOfMemory  int64  `json:"outOfMemory"`
}

// Watch is the description of the current process.
type Watch struct {
	dir    string
	report *os.File
}

// Begin describes the current process in the directory of its lab, and makes the Go
// runtime write panics and fatal errors to a file there, too. The log is the file that
// has standard error, or "".
func Begin(dir, log string, now time.Time) (*Watch, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := prune(dir); err != nil {
		return nil, err
	}
	p := process{PID: os.Getpid(), Started: now.UTC().Truncate(time.Second), Log: log, Boot: bootID(), MemoryEvents: memoryEvents()}
	p.OutOfMemory = outOfMemoryKills(p.MemoryEvents)
	p.Report = fmt.Sprintf("%s%s-%d.txt", runningPrefix, p.Started.Format("20060102T150405Z"), p.PID)
	report, err := os.OpenFile(filepath.Join(dir, p.Report), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Watch{dir: dir, report: report}
	reserve(report, reportSpace)
	b, err := json.Marshal(p)
	if err == nil {
		err = debug.SetCrashOutput(report, debug.CrashOptions{})
	}
	if err == nil { // last: a process that is described has a report, however early it panics
		err = os.WriteFile(filepath.Join(dir, ProcessFile), append(b, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("description of the process: %w: move it away", err), w.End(nil))
	}
	return w, nil
}

// prune removes the reports of processes that ended without a panic, and the oldest of
// the others.
func prune(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, running))
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := reportOf(name); err != nil {
			return err
		}
	}
	if names, err = filepath.Glob(filepath.Join(dir, reports)); err != nil {
		return err
	}
	slices.Sort(names)
	slices.Reverse(names)
	stored := 0
	for _, name := range names {
		st, err := os.Stat(name)
		if err == nil && st.Size() > 0 && stored < reportsStored {
			stored++
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// reportOf names the report of a process a crash, and returns its name.
func reportOf(name string) (string, error) {
	base, waits := strings.CutPrefix(filepath.Base(name), runningPrefix)
	if !waits {
		return name, nil
	}
	crash := filepath.Join(filepath.Dir(name), crashPrefix+base)
	if err := os.Rename(name, crash); err != nil && !errors.Is(err, fs.ErrNotExist) { // else another labctl has done that
		return "", err
	}
	return crash, nil
}

// End writes why the process ends, for the next labctl. A nil error is an end that
// needs no explanation, after which the directory has no description any more.
func (w *Watch) End(err error) error {
	if unset := debug.SetCrashOutput(nil, debug.CrashOptions{}); unset != nil {
		return errors.Join(unset, w.report.Close())
	}
	if err == nil {
		err = w.report.Close()
		for _, name := range []string{w.report.Name(), filepath.Join(w.dir, ProcessFile)} {
			if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
		return err
	}
	_, written := w.report.WriteString(endPrefix + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
	return errors.Join(written, w.report.Close())
}

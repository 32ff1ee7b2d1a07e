package crash

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// endPrefix begins the report of a process that ended with an error.
const endPrefix = "error: "

// panicPrefix begins the message of a panic.
const panicPrefix = "panic: "

// etcdPanic begins the message of a panic that etcd has reported (package kube). What its database
// meets in a goroutine of its own, such as the commits of each 100 ms, it does not report.
const etcdPanic = "etcd, which stores the objects of the Kubernetes API, cannot go on: "

// fatalPrefix begins the message of a fatal error, such as of a deadlock. The runtime
// writes it to standard error alone, and only the stack to the report.
const fatalPrefix = "fatal error: "

// outcomes are the ends of a process by how its report begins, in which the Go runtime
// (package runtime, panic.go and signal_unix.go) names panics, fatal errors and signals.
var outcomes = []struct {
	prefix, text string
	stack        bool // the report has the stack
}{
	{prefix: panicPrefix, text: "panicked: ", stack: true},
	{prefix: fatalPrefix, text: "ended by a fatal error of the Go runtime: ", stack: true},
	{prefix: "SIG", text: "ended by the signal SIG", stack: true},
	{prefix: endPrefix, text: "ended: "},
}

// Ending is how the process of a lab ended, when neither labctl down nor an orderly end
// of labctl up was the cause.
type Ending struct {
	PID  int
	Time time.Time // zero when it is not known
	How  string    // continues "the process"
	// Report is the file with the stack; "" for none.
	Report string
	Log    string // file; "" for none
	Fix    string
}

// String describes the ending in one line.
func (e *Ending) String() string {
	text := fmt.Sprintf("its process %d %s", e.PID, e.How)
	var details []string
	if !e.Time.IsZero() {
		details = append(details, "at "+e.Time.UTC().Format(time.RFC3339))
	}
	if e.Report != "" {
		details = append(details, "stack: "+e.Report)
	}
	if e.Log != "" {
		details = append(details, "log: "+e.Log)
	}
	if len(details) > 0 {
		text += " (" + strings.Join(details, "; ") + ")"
	}
	return text
}

// Last returns how the last process of the lab in a directory ended. It returns nil for
// a lab whose end needs no explanation. The caller has checked that no process runs the
// lab.
func Last(dir string) (*Ending, error) { return last(dir, bootID(), outOfMemoryKills) }

// last does what Last does, for the boot of a computer. outOfMemory reads a file in which the kernel
// counts the processes that it has killed for lack of memory.
func last(dir, boot string, outOfMemory func(file string) int64) (*Ending, error) {
	b, err := os.ReadFile(filepath.Join(dir, ProcessFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("description of the last process: %w", err)
	}
	var p process
	if err := json.Unmarshal(b, &p); err != nil || p.Report != filepath.Base(p.Report) {
		return nil, fmt.Errorf("%s is damaged: remove it", filepath.Join(dir, ProcessFile))
	}
	e := &Ending{PID: p.PID, Log: p.Log, Fix: "start it again with labctl up"}
	report := filepath.Join(dir, p.Report)
	if _, err := os.Stat(report); errors.Is(err, fs.ErrNotExist) { // an earlier Last has named it a crash
		report = filepath.Join(dir, crashPrefix+strings.TrimPrefix(p.Report, runningPrefix))
	}
	if e.readReport(report) {
		if strings.Contains(e.How, syscall.ENOSPC.Error()) || strings.Contains(e.How, syscall.EDQUOT.Error()) || strings.Contains(e.How, "no space left") {
			e.Fix = "make room on the file system of " + dir + ", and start it again with labctl up"
		}
		return e, nil
	}
	switch n := outOfMemory(p.MemoryEvents) - p.OutOfMemory; {
	case boot != p.Boot:
		e.How = "ended when the computer did"
	case n > 0:
		e.How = fmt.Sprintf("was killed by the kernel, which has killed %d of its control group for lack of memory", n)
		e.Fix = "give its control group more memory, or the lab fewer hosts, and start it again with labctl up"
	default:
		e.How = "was killed (SIGKILL)"
	}
	return e, nil
}

// readReport takes how the process ended from its report, and reports whether that has
// it. A process that was killed leaves an empty one.
func (e *Ending) readReport(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	first := firstLine(f)
	if first == "" {
		return false
	}
	if text, ok := strings.CutPrefix(first, panicPrefix); ok && !strings.HasPrefix(text, etcdPanic) && inEtcd(f) {
		first = panicPrefix + etcdPanic + text
	}
	if crash, err := reportOf(name); err == nil {
		name = crash
	}
	if strings.HasPrefix(first, "goroutine ") {
		first = fatalPrefix + "see the stack"
		if text := lastFatalError(e.Log); text != "" {
			first = text
		}
	}
	if st, err := f.Stat(); err == nil {
		e.Time = st.ModTime()
	}
	e.How, e.Report = "ended: "+first, name
	for _, o := range outcomes {
		if rest, ok := strings.CutPrefix(first, o.prefix); ok {
			e.How = o.text + rest
			if !o.stack {
				e.Report = ""
			}
			break
		}
	}
	return true
}

// firstLine returns the first line of a report that is not blank. The runtime writes a panic
// that a deferred function has replaced by another one before that, which is about more: the
// line has the last one first, then those before.
func firstLine(report io.Reader) string {
	var panics []string
	all := func() string {
		slices.Reverse(panics)
		return panicPrefix + strings.Join(panics, "; before: ")
	}
	for lines := bufio.NewScanner(report); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		text, isPanic := strings.CutPrefix(line, panicPrefix)
		switch {
		case isPanic:
			panics = append(panics, strings.TrimSuffix(text, " [recovered]"))
		case len(panics) > 0:
			return all()
		case line != "":
			return line
		}
	}
	if len(panics) == 0 {
		return ""
	}
	return all()
}

// inEtcd reports whether the first stack of a report, that of a panic, has a function of etcd.
func inEtcd(report io.ReadSeeker) bool {
	if _, err := report.Seek(0, io.SeekStart); err != nil {
		return false
	}
	started := false
	for lines := bufio.NewScanner(report); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "goroutine "):
			if started { // others follow, which have not panicked
				return false
			}
			started = true
		case strings.HasPrefix(line, "go.etcd.io/etcd/"):
			return true
		}
	}
	return false
}

// lastFatalError returns the last message of a fatal error in a log, or "".
func lastFatalError(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	last := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), fatalPrefix) {
			last = lines.Text()
		}
	}
	return last
}

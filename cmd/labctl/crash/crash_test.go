package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// The child processes of the tests: TestMain runs one of them for each end.
const (
	endVar = "METALAB_CRASH_END"
	dirVar = "METALAB_CRASH_DIR"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// children are the ways in which a real process ends after Begin.
var children = map[string]func(w *Watch) error{
	"panic":       func(*Watch) error { panic("etcd cannot go on: the log is short") },
	"error panic": func(*Watch) error { panic(&os.PathError{Op: "write", Path: "wal", Err: syscall.ENOSPC}) },
	"two panics": func(*Watch) error {
		defer func() {
			panic(fmt.Sprintf("etcd cannot go on: job %v", recover() != nil))
		}()
		panic("page 108 is free")
	},
	"nil map":  func(*Watch) error { var m map[string]int; m["a"] = 1; return nil }, //nolint:staticcheck // it is to panic
	"deadlock": func(*Watch) error { select {} },
	"quit":     func(*Watch) error { return endBy(syscall.SIGQUIT) },
	"kill":     func(*Watch) error { return endBy(syscall.SIGKILL) },
	"error":    func(w *Watch) error { return w.End(errors.New("the disk\nhas no space left")) },
	"orderly":  func(w *Watch) error { return w.End(nil) },
}

// endBy sends a signal to this process, and returns only if that fails.
func endBy(s syscall.Signal) error {
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		return err
	}
	<-make(chan struct{})
	return nil
}

func TestMain(m *testing.M) {
	end := children[os.Getenv(endVar)]
	if end == nil {
		os.Exit(m.Run())
	}
	w, err := Begin(os.Getenv(dirVar), filepath.Join(os.Getenv(dirVar), "lab.log"), start)
	if err == nil {
		err = end(w)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// endChild runs a process to its end.
func endChild(t *testing.T, dir, how string) (pid int, stderr string) {
	t.Helper()
	ctx := patience.Within(t, time.Minute)
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), endVar+"="+how, dirVar+"="+dir)
	log, err := os.Create(filepath.Join(dir, "lab.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	out, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid, string(out)
}

// Last names the cause of every end in one line, and the file with the stack.
func TestLastNamesHowARealProcessEnded(t *testing.T) {
	for how, want := range map[string]struct {
		text, fix string
		stack     string // in the report; "" for none
	}{
		"panic":       {"panicked: etcd cannot go on: the log is short (at 2", "start it again", "crash_test.go"},
		"error panic": {"panicked: ", "make room on the file system of ", "crash_test.go"},
		"two panics":  {"panicked: etcd cannot go on: job true; before: page 108 is free (at 2", "start it again", "crash_test.go"},
		"nil map":     {"panicked: assignment to entry in nil map", "start it again", "crash_test.go"},
		"deadlock":    {"ended by a fatal error of the Go runtime: all goroutines are asleep", "start it again", "crash_test.go"},
		"quit":        {"ended by the signal SIGQUIT: quit", "start it again", "crash_test.go"},
		"kill":        {"was killed (SIGKILL) (log: ", "start it again", ""},
		"error":       {"ended: the disk; has no space left (at 2", "make room on the file system of ", ""},
	} {
		if raced && how == "deadlock" {
			continue // the runtime finds none in a program with cgo, which the race detector needs
		}
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			pid, stderr := endChild(t, dir, how)
			e, err := Last(dir)
			if err != nil || e == nil {
				t.Fatalf("Last() = %v, %v, want how the process ended; it printed %q", e, err, stderr)
			}
			text := e.String()
			if e.PID != pid || !strings.Contains(text, want.text) || strings.Contains(text, "\n") || !strings.Contains(e.Fix, want.fix) {
				t.Errorf("Last() = %q, fix %q, want one line with %q, fix %q", text, e.Fix, want.text, want.fix)
			}
			if want.stack == "" {
				if e.Report != "" {
					t.Errorf("Report = %q, want none", e.Report)
				}
				return
			}
			b, err := os.ReadFile(e.Report)
			if err != nil || !strings.Contains(string(b), want.stack) || !strings.Contains(text, "stack: "+e.Report) {
				t.Errorf("%q names the report %s = %q, %v, want the stack", text, e.Report, b, err)
			}
		})
	}
}

// etcd's database panics in a goroutine of its own, too, where etcd does not report it.
func TestPanicOfEtcdsDatabaseNamesEtcd(t *testing.T) {
	const (
		database = "go.etcd.io/bbolt.(*Tx).page(0xc000, 0x3)\n\tbbolt/tx.go:5\n"
		commit   = "go.etcd.io/etcd/server/v3/storage/backend.(*batchTx).commit(0xc000)\n\tbackend/batch_tx.go:269\n"
		head     = "panic: assertion failed: Page\n\ngoroutine 7 [running]:\n"
		other    = "\ngoroutine 8 [select]:\n"
	)
	for report, want := range map[string]string{
		head + database + commit:         "panicked: etcd, which stores the objects of the Kubernetes API, cannot go on: assertion failed: Page",
		head + database + other + commit: "panicked: assertion failed: Page", // the database of the servers
		"panic: etcd, which stores the objects of the Kubernetes API, cannot go on: x\n\ngoroutine 7 [running]:\n" + commit: "panicked: etcd, which stores the objects of the Kubernetes API, cannot go on: x",
	} {
		name := filepath.Join(t.TempDir(), "report")
		if err := os.WriteFile(name, []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
		if e := new(Ending); !e.readReport(name) || e.How != want {
			t.Errorf("of %q: %q, want %q", report, e.How, want)
		}
	}
}

func TestOrderlyEndLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	if _, stderr := endChild(t, dir, "orderly"); stderr != "" {
		t.Fatal(stderr)
	}
	if e, err := Last(dir); e != nil || err != nil {
		t.Errorf("Last() = %v, %v, want none", e, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
		t.Errorf("the directory has %v, %v, want the log alone", left, err)
	}
}

// A process that was killed says nothing itself: the kernel's counters do.
func TestLastOfAKilledProcessAsksTheKernel(t *testing.T) {
	dir := t.TempDir()
	endChild(t, dir, "kill")
	for _, tt := range []struct {
		name, boot string
		more       int64
		want       string
	}{
		{"nothing known", bootID(), 0, "was killed (SIGKILL)"},
		{"lack of memory", bootID(), 2, "was killed by the kernel, which has killed 2 of its control group for lack of memory"},
		{"restart of the computer", "another", 0, "ended when the computer did"},
	} {
		e, err := last(dir, tt.boot, func(file string) int64 { return outOfMemoryKills(file) + tt.more })
		if err != nil || e == nil || !strings.Contains(e.String(), tt.want) {
			t.Errorf("%s: last() = %v, %v, want %q", tt.name, e, err, tt.want)
		}
	}
}

// A kill is blamed on memory by the counter of the process's own control group alone.
func TestMemoryEventsAreThoseOfTheOwnControlGroup(t *testing.T) {
	mounted := t.TempDir()
	for _, name := range []string{"lab/memory.events", "memory/box/memory.oom_control", "memory/memory.oom_control"} {
		at := filepath.Join(mounted, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("low 0\noom_kill_disable 0\noom 9\noom_kill 3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]string{
		"0::/lab\n":                           "lab/memory.events",
		"0::/\n":                              "", // the root of version 2 has no such file
		"2:cpu:/box\n4:memory:/box\n0::/\n":   "memory/box/memory.oom_control",
		"4:cpu,memory:/not/seen/here\n0::/\n": "memory/memory.oom_control",
		"":                                    "",
	} {
		got := memoryEventsOf(groups, mounted)
		if want != "" {
			want = filepath.Join(mounted, want)
		}
		if got != want {
			t.Errorf("memoryEventsOf(%q) = %q, want %q", groups, got, want)
		}
		if want != "" && outOfMemoryKills(got) != 3 {
			t.Errorf("outOfMemoryKills(%s) = %d, want 3", got, outOfMemoryKills(got))
		}
	}
	if n := outOfMemoryKills(""); n != 0 {
		t.Errorf("outOfMemoryKills of no file = %d", n)
	}
}

// While a process runs, and after an orderly end or a kill, no file is called a crash.
func TestOnlyCrashesAreCalledSo(t *testing.T) {
	for how, want := range map[string]int{"kill": 0, "orderly": 0, "panic": 1} {
		dir := t.TempDir()
		endChild(t, dir, how)
		for range 2 { // the second one finds what the first has named
			if e, err := Last(dir); err != nil || (e == nil) != (how == "orderly") || how == "panic" && e.Report == "" {
				t.Fatalf("%s: Last() = %v, %v", how, e, err)
			}
		}
		if found, err := filepath.Glob(filepath.Join(dir, "crash-*")); err != nil || len(found) != want {
			t.Errorf("%s: %q, %v, want %d files", how, found, err, want)
		}
	}
	w, err := Begin(t.TempDir(), "", start)
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(w.dir, "crash-*")); len(found) > 0 {
		t.Errorf("a lab that runs has %q", found)
	}
	if err := w.End(nil); err != nil {
		t.Error(err)
	}
}

// Begin removes reports without a stack, and all but the last five others.
func TestBeginRemovesOldReports(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		name := filepath.Join(dir, "crash-20300101T00000"+string(rune('0'+i))+"Z-7.txt")
		text := "panic: a"
		if i == 5 {
			text = ""
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Begin(dir, "", start)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.End(nil); err != nil {
			t.Error(err)
		}
	}()
	names, err := filepath.Glob(filepath.Join(dir, "crash-20300101*"))
	if err != nil || len(names) != reportsStored || filepath.Base(names[0]) != "crash-20300101T000002Z-7.txt" {
		t.Errorf("reports left: %v, %v, want the last %d that have a panic", names, err, reportsStored)
	}
}

func TestDamagedProcessFileNamesTheFix(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, ProcessFile)
	for _, text := range []string{"", "{", `{"report":"../../secret"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if e, err := Last(dir); err == nil || err.Error() != name+" is damaged: remove it" {
			t.Errorf("Last() with %q = %v, %v, want an error that names file and fix", text, e, err)
		}
	}
	if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(dir, "", start); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("Begin() with a directory = %v, want an error that names it and the fix", err)
	}
}

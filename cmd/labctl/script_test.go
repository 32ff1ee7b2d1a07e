package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/metalab-dev/metalab/cmd/labctl/crash"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/sample"
)

func TestMain(m *testing.M) {
	if signal.Ignored(syscall.SIGHUP) { // by nohup(1): programs would inherit that, and scripts end them by it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if filepath.Base(os.Args[0]) != "labctl" { // tests that run commands in this process know none of the user's labs
		if err := os.Setenv("XDG_STATE_HOME", "/nonexistent"); err != nil {
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"labctl": func() {
		go panicOnSignal()
		go panicAtStart()
		os.Exit(run())
	}})
}

// panicAtStart panics, if PANIC_AT_START is set, as soon as this process has described
// itself in the directory METALAB_STATE.
func panicAtStart() {
	for os.Getenv("PANIC_AT_START") != "" {
		if e, err := crash.Last(os.Getenv("METALAB_STATE")); err == nil && e != nil && e.PID == os.Getpid() {
			panic("injected at the start")
		}
		runtime.Gosched()
	}
}

// panicOnSignal panics in a goroutine when this process gets SIGUSR1, as a mistake of
// labctl or of etcd would.
func panicOnSignal() {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	<-got
	panic("injected by the test")
}

// TestScripts runs testdata/*.txtar, or the share of them that this run draws: each runs
// labctl in processes, as a user does.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	p := scripts(t)
	p.Files = sample.Share(t, "scripts", files)
	testscript.Run(t, p)
}

// TestCompletionInBash runs the completion function of the generated script in bash,
// with Debian's bash-completion, on the words of command lines.
func TestCompletionInBash(t *testing.T) {
	p := scripts(t)
	functions := prerequisites.Need(t, "bash-completion")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Vars = append(e.Vars, "BASH_COMPLETION_FUNCTIONS="+functions)
		return setup(e)
	}
	p.Files = []string{filepath.Join("testdata", "completion", "bash.txtar")}
	testscript.Run(t, p)
}

// TestDay2 runs playbooks in emulated servers.
func TestDay2(t *testing.T) {
	prerequisites.Need(t, "ansible-playbook")
	prerequisites.Need(t, "user namespaces")
	p := scripts(t)
	p.Dir = filepath.Join("testdata", "day2")
	testscript.Run(t, p)
}

// TestWithoutLoopback runs commands where no loopback interface is up.
func TestWithoutLoopback(t *testing.T) {
	alone := prerequisites.Need(t, "network namespace")
	p := scripts(t)
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Vars = append(e.Vars, "ALONE="+alone)
		return setup(e)
	}
	p.Dir = filepath.Join("testdata", "loopback")
	testscript.Run(t, p)
}

// scripts returns how all scripts are run.
func scripts(t *testing.T) testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// Labs of other scripts, tests and programs run on this computer.
			port := racktest.Ports(t)
			e.Vars = append(e.Vars, fmt.Sprint("PORT=", port), fmt.Sprint("PORT2=", port+1), fmt.Sprint("PORT3=", port+2), fmt.Sprintf("METALAB_LISTEN=loopback:%d", port))
			e.Vars = append(e.Vars, "STATE="+filepath.Join(e.WorkDir, "state"), "XDG_STATE_HOME="+e.WorkDir, "XDG_RUNTIME_DIR=")
			e.Defer(func() { endLabs(t, e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"kill-9": killLab, "kill-shard": killShard, "end-by": endBy},
	}
}

// killLab kills the lab of a state directory with SIGKILL, and returns when it is
// dead.
func killLab(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: kill-9 STATE")
	}
	endBy(ts, neg, []string{"KILL", args[0]})
}

// killShard kills the process of a shard with SIGKILL, and returns when the shard is up
// again.
func killShard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: kill-shard STATE NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for killed := 0; ; {
		st, err := control.NewClient(args[0]).Status(ctx) // it fails after a minute
		ts.Check(err)
		i := slices.IndexFunc(st.Shards, func(s control.ShardStatus) bool { return s.Name == args[1] })
		if i < 0 {
			ts.Fatalf("there is no shard %s among %+v", args[1], st.Shards)
		}
		switch s := st.Shards[i]; {
		case killed == 0:
			killed = s.PID
			ts.Check(syscall.Kill(killed, syscall.SIGKILL))
		case s.State == "up" && s.PID != killed:
			return
		}
	}
}

// signals are the arguments of end-by.
var signals = map[string]syscall.Signal{
	"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1,
}

// endBy sends a signal to the lab of a state directory, and returns when the process
// has ended.
func endBy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: end-by SIGNAL STATE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st, err := control.NewClient(args[1]).Status(ctx)
	ts.Check(err)
	ts.Check(syscall.Kill(st.PID, signals[args[0]]))
	ts.Logf("sent %s to %s", args[0], strconv.Itoa(st.PID))
	ts.Check(rack.Released(ctx, args[1]))
}

// endLabs stops the labs that a script has left running.
func endLabs(t *testing.T, work string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dirs, err := filepath.Glob(filepath.Join(work, "*", "settings.json"))
	if err != nil {
		t.Error(err)
	}
	for _, d := range dirs {
		if err := control.NewClient(filepath.Dir(d)).Down(ctx); err != nil {
			t.Logf("%s: %v", d, err) // most scripts stop theirs
		}
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"labctl": func() { os.Exit(run()) }})
}

// TestScripts runs testdata/*.txtar: each runs labctl in processes, as a user does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// Labs of other scripts, tests and programs run on this computer.
			port := labtest.Ports(t)
			e.Vars = append(e.Vars, fmt.Sprint("PORT=", port), fmt.Sprint("PORT2=", port+1), fmt.Sprint("PORT3=", port+2), fmt.Sprintf("METALAB_LISTEN=loopback:%d", port))
			e.Vars = append(e.Vars, "STATE="+filepath.Join(e.WorkDir, "state"), "XDG_STATE_HOME="+e.WorkDir, "XDG_RUNTIME_DIR=")
			e.Defer(func() { endLabs(t, e.WorkDir) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"kill-9": killLab},
	})
}

// killLab kills the lab of a state directory with SIGKILL, and returns when it is
// dead.
func killLab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill-9 STATE")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st, err := control.NewClient(args[0]).Status(ctx)
	ts.Check(err)
	ts.Check(syscall.Kill(st.PID, syscall.SIGKILL))
	ts.Logf("killed %s", strconv.Itoa(st.PID))
	ts.Check(lab.Released(ctx, args[0]))
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

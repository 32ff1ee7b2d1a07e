package lcm

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// The whole output of a play that succeeds is in a file that only the superuser reads, without the
// values of its Secret.
func TestOutputOfAPlayStaysOnTheServer(t *testing.T) {
	f, s := newAPI(), newServer(t)
	f.secret("s", map[string]string{"password": "correct-horse"})
	p := playbook(t, s, `  tasks:
    - name: Show the values
      ansible.builtin.debug: {msg: "it is {{ values.password }}, {{ values.password | b64encode }}"}
`)
	p["secretRef"] = "default/s"
	if r := executed(t, f, s, &lcmv1.LCMMachine{}, playItem(p)); r.code != 0 {
		t.Fatalf("the play = %+v", r)
	}
	got := s.read(t, "/var/log/lcm/items/play.log")
	for _, want := range []string{"--- item play, attempt 0, ", "TASK [Show the values]", "it is ******, ******", "localhost ", "ok=1", ": exit code 0\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log has not %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "horse") {
		t.Errorf("the log has the password:\n%s", got)
	}
	if info, err := os.Stat(s.path("/var/log/lcm/items/play.log")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode of the log = %v, %v, want 0600", info, err)
	}
}

// The log of an item shows its output while it runs, and logs of earlier attempts are kept.
func TestLogIsWrittenWhileAnItemRuns(t *testing.T) {
	f, s := newAPI(), newServer(t)
	gate := s.path("/go")
	it := script("a/b c", "echo begun >&2; while ! test -e "+gate+"; do sleep 0.05; done; printf done; exit 3", lcmv1.PhaseReconfigure)
	f.change(machineWith(it))
	start(t, config(f, s))
	log := LogFile(it.Name)
	patience.Await(t, "the output is in the log", func() bool { return strings.Contains(s.read(t, log), "\nbegun\n") })
	if got := s.read(t, log); strings.Contains(got, "exit code") {
		t.Errorf("the item has ended: %s", got)
	}
	s.write(t, "/go", "", 0o600)
	patience.Await(t, "the item ends", func() bool { return strings.Contains(s.read(t, log), "\ndone\n--- item a/b c, attempt 1, ") })
	if got := s.read(t, log); !strings.HasSuffix(got, ": exit code 3: begun\ndone\n") {
		t.Errorf("the log ends with %q", got)
	}
	for attempt := 2; attempt <= 4; attempt++ {
		m := &lcmv1.LCMMachine{}
		m.Status.StateItemStatuses = map[string]lcmv1.StateItemStatus{it.Name: {Attempt: attempt}}
		executed(t, f, s, m, it)
		for i, file := range logFiles(it.Name)[:min(attempt, logAttempts)] {
			if got, want := s.read(t, file), fmt.Sprintf("--- item a/b c, attempt %d, ", attempt-i); !strings.HasPrefix(got, want) {
				t.Errorf("after attempt %d %s is %q, want it to begin with %q", attempt, file, got, want)
			}
		}
	}
	if names, err := s.ReadDir(logDir); err != nil || len(names) != logAttempts {
		t.Errorf("logs = %v, %v, want %d", names, err, logAttempts)
	}
}

// Logs of items that the LCMMachine no longer has go with the next item.
func TestLogsOfOldItemsAreRemoved(t *testing.T) {
	f, s := newAPI(), newServer(t)
	old, kept, next := script("old", ":", lcmv1.PhaseDeploy), script("kept", ":", lcmv1.PhaseDeploy), script("next", ":", lcmv1.PhaseDeploy)
	m := &lcmv1.LCMMachine{}
	for _, it := range []lcmv1.LCMStateItem{old, old, kept} {
		m.Spec.StateItems = []lcmv1.LCMStateItem{old, kept}
		executed(t, f, s, m, it)
	}
	m.Spec.StateItems = []lcmv1.LCMStateItem{kept, next}
	executed(t, f, s, m, next)
	if names, err := s.ReadDir(logDir); err != nil || !slices.Equal(names, []string{"kept.log", "next.log"}) {
		t.Errorf("logs = %v, %v", names, err)
	}
}

// A disk that is full fails no item for its log.
func TestFullDiskLosesALogAlone(t *testing.T) {
	f, s := newAPI(), newServer(t)
	s.put = func(files []sys.File) error {
		for _, file := range files {
			if strings.HasPrefix(file.Name, logDir) {
				return fmt.Errorf("put: %w", syscall.ENOSPC)
			}
		}
		return nil
	}
	a := newAgent(t, f, s)
	var warnings lock
	a.Log = slog.New(slog.NewTextHandler(&warnings, nil))
	if r := a.run(t.Context(), &lcmv1.LCMMachine{}, script("a", "echo out", lcmv1.PhaseDeploy)); r.code != 0 || r.message != "out" {
		t.Errorf("an item on a full disk = %+v, want success", r)
	}
	if got := strings.Count(warnings.String(), "no space left on device"); got != 1 {
		t.Errorf("%d warnings, want 1:\n%s", got, &warnings)
	}
}

// The log of an attempt has a bound, and no part of a value where it is cut.
func TestLogIsBounded(t *testing.T) {
	f, s := newAPI(), newServer(t)
	a := newAgent(t, f, s)
	l := a.openLog(&lcmv1.LCMMachine{}, script("a", "", lcmv1.PhaseDeploy))
	l.mask(newRedactor(map[string]string{"a": "first-word\nsecond-word"}))
	write := func(text string) {
		for part := range slices.Chunk([]byte(text), 7) { // values come in parts
			if n, err := l.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write(%q) = %d, %v", part, n, err)
			}
		}
	}
	write(strings.Repeat("a line of the log\n", 2<<20/18))
	write("it is first-word\nsecond-word, or first-word\\nsecond-word\n")
	write(strings.Repeat("x", maxLogLine-5) + "first-word" + strings.Repeat("y", 3<<20) + "\nlast")
	l.end(result{code: 1, message: "why"})
	got := s.read(t, LogFile("a"))
	if len(got) > maxLog+1<<10 || len(got) < maxLog/2 {
		t.Errorf("the log has %d bytes, want at most %d", len(got), maxLog)
	}
	if !strings.HasPrefix(got, "--- item a, attempt 0, ") || !strings.Contains(got[:200], " bytes are left out)\na line of the log\n") {
		t.Errorf("the log begins with %q", got[:200])
	}
	end := got[len(got)-200:]
	if !strings.Contains(got, "\nit is ******\n******, or ******\n") || !strings.HasSuffix(strings.TrimSpace(got), ": exit code 1: why") || !strings.Contains(end, "xxx … (the line is too long)\nlast\n") {
		t.Errorf("the log ends with %q", end)
	}
	for _, part := range []string{"first", "xf", "second", "yyy"} {
		if strings.Contains(got, part) {
			t.Errorf("the log has %q", part)
		}
	}
}

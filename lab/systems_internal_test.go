package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A lab whose servers' commands the kernel does not limit says so when it starts, and one where
// it does says nothing.
func TestLabWithoutLimitsOfCommandsWarns(t *testing.T) {
	for _, tt := range []struct {
		limits error
		want   int // lines
	}{
		{limits: nil, want: 0},
		{limits: &sandbox.LimitsError{Err: errors.New("no limit of the controller memory")}, want: 1},
	} {
		var log strings.Builder
		newSystems(nil, slog.New(slog.NewTextHandler(&log, nil)), t.TempDir(), nil, tt.limits)
		if got := strings.Count(log.String(), "level=WARN"); got != tt.want || got > 0 && !strings.Contains(log.String(), "no limit of the controller memory") {
			t.Errorf("with %v the log is %q, want %d warnings with the reason", tt.limits, log.String(), tt.want)
		}
	}
}

// roomless is a disk of this machine that is full a number of times.
type roomless struct {
	memoryStore
	full int
}

// Save implements sandbox.Store.
func (s *roomless) Save(b []byte) error {
	if s.full--; s.full >= 0 {
		return fmt.Errorf("put: %w", syscall.ENOSPC)
	}
	return s.memoryStore.Save(b)
}

// A first boot waits for room on this machine's disk, says so once, and ends with its server.
func TestFirstBootWaitsForRoom(t *testing.T) {
	var told []string
	fail := func(what string, err error) { told = append(told, what+": "+err.Error()) }
	start := func(full int) (*system, *roomless) {
		s := &roomless{full: full}
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		return &system{System: sandbox.New(sandbox.Config{Store: s}), ctx: ctx, cancel: cancel}, s
	}
	x, s := start(1)
	if err := new(systems).putWhenThereIsRoom(x, sandbox.Tree{"etc/hostname": sandbox.File(0o644, "node\n")}, fail); err != nil || len(s.b) == 0 {
		t.Errorf("the first boot = %v with %d bytes stored, want them stored", err, len(s.b))
	}
	if len(told) != 1 || !strings.Contains(told[0], "waiting for room") {
		t.Errorf("the console shows %q, want one line that it waits", told)
	}
	x, s = start(math.MaxInt)
	x.cancel()
	if err := new(systems).putWhenThereIsRoom(x, sandbox.Tree{"etc/hostname": sandbox.File(0o644, "node\n")}, fail); !errors.Is(err, sandbox.ErrClosed) || len(s.b) > 0 {
		t.Errorf("the first boot of a server that has stopped = %v, want %v", err, sandbox.ErrClosed)
	}
}

// A line of user data's output without an end is shown in parts of a bounded size.
func TestOutputWithoutLinesIsBounded(t *testing.T) {
	var shown [][]byte
	out := &outputLog{console: writerFunc(func(p []byte) { shown = append(shown, p) })}
	for range 100 {
		if n, err := out.Write(make([]byte, 1000)); n != 1000 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		if len(out.line) >= maxLine {
			t.Fatalf("%d bytes wait for the end of their line", len(out.line))
		}
	}
	if _, err := out.Write(append(make([]byte, 10*maxLine), '\n')); err != nil {
		t.Fatal(err)
	}
	out.flush()
	sum := 0
	for _, p := range shown {
		sum += len(p)
		if len(p) > maxLine {
			t.Errorf("%d bytes are shown at once, want at most %d", len(p), maxLine)
		}
	}
	if want := 100*1000 + 10*maxLine + len("\n"); sum != want {
		t.Errorf("%d bytes are shown in %d parts, want all %d", sum, len(shown), want)
	}
}

// writerFunc is a console.
type writerFunc func([]byte)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// A panic in what runs for one server crashes that server's system, with the cause in the journal and
// on the screen, and no other.
func TestPanicEndsOneSystem(t *testing.T) {
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 2, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	image, err := images.Build()
	if err != nil {
		t.Fatal(err)
	}
	var systems []*system
	hosts := w.rack.Hosts()
	for _, h := range hosts {
		writeImage(t, h, image)
		if _, err := w.Control().Power(t.Context(), h.Name(), "On"); err != nil {
			t.Fatal(err)
		}
		patience.Await(t, "the server boots", func() bool {
			x, err := w.agents.systems.of(t.Context(), h)
			if err == nil {
				systems = append(systems, x)
			}
			return err == nil
		})
	}
	func() {
		defer systems[0].Guard()
		panic("a file of the user's")
	}()
	patience.Await(t, "the system has ended", func() bool {
		_, err := systems[0].ReadFile("etc/hostname")
		return errors.Is(err, sandbox.ErrClosed)
	})
	entries, _, err := w.rack.Journal().Select(journal.Query{What: "*crashed"})
	var what []string
	for _, e := range entries {
		what = append(what, e.Host+" "+e.What)
		if e.What == "os.crashed" && !strings.Contains(e.Text, "panic: a file of the user's") {
			t.Errorf("the journal has %q, want the cause", e.Text)
		}
	}
	if diff := cmp.Diff([]string{hosts[0].Name() + " os.crashed", hosts[0].Name() + " system.crashed"}, what); diff != "" || err != nil {
		t.Errorf("the journal (-want +got): %v\n%s", err, diff)
	}
	if b, err := systems[1].ReadFile("etc/hostname"); err != nil || len(b) == 0 {
		t.Errorf("the other system's host name = %q, %v", b, err)
	}
}

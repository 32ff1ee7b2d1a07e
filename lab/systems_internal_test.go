package lab

import (
	"errors"
	"log/slog"
	"strings"
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

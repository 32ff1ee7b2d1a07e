package control_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// running starts a rack whose first host runs a system.
func running(t *testing.T) (*racktest.Rack, *control.Client) {
	t.Helper()
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{Events: func(h *rack.Host, ev machine.Event) {
		if try, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(context.Background(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "system"}); err != nil {
				panic(err)
			}
		}
	}})
	start(t, control.Config{Rack: l.Rack})
	apply(t, l, machine.Reset{Kind: machine.ResetOn})
	l.Advance(5 * time.Minute)
	return l, control.NewClient(l.Dir())
}

func apply(t *testing.T, l *racktest.Rack, c machine.Command) {
	t.Helper()
	if err := l.First().Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestConsoleInputIsTypedBeforeItCloses(t *testing.T) {
	l, c := running(t)
	var out strings.Builder
	if err := c.Console(t.Context(), l.First().Name(), strings.NewReader("root\nsecret\n"), &out); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{"Serial number " + l.First().Machine().Identity.Serial, "login: root\r\nPassword: \r\n\r\nLogin incorrect\r\nnode-0 login: "} {
		if !strings.Contains(got, want) {
			t.Errorf("the console shows no %q:\n%s", want, got)
		}
	}
	if err := c.Break(t.Context(), l.First().Name()); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := c.Console(t.Context(), l.First().Name(), strings.NewReader("s"), &out); err != nil || !strings.HasSuffix(out.String(), "sysrq: Emergency Sync\r\n") {
		t.Errorf("after a break: %v, %q", err, out.String())
	}
}

// expect reads until the console has shown a text.
func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var got strings.Builder
	b := make([]byte, 1)
	for !strings.HasSuffix(got.String(), want) {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("no %q: %v; it shows\n%s", want, err, got.String())
		}
		got.Write(b)
	}
}

// Several clients watch and one types; all see the last output.
func TestConsoleShowsOutput(t *testing.T) {
	l, c := running(t)
	ctx, leave := context.WithCancel(t.Context())
	var screens []io.Reader
	ended := make(chan error, 2)
	for range 2 {
		r, w := io.Pipe()
		defer r.Close()
		screens = append(screens, r)
		go func() {
			ended <- c.Console(ctx, l.First().Name(), nil, w)
		}()
		expect(t, r, "login: ")
	}
	apply(t, l, machine.TypeText{Text: []byte("me\r")})
	for _, r := range screens {
		expect(t, r, "me\r\nPassword: ")
	}
	apply(t, l, machine.Reset{Kind: machine.ForceRestart})
	for _, r := range screens {
		expect(t, r, "F2: set-up")
		go func() { _, _ = io.Copy(io.Discard, r) }() // returns when it is closed
	}
	leave()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("Console() = %v", err)
		}
	}
}

func TestConsoleEndsWithTheLab(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	stop := start(t, control.Config{Rack: l.Rack})
	c := control.NewClient(l.Dir())
	apply(t, l, machine.Reset{Kind: machine.ResetOn})
	l.Advance(time.Minute)
	r, w := io.Pipe()
	defer r.Close()
	ended := make(chan error, 1)
	typed, typing := io.Pipe() // input that pauses
	defer typing.Close()
	go func() {
		ended <- c.Console(t.Context(), l.First().Name(), typed, w)
	}()
	expect(t, r, "F2: set-up")
	go func() { _, _ = io.Copy(io.Discard, r) }() // returns when it is closed
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Console() of a lab that ends = %v", err)
	}
	if err := c.Console(t.Context(), l.First().Name(), nil, io.Discard); !errors.Is(err, control.ErrNoLab) {
		t.Errorf("Console() without a lab = %v, want %v", err, control.ErrNoLab)
	}
}

func TestConsoleOfUnknownHost(t *testing.T) {
	_, c := running(t)
	wantRefused(t, "Console()", c.Console(t.Context(), "nobody", nil, io.Discard), http.StatusNotFound, "there is no host nobody")
	wantRefused(t, "Break()", c.Break(t.Context(), "nobody"), http.StatusNotFound, "there is no host nobody")
}

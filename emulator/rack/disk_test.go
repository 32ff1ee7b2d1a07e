package rack_test

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// running starts a rack whose first host has booted from its disk.
func running(t *testing.T) (*racktest.Rack, *rack.Host) {
	t.Helper()
	var d diary
	l := racktest.Start(t, rack.Config{Events: d.event})
	h := l.First()
	power(t, h, machine.ResetOn)
	l.Advance(3 * time.Minute)
	if h.Machine().Phase != machine.Running {
		t.Fatalf("the machine is %s, want running", h.Machine().Phase)
	}
	return l, h
}

func TestAttachedDiskBelongsToOneBoot(t *testing.T) {
	l, h := running(t)
	a, err := h.Attach(1, "Disk.0")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.Medium("Disk.0")
	if err != nil {
		t.Fatal(err)
	}
	if a.Size() != 480103981056 || raw.Size() != a.Size() {
		t.Errorf("Size() = %d and %d, want that of the profile", a.Size(), raw.Size())
	}
	if _, err := a.WriteAt([]byte("written"), 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := a.Sync(); err != nil {
		t.Error(err)
	}
	got := make([]byte, 7)
	if _, err := a.ReadAt(got, 1<<30); err != nil || string(got) != "written" {
		t.Errorf("ReadAt() = %q, %v", got, err)
	}
	if _, err := raw.ReadAt(got, 1<<30); err != nil || string(got) != "written" {
		t.Errorf("ReadAt() of the raw drive = %q, %v", got, err)
	}
	if at, err := a.NextData(0); err != nil || at > 1<<30 || at < 1<<30-1<<16 {
		t.Errorf("NextData(0) = %d, %v, want about %d", at, err, 1<<30)
	}
	other, err := h.Attach(1, "Disk.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData(0) of the other drive = %v, want EOF", err)
	}
	if err := a.Discard(0, a.Size()); err != nil {
		t.Error(err)
	}
	if _, err := a.NextData(0); !errors.Is(err, io.EOF) {
		t.Errorf("NextData(0) after Discard = %v, want EOF", err)
	}

	if _, err := h.Attach(1, "Disk.7"); !errors.Is(err, rack.ErrNoDrive) {
		t.Errorf("Attach(Disk.7) = %v, want %v", err, rack.ErrNoDrive)
	}
	if _, err := h.Attach(2, "Disk.0"); !errors.Is(err, rack.ErrDown) {
		t.Errorf("Attach() for another boot = %v, want %v", err, rack.ErrDown)
	}
	power(t, h, machine.ForceRestart)
	for name, err := range map[string]error{
		"ReadAt": second(a.ReadAt(got, 0)), "WriteAt": second(a.WriteAt(got, 0)), "NextData": second(a.NextData(0)),
		"Discard": a.Discard(0, 1), "Sync": a.Sync(), "WriteAt of the other drive": second(other.WriteAt(got, 0)),
		"Attach": second(h.Attach(1, "Disk.0")),
	} {
		if !errors.Is(err, rack.ErrDown) {
			t.Errorf("%s after a reset = %v, want %v", name, err, rack.ErrDown)
		}
	}
	l.Advance(3 * time.Minute)
	if a, err = h.Attach(2, "Disk.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteAt(got, 0); err != nil {
		t.Errorf("WriteAt() of the second boot = %v", err)
	}
	if err := h.Power(t.Context(), "GracefulShutdown"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteAt(got, 0); err != nil {
		t.Errorf("WriteAt() of a system that is going down = %v", err)
	}
	l.Advance(time.Minute)
	if _, err := a.WriteAt(got, 0); !errors.Is(err, rack.ErrDown) {
		t.Errorf("WriteAt() of a system that has gone down = %v, want %v", err, rack.ErrDown)
	}
}

func second[T any](_ T, err error) error { return err }

// When a power-off is answered, no write of the system lands later.
func TestNoWriteLandsAfterPowerOff(t *testing.T) {
	l, h := running(t)
	const size = 1 << 16
	for boot := uint64(1); boot <= 3; boot++ {
		a, err := h.Attach(boot, "Disk.0")
		if err != nil {
			t.Fatal(err)
		}
		var cut atomic.Bool
		var begun, writers sync.WaitGroup
		for w := range 8 {
			begun.Add(1)
			writers.Go(func() {
				for i := 0; ; i++ {
					answered := cut.Load()
					_, err := a.WriteAt(bytes.Repeat([]byte{byte(w), byte(i)}, size/2), int64(w)*size)
					switch {
					case err != nil && !errors.Is(err, rack.ErrDown):
						t.Errorf("WriteAt() = %v", err)
					case err == nil && answered:
						t.Error("a write after the answer went through")
					}
					if i == 0 {
						begun.Done()
					}
					if err != nil {
						return
					}
				}
			})
		}
		begun.Wait()
		power(t, h, machine.ForceOff)
		cut.Store(true)
		raw, err := h.Medium("Disk.0")
		if err != nil {
			t.Fatal(err)
		}
		before, after := make([]byte, 8*size), make([]byte, 8*size)
		if _, err := raw.ReadAt(before, 0); err != nil {
			t.Fatal(err)
		}
		writers.Wait()
		if _, err := raw.ReadAt(after, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, after) {
			t.Error("the drive has changed after the power was cut")
		}
		l.Advance(time.Minute)
		power(t, h, machine.ResetOn)
		l.Advance(3 * time.Minute)
	}
}

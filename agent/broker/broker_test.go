package broker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// host counts reboots.
type host struct {
	reboots int
	err     error
	reports []error
}

func (h *host) broker() *Broker {
	return New(func(context.Context) error { h.reboots++; return h.err }, func(err error) { h.reports = append(h.reports, err) })
}

func begin(t *testing.T, b *Broker, o Operation) (end func()) {
	t.Helper()
	end, err := b.Try(o)
	if err != nil {
		t.Fatalf("Try(%s) error = %v, want none", o, err)
	}
	return end
}

func blocked(t *testing.T, b *Broker, o Operation, want string) {
	t.Helper()
	_, err := b.Try(o)
	if got := new(BlockedError); !errors.As(err, &got) || err.Error() != want {
		t.Fatalf("Try(%s) error = %v, want %q", o, err, want)
	}
}

func TestOneOperationAtATime(t *testing.T) {
	b := (&host{}).broker()
	end := begin(t, b, Operation{LCM, "item a"})
	blocked(t, b, Operation{LCM, "item b"}, "blocked by lcm: item a")
	blocked(t, b, Operation{Elemental, "reset"}, "blocked by lcm: item a")
	end()
	end = begin(t, b, Operation{Elemental, "reset"})
	end()
	end() // must not end the next one
	second := begin(t, b, Operation{LCM, "item b"})
	end()
	blocked(t, b, Operation{LCM, "item c"}, "blocked by lcm: item b")
	second()
}

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := (&host{}).broker()
		end := begin(t, b, Operation{LCM, "item 0"})
		var order []string
		for _, o := range []Operation{{LCM, "item 1"}, {LCM, "item 2"}, {MachineConfig, "update"}, {"unknown", "x"}, {Elemental, "reset"}} {
			go func() {
				end, err := b.Begin(t.Context(), o)
				if err != nil {
					t.Errorf("Begin(%s) error = %v", o, err)
					return
				}
				order = append(order, o.Name) // one at a time: the lock is b
				end()
			}()
			synctest.Wait()
		}
		blocked(t, b, Operation{LCM, "late"}, "blocked by lcm: item 0")
		end()
		synctest.Wait()
		if want := []string{"reset", "update", "item 1", "item 2", "x"}; !slices.Equal(order, want) {
			t.Errorf("operations ran in the order %q, want %q", order, want)
		}
		begin(t, b, Operation{LCM, "free again"})()
	})
}

// An operation that waits blocks those that come later with the same or a lower priority.
func TestWaitingOperationEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := (&host{}).broker()
		end := begin(t, b, Operation{LCM, "item"})
		ctx, cancel := context.WithCancel(t.Context())
		gave := make(chan error, 1)
		go func() {
			_, err := b.Begin(ctx, Operation{Elemental, "reset"})
			gave <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Fatalf("Begin() error = %v, want context.Canceled", err)
		}
		end()
		begin(t, b, Operation{LCM, "next"})()
	})
}

func TestRebootWaitsForOperationsAndIsMerged(t *testing.T) {
	h := &host{}
	b := h.broker()
	end := begin(t, b, Operation{LCM, "item"})
	for _, o := range []Operation{{LCM, "graceful reboot"}, {MachineConfig, "new kernel"}, {LCM, "graceful reboot"}} {
		if err := b.Reboot(t.Context(), o); err == nil || err.Error() != "blocked by lcm: item" {
			t.Fatalf("Reboot(%s) error = %v, want that it waits for the item", o, err)
		}
	}
	if h.reboots != 0 {
		t.Fatal("the host reboots while an operation runs")
	}
	end()
	if h.reboots != 1 {
		t.Fatalf("the host was asked to reboot %d times, want once for all requests", h.reboots)
	}
	blocked(t, b, Operation{Elemental, "reset"}, "blocked by lcm: graceful reboot")
	if err := b.Reboot(t.Context(), Operation{LCM, "again"}); err != nil || h.reboots != 1 {
		t.Errorf("Reboot() of a host that goes down: error %v, %d reboots; want it part of the first", err, h.reboots)
	}
}

func TestRebootWaitsForHigherPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		b := h.broker()
		end := begin(t, b, Operation{LCM, "item"})
		reset := make(chan func(), 1)
		go func() {
			end, err := b.Begin(t.Context(), Operation{Elemental, "reset"})
			if err != nil {
				t.Error(err)
			}
			reset <- end
		}()
		synctest.Wait()
		if err := b.Reboot(t.Context(), Operation{LCM, "graceful reboot"}); err == nil || err.Error() != "blocked by lcm: item" {
			t.Fatalf("Reboot() error = %v, want that it waits for the item", err)
		}
		end()
		endReset := <-reset
		if h.reboots != 0 {
			t.Fatal("a reboot for LCM goes before a reset")
		}
		endReset()
		if h.reboots != 1 {
			t.Errorf("the host was asked to reboot %d times after the reset, want once", h.reboots)
		}
	})
}

func TestOperationsGoOnAfterARebootThatFails(t *testing.T) {
	h := &host{err: errors.New("no init")}
	b := h.broker()
	if err := b.Reboot(t.Context(), Operation{LCM, "graceful reboot"}); err == nil || err.Error() != "broker: reboot: no init" {
		t.Fatalf("Reboot() error = %v, want that of the host", err)
	}
	end := begin(t, b, Operation{LCM, "item"})
	if err := b.Reboot(t.Context(), Operation{LCM, "graceful reboot"}); !errors.As(err, new(*BlockedError)) {
		t.Fatalf("Reboot() that waits: error = %v", err)
	}
	end()
	if len(h.reports) != 1 {
		t.Errorf("reports = %v, want the error of the reboot that nobody waited for", h.reports)
	}
	begin(t, b, Operation{LCM, "item"})()
}

// An agent that crashes in an operation holds nothing: the next one begins.
func TestCrashOfAHolderFreesTheLock(t *testing.T) {
	b := (&host{}).broker()
	crash := func() {
		defer func() { _ = recover() }() // as the owner of the agents does
		defer begin(t, b, Operation{MachineConfig, "update"})()
		blocked(t, b, Operation{LCM, "item"}, "blocked by machineconfig: update")
		panic("crash")
	}
	crash()
	begin(t, b, Operation{LCM, "item"})()
}

// A host that goes down for another reason must not boot again because of a reboot that was
// queued.
func TestCloseDropsQueuedReboots(t *testing.T) {
	h := &host{}
	b := h.broker()
	end := begin(t, b, Operation{LCM, "item"})
	if err := b.Reboot(t.Context(), Operation{MachineConfig, "update"}); err == nil {
		t.Fatal("Reboot() does not wait for the item")
	}
	b.Close()
	end()
	if h.reboots != 0 {
		t.Errorf("%d reboots of a host that goes down, want none", h.reboots)
	}
	blocked(t, b, Operation{Elemental, "reset"}, "blocked by shutdown of the host")
	if err := b.Reboot(t.Context(), Operation{LCM, "graceful reboot"}); err != nil || h.reboots != 0 {
		t.Errorf("Reboot() of a host that goes down: error %v, %d reboots; want neither", err, h.reboots)
	}
}

package rack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/redfish"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, c Config) *Rack {
	t.Helper()
	c.Dir, c.Listen = t.TempDir(), "lo:0"
	if c.Clock == nil {
		c.Clock = clock.NewVirtual(origin)
	}
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // an error is expected where a test breaks the rack
	return l
}

// serve serves a rack until the test ends or stop is called. The channel gets the
// result of Serve.
func serve(t *testing.T, l *Rack) (stop func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { done <- l.Serve(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop, done
}

// A schedule returns every host in the order of the deadlines, however they were
// moved, and its timer is set to the first.
func TestScheduleReturnsHostsByDeadline(t *testing.T) {
	const n, seed = 300, 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := clock.NewVirtual(origin)
	s := &schedule{now: c.Now, after: c.AfterFunc}
	hosts := make([]*Host, n)
	want := map[int]time.Time{}
	for i := range hosts {
		hosts[i] = &Host{index: i}
		hosts[i].machineDue = deadline{host: hosts[i], pos: -1}
	}
	s.start(func() {})
	defer s.stop()
	for range 5000 {
		i := rnd.IntN(n)
		at := origin.Add(time.Duration(1+rnd.IntN(50)) * time.Second)
		ok := rnd.IntN(3) > 0
		s.set(&hosts[i].machineDue, at, ok)
		if want[i] = at; !ok {
			delete(want, i)
		}
		first := time.Time{}
		for _, at := range want {
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
		if got, some := c.Next(); some != (len(want) > 0) || !got.Equal(first) {
			t.Fatalf("seed %d: the timer is at %v, %v, want %v", seed, got, some, first)
		}
	}
	for now := origin; now.Before(origin.Add(time.Minute)); now = now.Add(time.Second) {
		var got, due []int
		for _, h := range s.due(now) {
			got = append(got, h.index)
		}
		for i, at := range want {
			if !at.After(now) {
				due = append(due, i)
				delete(want, i)
			}
		}
		slices.Sort(due) // those of one second
		if d := cmp.Diff(due, got); d != "" {
			t.Fatalf("seed %d: due(%v) (-want +got):\n%s", seed, now, d)
		}
	}
	if at, ok := c.Next(); ok {
		t.Errorf("an empty schedule has its timer at %v", at)
	}
}

func TestEventDeliveryIsInOrderPerHost(t *testing.T) {
	c := clock.NewVirtual(origin)
	slow, fast := &Host{index: 0}, &Host{index: 1}
	release, delivered := make(chan struct{}), make(chan string, 100)
	d := &eventDelivery{clock: c, queues: map[*Host][]machine.Event{}, handle: func(h *Host, ev machine.Event) {
		if h == slow {
			<-release
		}
		delivered <- fmt.Sprint(h.index, ev.Time().Unix())
	}}
	at := func(n int64) machine.Event { return machine.SystemStopped{At: time.Unix(n, 0)} }
	d.push(slow, []machine.Event{at(1)})
	d.push(fast, []machine.Event{at(1)})
	if len(delivered) != 0 {
		t.Error("events were delivered before the start")
	}
	d.start()
	d.push(slow, []machine.Event{at(2), at(3)})
	d.push(fast, []machine.Event{at(2)})
	d.push(fast, nil)
	for _, want := range []string{"1 1", "1 2"} {
		if got := <-delivered; got != want {
			t.Errorf("delivered %q, want %q: one host must not wait for the other", got, want)
		}
	}
	close(release)
	for _, want := range []string{"0 1", "0 2", "0 3"} {
		if got := <-delivered; got != want {
			t.Errorf("delivered %q, want %q", got, want)
		}
	}
	if err := c.Settle(t.Context()); err != nil { // all delivered: nothing in flight
		t.Fatal(err)
	}
	d.stop()
	d.push(fast, []machine.Event{at(9)})
	if len(delivered) != 0 {
		t.Error("events were delivered after the stop")
	}
}

// A host whose events nobody takes refuses further commands; the queue stays
// bounded.
func TestApplyIsBusyWhenEventsWait(t *testing.T) {
	l := open(t, Config{Events: func(*Host, machine.Event) {}}) // not served: events are not delivered
	h := l.hosts[0]
	for i := range 10 * maxUndelivered {
		kind := []string{"On", "ForceOff"}[i%2]
		err := h.Power(t.Context(), kind)
		if errors.Is(err, redfish.ErrBusy) {
			if n := len(l.delivery.queues[h]); n > 2*maxUndelivered {
				t.Errorf("%d events wait, want about %d", n, maxUndelivered)
			}
			return
		}
		if err != nil && !errors.Is(err, machine.ErrPower) {
			t.Fatal(err)
		}
		l.clock.Advance(time.Minute)
	}
	t.Error("the host never refuses a command")
}

// A step that cannot be stored changes nothing.
func TestFailedSaveRollsTheStepBack(t *testing.T) {
	l := open(t, Config{})
	stop, ended := serve(t, l)
	defer stop()
	h := l.hosts[0]
	if err := h.Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	view, bmcView := h.Machine(), h.BMC()
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Power(t.Context(), "ForceOff"); err == nil || !strings.HasPrefix(err.Error(), "node-0: ") {
		t.Errorf("Power() = %v, want the store's error", err)
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: "Cd", Image: "http://127.0.0.1/a.iso"}); err == nil || errors.Is(err, bmc.ErrMedia) {
		t.Errorf("InsertMedia = %v, want the store's error", err)
	}
	if d := cmp.Diff(view, h.Machine()); d != "" {
		t.Errorf("machine (-before +after):\n%s", d)
	}
	if d := cmp.Diff(bmcView, h.BMC()); d != "" {
		t.Errorf("BMC (-before +after):\n%s", d)
	}
	if at, ok := h.machine.Deadline(); !ok || !at.Equal(origin.Add(2*time.Second)) {
		t.Errorf("Deadline() = %v, %v, want that of the power on", at, ok)
	}
	// A deadline has no caller that could get the error: the rack ends.
	l.clock.Advance(2 * time.Second)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "node-0") {
		t.Errorf("Serve() = %v, want the store's error", err)
	}
}

func TestServeEndsWhenAListenerFails(t *testing.T) {
	l := open(t, Config{})
	if err := l.listeners[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Serve(t.Context()); err == nil || strings.HasPrefix(err.Error(), "rack: ") {
		t.Errorf("Serve() = %v, want the listener's error", err)
	}
}

// The lab's time is saved even when nothing happens to its hosts.
func TestTimeIsSavedWhileIdle(t *testing.T) {
	l := open(t, Config{})
	stop, _ := serve(t, l)
	if err := l.clock.Settle(t.Context()); err != nil { // Serve runs
		t.Fatal(err)
	}
	for !l.store.Last().After(origin) { // the ticker fires at some time after Advance
		l.clock.Advance(saveInterval)
	}
	stop()
}

// Searches find a BMC while its SSDP is on, and not otherwise.
func TestSSDPOffHidesABMC(t *testing.T) {
	r := rackfile.Default(2)
	l := open(t, Config{Rack: &r})
	defer l.Close()
	h := l.hosts[1]
	for _, on := range []bool{true, false} {
		n := h.BMC().Network()
		n.SSDP.On = on
		if _, err := h.ApplyBMC(t.Context(), bmc.SetNetwork{Network: n}); err != nil {
			t.Fatal(err)
		}
		var found []string
		for s := range l.discoverableServices(netip.Addr{}) {
			found = append(found, s.UUID)
		}
		if got := slices.Contains(found, h.Machine().Identity.BMCUUID()); got != on || len(found) > 1 {
			t.Errorf("with SSDP on = %v the searches find %v", on, found)
		}
	}
}

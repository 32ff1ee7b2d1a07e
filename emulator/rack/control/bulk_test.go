package control_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// serveControl serves the control API of a rack with some hosts.
func serveControl(t testing.TB, count int) (*racktest.Rack, *control.Client) {
	t.Helper()
	l := racktest.Start(t, rack.Config{Rack: new(rackfile.Default(count))})
	s, err := control.New(control.Config{Rack: l.Rack})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); serving.Wait() })
	return l, control.NewClient(l.Dir())
}

// One request resets many hosts. Each has a line: its new state, or why it was not reset.
func TestPowerAllReportsEachHost(t *testing.T) {
	_, c := serveControl(t, 40)
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	got, want := map[string]string{}, map[string]string{"node-99": "there is no host node-99"}
	for _, n := range names {
		want[n] = "PoweringOn"
	}
	note := func(p control.Powered) {
		if _, twice := got[p.Name]; twice {
			t.Errorf("%s is there twice", p.Name)
		}
		if got[p.Name] = p.Error; p.Host != nil {
			got[p.Name] = p.Host.Power
		}
	}
	if err := c.PowerAll(t.Context(), append(names, "node-99"), "On", note); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PowerAll(On) (-want +got):\n%s", diff)
	}
	clear(got)
	if err := c.PowerAll(t.Context(), names[:1], "Onn", note); err != nil || got["node-0"] == "" || got["node-0"] == "PoweringOn" {
		t.Errorf("PowerAll(Onn) = %v, %q, want the host's error", err, got)
	}
	if err := c.PowerAll(t.Context(), nil, "On", note); err != nil {
		t.Errorf("PowerAll() of no hosts = %v", err)
	}
}

// BenchmarkPower measures how long `labctl host power` takes for all hosts: one request
// for all, one for each, and the floor: the same resets of the same servers as a machine
// model alone, without a rack that stores, publishes and schedules what follows. of-floor is
// the time of a host in proportion to the floor's; floor and requests take turns.
func BenchmarkPower(b *testing.B) {
	for _, way := range []struct {
		name  string
		hosts int
		reset func(context.Context, *control.Client, []string) error
	}{
		{"all", 1000, powerAll},
		{"each", 1000, powerEach},
		{"all", 10_000, powerAll},
	} {
		b.Run(fmt.Sprintf("%s/%d", way.name, way.hosts), func(b *testing.B) {
			l, c := serveControl(b, way.hosts)
			var names []string
			for _, h := range l.Hosts() {
				names = append(names, h.Name())
			}
			var took, floor time.Duration
			for b.Loop() {
				b.StopTimer()
				floor += resetMachines(b, l)
				b.StartTimer()
				began := clock.Wall()
				if err := way.reset(b.Context(), c, names); err != nil {
					b.Fatal(err)
				}
				took += clock.Wall().Sub(began)
				b.StopTimer()
				for _, h := range l.Hosts() {
					if err := h.Power(b.Context(), "ForceOff"); err != nil {
						b.Fatal(err)
					}
				}
				l.Advance(time.Minute)
				b.StartTimer()
			}
			each := float64(b.N * way.hosts)
			b.ReportMetric(float64(took.Nanoseconds())/each, "ns/host")
			b.ReportMetric(float64(floor.Nanoseconds())/each, "floor-ns/host")
			b.ReportMetric(float64(took)/float64(floor), "of-floor")
		})
	}
}

// powerAll resets all hosts in one request.
func powerAll(ctx context.Context, c *control.Client, names []string) error {
	var refused error
	err := c.PowerAll(ctx, names, "ForceOn", func(p control.Powered) {
		if p.Error != "" {
			refused = errors.New(p.Error)
		}
	})
	return errors.Join(err, refused)
}

// powerEach resets each host in a request of its own.
func powerEach(ctx context.Context, c *control.Client, names []string) error {
	for _, name := range names {
		if _, err := c.Power(ctx, name, "ForceOn"); err != nil {
			return err
		}
	}
	return nil
}

// resetMachines resets a new machine like that of each host, on as many processors as a
// request for all has, and returns how long that took.
func resetMachines(b *testing.B, l *racktest.Rack) time.Duration {
	var all []*machine.Machine
	for _, h := range l.Hosts() {
		v := h.Machine()
		m, err := machine.New(v.Profile, *v.Identity, nil)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, m)
	}
	now := l.Clock().Now()
	workers := runtime.GOMAXPROCS(0)
	began := clock.Wall()
	var done sync.WaitGroup
	for i := range workers {
		done.Go(func() {
			for k := i; k < len(all); k += workers {
				if _, err := all[k].Apply(now, machine.Reset{Kind: machine.ForceOn}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
	return clock.Wall().Sub(began)
}

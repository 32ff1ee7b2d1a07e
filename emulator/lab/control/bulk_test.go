package control_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
)

// serveControl serves the control API of a lab with some hosts.
func serveControl(t testing.TB, count int) (*labtest.Lab, *control.Client) {
	t.Helper()
	l := labtest.Start(t, lab.Config{Rack: new(rack.Default(count))})
	s, err := control.New(control.Config{Lab: l.Lab})
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

// BenchmarkPowerAll compares one request for all of 1,000 hosts with a request for each.
func BenchmarkPowerAll(b *testing.B) {
	l, c := serveControl(b, 1000)
	hosts, err := c.Hosts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	for _, way := range []struct {
		name  string
		reset func(kind string) error
	}{
		{"one request", func(kind string) error {
			var refused error
			err := c.PowerAll(b.Context(), names, kind, func(p control.Powered) {
				if p.Error != "" {
					refused = errors.New(p.Error)
				}
			})
			return errors.Join(err, refused)
		}},
		{"a request for each", func(kind string) error {
			for _, name := range names {
				if _, err := c.Power(b.Context(), name, kind); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				if err := way.reset("ForceOn"); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				for _, h := range l.Hosts() {
					if err := h.Power(b.Context(), "ForceOff"); err != nil {
						b.Fatal(err)
					}
				}
				l.Advance(time.Minute)
				b.StartTimer()
			}
		})
	}
}

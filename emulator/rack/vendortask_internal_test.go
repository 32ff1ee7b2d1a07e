package rack

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A task of a vendor's own action takes lab time, with a standing and a jumping
// clock, can be cancelled, and has failed when the rack ends meanwhile.
func TestVendorTaskTakesLabTime(t *testing.T) {
	oem := dialect.OEM{Actions: []dialect.Action{{
		ResourceURI: "/redfish/v1/Systems/{system}", Name: "AcmeSystem.Later",
		Effects: []dialect.Effect{{Task: "later", TaskDuration: time.Hour, Requests: []dialect.StandardRequest{
			{Method: "PATCH", URI: "/redfish/v1/Systems/{system}", Body: map[string]any{"AssetTag": "late"}}}}},
	}}}
	begin := func(t *testing.T, l *Rack) *Host {
		t.Helper()
		h := l.hosts[0]
		record := *h.Dialect()
		record.OEM = oem
		if err := record.Validate(); err != nil {
			t.Fatal(err)
		}
		h.record.Store(&record)
		ctx := context.WithValue(redfish.ActAs(t.Context(), "1"), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(h.Address()))
		r := httptest.NewRequestWithContext(ctx, "POST", "https://bmc.test/redfish/v1/Systems/1/Actions/Oem/AcmeSystem.Later", nil)
		w := httptest.NewRecorder()
		l.service.ServeHTTP(w, r)
		if w.Code != http.StatusAccepted {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return h
	}
	is := func(t *testing.T, h *Host, state bmc.TaskState, tag string) {
		t.Helper()
		if j := h.BMC().Tasks.All()[0]; j.State != state || h.Machine().Asset.Tag != tag {
			t.Errorf("job %+v, tag %q, want %s and %q", j, h.Machine().Asset.Tag, state, tag)
		}
	}
	t.Run("a clock that stands", func(t *testing.T) {
		l := open(t, Config{})
		serve(t, l)
		h := begin(t, l)
		if err := l.clock.Walk(t.Context(), 59*time.Minute); err != nil {
			t.Fatal(err)
		}
		is(t, h, bmc.TaskRunning, "")
		if err := l.clock.Walk(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		is(t, h, bmc.TaskCompleted, "late")
	})
	t.Run("a clock that jumps", func(t *testing.T) {
		l := open(t, Config{Clock: clock.NewJumping(origin)})
		serve(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(30*time.Second))
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = l.clock.Run(ctx) })
		h := begin(t, l)
		for h.BMC().Tasks.All()[0].State == bmc.TaskRunning && ctx.Err() == nil {
			if err := l.clock.Sleep(ctx, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		is(t, h, bmc.TaskCompleted, "late")
	})
	t.Run("it is called off", func(t *testing.T) {
		l := open(t, Config{})
		serve(t, l)
		h := begin(t, l)
		if err := h.Cancel(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if err := l.clock.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.clock.Walk(t.Context(), 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		is(t, h, bmc.TaskCancelled, "")
	})
	t.Run("the rack ends", func(t *testing.T) {
		l := open(t, Config{})
		stop, _ := serve(t, l)
		begin(t, l)
		stop()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, err := Open(t.Context(), Config{Dir: l.dir, Clock: clock.NewVirtual(l.clock.Now()), Listen: "lo:0"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, _, err := l.hosts[0].resume(); err != nil {
			t.Fatal(err)
		}
		is(t, l.hosts[0], bmc.TaskException, "")
	})
}

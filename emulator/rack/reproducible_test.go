package rack_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// act lets clients of several hosts send requests at the same time, with random
// faults, and returns the journal.
func act(t *testing.T, seed uint64) string {
	t.Helper()
	const n = 6
	var d diary
	r := rackfile.Default(n)
	r.Seed = seed
	r.Timings.POST, r.Timings.OSBoot = &fault.Duration{Duration: 5 * time.Second}, &fault.Duration{Duration: 2 * time.Second}
	r.Faults = []fault.Rule{
		{BMC: "node-[0-3]", Method: fault.Methods{"GET"}, Status: 503, Probability: 0.4, RetryAfter: fault.Duration{Duration: time.Second}},
		{Path: "/redfish/v1/Systems/**", Latency: "p50=2s,p99=20s", Probability: 0.5},
		{BMC: "node-5", Offline: true, From: fault.Duration{Duration: 30 * time.Second}, Until: fault.Duration{Duration: 80 * time.Second}},
		{BMC: "node-4", Drop: fault.MidBody, Probability: 0.5},
		{Limit: "20/m"},
	}
	l := racktest.Start(t, rack.Config{Rack: &r, Events: d.event})
	say := func(h *rack.Host, method, path, body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		user, password := l.Credentials(h)
		req.SetBasicAuth(user, password)
		if path == "/redfish/v1/SessionService/Sessions" {
			req.Body = http.NoBody
			req, _ = http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(fmt.Sprintf(`{"UserName":%q,"Password":%q}`, user, password)))
		}
		req.Header.Set("Content-Type", "application/json")
		// The system resource shows the port of its console, which has a random
		// value: the size of compressed bodies would differ.
		req.Header.Set("Accept-Encoding", "identity")
		if resp, err := l.Client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // else the number of sent bytes would be random; it may be cut
			resp.Body.Close()
		}
	}
	for step := range 12 {
		reset := `{"ResetType":"On"}`
		if step >= 4 { // by then every machine was powered on
			reset = `{"ResetType":"PowerCycle"}`
		}
		var active atomic.Int64
		for i, h := range l.Hosts() {
			active.Add(1)
			go func() {
				defer active.Add(-1)
				switch (step + i) % 4 {
				case 0:
					say(h, "POST", systemPath+"/Actions/ComputerSystem.Reset", reset)
				case 1:
					say(h, "GET", "/redfish/v1/Managers/1", "")
					say(h, "GET", systemPath, "")
				case 2:
					say(h, "POST", "/redfish/v1/SessionService/Sessions", "")
				case 3:
					say(h, "PATCH", systemPath, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`)
				}
			}()
		}
		// Time advances when all clients that have not finished wait for it.
		for active.Load() > 0 {
			if n := int64(l.Waiting()); n > 0 && n == active.Load() {
				at, _ := l.Clock().Next()
				l.Advance(at.Sub(l.Clock().Now()))
			}
			runtime.Gosched()
		}
		l.Advance(17 * time.Second)
	}
	entries, _, err := l.Journal().Select(journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := journal.Lines(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Accounts {
		if a.Password != "" && strings.Contains(string(lines), a.Password) {
			t.Error("the journal has a password")
		}
	}
	return string(lines)
}

// The same seed and the same commands give the same journal, byte for byte.
func TestSameSeedAndCommandsGiveTheSameRack(t *testing.T) {
	one, again := act(t, 7), act(t, 7)
	if d := cmp.Diff(one, again); d != "" {
		t.Errorf("journals (-first +second):\n%s", d)
	}
	if other := act(t, 8); other == one {
		t.Error("another seed gives the same journal")
	}
	for _, want := range []string{`"status":503`, `"what":"bmc.offline"`, `"what":"os.started"`, `"what":"session.opened"`} {
		if !strings.Contains(one, want) {
			t.Errorf("the journal has no %s:\n%s", want, one)
		}
	}
}

package emulator_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator"
	"github.com/metalab-dev/metalab/emulator/machine"
)

func root(t *testing.T, l *emulator.Lab, h *emulator.Host) int {
	t.Helper()
	resp, err := l.Client.Get(h.Endpoint + "/redfish/v1/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestStartServesTheRack(t *testing.T) {
	l := emulator.Start(t, emulator.Rack{Hosts: 3, Profile: "generic", Seed: 9})
	if len(l.Hosts()) != 3 || !l.Now().Equal(emulator.Origin) {
		t.Fatalf("%d hosts at %v", len(l.Hosts()), l.Now())
	}
	seen := map[string]bool{}
	for i, h := range l.Hosts() {
		if h != l.Host(i) || h != l.Named(h.Name) || h.Username == "" || h.Password == "" || seen[h.Endpoint] {
			t.Errorf("host %d: %+v", i, h)
		}
		seen[h.Endpoint] = true
		if got := root(t, l, h); got != http.StatusOK {
			t.Errorf("%s answers %d", h.Name, got)
		}
	}
	if l.Named("nobody") != nil {
		t.Error("Named returns a host for nobody")
	}
	if _, err := os.Stat(l.CAFile()); err != nil {
		t.Error(err)
	}
	h := l.Host(1)
	if err := h.Power("On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(10 * time.Minute)
	if h.PowerState() != "On" || h.Running() != "disk" || l.Host(0).PowerState() != "Off" || h.Lab().Name() != h.Name {
		t.Errorf("%s: %s, %q", h.Name, h.PowerState(), h.Running())
	}
	if err := h.Power("On"); err == nil {
		t.Error("a second Power On is no error")
	}
}

func TestOpenRefusesWrongRacks(t *testing.T) {
	for want, r := range map[string]emulator.Rack{
		"Rack.Hosts: -1":                    {Hosts: -1},
		"toaster: there is no such profile": {Profile: "toaster"},
		"Rack.Definition:1: host: there is": {Definition: "host: 1"},
		"set hosts, profile and seed in it": {Definition: "kind: Lab\nhosts: [{}]", Seed: 1},
		"Rack.Definition:2: hosts[0].profile: generik: there is no such profile": {Definition: "kind: Lab\nhosts: [{profile: generik}]"},
		"Did you mean generic?": {Definition: "kind: Lab\nhosts: [{profile: generik}]"},
		"Rack.Definition:2: hosts[0].quirks[0]: power-settle-408: there is no such quirk": {Definition: "kind: Lab\nhosts: [{quirks: [power-settle-408]}]"},
		"Rack.Definition:3: faults[0]: does":                                              {Definition: "kind: Lab\nhosts: [{}]\nfaults: [{}]"},
	} {
		if l, err := emulator.Open(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v) = %v, %v, want %q", r, l, err, want)
		}
	}
	l := emulator.Start(t, emulator.Rack{})
	for name, do := range map[string]func(){
		"fault": func() { l.Fail(emulator.Fault{Status: 1}) }, "query": func() { l.Journal(emulator.Query{Host: "["}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an invalid %s does not panic", name)
				}
			}()
			do()
		}()
	}
}

func TestDirKeepsTheRack(t *testing.T) {
	r := emulator.Rack{Dir: t.TempDir(), Definition: "kind: Lab\nseed: 3\nracks: [{name: r1, hosts: [{}]}]"}
	l := emulator.Start(t, r)
	password := l.Host(0).Password
	if err := l.Host(0).Power("On"); err != nil {
		t.Fatal(err)
	}
	l.Advance(time.Hour)
	now := l.Now()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = emulator.Start(t, r)
	if h := l.Host(0); h.Name != "r1-node-0" || h.PowerState() != "On" || h.Password != password || l.Now().Before(now) {
		t.Errorf("after a restart: %+v, %s, %v", h, h.PowerState(), l.Now())
	}
}

func TestBootDecidesWhatBoots(t *testing.T) {
	asked := make(chan emulator.Source, 10)
	l := emulator.Start(t, emulator.Rack{FastForward: true, Boot: func(h *emulator.Host, s emulator.Source) string {
		asked <- s
		if s.Kind == machine.Pxe {
			return "ramdisk"
		}
		return ""
	}})
	if err := l.Host(0).Power("On"); err != nil {
		t.Fatal(err)
	}
	for s := range asked {
		if s.Kind == machine.Pxe {
			break
		}
	}
	for l.Host(0).Running() == "" { // time jumps
		l.Advance(time.Second)
	}
	if got := l.Host(0).Running(); got != "ramdisk" {
		t.Errorf("Running() = %q", got)
	}
}

func TestLatencyPassesWithAdvance(t *testing.T) {
	l := emulator.Start(t, emulator.Rack{})
	remove := l.Fail(emulator.Fault{Latency: "30s"})
	done := make(chan int)
	go func() { done <- root(t, l, l.Host(0)) }()
	for l.Waiting() == 0 {
		select {
		case <-done:
			t.Fatal("the response came at once")
		default:
		}
	}
	l.Advance(30 * time.Second)
	if got := <-done; got != http.StatusOK {
		t.Errorf("status = %d", got)
	}
	remove()
	remove() // a second call does nothing
	if r := l.Requests(emulator.Query{}); len(r) != 1 || r[0].Took.Duration != 30*time.Second || len(l.Faults()) != 0 {
		t.Errorf("requests: %+v", r)
	}
}

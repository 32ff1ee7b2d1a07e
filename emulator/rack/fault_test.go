package rack_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// fail adds a fault until the returned function is called.
func fail(t *testing.T, l *racktest.Rack, r fault.Rule) (remove func()) {
	t.Helper()
	r, err := l.AddFault(r)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := l.RemoveFault(r.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// status returns the status of a GET of the system; 0 when there is no response.
func status(t *testing.T, l *racktest.Rack, h *rack.Host) int {
	t.Helper()
	code, err := try(t, l, h)
	if err != nil {
		return 0
	}
	return code
}

func try(t *testing.T, l *racktest.Rack, h *rack.Host) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", h.URL()+systemPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(l.Credentials(h))
	resp, err := l.Client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// whats returns the kinds of all journal entries of a host but requests.
func whats(t *testing.T, l *racktest.Rack, host string) (out []string) {
	t.Helper()
	all, _, err := l.Journal().Select(journal.Query{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Kind != journal.Request {
			out = append(out, strings.Join(append([]string{e.What}, e.Faults...), " "))
		}
	}
	return out
}

func TestFaultAppliesUntilRemoved(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(2)})
	a, b := l.Hosts()[0], l.Hosts()[1]
	remove := fail(t, l, fault.Rule{BMC: "node-0", Path: "/redfish/v1/Systems/**", Status: 503, Count: 2})
	for i, want := range []int{503, 503, 200} {
		if got := status(t, l, a); got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
		if got := status(t, l, b); got != 200 {
			t.Errorf("request %d to the other: %d, want 200", i, got)
		}
	}
	if got := l.Faults(); len(got) != 1 || got[0].Hits != 2 {
		t.Errorf("Faults() = %+v, want one with 2 hits", got)
	}
	remove()
	if _, err := l.AddFault(fault.Rule{Status: 1}); err == nil {
		t.Error("AddFault() of a wrong rule = nil")
	}
	if err := l.RemoveFault("fault-1"); !errors.Is(err, fault.ErrUnknown) {
		t.Errorf("RemoveFault() again = %v, want %v", err, fault.ErrUnknown)
	}
	if got := l.Faults(); len(got) != 0 {
		t.Errorf("Faults() = %+v, want none", got)
	}
	all, _, err := l.Journal().Select(journal.Query{Status: "503"})
	if err != nil || len(all) != 2 || all[0].Host != "node-0" || all[0].Faults[0] != "fault-1" || all[0].Path != systemPath {
		t.Errorf("journal: %+v, %v; want two requests that fault-1 hit", all, err)
	}
	if d := cmp.Diff([]string{"fault.added fault-1", "fault.removed fault-1"}, whats(t, l, "")); d != "" {
		t.Errorf("journal (-want +got):\n%s", d)
	}
}

func TestOfflineResetsConnectionsForItsTime(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(2)})
	h := l.First()
	if got := status(t, l, h); got != 200 {
		t.Fatalf("before: %d", got)
	}
	raw := dial(t, l, h)
	fail(t, l, fault.Rule{BMC: "node-0", Offline: true, From: fault.Duration{Duration: time.Minute}, Until: fault.Duration{Duration: 3 * time.Minute}})
	if got := status(t, l, h); got != 200 || h.Offline() {
		t.Errorf("before its time: %d, offline %v", got, h.Offline())
	}
	l.Advance(time.Minute)
	if _, err := raw.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("a connection from before: %v, want a reset", err)
	}
	if _, err := try(t, l, h); err == nil || !strings.Contains(err.Error(), "reset by peer") || !h.Offline() {
		t.Errorf("while it is offline: %v, want a reset", err)
	}
	if got := status(t, l, l.Hosts()[1]); got != 200 {
		t.Errorf("the other: %d", got)
	}
	l.Advance(2 * time.Minute)
	if got := status(t, l, h); got != 200 || h.Offline() {
		t.Errorf("after: %d, offline %v", got, h.Offline())
	}
	if d := cmp.Diff([]string{"bmc.offline", "bmc.online"}, whats(t, l, "node-0")); d != "" {
		t.Errorf("journal (-want +got):\n%s", d)
	}
}

func dial(t *testing.T, l *racktest.Rack, h *rack.Host) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", h.Address().String(), &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConnectionAndTLSFaults(t *testing.T) {
	tests := []struct {
		rule fault.Rule
		want string
		what string
	}{
		{fault.Rule{Drop: fault.BeforeTLS}, "reset by peer", "connection.reset"},
		{fault.Rule{TLS: fault.Refused}, "handshake failure", "tls.refused"},
		{fault.Rule{TLS: fault.Expired}, "certificate has expired or is not yet valid", "tls.expired"},
		{fault.Rule{TLS: fault.WrongName}, "certificate is valid for 192.0.2.1, not 127.64.0.1", "tls.wrong-name"},
		{fault.Rule{TLS: fault.SelfSigned}, "certificate signed by unknown authority", "tls.self-signed"},
	}
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	connect := func() error {
		c, err := tls.Dial("tcp", h.Address().String(), &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12})
		if err == nil {
			c.Close()
		}
		return err
	}
	for _, tt := range tests {
		tt.rule.Count = 1
		remove := fail(t, l, tt.rule)
		if err := connect(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.what, err, tt.want)
		}
		if err := connect(); err != nil {
			t.Errorf("%s: the second connection: %v", tt.what, err)
		}
		remove()
		if got := whats(t, l, "node-0"); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], tt.what+" fault-") {
			t.Errorf("%s: journal: %q", tt.what, got)
		}
	}
}

func TestUnansweredConnectionStaysOpen(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	fail(t, l, fault.Rule{Drop: fault.Unanswered})
	c, err := net.Dial("tcp", h.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := tls.Client(deadline(t, c), &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12, ServerName: "127.64.0.1"}).Handshake(); !errors.Is(err, errPatience) {
		t.Errorf("Handshake() = %v, want no answer", err)
	}
	l.Stop()
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("when the rack ends: %v, want a reset", err)
	}
}

var errPatience = errors.New("no answer")

// impatient stops reading a connection when it has been silent for a while.
type impatient struct{ net.Conn }

func (c impatient) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(clock.Wall().Add(50 * time.Millisecond))
	n, err := c.Conn.Read(b)
	if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
		err = errPatience
	}
	_ = c.SetReadDeadline(time.Time{})
	return n, err
}

func deadline(t *testing.T, c net.Conn) net.Conn { t.Helper(); return impatient{c} }

func TestStaleFaultShowsPreviousState(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	powerState := func() string {
		_, got := call(t, l, h, "GET", systemPath, "")
		return fmt.Sprint(got["PowerState"])
	}
	remove := fail(t, l, fault.Rule{Stale: true})
	if got := powerState(); got != "Off" {
		t.Errorf("with nothing changed: %s", got)
	}
	power(t, h, machine.ResetOn)
	if got := powerState(); got != "Off" {
		t.Errorf("after a reset: %s, want what was before: Off", got)
	}
	l.Advance(5 * time.Second)
	if got := powerState(); got != "PoweringOn" {
		t.Errorf("after power came: %s, want what was before: PoweringOn", got)
	}
	target := func(got map[string]any) any { return got["Boot"].(map[string]any)["BootSourceOverrideTarget"] }
	if code, _ := call(t, l, h, "PATCH", systemPath, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`); code != 200 {
		t.Errorf("a write: %d", code)
	}
	if _, got := call(t, l, h, "GET", systemPath, ""); target(got) == "Cd" || got["PowerState"] != "On" {
		t.Errorf("after a write: %v %v, want what was before", target(got), got["PowerState"])
	}
	remove()
	if _, got := call(t, l, h, "GET", systemPath, ""); target(got) != "Cd" {
		t.Errorf("after all: %v", target(got))
	}
}

func TestStuckTaskEndsWhenItsFaultIsRemoved(t *testing.T) {
	c := rack.Config{Dir: t.TempDir()}
	l := racktest.Start(t, c)
	state := func() string {
		jobs := l.First().BMC().Tasks.All()
		return string(jobs[len(jobs)-1].State)
	}
	begin := func(target string) {
		t.Helper()
		h := l.First()
		evs, err := h.ApplyBMC(t.Context(), bmc.OpenTask{Name: "a", Request: bmc.Request{Method: "POST", Target: target}})
		if err != nil {
			t.Fatal(err)
		}
		id := evs[0].(bmc.TaskOpened).Task.ID
		if _, err := h.ApplyBMC(t.Context(), bmc.CloseTask{ID: id, Fault: "worn out"}); err != nil {
			t.Fatal(err)
		}
	}
	fail(t, l, fault.Rule{ID: "stick", Stuck: true, Path: "/redfish/v1/UpdateService/"})
	begin("/redfish/v1/Systems/1")
	if got := state(); got != "Exception" {
		t.Errorf("another task: %s", got)
	}
	begin("/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate")
	if got := state(); got != "New" {
		t.Errorf("the task: %s, want it stuck", got)
	}
	l.Stop()
	l = racktest.Start(t, c)
	if got := state(); got != "New" {
		t.Errorf("after a restart: %s, want it stuck", got)
	}
	if err := l.RemoveFault("stick"); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "Exception" {
		t.Errorf("without the fault: %s", got)
	}
}

// A delay takes lab time, and the clock can advance meanwhile.
func TestLatencyTakesLabTime(t *testing.T) {
	l := racktest.Start(t, rack.Config{Clock: clock.NewJumping(racktest.Origin)})
	h := l.First()
	fail(t, l, fault.Rule{Latency: "10m"})
	before := l.Clock().Now()
	if got := status(t, l, h); got != 200 {
		t.Errorf("status = %d", got)
	}
	if took := l.Clock().Since(before); took < 10*time.Minute {
		t.Errorf("it took %v of the lab's time", took)
	}
	all, _, _ := l.Journal().Select(journal.Query{Kind: journal.Request})
	if len(all) != 1 || all[0].Took.Duration < 10*time.Minute || all[0].User != "admin" || all[0].Status != 200 || all[0].Out == 0 {
		t.Errorf("journal: %+v", all)
	}
}

// A client that waits for a delayed response does not delay the end of the rack.
func TestRackStopsWhileResponsesAreDelayed(t *testing.T) {
	l := racktest.Start(t, rack.Config{Rack: hosts(2)})
	fail(t, l, fault.Rule{BMC: "node-0", Latency: "1h"})
	fail(t, l, fault.Rule{BMC: "node-1", Drop: fault.Hang})
	done := make(chan error, 2)
	for _, h := range l.Hosts() {
		go func() {
			_, err := try(t, l, h)
			done <- err
		}()
	}
	for l.Faults()[0].Hits+l.Faults()[1].Hits < 2 {
		l.Settle()
	}
	began := clock.Wall()
	l.Stop()
	if took := clock.Wall().Sub(began); took > 2*time.Second {
		t.Errorf("the rack took %v to end", took)
	}
	for range 2 {
		if err := <-done; err == nil {
			t.Error("an answer came")
		}
	}
}

func TestFaultsSurviveARestart(t *testing.T) {
	r := rackfile.Default(1)
	r.Faults = []fault.Rule{{Status: 503, Count: 3}, {ID: "named", Method: fault.Methods{"PUT"}, Status: 500}}
	c := rack.Config{Dir: t.TempDir(), Rack: &r}
	l := racktest.Start(t, c)
	for range 2 {
		if got := status(t, l, l.First()); got != 503 {
			t.Errorf("status = %d", got)
		}
	}
	fail(t, l, fault.Rule{ID: "mine", Method: fault.Methods{"PATCH"}, Stale: true})
	l.Stop()

	ids := func(l *racktest.Rack) (out []string) {
		for _, f := range l.Faults() {
			out = append(out, f.ID)
		}
		return out
	}
	c.Rack = nil
	l = racktest.Start(t, c)
	if d := cmp.Diff([]string{"fault-1", "named", "mine"}, ids(l)); d != "" {
		t.Errorf("after a restart (-want +got):\n%s", d)
	}
	for i, want := range []int{503, 200} {
		if got := status(t, l, l.First()); got != want {
			t.Errorf("request %d: %d, want %d", i+3, got, want)
		}
	}
	l.Stop()
	c.Rack = &r
	l = racktest.Start(t, c)
	if d := cmp.Diff([]string{"fault-1", "named", "mine"}, ids(l)); d != "" {
		t.Errorf("with the same definition (-want +got):\n%s", d)
	}
	l.Stop()
	r.Faults = []fault.Rule{{ID: "other", Status: 500}}
	l = racktest.Start(t, c)
	if d := cmp.Diff([]string{"mine", "other"}, ids(l)); d != "" {
		t.Errorf("with another definition (-want +got):\n%s", d)
	}
}

package rack_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

const (
	managerPath = "/redfish/v1/Managers/1"
	resetBMC    = managerPath + "/Actions/Manager.Reset"
)

// attempt sends a request and returns the response, or why there is none.
func attempt(t *testing.T, l *racktest.Rack, h *rack.Host, method, path, body string) (resp *http.Response, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(l.Credentials(h))
	req.Header.Set("Content-Type", "application/json")
	resp, err = l.Client.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body) // the body may be cut
		resp.Body.Close()
	}
	return resp, err
}

// A BMC that is reset is off the network, then starting, then as before, and its
// machine keeps running. Clients see that also across a restart of the rack.
func TestResetBMCDisconnectsAndComesBack(t *testing.T) {
	dir := t.TempDir()
	var d diary
	start := func() (*racktest.Rack, *rack.Host, *rack.Host) {
		l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(2), Events: d.event})
		return l, l.Hosts()[0], l.Hosts()[1]
	}
	l, h, other := start()
	power(t, h, machine.ResetOn)
	l.Advance(5 * time.Minute)
	running := h.Machine().OS
	if running == nil {
		t.Fatal("the machine does not run")
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.OpenSession{Account: bmc.Account{ID: "1"}, Token: "token"}); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, reach rack.Reach, status int, cut bool) {
		t.Helper()
		resp, err := attempt(t, l, h, "GET", managerPath, "")
		switch {
		case cut && (err == nil || !strings.Contains(err.Error(), "reset by peer")):
			t.Errorf("%s: %v, %v, want a reset", when, resp, err)
		case !cut && (err != nil || resp.StatusCode != status):
			t.Errorf("%s: %v, %v, want %d", when, resp, err, status)
		case status == 503 && resp.Header.Get("Retry-After") == "":
			t.Errorf("%s: 503 without Retry-After", when)
		}
		if got := h.Reach(); got != reach {
			t.Errorf("%s: the BMC is %s, want %s", when, got, reach)
		}
		if resp, err := attempt(t, l, other, "GET", managerPath, ""); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: of another BMC %v, %v", when, resp, err)
		}
	}
	expect("before", rack.Reachable, 200, false)
	if resp, err := attempt(t, l, h, "POST", resetBMC, `{"ResetType":"ForceRestart"}`); err != nil || resp.StatusCode != 204 {
		t.Fatalf("reset = %v, %v", resp, err)
	}
	expect("right after", rack.Reachable, 200, false) // on a kept connection
	l.Advance(2 * time.Second)
	expect("down", rack.Gone, 0, true)
	l.Stop()
	l, h, other = start()
	expect("down, in another life of the rack", rack.Gone, 0, true)
	l.Advance(40 * time.Second)
	expect("starting", rack.Starting, 503, false)
	l.Advance(20 * time.Second)
	expect("up", rack.Reachable, 200, false)
	if _, ok := h.Resume("token"); ok {
		t.Error("a session has outlived the reset")
	}
	if os := h.Machine().OS; os == nil || os.Boot != running.Boot {
		t.Errorf("the machine runs %+v, want what it ran before", os)
	}
}

// A Manager.Reset request gets its response, however soon the BMC goes down.
func TestManagerResetIsAnsweredBeforeItsConnectionEnds(t *testing.T) {
	l := racktest.Start(t, rack.Config{Clock: clock.NewScaled(racktest.Origin, 5000)})
	h := l.First()
	var last time.Time // when the BMC last came up
	for round := range 10 {
		// The BMC has reset the connection of the round before when it went down. A client
		// that has not noticed yet would send the next request over it, and net/http does
		// not send a POST again (RFC 9110, §9.2.2).
		l.Client.CloseIdleConnections()
		resp, err := attempt(t, l, h, "POST", resetBMC, `{}`)
		if err != nil || resp.StatusCode != 204 {
			t.Fatalf("reset %d = %v, %v, want 204", round, resp, err)
		}
		for l := h.BMC().Life; l.Is() != bmc.Up || !l.Up.After(last); l = h.BMC().Life {
			runtime.Gosched()
		}
		last = h.BMC().Life.Up
	}
}

// A BMC without power is off the network, and loses its virtual media.
func TestBMCWithoutPowerIsGone(t *testing.T) {
	url, _ := images(t)
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	if _, err := h.ApplyBMC(t.Context(), insert(url+"/a.iso")); err != nil {
		t.Fatal(err)
	}
	apply(t, h, machine.CutAC{})
	if _, err := attempt(t, l, h, "GET", managerPath, ""); err == nil || h.Reach() != rack.Gone {
		t.Errorf("without power: %v, the BMC is %s", err, h.Reach())
	}
	if names := cached(t, l.Dir()); len(names) != 0 {
		t.Errorf("images %v are left", names)
	}
	apply(t, h, machine.RestoreAC{})
	l.Advance(61 * time.Second)
	if resp, err := attempt(t, l, h, "GET", managerPath, ""); err != nil || resp.StatusCode != 200 {
		t.Errorf("with power again: %v, %v", resp, err)
	}
}

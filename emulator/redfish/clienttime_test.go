package redfish

import (
	"context"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Retry-After is in seconds of the client's clock, which lab time may outrun.
func TestRetryAfterIsInSecondsOfTheClient(t *testing.T) {
	h := newHost(t)
	speeds := map[string]*clock.Clock{
		"1x": clock.NewScaled(h.now, 1), "60x": clock.NewScaled(h.now, 60), "0.5x": clock.NewScaled(h.now, 0.5),
		"max": clock.NewJumping(h.now), "advanced by hand": clock.NewVirtual(h.now),
	}
	for _, tt := range []struct {
		speed          string
		task, starting string // a task of 60 s, a BMC that is up after 19 s
	}{
		{"1x", "10", "10"}, {"60x", "1", "1"}, {"0.5x", "10", "10"}, {"max", "1", "1"}, {"advanced by hand", "1", "1"},
	} {
		h := newHost(t)
		s, err := New(Config{Rack: rack{h}, Clock: speeds[tt.speed]})
		must(t, err)
		uri := resource.TaskMonitorURI(begin(t, h, bmc.Request{Method: "POST", Target: sys}))
		if w := call(t, s, "admin", "GET", uri, ""); w.Code != 202 || w.Header().Get("Retry-After") != tt.task {
			t.Errorf("%s: %s; want Retry-After: %s", tt.speed, shape("GET", uri, "", w), tt.task)
		}
		h.pass(55 * time.Second)
		if w := call(t, s, "admin", "GET", uri, ""); tt.speed == "1x" && w.Header().Get("Retry-After") != "5" {
			t.Errorf("%s, 5 s before the end: %s; want Retry-After: 5", tt.speed, shape("GET", uri, "", w))
		}
		call(t, s, "admin", "POST", mgr+"/Actions/Manager.Reset", `{"ResetType":"GracefulRestart"}`)
		h.pass(43 * time.Second)
		if w := call(t, s, "admin", "GET", mgr, ""); w.Code != 503 || w.Header().Get("Retry-After") != tt.starting {
			t.Errorf("%s: %s; want Retry-After: %s", tt.speed, shape("GET", mgr, "", w), tt.starting)
		}
	}
}

// However fast lab time runs, an idle stream sends its comments as often as its
// client expects.
func TestSSEKeepAliveFollowsClientTime(t *testing.T) {
	h := newHost(t)
	c := clock.NewScaled(h.now, 1e6)
	s, err := New(Config{Rack: rack{h}, Clock: c})
	must(t, err)
	h.service = s
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	t.Cleanup(s.CloseStreams)
	stream := openStream(t, serve(t, s), "?$filter=ResourceType%20eq%20'Drive'")
	lines := make(chan string)
	go func() {
		defer close(lines)
		for stream.lines.Scan() {
			if line := stream.lines.Text(); line != "" {
				lines <- line
			}
		}
	}()
	idle := c.NewTimer(1000 * keepAliveInterval)
	defer idle.Stop()
	select {
	case line := <-lines:
		t.Fatalf("within %v of real time an idle stream says %q", c.ClientWait(c.Since(h.now)), line)
	case <-idle.C():
	}
	for {
		c.Advance(keepAliveInterval) // when the stream has its ticker
		select {
		case line := <-lines:
			if line != ": alive" {
				t.Errorf("after Advance(%v) the stream says %q", keepAliveInterval, line)
			}
			return
		case <-t.Context().Done():
			return
		default:
		}
	}
}

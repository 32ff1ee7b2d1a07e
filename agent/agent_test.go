package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

var image = strings.Repeat("\xeb a bootable image ", 400_000)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func writeJob(id, url, checksum string) job.Job {
	return job.Job{ID: id, Kind: job.Write, Write: &job.WriteSpec{URL: url, Checksum: checksum, Root: job.Hints{SerialNumber: "S1"}}}
}

// images serves the image and counts the downloads; before, if set, is called in
// each.
func images(t *testing.T, before func(r *http.Request)) (url string, downloads *atomic.Int32) {
	downloads = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		downloads.Add(1)
		if before != nil {
			before(r)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(image))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/disk.img", downloads
}

// begins returns the part of the disk where the image is written.
func (n *node) begins(t *testing.T) string {
	t.Helper()
	p := make([]byte, len(image))
	if _, err := n.disk.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func TestInventoryCleanWrite(t *testing.T) {
	url, _ := images(t, nil)
	c := startController(t, "",
		job.Job{ID: "a/1", Kind: job.Inventory}, job.Job{ID: "a/2", Kind: job.Clean}, writeJob("a/3", url, sum(image)))
	n := boot(t, c.media())
	c.wait("a/1", "a/2", "a/3")
	n.stop()

	inventory := c.last("a/1")
	if h := inventory.Inventory; inventory.State != job.Done || h == nil || h.System.Serial != "ABC1234" || len(h.Disks) != 1 || h.Disks[0].Serial != "S1" {
		t.Errorf("inventory = %+v", inventory)
	}
	for id, want := range map[string]job.Report{
		"a/2": {State: job.Done, Cleaned: []job.Erased{{Device: "/dev/sda", By: "metadata"}}},
		"a/3": {State: job.Done, Written: &job.Written{Device: "/dev/sda", Bytes: int64(len(image)), Sum: sum(image)}},
	} {
		if diff := cmp.Diff(want, c.last(id)); diff != "" {
			t.Errorf("report of job %s (-want +got):\n%s", id, diff)
		}
	}
	if n.begins(t) != image {
		t.Error("the disk does not hold the image")
	}
	last := -5
	for i, r := range c.reports["a/3"] {
		if final := i == len(c.reports["a/3"])-1; final != (r.State == job.Done) {
			t.Errorf("report %d of %d is %s", i+1, len(c.reports["a/3"]), r.State)
		} else if !final && (r.State != job.Running || r.Percent < last+5) {
			t.Errorf("report %d: %s %d%% after %d%%", i+1, r.State, r.Percent, last)
		}
		last = r.Percent
	}
	if len(c.reports["a/3"]) < 2 {
		t.Error("no progress was reported")
	}
}

func TestWrongChecksum(t *testing.T) {
	url, _ := images(t, nil)
	c := startController(t, "", writeJob("1", url, sum("another image")))
	n := boot(t, c.media())
	c.wait("1")
	n.stop()
	got := c.last("1")
	if got.State != job.Failed || !strings.Contains(got.Error, "checksum mismatch: "+url+" has sha256 "+sum(image)) {
		t.Errorf("report = %+v, want a checksum mismatch", got)
	}
	if strings.Trim(n.begins(t)[:1<<20], "\x00") != "" {
		t.Error("the disk's beginning is not blank")
	}
}

// The controller restarts during a job. The new one does not know the boot at
// first, and then offers the job again.
func TestControllerRestart(t *testing.T) {
	started, restarted := make(chan struct{}), make(chan struct{})
	url, downloads := images(t, func(r *http.Request) {
		close(started) // a second download would panic
		<-restarted
	})
	first := startController(t, "", writeJob("1", url, sum(image)))
	n := boot(t, first.media())
	<-started
	addr := first.Listener.Addr().String()
	first.CloseClientConnections()
	first.Close()

	second := startController(t, addr, writeJob("1", url, sum(image)), job.Job{ID: "2", Kind: job.Clean})
	refusals := 0
	second.onReport = func(_ string, r job.Report, w http.ResponseWriter) bool {
		if r.State == job.Running || refusals == 3 {
			return false
		}
		refusals++
		http.Error(w, "unknown boot", http.StatusServiceUnavailable)
		return true
	}
	offered := false
	second.onLease = func(_ int, w http.ResponseWriter) bool {
		if !offered { // the new controller does not know the report
			offered = true
			second.jobs = append([]job.Job{writeJob("1", url, sum(image))}, second.jobs...)
		}
		return false
	}
	close(restarted)
	second.wait("1", "1", "2")
	n.stop()
	if downloads.Load() != 1 {
		t.Errorf("the image was downloaded %d times", downloads.Load())
	}
	if got := second.last("1"); got.State != job.Done || got.Written == nil {
		t.Errorf("report = %+v", got)
	}
	// Three refusals before the first final report.
	if got := n.clock.waited(); !slices.Equal(got[:3], []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}) {
		t.Errorf("the agent waited %v", got)
	}
}

func TestJobLeasedTwiceIsDoneOnce(t *testing.T) {
	url, downloads := images(t, nil)
	j := writeJob("1", url, sum(image))
	c := startController(t, "", j, j, j)
	n := boot(t, c.media())
	c.wait("1", "1", "1")
	n.stop()
	if downloads.Load() != 1 {
		t.Errorf("the image was downloaded %d times", downloads.Load())
	}
	// The agent does not hurry when it is offered a finished job.
	if got := n.clock.waited(); len(got) < 2 || got[0] != 5*time.Second || got[1] != 5*time.Second {
		t.Errorf("the agent waited %v", got)
	}
}

func TestCancel(t *testing.T) {
	for _, code := range []int{http.StatusGone, http.StatusForbidden} {
		hungUp := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, image[:3<<20]) // and no more
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(hungUp)
		}))
		c := startController(t, "", writeJob("1", s.URL, sum(image)), job.Job{ID: "2", Kind: job.Clean})
		c.onReport = func(id string, r job.Report, w http.ResponseWriter) bool {
			if id != "1" {
				return false
			}
			if r.State != job.Running {
				t.Errorf("a cancelled job was reported: %+v", r)
			}
			c.jobs = c.jobs[1:]
			w.WriteHeader(code)
			return true
		}
		n := boot(t, c.media())
		<-hungUp
		c.wait("2")
		n.stop()
		s.Close()
	}
}

func TestFinalReportRefused(t *testing.T) {
	for _, code := range []int{http.StatusGone, http.StatusForbidden, http.StatusUnauthorized} {
		c := startController(t, "", job.Job{ID: "1", Kind: job.Inventory}, job.Job{ID: "2", Kind: job.Inventory})
		refusals := 0
		c.onReport = func(id string, _ job.Report, w http.ResponseWriter) bool {
			if id != "1" {
				return false
			}
			refusals++
			c.jobs = c.jobs[1:]
			w.WriteHeader(code)
			return true
		}
		n := boot(t, c.media())
		c.wait("2")
		n.stop()
		if refusals != 1 {
			t.Errorf("%d: the report was sent %d times, want once", code, refusals)
		}
	}
}

func TestLeaseErrors(t *testing.T) {
	c := startController(t, "")
	c.onLease = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 0:
			http.Error(w, "unknown boot", http.StatusServiceUnavailable)
		case 1:
			http.Error(w, "bad token", http.StatusUnauthorized)
		case 2:
			http.Error(w, "old boot", http.StatusForbidden)
		case 3:
			io.WriteString(w, "not JSON")
		case 4:
			io.WriteString(w, `{"kind":"clean"}`) // no ID
		case 5:
			w.Write(make([]byte, job.MaxBody+1))
		case 6:
			w.Header().Set("Location", "https://example.org/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case 7:
			panic(http.ErrAbortHandler)
		case 8:
			w.WriteHeader(http.StatusNoContent)
		case 9:
			http.Error(w, "trouble", http.StatusInternalServerError)
		default:
			c.jobs = []job.Job{{ID: "1", Kind: job.Inventory}}
			return false
		}
		return true
	}
	n := boot(t, c.media())
	c.wait("1")
	n.stop()
	s := time.Second
	want := []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 60 * s, 60 * s, 60 * s, 60 * s, 5 * s, 5 * s}
	if diff := cmp.Diff(want, n.clock.waited()[:len(want)]); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestUntrustedController(t *testing.T) {
	c := startController(t, "")
	m := c.media()
	m.CA = strangerCA(t)
	n := boot(t, m)
	n.clock.await(3)
	n.stop()
	if c.leases != 0 {
		t.Error("an untrusted controller was sent the token")
	}
}

func TestStopInterruptsWaitJobAndRequest(t *testing.T) {
	inJob := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(inJob)
		<-r.Context().Done()
	}))
	defer stuck.Close()
	inLease := make(chan struct{})
	for _, tt := range []struct {
		name  string
		jobs  []job.Job
		lease func(n int, w http.ResponseWriter) bool
		when  func(n *node)
	}{
		{name: "waiting", when: func(n *node) { n.clock.await(1) }},
		{name: "in a job", jobs: []job.Job{writeJob("1", stuck.URL, sum(image))}, when: func(*node) { <-inJob }},
		{name: "in a request", lease: func(_ int, w http.ResponseWriter) bool {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				close(inLease)
				io.Copy(io.Discard, c) // until the agent hangs up
				c.Close()
			}
			return true
		}, when: func(*node) { <-inLease }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startController(t, "", tt.jobs...)
			c.onLease = tt.lease
			n := boot(t, c.media())
			tt.when(n)
			n.stop()
			if tt.lease == nil {
				c.conns.Wait() // all connections are closed, although the server keeps them open
			}
			if b, err := n.system.OpenBlock("sda"); err != nil {
				t.Errorf("the disk is still open: %v", err)
			} else {
				b.Close()
			}
		})
	}
}

func TestConfig(t *testing.T) {
	c := startController(t, "")
	for _, tt := range []struct {
		name   string
		change func(*agent.Config)
		want   string
	}{
		{"no system", func(c *agent.Config) { c.System = nil }, "no system"},
		{"no server", func(c *agent.Config) { c.Media.Server = "" }, "is no https URL"},
		{"http", func(c *agent.Config) { c.Media.Server = "http://127.0.0.1:1" }, "is no https URL"},
		{"no token", func(c *agent.Config) { c.Media.Token = "" }, "no token"},
		{"no CA", func(c *agent.Config) { c.Media.CA = "" }, "ca holds no PEM certificate"},
		{"bad CA", func(c *agent.Config) { c.Media.CA = "-----BEGIN" }, "ca holds no PEM certificate"},
	} {
		config := agent.Config{Media: c.media(), System: systest.New(systest.Machine{})}
		tt.change(&config)
		if err := agent.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run with %s = %v, want %q", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := agent.Run(ctx, agent.Config{Media: c.media(), System: systest.New(systest.Machine{})}); err != nil {
		t.Errorf("Run with a context that has ended = %v", err)
	}
}

// A job without progress is reported, too: the controller takes an agent that
// reports nothing for dead.
func TestJobsWithoutProgressAreReported(t *testing.T) {
	inJob, enough := make(chan struct{}), make(chan struct{})
	url, _ := images(t, func(*http.Request) { close(inJob); <-enough })
	c := startController(t, "", writeJob("1", url, sum(image)))
	var seen atomic.Int32
	c.onReport = func(_ string, r job.Report, _ http.ResponseWriter) bool {
		select {
		case <-inJob:
			if r.State == job.Running && seen.Add(1) == 5 {
				close(enough)
			}
		default:
		}
		return false
	}
	n := bootWith(t, c.media(), func(a *agent.Config) { a.Poll = time.Millisecond })
	c.wait("1")
	n.stop()
	if got := c.last("1"); got.State != job.Done {
		t.Errorf("report = %+v", got)
	}
}

// Turn lets agents of one process work in turns. An agent that waits for its turn
// has not begun, and reports that it is alive.
func TestJobWaitsForItsTurn(t *testing.T) {
	var waiting, reported atomic.Bool
	var ended atomic.Int32
	enough := make(chan struct{})
	url, downloads := images(t, nil)
	c := startController(t, "", writeJob("1", url, sum(image)))
	c.onReport = func(_ string, r job.Report, _ http.ResponseWriter) bool {
		if waiting.Load() && r.State == job.Running && !reported.Swap(true) {
			if downloads.Load() != 0 {
				t.Error("the job has begun before its turn")
			}
			close(enough)
		}
		return false
	}
	n := bootWith(t, c.media(), func(a *agent.Config) {
		a.Poll = time.Millisecond
		a.Turn = func(context.Context) func() {
			waiting.Store(true)
			<-enough
			waiting.Store(false)
			return func() { ended.Add(1) }
		}
	})
	c.wait("1")
	n.stop()
	if got := c.last("1"); got.State != job.Done || ended.Load() != 1 {
		t.Errorf("report = %+v, %d turns ended, want one", got, ended.Load())
	}
}

func TestCancelledJobDoesNotWaitForItsTurn(t *testing.T) {
	c := startController(t, "", writeJob("1", "http://192.0.2.1/disk.img", sum(image)), job.Job{ID: "2", Kind: job.Clean})
	c.onReport = func(id string, _ job.Report, w http.ResponseWriter) bool {
		if id != "1" {
			return false
		}
		c.jobs = c.jobs[1:]
		w.WriteHeader(http.StatusGone)
		return true
	}
	var first atomic.Bool
	n := bootWith(t, c.media(), func(a *agent.Config) {
		a.Poll = time.Millisecond
		a.Turn = func(ctx context.Context) func() {
			if !first.Swap(true) { // never returns
				<-ctx.Done()
			}
			return func() {}
		}
	})
	c.wait("2")
	n.stop()
}

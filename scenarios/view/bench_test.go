package view_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOpenPage measures what an open page costs an idle lab of 1,000 hosts, with the
// page of a server and its console. The budget is 5 % of a core.
func BenchmarkOpenPage(b *testing.B) {
	p := start(b, rackfile.Default(1000), nil)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, p.url+"/events?host=node-7&console=1", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := p.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	second := func() { // until the readings of the sensors have come five times
		for n := 0; n < 5; {
			line, err := lines.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			if line == "event: sensors\n" {
				n++
			}
		}
	}
	second()
	var used, passed time.Duration
	for b.Loop() {
		began, at := processorTime(b), time.Now()
		second()
		used, passed = used+processorTime(b)-began, passed+time.Since(at)
	}
	share := 100 * used.Seconds() / passed.Seconds()
	b.ReportMetric(share, "%core")
	if share > 5 {
		b.Errorf("an open page takes %.1f %% of a core, want at most 5 %%", share)
	}
}

// BenchmarkOpenPageAtWork measures what an open page, with the page of a server and its console,
// adds to the processor time of a lab of 1,000 hosts whose servers are switched on and off by
// several clients without a pause. Rounds with a page and without one take turns, and do the
// same work. The budget is 5 %.
func BenchmarkOpenPageAtWork(b *testing.B) {
	p := start(b, rackfile.Default(1000), nil)
	hosts := p.Hosts()
	const clients, rounds = 4, 3
	work := func() {
		var running sync.WaitGroup
		for _, reset := range []string{"ForceOn", "ForceOff"} {
			for c := range clients {
				running.Go(func() {
					for i := c; i < len(hosts); i += clients {
						if err := hosts[i].Power(b.Context(), reset); err != nil {
							b.Error(err)
						}
					}
				})
			}
			running.Wait()
			p.Advance(10 * time.Minute)
		}
	}
	measure := func() time.Duration {
		began := processorTime(b)
		for range rounds {
			work()
		}
		return processorTime(b) - began
	}
	work() // fills the caches
	var without, with time.Duration
	pages := 0
	for b.Loop() {
		without += measure()
		ctx, leave := context.WithCancel(b.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/events?host=node-7&console=1", nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+p.token)
		resp, err := p.client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for line := ""; line != "event: tiles\n"; { // the page is open
			if line, err = lines.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for {
				line, err := lines.ReadString('\n')
				if err != nil { // left
					return
				}
				if line == "event: tiles\n" {
					pages++
				}
			}
		})
		with += measure()
		leave()
		reading.Wait()
		resp.Body.Close()
	}
	more := 100 * (with.Seconds()/without.Seconds() - 1)
	b.ReportMetric(more, "%more")
	b.ReportMetric(float64(pages)/float64(b.N), "tiles-events/op")
	if pages == 0 {
		b.Error("no tile has come while the lab worked")
	}
	if more > 5 {
		b.Errorf("an open page adds %.1f %% to the work of a lab, want at most 5 %%", more)
	}
}

// BenchmarkFrame measures the script and layout of the page of 10,000 tiles for each frame in
// which a hundred tiles change, by Chromium's trace. The budget is 10 ms of processor time.
func BenchmarkFrame(b *testing.B) {
	p := start(b, manyRacks(b), nil)
	page := open(b, p, "", 1600, 1000)
	page.wait("all servers are drawn", "metalab.stats.redrawn >= 10000 && metalab.rack.frame === 0")
	var events []traceEvent
	collect := make(chan struct{})
	if err := chromedp.ListenBrowser(page.ctx, func(ev any) {
		switch ev := ev.(type) {
		case *tracing.EventDataCollected:
			for _, raw := range ev.Value {
				var e traceEvent
				if json.Unmarshal(raw, &e) == nil {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			close(collect)
		}
	}); err != nil {
		b.Fatal(err)
	}
	page.do("start the trace", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.CallBrowser(ctx, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline", "toplevel"}}})
		return err
	}))
	began := value[int](page, "metalab.stats.frames")
	page.do("change tiles", chromedp.Evaluate[chromedp.Void](`(async () => {
		for (let n = 0; n < 60; n++) {
			metalab.rack.set(Array.from({ length: 100 }, (_, i) => ({ ...metalab.rack.tiles[n * 100 + i], power: n % 2 ? "On" : "PoweringOn" })));
			await new Promise(requestAnimationFrame);
		}
	})()`, chromedp.EvalAwaitPromise))
	frames := value[int](page, "metalab.stats.frames") - began
	page.do("end the trace", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.CallBrowser(ctx, tracing.End, cdp.Empty{})
		return err
	}))
	<-collect
	var work []float64
	total := 0.0
	for _, e := range events {
		if e.Phase == "X" && slices.Contains([]string{"FireAnimationFrame", "UpdateLayoutTree", "Layout"}, e.Name) {
			work = append(work, e.Thread/1000)
			total += e.Thread / 1000
		}
	}
	slices.Sort(work)
	if frames < 30 || len(work) == 0 {
		b.Fatalf("%d frames with %d pieces of work in %d events", frames, len(work), len(events))
	}
	perFrame := total / float64(frames)
	for b.Loop() { // the figures are the browser's
	}
	b.ReportMetric(perFrame, "ms/frame")
	b.ReportMetric(work[len(work)-1], "ms/worst")
	if perFrame > 10 {
		b.Errorf("a frame takes %.1f ms, want at most 10", perFrame)
	}
}

// traceEvent is an event of Chromium's trace.
type traceEvent struct {
	Name   string  `json:"name"`
	Phase  string  `json:"ph"`
	Thread float64 `json:"tdur"` // processor time in microseconds
}

package view_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// checkAccess fails when axe-core finds something in a page, which has loaded it.
func checkAccess(t *testing.T, b *browser, what string) {
	t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[json.RawMessage](
		`axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join(" | ")))`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: axe.run(): %v", what, err)
	}
	if string(found) != "[]" {
		t.Errorf("%s: axe-core finds %s", what, found)
	}
}

// axe returns the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(prerequisites.Need(t, "axe-core"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// The page of a recording is as accessible as that of a lab, and fits a narrow screen.
func TestPageOfARecordingIsAccessible(t *testing.T) {
	script := axe(t)
	file := filepath.Join(t.TempDir(), "lab.json")
	if err := os.WriteFile(file, record(t, filepath.Join(t.TempDir(), "beside")), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, replayed(t, file), "#/rack/-/node-1?tab=console", 1200, 900)
	b.do("load axe-core", evaluate(script))
	for _, scheme := range []string{"dark", "light"} {
		b.do(scheme, prefer(scheme), chromedp.EmulateViewport(1200, 900))
		checkAccess(t, b, scheme)
		b.do("narrow", chromedp.EmulateViewport(400, 800))
		checkAccess(t, b, scheme+", narrow")
		if wide := value[bool](b, "document.documentElement.scrollWidth > 400"); wide {
			t.Errorf("%s: a page of 400 pixels scrolls sideways", scheme)
		}
		if !value[bool](b, `(() => { const r = document.querySelector("#replay").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`) {
			t.Errorf("%s: the slider is not on a narrow screen", scheme)
		}
	}
}

// axe-core finds nothing in any part of the page, in dark and light, wide and narrow.
func TestPageIsAccessible(t *testing.T) {
	script := axe(t)
	p := start(t, racks(t, "- {name: r1, hosts: [{count: 4, profile: raid}]}\n- {name: r2, hosts: [{count: 4}]}\n"), nil)
	if err := p.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	p.Advance(5 * time.Minute)
	b := open(t, p, "", 1200, 900)
	b.do("load axe-core", evaluate(script))
	check := func(what string) {
		t.Helper()
		checkAccess(t, b, what)
	}
	for _, scheme := range []string{"dark", "light"} {
		b.do(scheme, prefer(scheme), chromedp.EmulateViewport(1200, 900))
		b.do("the racks", chromedp.Evaluate[chromedp.Void](`location.hash = "#/"`))
		b.wait("the racks", `document.querySelector("#server").hidden`)
		check(scheme + ": racks")
		for _, tab := range []string{"summary", "drives", "firmware", "sensors", "log", "journal", "objects", "console"} {
			b.do(tab, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`location.hash = "#/rack/r1/r1-node-0?tab=%s"`, tab)))
			b.wait("the tab is there", `document.querySelector("#tab")?.childElementCount > 0 && document.querySelector(".tabs [aria-current]")`)
			check(scheme + ": " + tab)
		}
		b.click("#server button", "Send a break")
		check(scheme + ": dialog")
		b.do("cancel", chromedp.Evaluate[chromedp.Void](`document.querySelector("dialog").close()`), chromedp.EmulateViewport(400, 800))
		check(scheme + ": narrow")
		if wide := value[bool](b, "document.documentElement.scrollWidth > 400"); wide {
			t.Errorf("%s: a page of 400 pixels scrolls sideways", scheme)
		}
	}
}

package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// manyRacks returns 10,000 servers in 250 racks.
func manyRacks(t testing.TB) rackfile.Lab {
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, "- {name: r%d, hosts: [{count: 40}]}\n", i)
	}
	return racks(t, b.String())
}

// The page of 10,000 servers has as many elements as that of a few, all of them are on the
// screen, and a change draws one tile.
func TestBrowserShowsTenThousandTiles(t *testing.T) {
	p := start(t, manyRacks(t), nil)
	b := open(t, p, "", 1600, 1000)
	b.wait("all servers are there", "metalab.rack.tiles.length === 10000")
	b.wait("they are drawn", "metalab.stats.redrawn >= 10000 && metalab.rack.frame === 0")
	if got := value[int](b, "document.querySelectorAll('*').length"); got > 150 {
		t.Errorf("the page has %d elements, want at most 150", got)
	}
	if got := value[string](b, `document.querySelector("#hosts").textContent`); got != "10,000" {
		t.Errorf("the head counts %s servers, want 10,000", got)
	}
	if got := value[bool](b, `metalab.rack.size.H <= document.querySelector("#rack").clientHeight`); !got {
		t.Error("the racks need scrolling: they are not all on one screen")
	}
	before := value[int](b, "metalab.stats.redrawn")
	if err := p.Hosts()[7777].Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	b.wait("the tile changes", `metalab.rack.tiles[7777].power === "PoweringOn" && metalab.rack.frame === 0`)
	if got := value[int](b, "metalab.stats.redrawn") - before; got != 1 {
		t.Errorf("%d tiles were drawn for one change, want 1", got)
	}
	// A query counts its matches, and fades the rest.
	b.do("find", chromedp.Evaluate[chromedp.Void](`location.hash = "#/?q=power:PoweringOn"`))
	b.wait("one matches", `document.querySelector("#found").textContent === "1 of 10,000 match"`)
	b.do("find by name", chromedp.Evaluate[chromedp.Void](`location.hash = "#/?q=rack:r7+-*-1*"`))
	b.wait("29 match", `document.querySelector("#found").textContent === "29 of 10,000 match"`)
}

// A rack of 100,000 servers is as wide as the page, and scrolls down.
func TestBrowserShowsARackOfAHundredThousand(t *testing.T) {
	b := open(t, start(t, rackfile.Default(1), nil), "", 1200, 800)
	b.wait("the server is there", "metalab.rack.tiles.length === 1")
	b.do("more tiles", evaluate(`metalab.rack.set(Array.from({ length: 100000 }, (_, i) => ({ ...metalab.rack.tiles[0], i, name: "node-" + i })))`))
	b.wait("all are drawn", "metalab.rack.places.length === 100000 && metalab.rack.frame === 0")
	if got := value[int](b, `metalab.rack.places.filter((p) => p.x + p.w > metalab.rack.size.W || p.y + p.h > metalab.rack.size.H).length`); got > 0 {
		t.Errorf("%d servers are outside of the canvas", got)
	}
	if got := value[bool](b, `metalab.rack.size.W <= document.querySelector("#rack").clientWidth`); !got {
		t.Error("the racks need scrolling sideways")
	}
	if got := value[int](b, `(() => { const p = metalab.rack.places[99999]; return metalab.rack.at(p.x + 1, p.y + 1); })()`); got != 99_999 {
		t.Errorf("the server at the last tile = %d, want 99999", got)
	}
}

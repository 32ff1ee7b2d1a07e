package view_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// tileOf is an expression of a tile's field.
func tileOf(name, field string) string {
	return fmt.Sprintf("metalab.rack.tiles.find((t) => t?.name === %q)?.%s", name, field)
}

// pixel is an expression: the colour of the canvas at the left edge of a server's tile.
func pixel(index int) string {
	return fmt.Sprintf(`(() => {
		const p = metalab.rack.places[%d], s = devicePixelRatio, copy = document.createElement("canvas"), pen = copy.getContext("2d", { willReadFrequently: true });
		pen.drawImage(metalab.rack.canvas, -(p.x + 3) * s, -(p.y + 3) * s);
		return [...pen.getImageData(0, 0, 1, 1).data].join();
	})()`, index)
}

func TestBrowserSwitchesAServerOn(t *testing.T) {
	p := start(t, racks(t, "- {name: r1, hosts: [{count: 8}]}\n- {name: r2, hosts: [{count: 8}]}\n"), nil)
	b := open(t, p, "", 1200, 800)
	b.wait("all servers are there", "metalab.rack.tiles.length === 16")
	b.wait("the count is there", `document.querySelector("#legend").innerText.replace(/\s+/g, " ").includes("off 16")`)
	before := value[string](b, pixel(11))
	drawn := value[int](b, "metalab.stats.redrawn")

	b.do("open the page of a server", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/r2/r2-node-3"`))
	b.click("#server button", "Power")
	b.fill("#field-reset", "On")
	if got := p.Hosts()[11].Machine().Power; got != "Off" {
		t.Errorf("before the confirmation power = %s, want Off", got)
	}
	b.click("dialog button.primary", "Power")
	b.wait("the tile changes", tileOf("r2-node-3", "power")+` === "PoweringOn"`)
	b.wait("the count changes", `document.querySelector("#legend").innerText.replace(/\s+/g, " ").includes("powering on 1 off 15")`)
	p.Advance(10 * time.Second)
	b.wait("the tile is on", tileOf("r2-node-3", "power")+` === "On"`)
	b.wait("the page of the server shows it", `document.querySelector("#server .badges").innerText.includes("On")`)
	b.wait("the tile has another colour", pixel(11)+fmt.Sprintf(" !== %q", before))
	b.wait("its state is in words", `document.querySelector("#option").textContent.startsWith("r2-node-3, rack r2, On")`)
	if got := value[int](b, "metalab.stats.redrawn") - drawn; got > 200 { // the box became smaller: some layouts, then single tiles
		t.Errorf("%d tiles were drawn again", got)
	}
}

func TestBrowserPullsADrive(t *testing.T) {
	r := rackfile.Default(2)
	r.Hosts[0].Profile = "raid"
	p := start(t, r, nil)
	c := control.NewClient(p.Dir())
	if _, err := c.Power(t.Context(), "node-0", "On"); err != nil {
		t.Fatal(err)
	}
	p.Advance(5 * time.Minute)
	d, err := c.CreateVolume(t.Context(), "node-0", control.VolumeCreation{Controller: "1", RAID: "RAID1", Name: "root"})
	if err != nil || len(d.Volumes) != 1 {
		t.Fatalf("CreateVolume() = %+v, %v", d.Volumes, err)
	}
	bay := d.Volumes[0].Disks[0]
	medium, err := p.First().Medium("Volume.1." + d.Volumes[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := medium.WriteAt([]byte("\x53\xef"), 0x438); err != nil {
		t.Fatal(err)
	}
	b := open(t, p, "#/rack/-/node-0?tab=drives", 1200, 800)
	b.wait("the volume is OK", `document.querySelector("[data-volume]")?.innerText.includes("OK")`)
	b.wait("its file system is shown", `document.querySelector("#server table").innerText.includes("ext4")`)
	b.click("#server button", "Pull a drive")
	b.fill("#field-bay", bay)
	b.click("dialog button.primary", "Pull")
	b.wait("the volume is degraded", `document.querySelector("[data-volume]")?.innerText.includes("degraded")`)
	b.wait("the tile says so", tileOf("node-0", "health")+` === "Warning"`)
	b.wait("the drive is on the shelf", `document.querySelector("#server").innerText.toLowerCase().includes("pulled drives")`)
	// A refused action shows the lab's message, and nothing changes.
	b.click("#server button", "Pull a drive")
	b.fill("#field-bay", bay)
	b.click("dialog button.primary", "Pull")
	b.wait("the refusal is shown", `document.querySelector("dialog .refused")?.textContent.length > 5`)
	b.mu.Lock()
	b.errors = nil // the browser reports the answer 404 to that
	b.mu.Unlock()
}

func TestBrowserTypesAtTheConsole(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	if err := p.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	p.Advance(10 * time.Minute)
	b := open(t, p, "#/rack/-/node-0?tab=console", 1200, 800)
	shows := func(text string) {
		t.Helper()
		b.wait("the console shows "+text, fmt.Sprintf(`document.querySelector(".term")?.textContent.includes(%q)`, text))
	}
	typed := func(text string) {
		t.Helper()
		b.fill("#line", text)
		b.click(".typed button", "Type")
	}
	shows("Booting from")
	typed("")
	shows("login: ")
	typed("root")
	shows("Password: ")
	typed("calvin")
	shows("root@node-0:~$ ")
	typed("frobnicate")
	shows("sh: frobnicate: not found")
	// Key by key, into the output.
	b.do("type", chromedp.Focus(chromedp.ID("line")), chromedp.Evaluate[chromedp.Void](`document.querySelector(".term").focus()`), chromedp.KeyEvent("xyzzy\r"))
	shows("sh: xyzzy: not found")
}

func TestBrowserShowsBodiesOfRequests(t *testing.T) {
	r := rackfile.Default(1)
	r.Accounts[0].Password = "calvin-5731"
	p := start(t, r, nil)
	b := open(t, p, "#/rack/-/node-0?tab=journal", 1200, 800)
	b.wait("the journal is there", `document.querySelector("#kind")`)
	login, err := p.Client.Post(p.First().URL()+"/redfish/v1/SessionService/Sessions", "application/json", strings.NewReader(`{"UserName":"admin","Password":"calvin-5731"}`))
	if err != nil {
		t.Fatal(err)
	}
	login.Body.Close()
	if login.StatusCode != http.StatusCreated {
		t.Fatalf("login = %s", login.Status)
	}
	b.do("another tab, and back", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/-/node-0?tab=log"`))
	b.wait("the other tab", `document.querySelector("#tab h3")?.textContent.startsWith("Event log")`)
	b.do("and back", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/-/node-0?tab=journal"`))
	b.wait("the request is there with its bodies", `[...document.querySelectorAll("details")].some((d) => d.innerText.includes("POST /redfish/v1/SessionService/Sessions") && d.textContent.includes('"UserName": "admin"') && d.textContent.includes("Response:"))`)
	if value[bool](b, `document.body.textContent.includes("calvin-5731")`) {
		t.Error("the page has the password")
	}
	if value[bool](b, `document.querySelector("details[open]") !== null`) {
		t.Error("bodies are unfolded")
	}
}

// Paper is white, whatever the screen is, and has nothing to press.
func TestPageIsPrinted(t *testing.T) {
	p := start(t, rackfile.Default(3), nil)
	b := open(t, p, "#/rack/-/node-0?tab=journal", 1200, 800)
	b.wait("the server is there", `document.querySelector("#kind")`)
	b.do("dark", prefer("dark"))
	b.wait("the canvas is dark", `metalab.rack.colours.bg === "#0d131b" && metalab.rack.frame === 0`)
	b.do("print", medium("print"))
	b.wait("the canvas is white", `metalab.rack.colours.bg === "#fff" && !metalab.rack.all`)
	if got := value[string](b, `[...document.querySelectorAll("button, input, select")].filter((e) => e.checkVisibility() && !e.closest(".legend")).map((e) => e.id || e.textContent).join(", ")`); got != "" {
		t.Errorf("paper has %s", got)
	}
	b.do("back to the screen", medium(""))
	b.wait("the canvas is dark again", `metalab.rack.colours.bg === "#0d131b"`)
}

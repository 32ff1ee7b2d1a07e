package view_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// fleet is the page of a lab of six servers in three shards, of which the last does not run.
type fleet struct {
	*page
	shards []*page // that run

	mu   sync.Mutex
	list []control.Shard
}

func (f *fleet) all() []control.Shard {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

// startFleet serves the page until the test ends.
func startFleet(t *testing.T, objects view.Objects) *fleet {
	t.Helper()
	f := &fleet{}
	for i := range 3 {
		r := rackfile.Default(6)
		r.Part = &rackfile.Part{First: 2 * i, Count: 2}
		s := control.Shard{Name: fmt.Sprintf("shard-%d", i), Rack: r, Off: control.ScaledIn}
		if i < 2 {
			p := start(t, r, nil)
			f.shards = append(f.shards, p)
			s.Client, s.Dir, s.Off = control.NewClient(p.Dir()), p.Dir(), ""
		}
		f.list = append(f.list, s)
	}
	r := rackfile.Default(6)
	r.Part = new(rackfile.Part)
	l := racktest.Start(t, rack.Config{Rack: &r})
	c, err := control.NewFleet(control.FleetConfig{Dir: l.Dir(), Shards: f.all})
	if err != nil {
		t.Fatal(err)
	}
	v, err := view.New(view.Config{
		Rack: l.Rack, Shards: f.all, Actions: control.NewClient(l.Dir()), Objects: objects,
		Status: func() control.Status { return control.Status{Kubeconfig: "a file"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.page = serve(t, l, v, c, listener)
	return f
}

// until reads the tiles of a stream until one satisfies a condition, and returns all.
func (e *events) until(all map[string]view.Tile, is func(map[string]view.Tile) bool) map[string]view.Tile {
	e.t.Helper()
	if all == nil {
		all = map[string]view.Tile{}
	}
	for !is(all) {
		for _, x := range e.tiles() {
			all[x.Name] = x
		}
	}
	return all
}

func TestOnePageShowsTheServersOfAllShards(t *testing.T) {
	f := startFleet(t, objectsOf{"node-2": {Host: "node-2", State: "available"}})
	e := f.stream(t, "")
	all := e.until(nil, func(all map[string]view.Tile) bool { return len(all) == 6 && all["node-2"].State != "" })
	for i := range 6 {
		name, bmc := fmt.Sprintf("node-%d", i), "reachable"
		if i > 3 {
			bmc = "offline"
		}
		if x := all[name]; x.Index != i || x.BMC != bmc || x.State != map[bool]string{true: "available"}[i == 2] {
			t.Errorf("tile of %s = %+v, want index %d and BMC %s", name, x, i, bmc)
		}
	}
	resp, text := f.do(t, "POST", "/hosts/node-3/actions/power", `{"reset": "On"}`, f.bearer()...)
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("power of node-3 = %d %s, want 204", resp.StatusCode, text)
	}
	all = e.until(all, func(all map[string]view.Tile) bool { return all["node-3"].Power == "PoweringOn" })
	if all["node-1"].Power != "Off" || f.shards[1].Hosts()[1].Machine().Power != "PoweringOn" {
		t.Errorf("node-1 is %s, want Off: node-3 was switched on", all["node-1"].Power)
	}
	for path, status := range map[string]int{"/hosts/node-5/actions/power": http.StatusServiceUnavailable, "/hosts/node-9/actions/power": http.StatusNotFound} {
		if resp, text := f.do(t, "POST", path, `{"reset": "On"}`, f.bearer()...); resp.StatusCode != status {
			t.Errorf("POST %s = %d %s, want %d", path, resp.StatusCode, text, status)
		}
	}
	if _, text := f.do(t, "GET", "/rack.svg", "", f.bearer()...); strings.Count(text, "<title>node-") != 6 {
		t.Errorf("the image does not have six servers: %.500s", text)
	}
}

func TestServerOfAShardHasItsPage(t *testing.T) {
	f := startFleet(t, objectsOf{"node-3": {Host: "node-3", State: "provisioned"}})
	e := f.stream(t, "?host=node-3&console=1")
	var s struct {
		Detail control.Detail `json:"detail"`
		Object view.Object    `json:"object"`
	}
	for s.Object.State != "provisioned" { // the object may be seen after the server
		if err := json.Unmarshal([]byte(e.next("server")), &s); err != nil {
			t.Fatal(err)
		}
	}
	if s.Detail.Name != "node-3" {
		t.Errorf("the page of node-3 is that of %s", s.Detail.Name)
	}
	var l struct {
		Hosts int  `json:"hosts"`
		Kube  bool `json:"kube"`
	}
	if err := json.Unmarshal([]byte(f.stream(t, "").next("lab")), &l); err != nil || l.Hosts != 6 || !l.Kube {
		t.Errorf("lab = %+v, %v, want 6 hosts and a Kubernetes API", l, err)
	}
	for path, want := range map[string]string{"/hosts/node-3/objects": "default/node-3", "/hosts/node-3/contents": "{"} {
		if resp, text := f.do(t, "GET", path, "", f.bearer()...); resp.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("GET %s = %d %s, want 200 with %s", path, resp.StatusCode, text, want)
		}
	}
	// The console goes to the shard, and its output comes from there.
	host := f.shards[1].Hosts()[1]
	if err := host.Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	f.shards[1].Advance(10 * 60e9)
	var out strings.Builder
	read := func(want string) {
		for !strings.Contains(out.String(), want) {
			var c struct{ Text string }
			if err := json.Unmarshal([]byte(e.next("console")), &c); err != nil {
				t.Fatal(err)
			}
			b, err := base64.StdEncoding.DecodeString(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
	}
	read("login:")
	// A page of another origin, or without the token, types nothing.
	for _, header := range [][]string{nil, append(f.bearer(), "Origin", "http://evil.example")} {
		if resp, _ := f.do(t, "POST", "/hosts/node-3/console", "x", header...); resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			t.Errorf("typing with %q = %d, want 401 or 403", header, resp.StatusCode)
		}
	}
	if resp, text := f.do(t, "POST", "/hosts/node-3/console", "root\r", f.bearer()...); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("typing = %d %s, want 204", resp.StatusCode, text)
	}
	read("Password:")
}

func TestPageOfAllShardsNeedsTheTokenOfTheLab(t *testing.T) {
	f := startFleet(t, nil)
	for _, r := range everything {
		for name, header := range map[string][]string{"none": nil, "the token of a shard": f.shards[0].bearer()} {
			if resp, _ := f.do(t, r[0], r[1], "{}", header...); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with %s = %d, want 401", r[0], r[1], name, resp.StatusCode)
			}
		}
	}
	_, page := f.do(t, "GET", "/", "", f.bearer()...)
	for _, s := range append(f.shards, f.page) {
		if strings.Contains(page, s.token) {
			t.Error("the page has a token")
		}
	}
}

// A shard that dies is offline, and comes back with its servers as they are.
func TestServersOfAShardThatStopsAreOfflineUntilItRuns(t *testing.T) {
	f := startFleet(t, nil)
	e := f.stream(t, "")
	all := e.until(nil, func(all map[string]view.Tile) bool { return all["node-2"].BMC == "reachable" })
	f.mu.Lock()
	was := f.list[1]
	f.list[1].Client = control.NewClient(t.TempDir()) // which nobody answers
	f.mu.Unlock()
	if _, err := view.Rotate(was.Dir); err != nil { // ends its streams
		t.Fatal(err)
	}
	all = e.until(all, func(all map[string]view.Tile) bool { return all["node-2"].BMC == "offline" })
	if all["node-3"].BMC != "offline" || all["node-0"].BMC != "reachable" {
		t.Errorf("node-3 is %s and node-0 %s, want offline and reachable", all["node-3"].BMC, all["node-0"].BMC)
	}
	f.mu.Lock()
	f.list[1] = was
	f.mu.Unlock()
	e.until(all, func(all map[string]view.Tile) bool { return all["node-2"].BMC == "reachable" })
}

func TestPageOfAllShardsInABrowser(t *testing.T) {
	f := startFleet(t, objectsOf{"node-2": {Host: "node-2", State: "available"}})
	b := open(t, f.page, "", 1200, 800)
	b.wait("all servers are counted", `document.getElementById("hosts").textContent === "6"`)
	b.wait("all tiles are there", `metalab.rack.tiles.length === 6 && metalab.counts.all === 6`)
	b.do("find", chromedp.Evaluate[chromedp.Void](`location.hash = "#?q=bmc:offline"`))
	b.wait("the query counts those of the shard that does not run", `document.getElementById("found").textContent === "2 of 6 match"`)
	b.do("open a server", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/-/node-3"`))
	b.wait("its page is there", `document.getElementById("server").innerText.includes("node-3")`)
}

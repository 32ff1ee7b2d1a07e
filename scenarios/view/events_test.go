package view_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// events is an open event stream.
type events struct {
	t     *testing.T
	lines *bufio.Reader
	id    string   // ID of the latest event
	seen  []string // kinds of all events
}

// stream opens the event stream of a page.
func (p *page) stream(t *testing.T, query string) *events {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /events%s = %s, want 200", query, resp.Status)
	}
	return &events{t: t, lines: bufio.NewReader(resp.Body)}
}

// next returns the data of the next event of a kind.
func (e *events) next(kind string) string {
	e.t.Helper()
	for is := ""; ; {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			e.t.Fatalf("no event %s came: %v", kind, err)
		}
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			e.id = strings.TrimSpace(text)
		}
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			is = strings.TrimSpace(text)
			e.seen = append(e.seen, is)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok && is == kind {
			return strings.TrimSpace(text)
		}
	}
}

// tiles returns the tiles of the next event.
func (e *events) tiles() (out []view.Tile) {
	e.t.Helper()
	if err := json.Unmarshal([]byte(e.next("tiles")), &out); err != nil {
		e.t.Fatal(err)
	}
	return out
}

func TestAChangeSendsOneTile(t *testing.T) {
	p := start(t, rackfile.Default(50), nil)
	e := p.stream(t, "")
	all := e.tiles()
	if len(all) != 50 || all[7].Name != "node-7" || all[7].Power != "Off" || all[7].Health != "OK" || all[7].BMC != "reachable" || all[7].Index != 7 {
		t.Fatalf("%d tiles, the eighth %+v", len(all), all[min(7, len(all)-1)])
	}
	if err := p.Hosts()[7].Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	if got := e.tiles(); len(got) != 1 || got[0].Name != "node-7" || got[0].Power != "PoweringOn" {
		t.Errorf("after Power(On): %+v, want node-7 alone, PoweringOn", got)
	}
}

// A page that opens a server has the tiles already: of 100,000 servers they are 13 MB.
func TestOpeningAServerSendsNoTileAgain(t *testing.T) {
	p := start(t, rackfile.Default(50), nil)
	first := p.stream(t, "")
	first.tiles()
	e := p.stream(t, "?host=node-1&since="+first.id)
	if e.next("server"); slices.Contains(e.seen, "tiles") {
		t.Errorf("the events %s came to a page that has all tiles, want no tiles", strings.Join(e.seen, ", "))
	}
	if err := p.Hosts()[7].Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	if got := e.tiles(); len(got) != 1 || got[0].Name != "node-7" {
		t.Errorf("%d tiles came, the first %+v, want node-7 alone", len(got), got[0])
	}
	_, versions, _ := strings.Cut(first.id, ".")
	if got := p.stream(t, "?since=EARLIER."+versions).tiles(); len(got) != 50 {
		t.Errorf("%d tiles came to the page of an earlier process, want all 50", len(got))
	}
}

func TestFaultsAndHealthAreOnTiles(t *testing.T) {
	p := start(t, rackfile.Default(3), nil)
	e := p.stream(t, "")
	e.tiles()
	post := func(path, body string) {
		t.Helper()
		if resp, text := p.do(t, "POST", path, body, p.bearer()...); resp.StatusCode != http.StatusNoContent {
			t.Fatalf("POST %s = %d %s, want 204", path, resp.StatusCode, text)
		}
	}
	post("/hosts/node-1/actions/add-fault", `{"rule": "{\"id\": \"out\", \"offline\": true}"}`)
	if got := e.tiles(); len(got) != 1 || got[0].Name != "node-1" || got[0].Faults != 1 || got[0].BMC != "gone" {
		t.Errorf("with a fault: %+v, want node-1 alone, with one fault and its BMC gone", got)
	}
	post("/hosts/node-1/actions/remove-fault", `{"id": "out"}`)
	if got := e.tiles(); len(got) != 1 || got[0].Faults != 0 || got[0].BMC != "reachable" {
		t.Errorf("without it: %+v, want node-1 alone, without a fault", got)
	}
	post("/hosts/node-0/actions/add-fault", `{"rule": "{\"id\": \"busy\", \"status\": 503}"}`) // changes nothing of the server itself
	if got := e.tiles(); len(got) != 1 || got[0].Name != "node-0" || got[0].Faults != 1 {
		t.Errorf("with a fault of requests: %+v, want node-0 alone, with one fault", got)
	}
	bay := p.Hosts()[2].Drives()[0].ID
	post("/hosts/node-2/actions/fail-drive", `{"bay": "`+bay+`", "how": "predict"}`)
	if got := e.tiles(); len(got) != 1 || got[0].Health != "Warning" {
		t.Errorf("with a drive that predicts a failure: %+v, want Warning", got)
	}
	post("/hosts/node-2/actions/fail-drive", `{"bay": "`+bay+`", "how": "fail"}`)
	if got := e.tiles(); len(got) != 1 || got[0].Health != "Critical" {
		t.Errorf("with a failed drive: %+v, want Critical", got)
	}
}

func TestActionsAreChecked(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	for _, tt := range []struct {
		path, body, text string
		want             int
	}{
		{"/hosts/node-9/actions/power", `{"reset": "On"}`, "there is no host node-9", 404},
		{"/hosts/node-0/actions/explode", `{}`, "there is no action explode", 404},
		{"/hosts/node-0/actions/power", `{"reset": "Kick"}`, `reset "Kick" is not one of On`, 400},
		{"/hosts/node-0/actions/pull-drive", `{}`, "bay is missing", 400},
		{"/hosts/node-0/actions/pull-drive", `{"bay": "Disk.99"}`, "Disk.99", 404},
		{"/hosts/node-0/actions/add-fault", `{"rule": "{\"status\": 42}"}`, "must be from 200", 400},
		{"/hosts/node-0/actions/add-fault", `{"rule": "["}`, "the rule", 400},
		{"/hosts/node-0/actions/power", `[`, "the body", 400},
		{"/hosts/node-0/actions/power", `{"reset": "ForceOff"}`, "power state", 409},
	} {
		resp, text := p.do(t, "POST", tt.path, tt.body, p.bearer()...)
		if resp.StatusCode != tt.want || !strings.Contains(text, tt.text) {
			t.Errorf("POST %s %s = %d %q, want %d and %q", tt.path, tt.body, resp.StatusCode, text, tt.want, tt.text)
		}
	}
}

// The page of a server gets all of it, and no password.
func TestServerEventHasNoSecret(t *testing.T) {
	r := rackfile.Default(2)
	r.Accounts[0].Password = "calvin-5731"
	p := start(t, r, nil)
	if err := p.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	p.Advance(5 * time.Minute)
	resp, err := p.Client.Get(p.First().URL() + "/redfish/v1/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	e := p.stream(t, "?host=node-0&console=1")
	text := e.next("server")
	var s struct {
		Detail control.Detail
		Disks  control.Disks
		Log    []control.LogEntry
		BIOS   struct{ Attributes []any }
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Detail.Name != "node-0" || s.Detail.Serial == "" || len(s.Disks.Bays) == 0 || len(s.Log) == 0 || len(s.BIOS.Attributes) == 0 {
		t.Errorf("server = %+v, want its serial number, drives, log and BIOS attributes", s)
	}
	text += e.next("sensors") + e.next("journal") + e.next("console")
	for _, want := range []string{`"reading":`, `/redfish/v1/`, `"text":`} {
		if !strings.Contains(text, want) {
			t.Errorf("the events lack %s", want)
		}
	}
	if strings.Contains(text, "calvin-5731") || strings.Contains(text, p.token) {
		t.Error("the events have a password or the token")
	}
}

func TestStreamOfAnUnknownServerReturns404(t *testing.T) {
	p := start(t, rackfile.Default(1), nil)
	if resp, text := p.do(t, "GET", "/events?host=node-5", "", p.bearer()...); resp.StatusCode != http.StatusNotFound {
		t.Errorf("GET /events?host=node-5 = %d %q, want 404", resp.StatusCode, text)
	}
}

func TestSVGShowsEachServer(t *testing.T) {
	r := racks(t, "- {name: r1, hosts: [{count: 50}]}\n- {name: r2, hosts: [{count: 3}]}\n")
	p := start(t, r, nil)
	if err := p.First().Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	resp, text := p.do(t, "GET", "/rack.svg?colour=power", "", p.bearer()...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "image/svg+xml" {
		t.Fatalf("GET /rack.svg = %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	if got := strings.Count(text, `width="120"`); got != 53 {
		t.Errorf("%d tiles, want 53", got)
	}
	for _, want := range []string{"lab: 53 servers by power", "powering on 1", "off 52", ": PoweringOn</title>", ">r2<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	places := map[string]bool{}
	for _, at := range regexp.MustCompile(`<rect (x="\d+" y="\d+") width="120"`).FindAllStringSubmatch(text, -1) {
		places[at[1]] = true
	}
	if len(places) != 53 {
		t.Errorf("the tiles are at %d places, want 53", len(places))
	}
	if resp, text := p.do(t, "GET", "/rack.svg?colour=taste", "", p.bearer()...); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, "power, state, role") {
		t.Errorf("colour=taste = %d %q, want 400 and the names", resp.StatusCode, text)
	}
}

package view_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// tape is a writer that wakes who waits for a text.
type tape struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

// Write implements io.Writer.
func (w *tape) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	close(w.more)
	w.more = make(chan struct{})
	return len(b), nil
}

// await returns when all of the texts are there.
func (w *tape) await(t *testing.T, texts ...string) {
	t.Helper()
	ctx := patience.Within(t, time.Minute)
	for _, text := range texts {
		for {
			w.mu.Lock()
			found, more := strings.Contains(w.text.String(), text), w.more
			w.mu.Unlock()
			if found {
				break
			}
			select {
			case <-more:
			case <-ctx.Done():
				t.Fatalf("the recording has no %s", text)
			}
		}
	}
}

// objectsOf are objects of hosts that never change.
type objectsOf map[string]view.Object

// Watch implements view.Objects.
func (o objectsOf) Watch(ctx context.Context, changed func(view.Object)) error {
	for _, x := range o {
		changed(x)
	}
	<-ctx.Done()
	return nil
}

// Describe implements view.Objects.
func (objectsOf) Describe(_ context.Context, host string) ([]view.Described, error) {
	return []view.Described{{Kind: "BareMetalHost", Name: "default/" + host, YAML: "kind: BareMetalHost\n"}}, nil
}

// record records a lab in which a server is switched on, a session is opened and a snapshot is
// saved. It returns the recording, which has more snapshots in a directory that is not "".
func record(t *testing.T, snapshots string) (text []byte) {
	t.Helper()
	r := rackfile.Default(3)
	r.Accounts[0].Password = "calvin-5731"
	p := start(t, r, objectsOf{"node-1": {Host: "node-1", State: "available"}})
	w := &tape{more: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		if err := p.server.Record(ctx, view.Recording{To: w, Beside: filepath.Dir(snapshots), Snapshots: snapshots}); err != nil {
			t.Error(err)
		}
	})
	w.await(t, `"kind":"tiles"`, `"state":"available"`, `"kind":"objects","host":"node-1"`)
	p.Advance(time.Minute)
	if err := p.Hosts()[1].Power(t.Context(), "On"); err != nil {
		t.Fatal(err)
	}
	w.await(t, `"power":"PoweringOn"`)
	login, err := p.Client.Post(p.First().URL()+"/redfish/v1/SessionService/Sessions", "application/json", strings.NewReader(`{"UserName":"admin","Password":"calvin-5731"}`))
	if err != nil {
		t.Fatal(err)
	}
	login.Body.Close()
	p.Advance(5 * time.Minute)
	w.await(t, `"power":"On"`, `"kind":"exchanges"`)
	if _, err := p.SaveSnapshot(t.Context(), filepath.Join(t.TempDir(), "mine.tar"), nil); err != nil {
		t.Fatal(err)
	}
	w.await(t, `mine.tar","hosts":3}`)
	p.Advance(time.Minute)
	cancel()
	recording.Wait()
	if bytes.Contains(w.text.Bytes(), []byte("calvin-5731")) || bytes.Contains(w.text.Bytes(), []byte(p.token)) {
		t.Error("the recording has a password or the token")
	}
	return w.text.Bytes()
}

// replayed serves the page of a recording until the test ends, and returns it.
func replayed(t *testing.T, file string) *page {
	t.Helper()
	v, err := view.NewReplay(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := v.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	link, err := url.Parse(v.Link(l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &page{url: "http://" + link.Host, token: link.Query().Get("token"), client: &http.Client{Transport: transport}}
}

func TestBrowserMovesThroughARecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lab.json.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(record(t, filepath.Join(filepath.Dir(file), "beside")))
	z.Close()
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := replayed(t, file)
	if resp, _ := p.do(t, "GET", "/recording", ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("GET /recording without the token = %d, want 401", resp.StatusCode)
	}
	page := open(t, p, "", 1200, 800)
	page.wait("the end is shown", tileOf("node-1", "power")+` === "On"`)
	seek := func(to int) {
		t.Helper()
		page.do("move", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const at = document.querySelector("#at"); at.value = %d; at.dispatchEvent(new Event("input")); }`, to)))
	}
	seek(0)
	page.wait("it is off at the beginning", tileOf("node-1", "power")+` === "Off"`)
	page.wait("the counts are of that time", `document.querySelector("#legend").innerText.replace(/\s+/g, " ").trim() === "off 3"`)
	page.wait("the time is in the link", `location.hash.includes("at=2031-01-02T03")`)
	seek(1000)
	page.wait("it is on at the end", tileOf("node-1", "power")+` === "On"`)
	page.wait("the slider has marks of the snapshots", `document.querySelectorAll("#marks option").length === 3 && document.querySelector("#marks option").value === "0"`)
	page.click("#snapshots button", "2031-01-02 03:10")
	page.wait("the slider is at the snapshot", `document.querySelector("#moment").textContent.startsWith("2031-01-02 03:10") && location.hash.includes("at=2031-01-02T03%3A10")`)
	page.wait("the command goes on from it", `document.querySelector("#snapshots code").textContent.includes("lab.json.gz@2031-01-02T03:10")`)
	seek(0)
	page.wait("the command goes on from the first", `document.querySelector("#snapshots code").textContent.includes("lab.json.gz@2031-01-02T03:04:05")`)
	seek(1000)
	page.do("open a server", chromedp.Evaluate[chromedp.Void](`location.hash = location.hash.replace("#/", "#/rack/-/node-0").replace("?", "?tab=journal&")`))
	page.wait("its request is there with the body", `[...document.querySelectorAll("details")].some((d) => d.textContent.includes("POST /redfish/v1/SessionService/Sessions") && d.textContent.includes('"Password": "***"'))`)
	page.do("the console of its neighbour", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/-/node-1?tab=console"`))
	page.wait("its console shows what it has printed", `document.querySelector(".term")?.textContent.includes("login:")`)
	seek(0)
	page.wait("it has printed nothing at the beginning", `document.querySelector(".term").textContent === ""`)
	seek(1000)
	page.wait("its console is there again", `document.querySelector(".term").textContent.includes("login:")`)
	if value[bool](page, `document.querySelector(".typed").checkVisibility()`) {
		t.Error("one can type at a recorded console")
	}
	page.do("its neighbour", chromedp.Evaluate[chromedp.Void](`location.hash = "#/rack/-/node-1?tab=objects"`))
	page.wait("its object is there", `document.querySelector("#tab").innerText.includes("BareMetalHost default/node-1")`)
	if value[bool](page, `[...document.querySelectorAll(".actions")].some((a) => a.checkVisibility())`) {
		t.Error("a recording has actions")
	}
}

func TestRecordingsAreRead(t *testing.T) {
	dir, text := t.TempDir(), []byte(`{"at":"2031-01-02T03:04:05Z","kind":"lab","data":{"name":"lab"}}`+"\n"+`{"at":"2031-01-02T03:04:05Z","kind":"tiles","data":[]}`+"\n")
	write := func(name string, b []byte) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	var packed, archive bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil { // the lab was killed: the end is missing
		t.Fatal(err)
	}
	a := zip.NewWriter(&archive)
	m, err := a.Create(view.RecordingName)
	if err != nil {
		t.Fatal(err)
	}
	m.Write(text)
	a.Close()
	var empty bytes.Buffer
	zip.NewWriter(&empty).Close()
	for name, b := range map[string][]byte{"plain": append(bytes.Clone(text), `{"at":"203`...), "gzip": packed.Bytes(), "zip": archive.Bytes()} {
		p := replayed(t, write(name, b))
		if resp, got := p.do(t, "GET", "/recording", "", p.bearer()...); resp.StatusCode != http.StatusOK || got != string(text) {
			t.Errorf("%s: GET /recording = %d %q, want its complete lines", name, resp.StatusCode, got)
		}
	}
	for name, b := range map[string][]byte{"empty": nil, "other": []byte("{}\n"), "text": []byte("hello"), "another zip": append([]byte("PK\x03\x04"), 0), "no gzip": []byte("\x1f\x8b")} {
		if _, err := view.NewReplay(write(name, b), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("NewReplay(%s) = %v, want an error that names the file", name, err)
		}
	}
	if _, err := view.NewReplay(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("NewReplay() of no file = nil")
	}
}

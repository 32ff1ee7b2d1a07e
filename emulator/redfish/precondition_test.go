package redfish

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

const pxe, cd = `{"Boot":{"BootSourceOverrideTarget":"Pxe"}}`, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`

// TestWritePreconditionsPerETagDialect shows statement A7.
func TestWritePreconditionsPerETagDialect(t *testing.T) {
	reset := sys + "/Actions/ComputerSystem.Reset"
	for _, tt := range []struct {
		name         string
		etags        dialect.ETags
		method, path string
		body         string
		header       string // name: value; E is the ETag that was read, e is that without quotes
		status       int
	}{
		{name: "If-Match same ETag", method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 200},
		{name: "If-Match list with ETag", method: "PATCH", path: sys, body: pxe, header: `If-Match: "x", E`, status: 200},
		{name: "If-Match star", method: "PATCH", path: sys, body: pxe, header: "If-Match: *", status: 200},
		{name: "If-Match other ETag", method: "PATCH", path: sys, body: pxe, header: `If-Match: "bogus"`, status: 412},
		{name: "If-Match weak ETag", method: "PATCH", path: sys, body: pxe, header: "If-Match: W/E", status: 412},
		{name: "without quotes", method: "PATCH", path: sys, body: pxe, header: "If-Match: e", status: 412},
		{name: "If-None-Match star", method: "PATCH", path: sys, body: pxe, header: "If-None-Match: *", status: 412},
		{name: "If-None-Match same ETag", method: "PATCH", path: sys, body: pxe, header: "If-None-Match: W/E", status: 412},
		{name: "If-None-Match other ETag", method: "PATCH", path: sys, body: pxe, header: `If-None-Match: "x"`, status: 200},
		{name: "action", method: "POST", path: reset, body: `{"ResetType":"On"}`, header: "If-Match: E", status: 204},
		{name: "action with other ETag", method: "POST", path: reset, body: `{"ResetType":"On"}`, header: `If-Match: "bogus"`, status: 412},

		{name: "twice", etags: dialect.ETags{Format: dialect.DoubleQuoted}, method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 200},
		{name: "twice, any", etags: dialect.ETags{Format: dialect.DoubleQuoted}, method: "PATCH", path: sys, body: pxe, header: "If-Match: *", status: 200},
		{name: "twice, quoted once", etags: dialect.ETags{Format: dialect.DoubleQuoted}, method: "PATCH", path: sys, body: pxe, header: `If-Match: "e"`, status: 412},
		{name: "weak", etags: dialect.ETags{Format: dialect.Weak}, method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 200},
		{name: "weak, another", etags: dialect.ETags{Format: dialect.Weak}, method: "PATCH", path: sys, body: pxe, header: `If-Match: W/"x"`, status: 412},
		{name: "unquoted", etags: dialect.ETags{Comparison: dialect.Unquoted}, method: "PATCH", path: sys, body: pxe, header: "If-Match: e", status: 200},
		{name: "unquoted, with quotes", etags: dialect.ETags{Comparison: dialect.Unquoted}, method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 412},
		{name: "never", etags: dialect.ETags{Comparison: dialect.Never}, method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 412},
		{name: "never, any", etags: dialect.ETags{Comparison: dialect.Never}, method: "PATCH", path: sys, body: pxe, header: "If-Match: *", status: 412},
		{name: "never, without", etags: dialect.ETags{Comparison: dialect.Never}, method: "PATCH", path: sys, body: pxe, status: 200},
		{name: "star rejected", etags: dialect.ETags{RejectStar: true}, method: "PATCH", path: sys, body: pxe, header: "If-Match: *", status: 412},
		{name: "required", etags: dialect.ETags{IfMatchRequired: []string{"ComputerSystem"}}, method: "PATCH", path: sys, body: pxe, status: 428},
		{name: "required and there", etags: dialect.ETags{IfMatchRequired: []string{"ComputerSystem"}}, method: "PATCH", path: sys, body: pxe, header: "If-Match: E", status: 200},
		{name: "required, but wrong", etags: dialect.ETags{IfMatchRequired: []string{"*"}}, method: "PATCH", path: sys, body: pxe, header: `If-Match: "x"`, status: 412},
		{name: "required for another type", etags: dialect.ETags{IfMatchRequired: []string{"Bios"}}, method: "PATCH", path: sys, body: pxe, status: 200},
		{name: "required, but not for actions", etags: dialect.ETags{IfMatchRequired: []string{"*"}}, method: "POST", path: reset, body: `{"ResetType":"On"}`, status: 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := hostOf(t, func(p *dialect.Protocol) { p.ETags = tt.etags })
			s := newService(t, h)
			read := call(t, s, "admin", "GET", sys, "")
			etag := read.Header().Get("ETag")
			if shown := resource.Decode(read.Body.Bytes())["@odata.etag"]; shown != etag {
				t.Errorf("ETag %s, but @odata.etag %v", etag, shown)
			}
			var header []string
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				header = []string{name, strings.NewReplacer("E", etag, "e", strings.Trim(resource.StrongETag(etag), `"`)).Replace(value)}
			}
			w := call(t, s, "admin", tt.method, tt.path, tt.body, header...)
			if w.Code != tt.status {
				t.Fatalf("%s; want %d", shape(tt.method, tt.path, tt.body, w), tt.status)
			}
			if want := map[int]string{412: "PreconditionFailed", 428: "PreconditionRequired"}[w.Code]; want != "" {
				if keys, _ := errorOf(t, w); !slices.Equal(keys, []string{want}) {
					t.Errorf("messages %q, want %s", keys, want)
				}
			}
			again := call(t, s, "admin", "GET", "/redfish/v1/Managers/1", "")
			if w := call(t, s, "admin", "GET", "/redfish/v1/Managers/1", "", "If-None-Match", again.Header().Get("ETag")); w.Code != 304 {
				t.Errorf("unchanged, but %s", shape("GET", "/redfish/v1/Managers/1", "", w))
			}
		})
	}
}

func TestConcurrentWritersWithSameETagRepeatedly(t *testing.T) {
	s := newService(t, newHost(t))
	for range 20 {
		etag := call(t, s, "admin", "GET", sys, "").Header().Get("ETag")
		body := pxe
		if o := resource.Decode(call(t, s, "admin", "GET", sys, "").Body.Bytes()); o["Boot"].(resource.Object)["BootSourceOverrideTarget"] == "Pxe" {
			body = cd
		}
		var won, lost atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				switch w := call(t, s, "admin", "PATCH", sys, body, "If-Match", etag); w.Code {
				case 200:
					won.Add(1)
				case 412:
					lost.Add(1)
				default:
					t.Errorf("%s", shape("PATCH", sys, body, w))
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Fatalf("%d writers won, %d lost", won.Load(), lost.Load())
		}
	}
}

// TestGzipForClientsThatAcceptIt shows statement A23.
func TestGzipForClientsThatAcceptIt(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	plain := call(t, s, "admin", "GET", sys, "")
	for header, want := range map[string]bool{
		"gzip": true, "deflate, gzip;q=0.5": true, "*": true, "x-gzip": true, "GZIP ; q=1": true, "gzip;q=0": false, "gzip;q=0.000, *": false, "identity": false, "identity, gzip;q=0.5": false, "gzip, identity;q=0.5": true, "br": false, "*;q=0": false,
	} {
		w := call(t, s, "admin", "GET", sys, "", "Accept-Encoding", header)
		is := w.Header().Get("Content-Encoding") == "gzip"
		if is != want || w.Code != 200 || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding: %s: %s", header, shape("GET", sys, "", w))
			continue
		}
		if !is {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		if !bytes.Equal(body, plain.Body.Bytes()) || w.Body.Len() >= plain.Body.Len() {
			t.Errorf("packed in %d bytes: %s", w.Body.Len(), body)
		}
		tag := w.Header().Get("ETag")
		if tag == plain.Header().Get("ETag") {
			t.Errorf("two encodings share the ETag %s", tag)
		}
		if again := call(t, s, "admin", "GET", sys, "", "Accept-Encoding", header, "If-None-Match", tag); again.Code != 304 || again.Header().Get("ETag") != tag {
			t.Errorf("unchanged, but %s", shape("GET", sys, "", again))
		}
		head := call(t, s, "admin", "HEAD", sys, "", "Accept-Encoding", header)
		if head.Header().Get("Content-Length") != w.Header().Get("Content-Length") || head.Header().Get("ETag") != tag || head.Body.Len() > 0 {
			t.Errorf("HEAD differs: %v", head.Header())
		}
		if change := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"None"}}`, "If-Match", tag); change.Code != 200 {
			t.Errorf("its ETag %s does not serve: %s", tag, shape("PATCH", sys, "", change))
		}
	}
	if w := call(t, s, "admin", "GET", "/redfish", "", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a body of a few bytes is packed")
	}
	if w := call(t, s, "admin", "GET", sys+"/nothing", "", "Accept-Encoding", "gzip"); w.Code != 404 || !json.Valid(w.Body.Bytes()) {
		t.Errorf("%s", shape("GET", sys+"/nothing", "", w))
	}
	if w := call(t, newService(t, hostOf(t, func(p *dialect.Protocol) { p.Gzip = false })), "admin", "GET", sys, "", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a vendor that does not pack packed")
	}
}

// TestVendorClosesConnection shows statement A23.
func TestVendorClosesConnection(t *testing.T) {
	for _, closes := range []bool{false, true} {
		server := httptest.NewServer(newService(t, hostOf(t, func(p *dialect.Protocol) { p.CloseAfterResponse = closes })))
		defer server.Close()
		w, err := server.Client().Get(server.URL + "/redfish/v1/")
		must(t, err)
		_, err = io.Copy(io.Discard, w.Body)
		must(t, err)
		must(t, w.Body.Close())
		if w.StatusCode != http.StatusOK || w.Close != closes {
			t.Errorf("GET = %d, the connection ends: %t, want %t", w.StatusCode, w.Close, closes)
		}
	}
}

func TestIfMatchAndIfNoneMatch(t *testing.T) {
	for _, tt := range []struct {
		header string // %s is the ETag
		want   int
	}{
		{`%s`, 200}, {`*`, 200}, {`"a", %s`, 200}, {`"a" , W/"b",%s`, 200},
		{`"bogus"`, 412}, {`W/%s`, 412}, {`bogus`, 412}, {`"`, 412}, {`"a","b"`, 412},
	} {
		s := newService(t, newHost(t))
		_, etag := get(t, s, sys)
		header := strings.ReplaceAll(tt.header, "%s", etag)
		w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`, "If-Match", header)
		if w.Code != tt.want {
			t.Errorf("If-Match: %s: %s; want %d", header, shape("PATCH", sys, "", w), tt.want)
		}
		if _, now := get(t, s, sys); (now != etag) != (tt.want == 200) {
			t.Errorf("If-Match: %s: ETag %s before, %s after", header, etag, now)
		}
		if tt.want == 412 {
			errorOf(t, w)
		}
	}
}

// TestConcurrentPatchesWithSameETagOneSucceeds shows statement A7.
func TestConcurrentPatchesWithSameETagOneSucceeds(t *testing.T) {
	s := newService(t, newHost(t))
	_, etag := get(t, s, sys)
	codes := make(chan int, 50)
	var wg sync.WaitGroup
	for i := range cap(codes) {
		wg.Go(func() {
			target := []string{"Pxe", "Cd", "Hdd"}[i%3]
			call(t, s, "reader", "GET", sys, "") // concurrently with the writers
			codes <- call(t, s, "admin", "PATCH", sys, fmt.Sprintf(`{"Boot":{"BootSourceOverrideTarget":%q}}`, target), "If-Match", etag).Code
		})
	}
	wg.Wait()
	close(codes)
	got := map[int]int{}
	for c := range codes {
		got[c]++
	}
	if diff := cmp.Diff(map[int]int{200: 1, 412: cap(codes) - 1}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// TestETagChangesOnlyWithRepresentation shows statement A6.
func TestETagChangesOnlyWithRepresentation(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	_, before := get(t, s, sys)
	logIn(t, s, "admin") // changes a part of the BMC that the system does not show
	if _, now := get(t, s, sys); now != before {
		t.Errorf("ETag of the system after a login %s, before %s", now, before)
	}
	call(t, s, "admin", "POST", sys+"/Actions/ComputerSystem.Reset", `{"ResetType":"On"}`)
	_, on := get(t, s, sys)
	if on == before {
		t.Error("ETag of the system is the same when it is switched on")
	}
	if _, etag := get(t, newService(t, newHost(t)), sys); etag != before {
		t.Errorf("ETag of a twin %s, want %s", etag, before)
	}
}

package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// flaky serves an image, and breaks each connection after some bytes.
type flaky struct {
	image  []byte
	breaks []int  // bytes of each response in turn; the last value is for all further ones
	tag    string // "": the server cannot resume
	asked  atomic.Int32
	change bool // each request gets another image
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(f.asked.Add(1)) - 1
	if f.tag != "" {
		tag := f.tag
		if f.change {
			tag = fmt.Sprintf("%q", fmt.Sprint("v", n))
		}
		w.Header().Set("ETag", tag)
	} else {
		w.Header().Set("Accept-Ranges", "none")
		r.Header.Del("Range")
	}
	cut := f.breaks[min(n, len(f.breaks)-1)]
	http.ServeContent(&cutter{ResponseWriter: w, left: cut}, r, "", time.Time{}, bytes.NewReader(f.image))
}

// cutter breaks the connection after some bytes of the body.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func TestBrokenTransferResumesWithRange(t *testing.T) {
	image := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	const all = 1 << 30
	for _, tt := range []struct {
		name  string
		f     *flaky
		asked int32
		fails bool
	}{
		{"in one response", &flaky{breaks: []int{all}, tag: `"v"`}, 1, false},
		{"broken twice", &flaky{breaks: []int{300_000, 200_001, all}, tag: `"v"`}, 3, false},
		{"broken at each step", &flaky{breaks: []int{100_000}, tag: `"v"`}, 11, false},
		{"broken without end", &flaky{breaks: []int{300_000, 0}, tag: `"v"`}, 2 + maxAttemptsInVain, true},
		{"broken at once", &flaky{breaks: []int{0}, tag: `"v"`}, 1, true},
		{"no ranges", &flaky{breaks: []int{300_000, all}}, 1, true},
		{"weak tag", &flaky{breaks: []int{300_000, all}, tag: `W/"v"`}, 1, true},
		{"changed meanwhile", &flaky{breaks: []int{300_000, all}, tag: `"v"`, change: true}, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.image = image
			srv := httptest.NewServer(tt.f)
			defer srv.Close()
			var got bytes.Buffer
			n, err := New(Config{}).Fetch(t.Context(), Image{URL: srv.URL + "/x.iso"}, &got)
			if tt.fails {
				if !errors.Is(err, bmc.ErrMedia) {
					t.Errorf("Fetch() = %d, %v, want an error", n, err)
				}
			} else if err != nil || n != int64(len(image)) || !bytes.Equal(got.Bytes(), image) {
				t.Errorf("Fetch() = %d, %v; right bytes: %t", n, err, bytes.Equal(got.Bytes(), image))
			}
			if asked := tt.f.asked.Load(); asked != tt.asked {
				t.Errorf("the server was asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}

func TestFetchTrustsGivenCertificates(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("image")) }))
	defer srv.Close()
	f := New(Config{})
	for _, tt := range []struct {
		name string
		img  Image
		ok   bool
	}{
		{"verified", Image{}, false},
		{"unverified", Image{Unverified: true}, true},
		{"trusted", Image{Trusted: [][]byte{srv.Certificate().Raw}}, true},
		{"noise trusted", Image{Trusted: [][]byte{{1}}}, false},
	} {
		tt.img.URL = srv.URL
		var b strings.Builder
		if _, err := f.Fetch(t.Context(), tt.img, &b); (err == nil) != tt.ok || tt.ok && b.String() != "image" {
			t.Errorf("%s: %v, %q", tt.name, err, b.String())
		}
	}
}

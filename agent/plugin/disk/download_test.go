package disk

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// handler responds to the n-th request for the image, counted from 0.
type handler func(n int, image []byte, w http.ResponseWriter, r *http.Request)

// cut sends the requested range and breaks the connection after most bytes.
func cut(w http.ResponseWriter, r *http.Request, image []byte, most int) {
	http.ServeContent(&cutter{w, most}, r, "", time.Time{}, strings.NewReader(string(image)))
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) >= c.left {
		c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func TestDownloads(t *testing.T) {
	for _, tt := range []struct {
		name     string
		do       handler
		stall    time.Duration
		want     string // "" if the download succeeds
		requests int32
	}{
		{name: "in one go", requests: 1, do: func(_ int, image []byte, w http.ResponseWriter, r *http.Request) {
			cut(w, r, image, 1<<30)
		}},
		{name: "length unknown", requests: 1, do: func(_ int, image []byte, w http.ResponseWriter, r *http.Request) {
			for len(image) > 0 {
				n := min(len(image), 100_000)
				w.Write(image[:n])
				w.(http.Flusher).Flush()
				image = image[n:]
			}
		}},
		{name: "resumed by ETag", requests: 4, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			if n > 0 && (r.Header.Get("If-Range") != `"v1"` || !strings.HasPrefix(r.Header.Get("Range"), "bytes=")) {
				http.Error(w, "no range", http.StatusBadRequest)
				return
			}
			w.Header().Set("ETag", `"v1"`)
			cut(w, r, image, 1_000_000)
		}},
		{name: "resumed by date", requests: 2, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			const date = "Tue, 15 Nov 1994 12:45:26 GMT"
			if n > 0 && r.Header.Get("If-Range") != date {
				http.Error(w, "no date", http.StatusBadRequest)
				return
			}
			w.Header().Set("ETag", `W/"weak"`)
			w.Header().Set("Last-Modified", date)
			r.Header.Del("If-Range")
			cut(w, r, image, 3_000_000>>(2*n)<<(4*n))
		}},
		{name: "server without ranges", requests: 3, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			cut(w, r, image, 1_500_000*(n+1))
		}},
		{name: "server trouble first", requests: 3, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			if n < 2 {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return
			}
			cut(w, r, image, 1<<30)
		}},
		{name: "stalled once", stall: time.Second / 2, requests: 2, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			if n > 0 {
				cut(w, r, image, 1<<30)
				return
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(image)))
			w.Write(image[:mib])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{name: "silent", stall: 20 * time.Millisecond, requests: 6, want: "the server stopped sending", do: func(_ int, _ []byte, w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}},
		{name: "broken again and again", requests: 6, want: "after 300 bytes: unexpected EOF", do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			cut(w, r, image, 50)
		}},
		{name: "changed meanwhile", requests: 2, want: "after 1000000 bytes: the file changed on the server", do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, n))
			cut(w, r, image, 1_000_000)
		}},
		{name: "grown meanwhile", requests: 2, want: "the file changed on the server", do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			cut(w, r, append(image, make([]byte, n)...), 1_000_000)
		}},
		{name: "wrong range", requests: 2, want: `Content-Range is "bytes 0-9/10"`, do: func(n int, image []byte, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				cut(w, r, image, 1_000_000)
				return
			}
			w.Header().Set("Content-Range", "bytes 0-9/10")
			w.WriteHeader(http.StatusPartialContent)
		}},
		{name: "range that was not asked for", requests: 1, want: "the server answers 206", do: func(_ int, _ []byte, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
		}},
		{name: "packed on the way", requests: 1, want: "Content-Encoding gzip", do: func(_ int, image []byte, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(image)
		}},
		{name: "forbidden", requests: 1, want: "the server answers 403 Forbidden", do: func(_ int, _ []byte, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		}},
		{name: "redirect to a file", requests: 1, want: `redirect to scheme "file" is not followed`, do: func(_ int, _ []byte, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}},
		{name: "redirect in a circle", requests: 10, want: "more than 10 redirects", do: func(_ int, _ []byte, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}},
		{name: "not HTTP", requests: 6, want: "malformed HTTP", do: func(_ int, _ []byte, w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Write([]byte("220 ftp.example.org ready\r\n"))
			c.Close()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			image := content(3_500_000, 1)
			image[0] = 0xeb
			var requests atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
				}
				tt.do(int(requests.Add(1))-1, image[:len(image):len(image)], w, r)
			}))
			defer s.Close()
			secret := strings.Replace(s.URL, "http://", "http://user:hunter2@", 1) + "/disk.img?sig=hunter2"
			m := systest.NewMemory(8 * mib)
			_, _, err := writeStall(t, m, job.WriteSpec{URL: secret, Checksum: sha256Hex(image)}, tt.stall)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Write = %v", err)
			case tt.want == "" && get(t, m, 0, len(image)) != string(image):
				t.Error("the disk does not hold the image")
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Write error = %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the error tells a secret: %v", err)
			}
			if got := requests.Load(); got != tt.requests {
				t.Errorf("%d requests were made, want %d", got, tt.requests)
			}
		})
	}
}

func TestChecksumIsNotFetchedOverHTTPAfterHTTPS(t *testing.T) {
	plain := serve(t, map[string]string{"/sums": sha256Sum})
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/sums", http.StatusFound))
	defer s.Close()
	u, _ := url.Parse(s.URL + "/sums")
	w := Writer{HTTP: s.Client()}
	if _, err := w.open(t.Context(), u, true, nil); err == nil || !strings.Contains(err.Error(), "redirect from https to http") {
		t.Errorf("open = %v, want the redirect refused", err)
	}
	d, err := w.open(t.Context(), u, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.close()
}

func TestUntrustedServerIsNotRetried(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the failed handshake
	s.StartTLS()
	defer s.Close()
	var dials atomic.Int32
	u, _ := url.Parse(s.URL)
	w := Writer{HTTP: &http.Client{Transport: countingTransport{&dials, &http.Transport{}}}}
	if _, err := w.open(t.Context(), u, false, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("open = %v, want an untrusted certificate", err)
	}
	if dials.Load() != 1 {
		t.Errorf("%d requests, want 1", dials.Load())
	}
}

type countingTransport struct {
	n *atomic.Int32
	*http.Transport
}

func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.Transport.RoundTrip(r)
}

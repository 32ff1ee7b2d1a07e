package rack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

const systemURI = "/redfish/v1/Systems/1"

// bench opens and serves a rack until the benchmark ends.
func bench(b *testing.B, hosts int) *Rack {
	b.Helper()
	return benchRack(b, rackfile.Default(hosts))
}

func benchRack(b *testing.B, r rackfile.Lab) *Rack {
	b.Helper()
	return benchAt(b, r, 60) // the default speed of labctl up
}

func benchAt(b *testing.B, r rackfile.Lab, speed float64) *Rack {
	b.Helper()
	time := clock.NewScaled(origin, speed)
	l, err := Open(b.Context(), Config{Dir: b.TempDir(), Rack: &r, Clock: time, Listen: "lo:0"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = time.Run(ctx) })
	running.Go(func() { _ = l.Serve(ctx) })
	b.Cleanup(func() {
		stop()
		running.Wait()
		_ = l.Close()
	})
	return l
}

// login opens a session and returns its token.
func login(b *testing.B, h *Host) string {
	b.Helper()
	a, _ := h.Admin()
	if _, err := h.ApplyBMC(b.Context(), bmc.OpenSession{Account: a, Token: "token-of-the-benchmark", From: "127.0.0.1"}); err != nil {
		b.Fatal(err)
	}
	return "token-of-the-benchmark"
}

// wire is a connection of a client that does as little as possible.
type wire struct {
	net.Conn
	in      *bufio.Reader
	asked   int                // requests sent
	request func(i int) []byte // the i-th
}

func dial(addr string, roots *tls.Config) (*wire, error) {
	var c net.Conn
	var err error
	if roots == nil {
		c, err = net.Dial("tcp", addr)
	} else {
		c, err = tls.Dial("tcp", addr, roots)
	}
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// ask sends a request and reads its response.
func (w *wire) ask(request []byte) (status, length int, err error) {
	w.asked++
	if _, err := w.Write(request); err != nil {
		return 0, 0, err
	}
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if first {
			status, _ = strconv.Atoi(string(line[9:12]))
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("content-length: ")); ok {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
	}
	_, err = io.CopyN(io.Discard, w.in, int64(length))
	return status, length, err
}

// load sends n requests over the connections and returns how long it took.
func load(b *testing.B, over []*wire, n int) time.Duration {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	start := clock.Wall()
	for _, w := range over {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				status, _, err := w.ask(w.request(w.asked))
				if err != nil || status >= http.StatusMultipleChoices {
					b.Errorf("request %d: %d, %v", i, status, err)
					return
				}
			}
		})
	}
	all.Wait()
	return clock.Wall().Sub(start)
}

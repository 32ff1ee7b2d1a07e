package view_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// page is a lab with its page.
type page struct {
	*racktest.Rack
	url, token string
	server     *view.Server
	client     *http.Client // without cookies
}

const maxTyped = 64 << 10 // bytes

// racks returns a lab of racks, which are in YAML.
func racks(t testing.TB, text string) rackfile.Lab {
	t.Helper()
	r, err := rackfile.Parse("racks.yaml", []byte("kind: Lab\nracks:\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start serves the page of a lab until the test ends. Its servers boot what they try, and
// have an account root with the password calvin.
func start(t testing.TB, r rackfile.Lab, objects view.Objects) *page {
	t.Helper()
	boots := racktest.NewBoots(t)
	answer := func(h *rack.Host, ev machine.Event) {
		boots.Answer(h, ev)
		if try, ok := ev.(machine.BootAttempted); ok {
			if err := h.Apply(t.Context(), machine.AddLogin{Boot: try.Boot, Name: "root", Password: "calvin"}); err != nil {
				t.Log(err)
			}
		}
	}
	dir, err := os.MkdirTemp("/tmp", "run") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	l := racktest.Start(t, rack.Config{Rack: &r, Events: answer})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + listener.Addr().String()
	c, err := control.New(control.Config{Rack: l.Rack, Info: func() control.Status { return control.Status{View: view.Link(at, l.Dir())} }})
	if err != nil {
		t.Fatal(err)
	}
	v, err := view.New(view.Config{
		Rack: l.Rack, Actions: control.NewClient(l.Dir()), Objects: objects, Status: func() control.Status { return control.Status{Speed: "60x"} },
		BodyPace: network.BodyPace{Bytes: maxTyped, Per: time.Second}, // a body that no test sends takes that long
	})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, v, c, listener)
}

// serve serves a page and the control API of its lab until the test ends.
func serve(t testing.TB, l *racktest.Rack, v *view.Server, c *control.Server, listener net.Listener) *page {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := v.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := c.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	token, err := os.ReadFile(filepath.Join(l.Dir(), view.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &page{
		Rack: l, server: v, url: "http://" + listener.Addr().String(), token: strings.TrimSpace(string(token)),
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// do sends a request, and returns the status and the body.
func (p *page) do(t testing.TB, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" { // it has no end
		return resp, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return resp, string(b)
}

func (p *page) bearer() []string { return []string{"Authorization", "Bearer " + p.token} }

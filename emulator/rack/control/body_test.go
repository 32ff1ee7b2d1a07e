package control_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

func TestClientThatSendsABodySlowlyIsCut(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	start(t, control.Config{Rack: l.Rack, BodyPace: network.BodyPace{Bytes: 1 << 10, Per: 100 * time.Millisecond}})
	for _, path := range []string{"/v1/hosts/" + l.First().Name() + "/power", "/v1/snapshot"} {
		c, err := net.Dial("unix", filepath.Join(l.Dir(), "control.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(clock.Wall().Add(20 * time.Second)); err != nil { // less than network.DefaultBodyPace.Per
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: lab\r\nContent-Length: 1000\r\n\r\n{", path)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("POST %s with 1 of 1000 bytes: %v, want a response", path, err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !resp.Close {
			t.Errorf("POST %s with 1 of 1000 bytes = %s, close %t, want 400 and the connection's end", path, resp.Status, resp.Close)
		}
	}
}

package view_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The page's server reads what a user types at a console: a client that sends it slowly is
// cut.
func TestBrowserThatSendsABodySlowlyIsCut(t *testing.T) {
	p := start(t, racks(t, "- {name: r1, hosts: [{count: 1}]}\n"), nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // less than network.DefaultBodyPace.Per
		t.Fatal(err)
	}
	path := "/hosts/" + p.Rack.First().Name() + "/console"
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nx", path, c.RemoteAddr(), p.url, p.token)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("POST %s with 1 of 1000 bytes: %v, want a response", path, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || !resp.Close {
		t.Errorf("POST %s with 1 of 1000 bytes = %s, close %t, want 400 and the connection's end", path, resp.Status, resp.Close)
	}
}

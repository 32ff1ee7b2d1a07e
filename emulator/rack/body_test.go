package rack_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/network"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// sendHeaders sends the headers of a request with a body of 1000 bytes, and some of the
// body, and returns the response.
func sendHeaders(t *testing.T, l *racktest.Rack, h *rack.Host, method, path, headers, some string) *http.Response {
	t.Helper()
	c, err := tls.Dial("tcp", h.Address().String(), &tls.Config{RootCAs: l.CAs(), MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(clock.Wall().Add(20 * time.Second)); err != nil { // less than DefaultBodyPace.Per
		t.Fatal(err)
	}
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: bmc\r\nContent-Length: 1000\r\n%s\r\n%s", method, path, headers, some)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s %s without its body: %v, want a response", method, path, err)
	}
	resp.Body.Close()
	return resp
}

// basic returns the header of HTTP basic authentication.
func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

// A client that may not send a request does not decide how long it lasts: the response does
// not wait for the body.
func TestRefusedRequestIsAnsweredBeforeItsBody(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	user, password := l.Credentials(h)
	call(t, l, h, "POST", "/redfish/v1/AccountService/Accounts", `{"UserName":"reader","Password":"Read-secret-3","RoleId":"ReadOnly"}`)
	const json = "Content-Type: application/json\r\n"
	for _, tt := range []struct {
		method, path, headers string
		want                  int
	}{
		{"PATCH", systemPath, json, 401},
		{"PATCH", systemPath, json + "X-Auth-Token: 0123456789abcdef\r\n", 401},
		{"PATCH", systemPath, json + basic(user, password+"x"), 401},
		{"PATCH", systemPath, json + basic("reader", "Read-secret-3"), 403},
		{"POST", systemPath + "/Actions/ComputerSystem.Reset", json, 401},
		{"POST", resource.MultipartPush, "Content-Type: multipart/form-data; boundary=x\r\n", 401},
		{"DELETE", systemPath, "", 401},
		{"GET", systemPath, "", 401},
		{"PUT", "/redfish/v1/nothing", "Expect: 100-continue\r\n", 401},
	} {
		resp := sendHeaders(t, l, h, tt.method, tt.path, tt.headers, "{")
		if resp.StatusCode != tt.want {
			t.Errorf("%s %s with %q = %s, want %d", tt.method, tt.path, tt.headers, resp.Status, tt.want)
		}
	}
}

func TestClientThatSendsABodySlowlyIsCut(t *testing.T) {
	l := racktest.Start(t, rack.Config{BodyPace: network.BodyPace{Bytes: 1 << 10, Per: 100 * time.Millisecond}})
	h := l.First()
	auth := basic(l.Credentials(h))
	const json = "Content-Type: application/json\r\n"
	for _, tt := range []struct{ method, path, headers string }{
		{"PATCH", systemPath, json},
		{"POST", "/redfish/v1/SessionService/Sessions", json}, // needs no authentication
		{"POST", resource.MultipartPush, "Content-Type: multipart/form-data; boundary=x\r\n"},
		{"POST", resource.PlainPush, "Content-Type: application/octet-stream\r\n"},
	} {
		resp := sendHeaders(t, l, h, tt.method, tt.path, tt.headers+auth, strings.Repeat("-", 8))
		if resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s %s with 8 of 1000 bytes = %s, want 408", tt.method, tt.path, resp.Status)
		}
	}
}

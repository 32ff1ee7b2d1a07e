package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// maxAnswer bounds the bytes of a response. A host takes some hundred.
const maxAnswer = 1 << 30

// Client calls the control API of a lab: the one in a directory, or one at a URL. Its
// methods return ErrNoLab when no lab runs in the directory.
type Client struct {
	dir  string // "" of a lab at a URL
	base string // URL of the API, without /v1
	http *http.Client
}

// NewClient returns a client for the lab in dir, whether it runs or not.
func NewClient(dir string) *Client {
	c := &Client{dir: dir, base: "http://lab"}
	c.http = &http.Client{Transport: &http.Transport{DialContext: c.dial, DisableKeepAlives: true}}
	return c
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	path, err := os.Readlink(filepath.Join(c.dir, socketLink))
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// Status returns the state of the lab.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var st Status
	err := c.do(ctx, http.MethodGet, "/v1/status", nil, &st)
	return st, err
}

// Rack returns the definition of the lab, with the passwords of its accounts.
func (c *Client) Rack(ctx context.Context) (rackfile.Lab, error) {
	var r rackfile.Lab
	err := c.do(ctx, http.MethodGet, "/v1/rack", nil, &r)
	return r, err
}

// Hosts returns the lab's hosts.
func (c *Client) Hosts(ctx context.Context) ([]Host, error) {
	var hosts []Host
	err := c.do(ctx, http.MethodGet, "/v1/hosts", nil, &hosts)
	return hosts, err
}

// Host returns all details of one host.
func (c *Client) Host(ctx context.Context, host string) (Detail, error) {
	var d Detail
	err := c.do(ctx, http.MethodGet, at(host), nil, &d)
	return d, err
}

// Power resets a host and returns its new state. The reset is a ResetType of
// Redfish.
func (c *Client) Power(ctx context.Context, host, reset string) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "power"), resetRequest{Reset: reset}, &h)
	return h, err
}

// ResetToProfile resets a host to what its profile says, with empty disks, and returns
// its new state. Other hosts go on.
func (c *Client) ResetToProfile(ctx context.Context, host string) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "reset"), nil, &h)
	return h, err
}

// ResetSystem removes what the operating system that a host runs has stored since its installation,
// and restarts the host, whose next boot is the first one again.
func (c *Client) ResetSystem(ctx context.Context, host string) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "system", "reset"), nil, &h)
	return h, err
}

// ResetBMC restarts a host's BMC. It returns before the BMC is down.
func (c *Client) ResetBMC(ctx context.Context, host string, r BMCReset) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "bmc", "reset"), r, &h)
	return h, err
}

// SelfTest sets the result of the self-test of a host's BMC.
func (c *Client) SelfTest(ctx context.Context, host string, found SelfTest) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "bmc", "selftest"), found, &h)
	return h, err
}

// Boot sets the boot override of a host and returns its new state. An Override
// without a target removes the override.
func (c *Client) Boot(ctx context.Context, host string, o Override) (Detail, error) {
	var d Detail
	err := c.do(ctx, http.MethodPost, at(host, "boot"), o, &d)
	return d, err
}

// Media returns the virtual media slots of a host.
func (c *Client) Media(ctx context.Context, host string) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodGet, at(host, "media"), nil, &m)
	return m, err
}

// InsertMedia inserts an image into a slot. It returns when the BMC has fetched the
// image.
func (c *Client) InsertMedia(ctx context.Context, host, slot string, i Image) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodPost, at(host, "media", slot, "insert"), i, &m)
	return m, err
}

// EjectMedia ejects the image of a slot.
func (c *Client) EjectMedia(ctx context.Context, host, slot string) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodPost, at(host, "media", slot, "eject"), nil, &m)
	return m, err
}

// The logs of a BMC: the event log of its machine, and the audit log of requests and
// logins.
const (
	Events = string(bmc.EventLog)
	Audit  = string(bmc.AuditLog)
)

// Log returns the entries of a log of a host's BMC, oldest first.
func (c *Client) Log(ctx context.Context, host, log string) ([]LogEntry, error) {
	var l []LogEntry
	err := c.do(ctx, http.MethodGet, at(host, "log", log), nil, &l)
	return l, err
}

// ClearLog clears a log of a host's BMC.
func (c *Client) ClearLog(ctx context.Context, host, log string) error {
	return c.do(ctx, http.MethodDelete, at(host, "log", log), nil, new([]LogEntry))
}

// Metrics returns the metrics in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	body, err := c.open(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// at returns the path of a host, or of a resource below it.
func at(host string, below ...string) string {
	path := "/v1/hosts/" + url.PathEscape(host)
	for _, b := range below {
		path += "/" + url.PathEscape(b)
	}
	return path
}

// Down stops the lab, and returns when its directory is free.
func (c *Client) Down(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPost, "/v1/down", nil, &Status{}); err != nil || c.dir == "" {
		return err
	}
	return rack.Released(ctx, c.dir)
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	r, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err == nil {
		err = json.Unmarshal(b, answer)
	}
	if err != nil {
		return err
	}
	return nil
}

// open sends a request and returns the body of a successful response.
func (c *Client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.openRaw(ctx, method, path, b)
}

// openRaw sends a request with a body as it is, and returns the body of a successful
// response.
func (c *Client) openRaw(ctx context.Context, method, path string, b []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	resp, err := c.send(req)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode < http.StatusBadRequest:
		return resp.Body, nil
	}
	return nil, refusedError(resp)
}

// send sends a request. The response may be an error of the lab.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	switch {
	case c.dir != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return nil, &noLabError{dir: c.dir}
	case err != nil:
		return nil, err
	}
	return resp, nil
}

// refusedError returns the error that a response contains.
func refusedError(resp *http.Response) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var p errorBody
	if err != nil || json.Unmarshal(b, &p) != nil || p.Error == "" {
		p.Error = "the lab answered " + resp.Status
	}
	return &Refused{Status: resp.StatusCode, Text: p.Error}
}

// Refused is an error response of the lab.
type Refused struct {
	Status int // HTTP status
	Text   string
}

// Error implements error.
func (e *Refused) Error() string { return e.Text }

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/lab"
)

// maxAnswer bounds what a client reads: some hundred bytes for each host.
const maxAnswer = 1 << 30

// Client speaks to the lab in one directory. Its methods answer ErrNoLab when
// none runs there.
type Client struct {
	dir  string
	http *http.Client
}

// NewClient is a client for the lab in dir, whether it runs or not.
func NewClient(dir string) *Client {
	c := &Client{dir: dir}
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

// Status describes the lab.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var st Status
	err := c.do(ctx, http.MethodGet, "/v1/status", nil, &st)
	return st, err
}

// Hosts describes the lab's hosts.
func (c *Client) Hosts(ctx context.Context) ([]Host, error) {
	var hosts []Host
	err := c.do(ctx, http.MethodGet, "/v1/hosts", nil, &hosts)
	return hosts, err
}

// Host describes one host in full.
func (c *Client) Host(ctx context.Context, host string) (Detail, error) {
	var d Detail
	err := c.do(ctx, http.MethodGet, at(host), nil, &d)
	return d, err
}

// Power resets a host; reset is a ResetType of Redfish. It returns the host as
// it is then.
func (c *Client) Power(ctx context.Context, host, reset string) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "power"), resetRequest{Reset: reset}, &h)
	return h, err
}

// ResetBMC restarts a host's BMC. It returns before the BMC is down.
func (c *Client) ResetBMC(ctx context.Context, host string, r BMCReset) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "bmc", "reset"), r, &h)
	return h, err
}

// SelfTest sets what a host's BMC finds when it tests itself.
func (c *Client) SelfTest(ctx context.Context, host string, found SelfTest) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, at(host, "bmc", "selftest"), found, &h)
	return h, err
}

// Boot sets what a host boots next; an Override without a target ends one that
// is set. It returns the host as it is then.
func (c *Client) Boot(ctx context.Context, host string, o Override) (Detail, error) {
	var d Detail
	err := c.do(ctx, http.MethodPost, at(host, "boot"), o, &d)
	return d, err
}

// Media lists the slots of a host's virtual media.
func (c *Client) Media(ctx context.Context, host string) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodGet, at(host, "media"), nil, &m)
	return m, err
}

// InsertMedia puts an image into a slot; it returns when the BMC has fetched it.
func (c *Client) InsertMedia(ctx context.Context, host, slot string, i Image) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodPost, at(host, "media", slot, "insert"), i, &m)
	return m, err
}

// EjectMedia empties a slot.
func (c *Client) EjectMedia(ctx context.Context, host, slot string) ([]Media, error) {
	var m []Media
	err := c.do(ctx, http.MethodPost, at(host, "media", slot, "eject"), nil, &m)
	return m, err
}

// The logs of a BMC: of its machine, and of who came and what was asked.
const (
	Events = string(bmc.EventLog)
	Audit  = string(bmc.AuditLog)
)

// Log lists a log of a host's BMC, oldest first.
func (c *Client) Log(ctx context.Context, host, log string) ([]LogEntry, error) {
	var l []LogEntry
	err := c.do(ctx, http.MethodGet, at(host, "log", log), nil, &l)
	return l, err
}

// ClearLog empties a log of a host's BMC.
func (c *Client) ClearLog(ctx context.Context, host, log string) error {
	return c.do(ctx, http.MethodDelete, at(host, "log", log), nil, new([]LogEntry))
}

// Metrics is what Prometheus is told, as text.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	body, err := c.open(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return b, nil
}

// at is the address of a host, or of something below it.
func at(host string, below ...string) string {
	path := "/v1/hosts/" + url.PathEscape(host)
	for _, b := range below {
		path += "/" + url.PathEscape(b)
	}
	return path
}

// Down ends the lab, and returns when its directory is free.
func (c *Client) Down(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPost, "/v1/down", nil, &Status{}); err != nil {
		return err
	}
	return lab.Released(ctx, c.dir)
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
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// open sends a request, and returns the body of an answer that is no refusal.
func (c *Client) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, &noLabError{dir: c.dir}
	case err != nil:
		return nil, fmt.Errorf("control: %w", err)
	case resp.StatusCode < http.StatusBadRequest:
		return resp.Body, nil
	}
	return nil, refusedError(resp)
}

// refusedError is what an answer says of why something was not done.
func refusedError(resp *http.Response) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	var p errorBody
	if err != nil || json.Unmarshal(b, &p) != nil || p.Error == "" {
		p.Error = "the lab answered " + resp.Status
	}
	return &Refused{Status: resp.StatusCode, Text: p.Error}
}

// Refused is what a lab did not do, and why.
type Refused struct {
	Status int // of HTTP
	Text   string
}

// Error implements error.
func (e *Refused) Error() string { return e.Text }

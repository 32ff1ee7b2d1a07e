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
	path, err := os.Readlink(filepath.Join(c.dir, link))
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

// Power resets a host; reset is a ResetType of Redfish. It returns the host as
// it is then.
func (c *Client) Power(ctx context.Context, host, reset string) (Host, error) {
	var h Host
	err := c.do(ctx, http.MethodPost, "/v1/hosts/"+url.PathEscape(host)+"/power", power{Reset: reset}, &h)
	return h, err
}

// Down ends the lab, and returns when its directory is free.
func (c *Client) Down(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPost, "/v1/down", nil, &Status{}); err != nil {
		return err
	}
	return lab.Released(ctx, c.dir)
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &noLab{dir: c.dir}
	case err != nil:
		return fmt.Errorf("control: %w", err)
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var p problem
		if json.Unmarshal(b, &p) != nil || p.Error == "" {
			p.Error = "the lab answered " + resp.Status
		}
		return fmt.Errorf("control: %s", p.Error)
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

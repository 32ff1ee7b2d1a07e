package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

const (
	// atOnce is how many hosts a bulk request works on at the same time.
	atOnce = 16
	// maxBulk is how many hosts a client names in one request: less than maxBody.
	maxBulk = 10_000
)

// powerRequest is the body of a request to reset several hosts.
type powerRequest struct {
	Hosts []string `json:"hosts"`
	Reset string   `json:"reset"` // a ResetType of Redfish
}

// Powered is a line of the response: a host that was reset, or why it was not.
type Powered struct {
	Name  string `json:"name"`
	Host  *Host  `json:"host,omitempty"`  // its new state
	Error string `json:"error,omitempty"` // "": none
}

// powerAll resets several hosts. One request for each would cost more than the resets:
// BenchmarkPower.
func (s *Server) powerAll(w http.ResponseWriter, r *http.Request) {
	c := &apiRequest{Request: r, s: s, rack: s.c.Rack}
	c.Body = http.MaxBytesReader(w, r.Body, maxBody)
	var in powerRequest
	if err := c.decodeBody(&in); err != nil {
		s.answer(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	var mu sync.Mutex // held while a line is written
	var gone error
	work := make(chan string)
	var all sync.WaitGroup
	for range min(atOnce, len(in.Hosts)) {
		all.Go(func() {
			for name := range work {
				line := s.power(r.Context(), name, in.Reset)
				mu.Lock()
				gone = errors.Join(gone, lines.Encode(line))
				mu.Unlock()
			}
		})
	}
	for _, name := range in.Hosts {
		if r.Context().Err() != nil {
			break
		}
		work <- name
	}
	close(work)
	all.Wait()
	if err := errors.Join(gone, out.Flush()); err != nil {
		s.c.Log.Debug("client gone", "err", err)
	}
}

// power resets one host.
func (s *Server) power(ctx context.Context, name, reset string) Powered {
	h, ok := s.c.Rack.Host(name)
	if !ok {
		return Powered{Name: name, Error: "there is no host " + name}
	}
	defer s.c.Rack.Clock().Enter()() // the clock waits for the change
	if err := h.Power(ctx, reset); err != nil {
		return Powered{Name: name, Error: err.Error()}
	}
	d := describe(s.c.Rack, h)
	return Powered{Name: name, Host: &d}
}

// PowerAll resets hosts and calls done for each, in any order. The reset is a ResetType
// of Redfish. An error is of the request, not of a host.
func (c *Client) PowerAll(ctx context.Context, hosts []string, reset string, done func(Powered)) error {
	for some := range slices.Chunk(hosts, maxBulk) {
		if err := c.powerSome(ctx, some, reset, done); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) powerSome(ctx context.Context, hosts []string, reset string, done func(Powered)) error {
	body, err := c.open(ctx, http.MethodPost, "/v1/power", powerRequest{Hosts: hosts, Reset: reset})
	if err != nil {
		return err
	}
	defer body.Close()
	lines := json.NewDecoder(bufio.NewReader(body))
	for n := 0; ; n++ {
		var line Powered
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF) && n == len(hosts):
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the lab ended after %d of %d hosts", n, len(hosts))
		case err != nil:
			return err
		}
		done(line)
	}
}

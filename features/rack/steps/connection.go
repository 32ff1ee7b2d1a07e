package steps

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
)

// countConnections sends requests one after another, as a client without open
// connections, and counts the connections that it opens.
func (s *scenario) countConnections(requests int, path string, http2 bool) error {
	transport := s.lab.Client.Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2 = http2
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	s.connections = 0
	for range requests {
		ctx := httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
			if !c.Reused {
				s.connections++
			}
		}})
		r, err := http.NewRequestWithContext(ctx, "GET", s.server(1).URL()+s.uri(path), nil)
		if err != nil {
			return err
		}
		r.SetBasicAuth(s.lab.Credentials(s.server(1)))
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if closed := resp.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
		if s.proto = resp.Proto; resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: the response is %s", path, resp.Status)
		}
	}
	return nil
}

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// upgrade turns a request into a connection of another protocol (RFC 9110 §7.8). in has
// what the client sends. ok is false when the request was answered with an error; else
// the caller calls closeConn at the end.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, protocol string) (conn net.Conn, in io.Reader, closeConn func(), ok bool) {
	if r.Header.Get("Upgrade") != protocol {
		s.answer(w, http.StatusBadRequest, errorBody{fmt.Sprintf("%s needs the header Upgrade: %s", r.URL.Path, protocol)})
		return nil, nil, nil, false
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.answer(w, http.StatusInternalServerError, errorBody{err.Error()})
		return nil, nil, nil, false
	}
	s.consoles.Add(1)
	stop := context.AfterFunc(r.Context(), func() { conn.Close() }) // the lab ends
	closeConn = func() {
		stop()
		conn.Close()
		s.consoles.Done()
	}
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol); err != nil {
		closeConn()
		return nil, nil, nil, false
	}
	// Only the buffered bytes are read from buffered: reading more through it would end
	// the request's context when the client closes its side.
	first := io.LimitReader(buffered, int64(buffered.Reader.Buffered()))
	return conn, io.MultiReader(first, conn), closeConn, true
}

// connection is a connection of another protocol, at the client.
type connection interface {
	io.ReadWriteCloser
	// CloseWrite ends what the client sends.
	CloseWrite() error
}

// connect opens a connection of another protocol.
func (c *Client) connect(ctx context.Context, path, protocol string) (connection, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusedError(resp)
	}
	conn, ok := resp.Body.(connection)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T cannot be written to", resp.Body), resp.Body.Close())
	}
	return conn, nil
}

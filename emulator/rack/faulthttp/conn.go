package faulthttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// Time limits, in real time, for a hijacked connection.
const (
	writeTime  = 10 * time.Second
	lingerTime = 2 * time.Minute
)

// hijack takes a request's connection from the server. An HTTP/2 stream has no
// connection that it could hijack: it is reset with http.ErrAbortHandler.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return c
}

// Abort ends the connection of a request with an RST.
func Abort(w http.ResponseWriter) { network.Reset(hijack(w)) }

// halfClose closes the server's side of a connection and reads until the client
// closes its side.
func halfClose(ctx context.Context, w http.ResponseWriter) {
	c := hijack(w)
	defer network.Reset(c)
	stop := context.AfterFunc(ctx, func() { network.Reset(c) })
	defer stop()
	_ = c.SetDeadline(clock.Wall().Add(lingerTime))
	if t, ok := c.(*tls.Conn); ok {
		_ = t.CloseWrite()
		c = t.NetConn()
	}
	if tcp, ok := c.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, c)
}

// writeRaw writes a response to the connection itself, with a Content-Length that
// need not be that of the body. Then it closes the connection, with an RST when
// abrupt is true.
func writeRaw(w http.ResponseWriter, a *heldResponse, length int, body []byte, abrupt bool) {
	c := hijack(w)
	a.header.Set("Content-Length", fmt.Sprint(length))
	a.header.Set("Connection", "close")
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	err := a.header.Write(&out)
	out.WriteString("\r\n")
	out.Write(body)
	_ = c.SetDeadline(clock.Wall().Add(writeTime))
	if _, werr := c.Write(out.Bytes()); abrupt || errors.Join(err, werr) != nil {
		network.Reset(c)
		return
	}
	_ = c.Close()
}

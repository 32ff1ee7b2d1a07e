package mishap

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
)

// Bounds in real time of what is done to a connection by hand.
const (
	writeTime  = 10 * time.Second
	lingerTime = 2 * time.Minute
)

// take takes the connection from the server. A stream of HTTP/2 has none of its
// own: it ends in the only way that there is.
func take(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return c
}

// Reset ends a connection at once, below TLS, with an RST.
func Reset(c net.Conn) {
	for {
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // a connection that is gone already
	}
	_ = c.Close()
}

// Abort ends the connection of a request with an RST.
func Abort(w http.ResponseWriter) { Reset(take(w)) }

// halfClose ends the server's side and reads on, until the client goes too.
func halfClose(ctx context.Context, w http.ResponseWriter) {
	c := take(w)
	defer Reset(c)
	stop := context.AfterFunc(ctx, func() { Reset(c) })
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

// wire writes an answer by hand: of a body that is said to be so long, only what
// is sent. Then the connection ends, with an RST if so wished.
func wire(w http.ResponseWriter, a *answer, length int, sent []byte, abrupt bool) {
	c := take(w)
	a.header.Set("Content-Length", fmt.Sprint(length))
	a.header.Set("Connection", "close")
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	err := a.header.Write(&out)
	out.WriteString("\r\n")
	out.Write(sent)
	_ = c.SetDeadline(clock.Wall().Add(writeTime))
	if _, werr := c.Write(out.Bytes()); abrupt || errors.Join(err, werr) != nil {
		Reset(c)
		return
	}
	_ = c.Close()
}

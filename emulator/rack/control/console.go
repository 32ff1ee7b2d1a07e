package control

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// protocol is the protocol of a connection to a console: the machine's output in one
// direction, typed input in the other. The client closes its side after its input.
// When all of it was typed, the lab closes the other side.
const protocol = "metalab-console"

// errInputEnded ends a connection whose client has closed its side.
var errInputEnded = errors.New("the client has closed its input")

// console connects a client to a host's console.
func (s *Server) console(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("host")
	host, ok := s.c.Rack.Host(name)
	if !ok {
		s.answer(w, http.StatusNotFound, errorBody{noHost(s.c.Rack, name)})
		return
	}
	conn, in, closeConn, ok := s.upgrade(w, r, protocol)
	if !ok {
		return
	}
	defer closeConn()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	typing := make(chan struct{})
	go func() {
		defer close(typing)
		cancel(s.typeInput(ctx, host, in))
	}()
	err := host.ReadConsole(ctx, 0, func(text []byte) error {
		_, err := conn.Write(text)
		return err
	})
	if !errors.Is(err, errInputEnded) {
		s.c.Log.Debug("console left", "host", name, "err", err)
	}
	conn.Close()
	<-typing
}

// typeInput types what a client sends, until the client closes its side.
func (s *Server) typeInput(ctx context.Context, h *rack.Host, from io.Reader) error {
	buf := make([]byte, 1024)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			leave := s.c.Rack.Clock().Enter() // the clock waits for the command
			failed := h.Type(ctx, buf[:n])
			leave()
			if failed != nil {
				return failed
			}
		}
		if err != nil {
			return errInputEnded
		}
	}
}

func sendBreak(c *apiRequest) (any, error) {
	if err := c.host.Apply(c.Context(), machine.Break{}); err != nil {
		return nil, err
	}
	return describe(c.rack, c.host), nil
}

// Break sends a break to a host's console.
func (c *Client) Break(ctx context.Context, host string) error {
	return c.do(ctx, http.MethodPost, at(host, "console", "break"), nil, new(Host))
}

// Console copies the output of a host's console to out, from what it remembers on,
// and types what it reads from in. It returns when in has ended and all of it was
// typed; without an in, when ctx or the lab ends. It may read from in once more
// after that.
func (c *Client) Console(ctx context.Context, host string, in io.Reader, out io.Writer) error {
	conn, err := c.connect(ctx, at(host, "console"), protocol)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if in != nil {
		go func() {
			if _, err := io.Copy(conn, in); err == nil {
				_ = conn.CloseWrite() // after an error the connection is closed already
			}
		}()
	}
	if _, err := io.Copy(out, conn); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

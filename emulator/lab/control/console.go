package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// protocol is what a connection speaks once it is attached to a console: bytes
// that the machine shows, and bytes that are typed. Who types no more closes
// its side; when that has had its effect, the lab closes the other.
const protocol = "metalab-console"

// errInputEnded ends an attachment whose client types no more.
var errInputEnded = errors.New("nobody types any more")

// console attaches a connection to a host's console.
func (s *Server) console(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("host")
	host, ok := s.c.Lab.Host(name)
	switch {
	case !ok:
		s.answer(w, http.StatusNotFound, errorBody{"there is no host " + name})
		return
	case r.Header.Get("Upgrade") != protocol:
		s.answer(w, http.StatusBadRequest, errorBody{"a console needs the header Upgrade: " + protocol})
		return
	}
	s.consoles.Add(1)
	defer s.consoles.Done()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.answer(w, http.StatusInternalServerError, errorBody{err.Error()})
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { conn.Close() })() // the lab ends
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	typing := make(chan struct{})
	go func() {
		defer close(typing)
		// Not all through buffered, which ends the context with the connection.
		first := io.LimitReader(buffered, int64(buffered.Reader.Buffered()))
		cancel(s.typeInput(ctx, host, io.MultiReader(first, conn)))
	}()
	if _, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol); err == nil {
		err = host.ReadConsole(ctx, 0, func(text []byte) error {
			_, err := conn.Write(text)
			return err
		})
	}
	if !errors.Is(err, errInputEnded) {
		s.c.Log.Debug("console left", "host", name, "err", err)
	}
	conn.Close()
	<-typing
}

// typeInput types what a client sends, until that ends.
func (s *Server) typeInput(ctx context.Context, h *lab.Host, from io.Reader) error {
	buf := make([]byte, 1024)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			leave := s.c.Lab.Clock().Enter() // time stands while something is done
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
	return describe(c.lab, c.host), nil
}

// Break sends a break to a host's console.
func (c *Client) Break(ctx context.Context, host string) error {
	return c.do(ctx, http.MethodPost, at(host, "console", "break"), nil, new(Host))
}

// Console copies to out what a host's console shows: what it remembers, then
// what comes. It types what it reads from in. When in has ended, and all of it
// had its effect, it returns; without an in when ctx ends or the lab does. in
// may be read once more after that.
func (c *Client) Console(ctx context.Context, host string, in io.Reader, out io.Writer) error {
	conn, err := c.dial(ctx, "", "")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &noLabError{dir: c.dir}
	case err != nil:
		return fmt.Errorf("control: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab"+at(host, "console"), nil)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	from := bufio.NewReader(conn)
	if err := req.Write(conn); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	resp, err := http.ReadResponse(from, req)
	switch {
	case err != nil:
		return fmt.Errorf("control: %w", err)
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return refusedError(resp)
	}
	if in != nil {
		go func() {
			if _, err := io.Copy(conn, in); err == nil {
				_ = conn.(*net.UnixConn).CloseWrite() // else it is closed
			}
		}()
	}
	if _, err := io.Copy(out, from); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

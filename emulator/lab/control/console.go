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

// protocol is the protocol of a connection to a console: the machine's output in one
// direction, typed input in the other. The client closes its side after its input.
// When all of it was typed, the lab closes the other side.
const protocol = "metalab-console"

// errInputEnded ends a connection whose client has closed its side.
var errInputEnded = errors.New("the client has closed its input")

// console connects a client to a host's console.
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
		// Only the buffered bytes are read from buffered: reading more through it
		// would end the context when the client closes its side.
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

// typeInput types what a client sends, until the client closes its side.
func (s *Server) typeInput(ctx context.Context, h *lab.Host, from io.Reader) error {
	buf := make([]byte, 1024)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			leave := s.c.Lab.Clock().Enter() // the clock waits for the command
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

// Console copies the output of a host's console to out, from what it remembers on,
// and types what it reads from in. It returns when in has ended and all of it was
// typed; without an in, when ctx or the lab ends. It may read from in once more
// after that.
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
				_ = conn.(*net.UnixConn).CloseWrite() // after an error the connection is closed already
			}
		}()
	}
	if _, err := io.Copy(out, from); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

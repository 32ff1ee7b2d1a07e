package control

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// execProtocol is the protocol of a connection to a command in a server's operating
// system. Both sides send frames: a byte for the kind, the length of the payload in four
// bytes, big-endian, and the payload. The client's first frame is the command.
const execProtocol = "metalab-exec"

// Kinds of frames.
const (
	frameCommand = 'c' // client: a Command as JSON
	frameInput   = 'i' // client: standard input; empty: its end
	frameSize    = 'w' // client: a Size as JSON
	frameOutput  = 'o' // lab: standard output
	frameError   = 'e' // lab: standard error
	frameExit    = 'x' // lab: the end, as JSON
)

// maxFrame is how many bytes a frame may have.
const maxFrame = 1 << 20

// Command is a program to run in a server's operating system.
type Command struct {
	Args     []string `json:"args"`               // the program first
	Env      []string `json:"env,omitempty"`      // NAME=VALUE
	Dir      string   `json:"dir,omitempty"`      // "": /root
	Terminal bool     `json:"terminal,omitempty"` // instead of three streams
	Size     Size     `json:"size,omitzero"`      // size of the terminal before the program starts

	Stdin          io.Reader   `json:"-"` // nil: empty
	Stdout, Stderr io.Writer   `json:"-"`
	Resize         <-chan Size `json:"-"` // later sizes of the terminal
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// exit is the end of a command.
type exit struct {
	Code  int    `json:"code"`
	Error string `json:"error,omitempty"` // it did not run, or has no code
}

// frames writes frames, those of several goroutines one after the other.
type frames struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frames) send(kind byte, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	_, err := f.w.Write(append(head, payload...))
	return err
}

func (f *frames) sendJSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.send(kind, b)
}

// frameWriter is a stream of frames as io.Writer.
type frameWriter struct {
	to   *frames
	kind byte
}

// Write implements io.Writer.
func (w frameWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxFrame)
		if err := w.to.send(w.kind, rest[:n]); err != nil {
			return len(p) - len(rest), err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// readFrame reads a frame.
func readFrame(r io.Reader) (kind byte, payload []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: at most %d", n, maxFrame)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return head[0], payload, err
}

// exec runs a command for a client.
func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	host, ok := s.c.Rack.Host(r.PathValue("host"))
	switch {
	case !ok:
		s.answer(w, http.StatusNotFound, errorBody{noHost(s.c.Rack, r.PathValue("host"))})
		return
	case s.c.Exec == nil:
		s.answer(w, http.StatusBadRequest, errorBody{errNoSystems.Error()})
		return
	}
	conn, in, closeConn, ok := s.upgrade(w, r, execProtocol)
	if !ok {
		return
	}
	defer closeConn()
	out := &frames{w: conn}
	var c Command
	kind, payload, err := readFrame(in)
	if err == nil && kind != frameCommand {
		err = fmt.Errorf("the first frame is %q, not a command", kind)
	}
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	if err == nil && len(c.Args) == 0 {
		err = errors.New("args: give a program")
	}
	if err != nil {
		_ = out.sendJSON(frameExit, exit{Error: err.Error()}) // else the client has left
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stdin, typed := io.Pipe()
	defer stdin.Close()
	sizes := make(chan Size, 1)
	c.Stdin, c.Resize, c.Stdout, c.Stderr = stdin, sizes, frameWriter{out, frameOutput}, frameWriter{out, frameError}
	go func() {
		defer cancel() // the client has left
		defer close(sizes)
		receiveInput(in, typed, sizes)
	}()
	code, err := s.c.Exec(ctx, host, c)
	end := exit{Code: code}
	if err != nil {
		end.Error = err.Error()
	}
	_ = out.sendJSON(frameExit, end)
}

// receiveInput passes on what a client sends until it leaves. sizes has room for one, the last.
func receiveInput(in io.Reader, typed *io.PipeWriter, sizes chan Size) {
	for {
		kind, payload, err := readFrame(in)
		if err != nil {
			typed.CloseWithError(err)
			return
		}
		switch kind {
		case frameInput:
			if len(payload) == 0 {
				typed.Close()
			} else {
				_, _ = typed.Write(payload) // a command need not read its input
			}
		case frameSize:
			var size Size
			if json.Unmarshal(payload, &size) == nil {
				select {
				case <-sizes: // nobody has taken it, and it is the window's no more
				default:
				}
				sizes <- size
			}
		}
	}
}

// Exec runs a command in the operating system that a host runs, and returns its exit
// code. When ctx ends, the command is killed.
func (c *Client) Exec(ctx context.Context, host string, command Command) (code int, err error) {
	conn, err := c.connect(ctx, at(host, "exec"), execProtocol)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	to := &frames{w: conn}
	if err := to.sendJSON(frameCommand, command); err != nil {
		return 0, err
	}
	go func() { // errors of writing appear as the end of the connection
		if command.Stdin != nil {
			_, _ = io.Copy(frameWriter{to, frameInput}, command.Stdin)
		}
		_ = to.send(frameInput, nil)
	}()
	if command.Resize != nil {
		go func() {
			for size := range command.Resize {
				_ = to.sendJSON(frameSize, size)
			}
		}()
	}
	streams := map[byte]io.Writer{frameOutput: command.Stdout, frameError: command.Stderr}
	for {
		kind, payload, err := readFrame(conn)
		if err != nil {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, fmt.Errorf("the lab has closed the connection: %w", err)
		}
		if kind == frameExit {
			var end exit
			if err := json.Unmarshal(payload, &end); err != nil {
				return 0, err
			}
			if end.Error != "" {
				return 0, errors.New(end.Error)
			}
			return end.Code, nil
		}
		if w := streams[kind]; w != nil {
			if _, err := w.Write(payload); err != nil {
				return 0, err
			}
		}
	}
}

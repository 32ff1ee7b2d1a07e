package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metalab-dev/metalab/emulator/lab/control"
)

func newConsole(o *options) *cobra.Command {
	follow, until := false, ""
	c := &cobra.Command{
		Use: "console HOST", Args: arguments("HOST"),
		Short: "Sit down at a host's serial console",
		Long: `Sit down at a host's serial console: see what it has shown last and what it
shows, and type. It is the console that IPMI's serial over LAN shows, too; any
number of people can sit there.

At a terminal ~. at the beginning of a line leaves, ~B sends a break, ~~ types
one ~ and ~? shows these. What comes through a pipe is typed as it is; when it
has ended, and the host has answered, so does labctl.`,
		Example: `  labctl console node-0
  labctl console node-0 </dev/null          # what it has shown last
  labctl console node-0 --until 'login: '    # until it has shown that
  printf 'root\n' | labctl console node-0`,
		ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab, host, out := control.NewClient(o.state), args[0], c.OutOrStdout()
			switch {
			case until != "":
				return waitFor(c.Context(), lab, host, until, out)
			case follow:
				return lab.Console(c.Context(), host, nil, out)
			}
			in := c.InOrStdin()
			keyboard, ok := in.(*os.File)
			if !ok || !term.IsTerminal(int(keyboard.Fd())) {
				return lab.Console(c.Context(), host, in, out)
			}
			if _, err := lab.Host(c.Context(), host); err != nil { // before the terminal is another
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "The console of %s. Leave it with ~. at the beginning of a line.\n", host)
			was, err := term.MakeRaw(int(keyboard.Fd()))
			if err != nil {
				return fmt.Errorf("the terminal: %w", err)
			}
			defer func() {
				_ = term.Restore(int(keyboard.Fd()), was) // there is nothing else that one could do
				fmt.Fprintln(c.ErrOrStderr())
			}()
			typed := &typist{in: in, tell: c.ErrOrStderr(), sendBreak: func() error { return lab.Break(c.Context(), host) }}
			return lab.Console(c.Context(), host, typed, out)
		},
	}
	c.Flags().BoolVar(&follow, "follow", false, "only watch, until Ctrl-C or the lab ends")
	c.Flags().StringVar(&until, "until", "", "only watch, until this text was shown; what the console remembers counts")
	return c
}

// waitFor shows a console until it has shown a text.
func waitFor(ctx context.Context, lab *control.Client, host, text string, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &watcher{out: out, text: []byte(text), found: cancel}
	err := lab.Console(ctx, host, nil, w)
	if err == nil && !w.seen {
		err = fmt.Errorf("the console of %s has not shown %q", host, text)
	}
	return err
}

// watcher looks for a text in what passes.
type watcher struct {
	out   io.Writer
	text  []byte
	tail  []byte
	seen  bool
	found func()
}

// Write implements io.Writer.
func (w *watcher) Write(b []byte) (int, error) {
	w.tail = append(w.tail, b...)
	if bytes.Contains(w.tail, w.text) {
		w.seen = true
		w.found()
	}
	w.tail = bytes.Clone(w.tail[max(0, len(w.tail)-len(w.text)):])
	return w.out.Write(b)
}

// typist reads a keyboard, and does itself what begins with ~ at the beginning
// of a line.
type typist struct {
	in        io.Reader
	tell      io.Writer
	sendBreak func() error
	within    bool // the line has begun
	escaped   bool // a ~ has begun it
	left      bool // ~. was typed
}

const escapes = "\r\n~.  leave\r\n~B  send a break\r\n~~  type ~\r\n~?  this\r\n"

// Read implements io.Reader.
func (t *typist) Read(b []byte) (int, error) {
	if t.left || len(b) < 2 {
		return 0, io.EOF
	}
	for {
		n, err := t.in.Read(b[:len(b)/2]) // what was held back may be added
		keys := bytes.Clone(b[:n])
		n = copy(b, t.typed(keys))
		if t.left {
			err = io.EOF
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// typed is what of some keys is for the host.
func (t *typist) typed(keys []byte) []byte {
	var out []byte
	for _, k := range keys {
		switch {
		case t.escaped:
			t.escaped = false
			switch k {
			case '.':
				t.left = true
				return out
			case 'B':
				if err := t.sendBreak(); err != nil {
					fmt.Fprintf(t.tell, "\r\n%v\r\n", err)
				}
				continue
			case '?':
				fmt.Fprint(t.tell, escapes)
				continue
			case '~':
			default:
				out = append(out, '~')
			}
		case k == '~' && !t.within:
			t.escaped = true
			continue
		}
		t.within = k != '\r' && k != '\n'
		out = append(out, k)
	}
	return out
}

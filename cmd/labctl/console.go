package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

func newConsole(o *options) *cobra.Command {
	follow, until := false, ""
	c := &cobra.Command{
		Use: "console HOST", Args: usage.Arguments("HOST"),
		Short: "Open a host's serial console",
		Long: `Open a host's serial console: show its latest and further output, and type. It is
the same console as that of IPMI serial over LAN. Any number of people can open it
at the same time.

Ctrl-] leaves. At the beginning of a line on a terminal ~. leaves, too, ~B sends a break,
~~ types one ~ and ~? shows this list. Input from a pipe is typed unchanged; labctl ends when the
input has ended and the host has answered.`,
		Example: `  labctl console node-0
  labctl console node-0 </dev/null          # its latest output
  labctl console node-0 --until 'login: '    # until it has printed that
  printf 'root\n' | labctl console node-0`,
		ValidArgsFunction: completeHosts(o),
		RunE: func(c *cobra.Command, args []string) error {
			lab, out := control.NewClient(o.state), c.OutOrStdout()
			host, err := one(c.Context(), lab, args[0])
			switch {
			case err != nil:
				return err
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
			d, err := lab.Host(c.Context(), host)
			if err != nil { // before the terminal changes its mode
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "The console of %s. Leave it with Ctrl-], or with ~. at the beginning of a line.\n", host)
			if text := asleep(d); text != "" {
				fmt.Fprintln(c.ErrOrStderr(), text)
			}
			was, err := term.MakeRaw(int(keyboard.Fd()))
			if err != nil {
				return fmt.Errorf("terminal: %w", err)
			}
			defer func() {
				_ = term.Restore(int(keyboard.Fd()), was) // the program exits in any case
				fmt.Fprintln(c.ErrOrStderr())
			}()
			typed := &typist{in: in, messages: c.ErrOrStderr(), sendBreak: func() error { return lab.Break(c.Context(), host) }, asleep: func() string {
				d, err := lab.Host(c.Context(), host)
				if err != nil { // the console tells it
					return ""
				}
				return asleep(d)
			}}
			return lab.Console(c.Context(), host, typed, out)
		},
	}
	c.Flags().BoolVar(&follow, "follow", false, "only show output, until Ctrl-C or the lab ends")
	c.Flags().StringVar(&until, "until", "", "only show output, until it contains this text; earlier output counts")
	return c
}

// asleep says why a server runs nothing, and what Enter on its console does; "" of one that runs.
func asleep(d control.Detail) string {
	switch {
	case d.Power == "Off":
		return fmt.Sprintf("%s is off, and its keyboard wakes nothing: labctl host power %s On", d.Name, d.Name)
	case d.Phase == string(machine.Halted):
		return fmt.Sprintf("%s has found nothing to boot from, and halted: Enter restarts it", d.Name)
	}
	return ""
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

// watcher looks for a text in the bytes written to it.
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

// typist reads a keyboard. It handles commands that begin with ~ at the start of a
// line.
type typist struct {
	in        io.Reader
	messages  io.Writer
	sendBreak func() error
	asleep    func() string // what to say before Enter is typed; "" is nothing, nil never says anything
	within    bool          // not at the start of a line
	escaped   bool          // the line began with ~
	left      bool          // the user typed ~. or Ctrl-]
}

// leaveKey is Ctrl-], by which telnet and virsh console are left.
const leaveKey = 0x1d

const escapes = "\r\nCtrl-]  leave, everywhere\r\n~.  leave\r\n~B  send a break\r\n~~  type ~\r\n~?  this\r\n"

// Read implements io.Reader.
func (t *typist) Read(b []byte) (int, error) {
	if t.left || len(b) < 2 {
		return 0, io.EOF
	}
	for {
		n, err := t.in.Read(b[:len(b)/2]) // a held back ~ may be added
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

// typed returns the keys that are meant for the host.
func (t *typist) typed(keys []byte) []byte {
	var out []byte
	for _, k := range keys {
		if k == '\r' && t.asleep != nil {
			if text := t.asleep(); text != "" {
				fmt.Fprintf(t.messages, "\r\n%s\r\n", text)
			}
		}
		switch {
		case k == leaveKey:
			t.left = true
			return out
		case t.escaped:
			t.escaped = false
			switch k {
			case '.':
				t.left = true
				return out
			case 'B':
				if err := t.sendBreak(); err != nil {
					fmt.Fprintf(t.messages, "\r\n%v\r\n", err)
				}
				continue
			case '?':
				fmt.Fprint(t.messages, escapes)
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

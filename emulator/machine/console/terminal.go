package console

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxLine bounds a line that is typed, in bytes.
	MaxLine = 255
	// BreakTime is how long in client time after a break the next byte is a command to
	// the kernel (Linux: "magic SysRq").
	BreakTime = 5 * time.Second
)

// Terminal is the state of the terminal at a console: input that has not had an
// effect yet, and who is logged in.
type Terminal struct {
	Escape []byte    `json:"escape,omitempty"` // beginning of a key's escape sequence
	Key    Key       `json:"key,omitempty"`    // key that was pressed in POST; it takes effect at the end of POST
	Asks   Prompt    `json:"asks,omitempty"`
	User   string    `json:"user,omitempty"` // name that was given at the login prompt
	Line   []byte    `json:"line,omitempty"`
	Return bool      `json:"return,omitempty"` // the last byte was a carriage return: a line feed that follows belongs to it
	Break  time.Time `json:"break,omitzero"`   // client time of the last break; the next byte is for the kernel
}

// WithTerminal returns the console with that terminal; c does not change.
func (c *Console) WithTerminal(t Terminal) *Console {
	var out Console
	if c != nil {
		out = *c
	}
	out.Terminal = &t
	return &out
}

// WithoutTerminal returns the console with nobody at it.
func (c *Console) WithoutTerminal() *Console {
	if c == nil || c.Terminal == nil {
		return c
	}
	out := *c
	out.Terminal = nil
	return &out
}

// At returns the terminal at the console; the zero Terminal when nobody has
// typed.
func (c *Console) At() Terminal {
	if c == nil || c.Terminal == nil {
		return Terminal{}
	}
	return *c.Terminal
}

// Prompt is what a running system waits for. Values are stored.
type Prompt string

// The prompts.
const (
	AskName     Prompt = ""
	AskPassword Prompt = "password"
	AskCommand  Prompt = "command" // somebody is logged in
)

// Key is a key that firmware listens to. Values are stored.
type Key string

// The keys.
const (
	KeySetup   Key = "setup"
	KeyNetwork Key = "network"
	KeyLeave   Key = "leave"
	KeyEnter   Key = "enter"
)

// keySequences are the bytes that terminals send for each key: xterm's, VT100's
// and those of VT-UTF8 (UEFI 2.10, appendix B).
var keySequences = map[string]Key{
	"\x1bOQ": KeySetup, "\x1b[12~": KeySetup, "\x1b2": KeySetup, "\x1b[3~": KeySetup, "\x7f": KeySetup,
	"\x1b[24~": KeyNetwork, "\x1b@": KeyNetwork,
	"\x1b[21~": KeyLeave, "\x1b0": KeyLeave,
	"\r": KeyEnter, "\n": KeyEnter,
}

// maxSequence is the length of the longest key sequence, in bytes.
const maxSequence = 5

// Press adds one byte that firmware reads. It returns the terminal after it, the
// key that the byte completes ("" for none), and whether the terminal changed.
func (t Terminal) Press(b byte) (next Terminal, key Key, changed bool) {
	before := t.Escape
	if b == 0x1b {
		before = nil
	}
	seq := slices.Concat(before, []byte{b})
	key = keySequences[string(seq)]
	incomplete := key == "" && seq[0] == 0x1b && len(seq) < maxSequence
	if !incomplete && len(before) == 0 {
		return t, key, false
	}
	t.Escape = nil
	if incomplete {
		t.Escape = seq
	}
	return t, key, true
}

// Input is what one typed byte completes.
type Input int

// The inputs.
const (
	Editing   Input = 0 // the byte only changed the line
	Line      Input = 1 // the line was entered
	Interrupt Input = 2 // ^C
	EndOfFile Input = 3 // ^D on an empty line
	Ignored   Input = 4 // the byte does nothing
)

// Type adds one byte at the terminal of a running system, whose line discipline
// is canonical mode (POSIX.1-2017, §11.1.6). It returns the terminal after the
// byte, what the terminal echoes, and what the byte completes. A password is not
// echoed.
func (t Terminal) Type(b byte) (next Terminal, echo string, in Input) {
	if t.Return {
		t.Return = false
		if b == '\n' {
			return t, "", Editing
		}
	}
	visible := t.Asks != AskPassword
	switch {
	case b == '\r' || b == '\n':
		t.Line, t.Return = nil, b == '\r'
		return t, "\r\n", Line
	case b == 0x08 || b == 0x7f: // backspace
		return t.erase(1, visible)
	case b == 0x15: // ^U
		return t.erase(len(t.Line), visible)
	case b == 0x03: // ^C
		return t, "^C\r\n", Interrupt
	case b == 0x04 && len(t.Line) == 0: // ^D
		if t.Asks == AskCommand {
			echo = "logout"
		}
		return t, echo + "\r\n", EndOfFile
	case b == 0x04:
		return t, "", Ignored
	case len(t.Line) >= MaxLine:
		return t, "\a", Editing
	}
	t.Line = append(slices.Clip(t.Line), b)
	if visible {
		echo = echoed(b)
	}
	return t, echo, Editing
}

// echoed returns what a terminal shows for a typed byte.
func echoed(b byte) string {
	if b < 0x20 {
		return "^" + string(rune(b+0x40))
	}
	return string([]byte{b})
}

// erase removes up to most characters from the end of the line.
func (t Terminal) erase(most int, visible bool) (next Terminal, echo string, in Input) {
	line := t.Line
	var back strings.Builder
	for ; most > 0 && len(line) > 0; most-- {
		_, n := utf8.DecodeLastRune(line)
		columns := 1
		if n == 1 {
			columns = len(echoed(line[len(line)-1]))
		}
		line = line[:len(line)-n]
		back.WriteString(strings.Repeat("\b \b", columns))
	}
	t.Line = slices.Clone(line)
	if visible {
		echo = back.String()
	}
	return t, echo, Editing
}

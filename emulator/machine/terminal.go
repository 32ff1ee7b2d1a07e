package machine

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// maxLine bounds a line that is typed.
const maxLine = 255

// Terminal is what whoever sits at the console has typed, as far as it has had
// no effect yet.
type Terminal struct {
	Escape []byte    `json:"escape,omitempty"` // the beginning of a key's sequence
	Key    Key       `json:"key,omitempty"`    // pressed in POST, which the end of POST heeds
	Asks   question  `json:"asks,omitempty"`
	User   string    `json:"user,omitempty"` // who logs in, or is logged in
	Line   []byte    `json:"line,omitempty"`
	Return bool      `json:"return,omitempty"` // the last was a carriage return: a line feed belongs to it
	Break  time.Time `json:"break,omitzero"`   // of a break: what comes next is for the kernel
}

// Key is a key that firmware listens to. Values are stored.
type Key string

// The keys.
const (
	KeySetup   Key = "setup"
	KeyNetwork Key = "network"
	keyLeave   Key = "leave"
	keyEnter   Key = "enter"
)

// keys are the sequences that terminals send for them: xterm's, VT100's and
// those of VT-UTF8 (UEFI 2.10, appendix B).
var keys = map[string]Key{
	"\x1bOQ": KeySetup, "\x1b[12~": KeySetup, "\x1b2": KeySetup, "\x1b[3~": KeySetup, "\x7f": KeySetup,
	"\x1b[24~": KeyNetwork, "\x1b@": KeyNetwork,
	"\x1b[21~": keyLeave, "\x1b0": keyLeave,
	"\r": keyEnter, "\n": keyEnter,
}

// maxKey is the length of the longest of them.
const maxKey = 5

// question is what a running system waits for. Values are stored.
type question string

const (
	askName     question = ""
	askPassword question = "password"
	askCommand  question = "command" // somebody is logged in
)

// TypeText is what somebody types at the console. What nobody listens to is lost.
type TypeText struct{ Text []byte }

func (c TypeText) apply(m *Machine, now time.Time) ([]Event, error) {
	var evs []Event
	for _, b := range c.Text {
		switch m.st.Phase {
		case POST, InSetup, Halted:
			if !m.silent() {
				evs = append(evs, m.press(now, b)...)
			}
		case Running:
			evs = append(evs, m.typed(now, b)...)
		}
	}
	return evs, nil
}

// Break is a break on the line. A system takes what is typed next as for its
// kernel (Linux: "magic SysRq").
type Break struct{}

// breakTime is for how long it does.
const breakTime = 5 * time.Second

func (Break) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.Phase == Running {
		m.terminal(func(t *Terminal) { t.Break = now })
	}
	return nil, nil
}

// terminal changes a copy of the terminal and puts it in place.
func (m *Machine) terminal(how func(*Terminal)) {
	var c Console
	var t Terminal
	if m.st.Console != nil {
		c = *m.st.Console
	}
	if c.Terminal != nil {
		t = *c.Terminal
	}
	how(&t)
	c.Terminal = &t
	m.st.Console = &c
}

func (m *Machine) atTerminal() Terminal {
	if m.st.Console == nil || m.st.Console.Terminal == nil {
		return Terminal{}
	}
	return *m.st.Console.Terminal
}

// unattended forgets who was at the console.
func (m *Machine) unattended() {
	if m.st.Console != nil && m.st.Console.Terminal != nil {
		c := *m.st.Console
		c.Terminal = nil
		m.st.Console = &c
	}
}

// press takes one byte of what the firmware listens to.
func (m *Machine) press(now time.Time, b byte) []Event {
	so := m.atTerminal().Escape
	if b == 0x1b {
		so = nil
	}
	seq := slices.Concat(so, []byte{b})
	key := keys[string(seq)]
	if rest := key == "" && seq[0] == 0x1b && len(seq) < maxKey; rest || len(so) > 0 {
		m.terminal(func(t *Terminal) {
			t.Escape = nil
			if rest {
				t.Escape = seq
			}
		})
	}
	switch {
	case m.st.Phase == InSetup && key == keyLeave, m.st.Phase == Halted && key == keyEnter:
		return m.step(now, restart)
	case m.st.Phase == POST && (key == KeySetup || key == KeyNetwork) && m.atTerminal().Key != key:
		m.terminal(func(t *Terminal) { t.Key = key })
		m.lines(map[Key]string{KeySetup: "Set-up follows", KeyNetwork: "Booting from the network follows"}[key])
	}
	return nil
}

// pressed changes what is to be booted as a key of POST wants it.
func (m *Machine) pressed(tries []Source, app SourceKind) ([]Source, SourceKind) {
	switch m.atTerminal().Key {
	case KeySetup:
		return tries, BiosSetup
	case KeyNetwork:
		return unique(append(m.overriding(Override{Target: Pxe}), tries...)), ""
	}
	return tries, app
}

// typed takes one byte at the terminal of a running system, whose line
// discipline is a terminal's in its usual mode (POSIX.1-2017, §11.1.6).
func (m *Machine) typed(now time.Time, b byte) []Event {
	t := m.atTerminal()
	if !t.Break.IsZero() {
		m.terminal(func(t *Terminal) { t.Break = time.Time{} })
		if now.Sub(t.Break) <= breakTime {
			return m.sysRq(now, b)
		}
	}
	if t.Return {
		m.terminal(func(t *Terminal) { t.Return = false })
		if b == '\n' {
			return nil
		}
	}
	echo := t.Asks != askPassword
	switch {
	case b == '\r' || b == '\n':
		m.print("\r\n")
		m.terminal(func(t *Terminal) { t.Line, t.Return = nil, b == '\r' })
		return m.enter(now, string(t.Line))
	case b == 0x08 || b == 0x7f: // backspace
		m.erase(1, echo)
	case b == 0x15: // ^U
		m.erase(len(t.Line), echo)
	case b == 0x03: // ^C
		m.print("^C\r\n")
		m.again(t.Asks == askCommand)
	case b == 0x04 && len(t.Line) == 0: // ^D: nobody types any more
		if t.Asks == askCommand {
			m.print("logout")
		}
		m.print("\r\n")
		m.again(false)
	case b == 0x04:
	case len(t.Line) >= maxLine:
		m.print("\a")
	default:
		m.terminal(func(t *Terminal) { t.Line = append(slices.Clip(t.Line), b) })
		if echo {
			m.print(shown(b))
		}
	}
	return nil
}

// shown is how a terminal shows a byte that is typed.
func shown(b byte) string {
	if b < 0x20 {
		return "^" + string(rune(b+0x40))
	}
	return string([]byte{b})
}

// erase takes the last characters from the line, at most as many.
func (m *Machine) erase(most int, echo bool) {
	line := m.atTerminal().Line
	var back strings.Builder
	for ; most > 0 && len(line) > 0; most-- {
		_, n := utf8.DecodeLastRune(line)
		columns := 1
		if n == 1 {
			columns = len(shown(line[len(line)-1]))
		}
		line = line[:len(line)-n]
		back.WriteString(strings.Repeat("\b \b", columns))
	}
	m.terminal(func(t *Terminal) { t.Line = slices.Clone(line) })
	if echo {
		m.print(back.String())
	}
}

// again asks anew: for a command, or for a name.
func (m *Machine) again(command bool) {
	user := ""
	if command {
		user = m.atTerminal().User
	}
	m.terminal(func(t *Terminal) {
		*t = Terminal{User: user, Return: t.Return}
		if command {
			t.Asks = askCommand
		}
	})
	if command {
		m.print(user + "@" + m.identity.Name + ":~$ ")
		return
	}
	m.prompt()
}

// enter takes a line.
func (m *Machine) enter(now time.Time, line string) []Event {
	t := m.atTerminal()
	switch t.Asks {
	case askCommand:
		return m.command(now, line)
	case askPassword:
		for _, l := range m.st.OS.Logins {
			if l.Name == t.User && l.is(line) {
				m.terminal(func(t *Terminal) { t.Asks = askCommand })
				m.again(true)
				return nil
			}
		}
		m.print("\r\nLogin incorrect\r\n")
		m.terminal(func(t *Terminal) { t.Asks, t.User = askName, "" })
		m.print(m.identity.Name + loginText)
		return nil
	}
	if line == "" {
		m.print(m.identity.Name + loginText)
		return nil
	}
	m.terminal(func(t *Terminal) { t.Asks, t.User = askPassword, line })
	m.print("Password: ")
	return nil
}

// Login is an account of a running system. It keeps no password.
type Login struct {
	Name  string            `json:"name"`
	Salt  string            `json:"salt"`
	Proof [sha256.Size]byte `json:"proof"`
}

func (l Login) is(password string) bool {
	p := sha256.Sum256([]byte(l.Salt + "\x00" + password))
	return subtle.ConstantTimeCompare(p[:], l.Proof[:]) == 1
}

// AddLogin gives a loaded system an account, with which somebody can log in at
// the console. Systems have none of themselves.
type AddLogin struct {
	Boot           uint64
	Name, Password string
}

func (c AddLogin) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case m.st.OS == nil || m.st.OS.Boot != c.Boot:
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	case c.Name == "" || len(c.Name) > 32 || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("machine: login %q: must be 1 to 32 bytes without spaces: %w", c.Name, ErrUnknown)
	case c.Password == "" || len(c.Password) > maxLine:
		return nil, fmt.Errorf("machine: password of login %s: must be 1 to %d bytes: %w", c.Name, maxLine, ErrUnknown)
	}
	l := Login{Name: c.Name, Salt: fmt.Sprintf("%s/%d/%s", m.identity.UUID, c.Boot, c.Name)}
	l.Proof = sha256.Sum256([]byte(l.Salt + "\x00" + c.Password))
	os := m.main().OS
	os.Logins = append(slices.DeleteFunc(slices.Clone(os.Logins), func(o Login) bool { return o.Name == c.Name }), l)
	return nil, nil
}

// shell are the commands of who is logged in.
var shell = map[string]func(m *Machine, now time.Time, args []string) []Event{
	"echo": func(m *Machine, _ time.Time, args []string) []Event {
		m.print(strings.Join(args, " ") + "\r\n")
		return nil
	},
	"hostname": func(m *Machine, _ time.Time, _ []string) []Event { m.lines(m.identity.Name); return nil },
	"whoami":   func(m *Machine, _ time.Time, _ []string) []Event { m.lines(m.atTerminal().User); return nil },
	"uptime": func(m *Machine, now time.Time, _ []string) []Event {
		m.lines("up " + m.uptime(now).Truncate(time.Second).String())
		return nil
	},
	"reboot":   func(m *Machine, now time.Time, _ []string) []Event { return m.shutDown(now, true) },
	"poweroff": func(m *Machine, now time.Time, _ []string) []Event { return m.shutDown(now, false) },
	"exit":     leaveShell,
	"logout":   leaveShell,
}

func leaveShell(m *Machine, _ time.Time, _ []string) []Event {
	m.again(false)
	return nil
}

// command carries out a line of the shell.
func (m *Machine) command(now time.Time, line string) []Event {
	args := strings.Fields(line)
	if len(args) == 0 {
		m.again(true)
		return nil
	}
	var evs []Event
	if run := shell[args[0]]; run != nil {
		evs = run(m, now, args[1:])
	} else {
		m.lines("sh: " + args[0] + ": not found")
	}
	if m.st.Phase == Running && m.atTerminal().Asks == askCommand {
		m.again(true)
	}
	return evs
}

// shutDown is the system going down because somebody at its console wants that.
func (m *Machine) shutDown(now time.Time, again bool) []Event {
	own := m.main()
	own.RestartAfterOff, own.Cause = again, CauseSystem
	return m.step(now, askOff)
}

// sysRqs are what the kernel does on a key after a break.
var sysRqs = map[byte]struct {
	tells string
	does  func(m *Machine, now time.Time) []Event
}{
	'b': {"Resetting", func(m *Machine, now time.Time) []Event {
		m.main().Cause = CauseSystem
		return m.step(now, selfBoot)
	}},
	'c': {"Trigger a crash", func(m *Machine, now time.Time) []Event {
		m.panics(now, "sysrq triggered crash")
		m.main().Cause = CauseCrash
		return append([]Event{note(now, event.SystemCrashed)}, m.step(now, panicked)...)
	}},
	'o': {"Power Off", func(m *Machine, now time.Time) []Event {
		m.main().Cause = CauseSystem
		return m.step(now, selfOff)
	}},
	's': {"Emergency Sync", func(*Machine, time.Time) []Event { return nil }},
}

func (m *Machine) sysRq(now time.Time, b byte) []Event {
	r, ok := sysRqs[b]
	if !ok {
		r.tells = "HELP : reboot(b) crash(c) poweroff(o) sync(s)"
	}
	m.lines("\r\n" + kernel(m.uptime(now), "sysrq: %s", r.tells))
	if !ok {
		return nil
	}
	return r.does(m, now)
}

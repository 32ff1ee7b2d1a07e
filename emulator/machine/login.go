package machine

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/console"
	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// promptAgain shows the shell prompt of whoever is logged in, or without shell
// logs out and shows the login prompt.
func (m *Machine) promptAgain(shell bool) {
	t := m.terminal()
	if shell {
		m.setTerminal(console.Terminal{User: t.User, Return: t.Return, Asks: console.AskCommand})
		m.print(t.User + "@" + m.identity.Name + ":~$ ")
		return
	}
	m.setTerminal(console.Terminal{Return: t.Return})
	m.printLoginPrompt()
}

// enterLine handles a line that was entered: a name, a password or a command of
// the shell.
func (m *Machine) enterLine(now time.Time, line string) []Event {
	t := m.terminal()
	switch t.Asks {
	case console.AskCommand:
		return m.runCommand(now, line)
	case console.AskPassword:
		for _, l := range m.st.OS.Logins {
			if l.Name == t.User && l.checkPassword(line) {
				m.promptAgain(true)
				return nil
			}
		}
		m.print("\r\nLogin incorrect\r\n")
		t.Asks, t.User = console.AskName, ""
		m.setTerminal(t)
		m.print(m.identity.Name + loginText)
		return nil
	}
	if line == "" {
		m.print(m.identity.Name + loginText)
		return nil
	}
	t.Asks, t.User = console.AskPassword, line
	m.setTerminal(t)
	m.print("Password: ")
	return nil
}

// Login is an account of a running system. It holds a salted digest of the
// password.
type Login struct {
	Name  string            `json:"name"`
	Salt  string            `json:"salt"`
	Proof [sha256.Size]byte `json:"proof"`
}

func (l Login) checkPassword(password string) bool {
	p := sha256.Sum256([]byte(l.Salt + "\x00" + password))
	return subtle.ConstantTimeCompare(p[:], l.Proof[:]) == 1
}

// AddLogin adds an account to a loaded system, for logging in at the console. A
// system has no account unless one is added.
type AddLogin struct {
	Boot           uint64
	Name, Password string
}

func (c AddLogin) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case m.st.OS == nil || m.st.OS.Boot != c.Boot:
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	case c.Name == "" || len(c.Name) > 32 || strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, fmt.Errorf("login %q: must be 1 to 32 bytes without spaces: %w", c.Name, ErrUnknown)
	case c.Password == "" || len(c.Password) > console.MaxLine:
		return nil, fmt.Errorf("password of login %s: must be 1 to %d bytes: %w", c.Name, console.MaxLine, ErrUnknown)
	}
	l := Login{Name: c.Name, Salt: fmt.Sprintf("%s/%d/%s", m.identity.UUID, c.Boot, c.Name)}
	l.Proof = sha256.Sum256([]byte(l.Salt + "\x00" + c.Password))
	os := m.main().OS
	os.Logins = append(slices.DeleteFunc(slices.Clone(os.Logins), func(o Login) bool { return o.Name == c.Name }), l)
	return nil, nil
}

// shell holds the commands of the shell that follows a login.
var shell = map[string]func(m *Machine, now time.Time, args []string) []Event{
	"echo": func(m *Machine, _ time.Time, args []string) []Event {
		m.print(strings.Join(args, " ") + "\r\n")
		return nil
	},
	"hostname": func(m *Machine, _ time.Time, _ []string) []Event { m.printLines(m.identity.Name); return nil },
	"whoami":   func(m *Machine, _ time.Time, _ []string) []Event { m.printLines(m.terminal().User); return nil },
	"uptime": func(m *Machine, now time.Time, _ []string) []Event {
		m.printLines("up " + m.uptime(now).Truncate(time.Second).String())
		return nil
	},
	"reboot":   func(m *Machine, now time.Time, _ []string) []Event { return m.shutDown(now, true) },
	"poweroff": func(m *Machine, now time.Time, _ []string) []Event { return m.shutDown(now, false) },
	"exit":     leaveShell,
	"logout":   leaveShell,
}

func leaveShell(m *Machine, _ time.Time, _ []string) []Event {
	m.promptAgain(false)
	return nil
}

// runCommand runs a line of the shell.
func (m *Machine) runCommand(now time.Time, line string) []Event {
	args := strings.Fields(line)
	if len(args) == 0 {
		m.promptAgain(true)
		return nil
	}
	var evs []Event
	if run := shell[args[0]]; run != nil {
		evs = run(m, now, args[1:])
	} else {
		m.printLines("sh: " + args[0] + ": not found")
	}
	if m.st.Phase == Running && m.terminal().Asks == console.AskCommand {
		m.promptAgain(true)
	}
	return evs
}

// shutDown shuts the system down as a command at its console asks; restart
// starts it again afterwards.
func (m *Machine) shutDown(now time.Time, restart bool) []Event {
	main := m.main()
	main.RestartAfterOff, main.Cause = restart, CauseSystem
	return m.step(now, shutdownRequested)
}

// sysRqs holds the kernel's magic SysRq commands by key: the text that the kernel
// prints and the action.
var sysRqs = map[byte]struct {
	text string
	run  func(m *Machine, now time.Time) []Event
}{
	'b': {"Resetting", func(m *Machine, now time.Time) []Event {
		m.main().Cause = CauseSystem
		return m.step(now, osRestart)
	}},
	'c': {"Trigger a crash", func(m *Machine, now time.Time) []Event {
		m.printPanic(now, "sysrq triggered crash")
		m.main().Cause = CauseCrash
		return append([]Event{note(now, event.SystemCrashed)}, m.step(now, osCrash)...)
	}},
	'o': {"Power Off", func(m *Machine, now time.Time) []Event {
		m.main().Cause = CauseSystem
		return m.step(now, osPowerOff)
	}},
	's': {"Emergency Sync", func(*Machine, time.Time) []Event { return nil }},
}

// sysRq runs the SysRq command of a key; any other key prints the help line.
func (m *Machine) sysRq(now time.Time, b byte) []Event {
	r, ok := sysRqs[b]
	if !ok {
		r.text = "HELP : reboot(b) crash(c) poweroff(o) sync(s)"
	}
	m.printLines("\r\n" + kernelLine(m.uptime(now), "sysrq: %s", r.text))
	if !ok {
		return nil
	}
	return r.run(m, now)
}

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/console"
)

// Print is done by the running system: it prints Text on the console. Lines end
// with \n or \r\n.
type Print struct {
	Boot uint64
	Text string
}

func (c Print) apply(m *Machine, _ time.Time) ([]Event, error) {
	switch {
	case m.st.OS == nil || m.st.OS.Boot != c.Boot:
		return nil, fmt.Errorf("%w: boot %d", ErrStale, c.Boot)
	case m.st.Phase == Paused:
		return nil, fmt.Errorf("%w: print while %s", ErrPower, m.st.Phase)
	case len(c.Text) > console.Size:
		return nil, fmt.Errorf("print: %d bytes: must be at most %d: %w", len(c.Text), console.Size, ErrUnknown)
	case c.Text == "":
		return nil, nil
	}
	if !m.st.Console.AtLineStart() { // the line so far was written by somebody else
		m.print("\r\n")
	}
	m.print(strings.ReplaceAll(strings.ReplaceAll(c.Text, "\r\n", "\n"), "\n", "\r\n"))
	return nil, nil
}

// print appends text to the console as it is.
func (m *Machine) print(text string) {
	if text != "" {
		m.st.Console = m.st.Console.Append([]byte(text))
	}
}

// printLines prints each text that is not empty as a line.
func (m *Machine) printLines(all ...string) {
	var b strings.Builder
	for _, l := range all {
		if l != "" {
			b.WriteString(l)
			b.WriteString("\r\n")
		}
	}
	m.print(b.String())
}

// TypeText types bytes at the console. Firmware takes keys in POST, in its
// programs and when nothing was bootable; a running system takes lines. Bytes in
// any other phase are lost.
type TypeText struct{ Text []byte }

func (c TypeText) apply(m *Machine, now time.Time) ([]Event, error) {
	var evs []Event
	for _, b := range c.Text {
		switch m.st.Phase {
		case POST, InSetup, Halted:
			if !m.consoleQuiet() {
				evs = append(evs, m.pressKey(now, b)...)
			}
		case Running:
			evs = append(evs, m.typeByte(now, b)...)
		}
	}
	return evs, nil
}

// Break sends a break on the serial line. A running system takes the next byte
// as a command to its kernel (Linux: "magic SysRq").
type Break struct{}

func (Break) apply(m *Machine, now time.Time) ([]Event, error) {
	if m.st.Phase == Running {
		t := m.terminal()
		t.Break = m.clientTime(now)
		m.setTerminal(t)
	}
	return nil, nil
}

func (m *Machine) terminal() console.Terminal { return m.st.Console.At() }

func (m *Machine) setTerminal(t console.Terminal) { m.st.Console = m.st.Console.WithTerminal(t) }

// resetTerminal logs out whoever is at the console and drops what was typed.
func (m *Machine) resetTerminal() { m.st.Console = m.st.Console.WithoutTerminal() }

// pressKey handles one byte that the firmware reads.
func (m *Machine) pressKey(now time.Time, b byte) []Event {
	t, key, changed := m.terminal().Press(b)
	if changed {
		m.setTerminal(t)
	}
	switch {
	case m.st.Phase == InSetup && key == console.KeyLeave, m.st.Phase == Halted && key == console.KeyEnter:
		return m.step(now, restart)
	case m.st.Phase == POST && (key == console.KeySetup || key == console.KeyNetwork) && t.Key != key:
		t.Key = key
		m.setTerminal(t)
		m.printLines(map[console.Key]string{console.KeySetup: "Set-up follows", console.KeyNetwork: "Booting from the network follows"}[key])
	}
	return nil
}

// applyPOSTKey returns the boot sources and the firmware program after the key
// that was pressed in POST, if any.
func (m *Machine) applyPOSTKey(tries []Source, app SourceKind) ([]Source, SourceKind) {
	switch m.terminal().Key {
	case console.KeySetup:
		return tries, BiosSetup
	case console.KeyNetwork:
		return unique(append(m.overrideSources(Override{Target: Pxe}), tries...)), ""
	}
	return tries, app
}

// typeByte handles one byte that is typed at a running system's terminal.
func (m *Machine) typeByte(now time.Time, b byte) []Event {
	t := m.terminal()
	if at := t.Break; !at.IsZero() {
		t.Break = time.Time{}
		m.setTerminal(t)
		if m.clientTime(now).Sub(at) <= console.BreakTime {
			return m.sysRq(now, b)
		}
	}
	line := slices.Clone(t.Line)
	next, echo, in := t.Type(b)
	if in == console.Ignored {
		return nil
	}
	m.setTerminal(next)
	m.print(echo)
	switch in {
	case console.Line:
		return m.enterLine(now, string(line))
	case console.Interrupt:
		m.promptAgain(t.Asks == console.AskCommand)
	case console.EndOfFile:
		m.promptAgain(false)
	}
	return nil
}

package world

import (
	"context"
	"errors"
	"log/slog"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// consoleWriter is the consoleWriter of a machine as one running system has it.
type consoleWriter struct {
	host *lab.Host
	boot uint64
}

// maxConsoleLine bounds what is shown of one line of a log, in bytes.
const maxConsoleLine = 1 << 10

// Write shows a line. A system that runs no longer shows nothing, and a line that
// cannot be shown is no reason to stop working.
func (c consoleWriter) Write(p []byte) (int, error) {
	text := p
	if len(p) > maxConsoleLine {
		text = p[:maxConsoleLine]
		for !utf8.Valid(text) && len(text) > maxConsoleLine-utf8.UTFMax {
			text = text[:len(text)-1]
		}
		text = append(text[:len(text):len(text)], "…\n"...)
	}
	err := c.host.Apply(context.Background(), machine.Print{Boot: c.boot, Text: string(text)})
	if err != nil && !errors.Is(err, machine.ErrStale) && !errors.Is(err, machine.ErrPower) {
		return 0, err
	}
	return len(p), nil
}

// agentLog is the log of the agent of one boot: it goes to the lab's log and, as
// on a real server, to the console, with the lab's time.
func (a *agents) agentLog(h *lab.Host, boot uint64) *slog.Logger {
	onConsole := slog.NewTextHandler(consoleWriter{h, boot}, &slog.HandlerOptions{ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
		if at.Key == slog.TimeKey && len(groups) == 0 {
			at.Value = slog.TimeValue(a.clock.Now().UTC())
		}
		return at
	}})
	return slog.New(slog.NewMultiHandler(a.log.With("machine", h.Name()).Handler(), onConsole))
}

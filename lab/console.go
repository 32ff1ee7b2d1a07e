package lab

import (
	"context"
	"errors"
	"log/slog"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
)

// consoleWriter writes to the console of a machine for one boot.
type consoleWriter struct {
	host *rack.Host
	boot uint64
}

// maxConsoleLine is how many bytes of a log line are shown.
const maxConsoleLine = 1 << 10

// Write shows a line. Lines of a boot that has ended are dropped without an error.
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

// agentLog returns the logger of the agent of one boot. It writes to the lab's log
// and, as on a real server, to the console, with the lab's time.
func agentLog(c *clock.Clock, log *slog.Logger, h *rack.Host, boot uint64) *slog.Logger {
	onConsole := slog.NewTextHandler(consoleWriter{h, boot}, &slog.HandlerOptions{ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
		if at.Key == slog.TimeKey && len(groups) == 0 {
			at.Value = slog.TimeValue(c.Now().UTC())
		}
		return at
	}})
	return slog.New(slog.NewMultiHandler(log.With("machine", h.Name()).Handler(), onConsole))
}

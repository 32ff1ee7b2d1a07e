package lab

import (
	"context"
	"log/slog"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// labTimeKey is the key of the lab's time in records of the log, beside the real time
// that slog's handlers write.
const labTimeKey = "labTime"

// labTimeHandler adds the lab's time to the records of a slog.Handler.
type labTimeHandler struct {
	slog.Handler // without the groups
	clock        *clock.Clock
	// groups adds the groups that a logger has begun, with the attributes in them. The
	// lab's time stands outside of all groups. nil: there is none.
	groups func(slog.Handler) slog.Handler
}

func (h labTimeHandler) Handle(ctx context.Context, r slog.Record) error {
	at := slog.Time(labTimeKey, h.clock.Now().UTC())
	if h.groups != nil {
		return h.groups(h.Handler.WithAttrs([]slog.Attr{at})).Handle(ctx, r)
	}
	r = r.Clone()
	r.AddAttrs(at)
	return h.Handler.Handle(ctx, r)
}

func (h labTimeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) }, false)
}

func (h labTimeHandler) WithGroup(name string) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) }, name != "")
}

// with returns the handler with a change, which begins a group or is made in one.
func (h labTimeHandler) with(change func(slog.Handler) slog.Handler, group bool) slog.Handler {
	if h.groups == nil && !group {
		h.Handler = change(h.Handler)
		return h
	}
	outer := h.groups
	h.groups = func(inner slog.Handler) slog.Handler {
		if outer != nil {
			inner = outer(inner)
		}
		return change(inner)
	}
	return h
}

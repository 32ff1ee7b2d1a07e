package lab

import (
	"context"
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Watch calls changed whenever the machine's console or its power may be another
// than before, until stop is called. What it calls must not wait, nor ask the
// host for anything.
func (h *Host) Watch(changed func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &changed
	h.watchers = append(h.watchers, w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.watchers = slices.DeleteFunc(h.watchers, func(o *func()) bool { return o == w }); len(h.watchers) == 0 {
			h.watchers = nil
		}
	}
}

// watch is Watch for IPMI.
func (l *Lab) watch(h ipmi.Host, changed func()) (stop func()) { return h.(*Host).Watch(changed) }

// notifyWatchers calls the watchers when a step has changed the console or the
// power.
func (h *Host) notifyWatchers(st *step) {
	was, is := &st.was.Machine, &st.is.Machine
	if is.Console == was.Console && is.Main == was.Main {
		return
	}
	for _, w := range h.watchers {
		(*w)()
	}
}

// ReadConsole calls show with what the machine's console shows from byte number
// from on: what is remembered at once, then what comes, until ctx ends, or with
// show's error. Of what is forgotten before it was shown nothing is told.
func (h *Host) ReadConsole(ctx context.Context, from uint64, show func(text []byte) error) error {
	wake := make(chan struct{}, 1)
	defer h.Watch(func() {
		select {
		case wake <- struct{}{}:
		default: // it will look anyway
		}
	})()
	for {
		ended := ctx.Err() != nil // what was shown before that is told
		text, at := h.Machine().Console.Since(from)
		if len(text) > 0 {
			if err := show(text); err != nil {
				return err
			}
			from = at + uint64(len(text))
		}
		switch {
		case ended:
			return context.Cause(ctx)
		case len(text) > 0:
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// maxTyped is how much of a text is typed in one step.
const maxTyped = 512

// Type types at the machine's console.
func (h *Host) Type(ctx context.Context, text []byte) error {
	for part := range slices.Chunk(text, maxTyped) {
		if err := h.Apply(ctx, machine.TypeText{Text: part}); err != nil {
			return err
		}
	}
	return nil
}

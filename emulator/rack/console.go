package rack

import (
	"context"
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Watch calls changed whenever the machine's console or its power may have changed,
// until stop is called. The function must not wait and must not call the host.
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

// watch implements ipmi.Config.WatchConsole.
func (l *Rack) watch(h ipmi.Host, changed func()) (stop func()) { return h.(*Host).Watch(changed) }

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

// ReadConsole calls show with the output of the machine's console from byte number
// from on: first what the console remembers, then what comes, until ctx ends or show
// returns an error. It skips output that the console has forgotten.
func (h *Host) ReadConsole(ctx context.Context, from uint64, show func(text []byte) error) error {
	wake := make(chan struct{}, 1)
	defer h.Watch(func() {
		select {
		case wake <- struct{}{}:
		default: // the reader is awake already
		}
	})()
	for {
		ended := ctx.Err() != nil // output from before the end is still shown
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

// maxTyped is how many bytes of a text are typed in one step.
const maxTyped = 512

// Type types a text at the machine's console.
func (h *Host) Type(ctx context.Context, text []byte) error {
	for part := range slices.Chunk(text, maxTyped) {
		if err := h.Apply(ctx, machine.TypeText{Text: part}); err != nil {
			return err
		}
	}
	return nil
}

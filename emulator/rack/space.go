package rack

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/space"
)

// A full disk ends nothing: a step that cannot be stored is not made, and its request is
// refused. Steps without a request, as those of a timer, are tried again after pauses of
// real time, until there is space.

// needsSpace reports whether a command to the BMC is refused when little space is left. A
// client needs a session to read, and an ejected medium gives space.
func needsSpace(c bmc.Command) bool {
	switch c.(type) {
	case bmc.OpenSession, bmc.CloseSession, bmc.EjectMedia:
		return false
	}
	return true
}

// Storage returns why no change can be stored, or nil.
func (l *Rack) Storage() error {
	if err := l.space.Writable(); err != nil {
		return err
	}
	if l.full.Load() {
		l.reportSpace(l.store.Save(l.clock.Now())) // nothing else may have been stored since there is space
	}
	if l.full.Load() {
		return fmt.Errorf("no space left on the file system of %s: make room, and the lab goes on by itself", l.dir)
	}
	return nil
}

// reportSpace notes whether a change could be stored, and logs when that begins and ends
// to fail.
func (l *Rack) reportSpace(err error) {
	switch full := space.Full(err); {
	case full && !l.full.Swap(true):
		l.log.Error("no space left: changes are not stored, and do not happen", "dir", l.dir, "err", err)
	case !full && err == nil && l.full.Load() && l.full.Swap(false):
		l.log.Warn("changes are stored again", "dir", l.dir)
	}
}

// storageFull makes the error of a write to a full disk a bmc.ErrStorageFull.
func storageFull(err error) error {
	if !space.Full(err) {
		return err
	}
	return fmt.Errorf("%w: %w", bmc.ErrStorageFull, err)
}

// untilStored calls do again for as long as its change cannot be stored for lack of
// space.
func (l *Rack) untilStored(do func() error) error {
	for {
		err := do()
		if !errors.Is(err, bmc.ErrStorageFull) {
			return err
		}
		select {
		case <-l.stopped:
			return err
		default:
			pauseBriefly(context.Background())
		}
	}
}

// Await carries out a command to the machine, as Apply does. When there is no space to
// store its effect, Await waits until there is, or the rack ends.
func (h *Host) Await(ctx context.Context, c machine.Command) error {
	return h.rack.untilStored(func() error { return h.Apply(ctx, c) })
}

package rack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/store"
)

var errEjected = errors.New("ejected while it was fetched")

// fetch is the download of an image into a slot.
type fetch struct {
	slot   bmc.Slot // with the password for the image's server
	cancel context.CancelCauseFunc
}

// ApplyBMC carries out a command to the BMC, and returns when its effect is stored
// and visible. InsertMedia returns when the image was fetched, or with bmc.ErrMedia
// when it cannot be fetched or ctx ends before.
func (h *Host) ApplyBMC(ctx context.Context, c bmc.Command) ([]bmc.Event, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	fetching := ctx
	evs, wanted, err := h.applyBMC(ctx, c, func() (cancel context.CancelCauseFunc) {
		fetching, cancel = context.WithCancelCause(ctx)
		return cancel
	})
	if err != nil || wanted == nil {
		return evs, err
	}
	defer wanted.cancel(nil)
	more, err := h.fetch(fetching, wanted)
	return append(evs, more...), err
}

// applyBMC applies a command to the BMC in one step. When the command starts a
// fetch, it returns the fetch; an ejection cancels it with what begin returned.
func (h *Host) applyBMC(ctx context.Context, c bmc.Command, begin func() context.CancelCauseFunc) (evs []bmc.Event, wanted *fetch, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.beginRequest(ctx)
	st.refusable = st.refusable && needsSpace(c)
	if h.closesHeldTask(c) {
		return nil, nil, h.commit(st)
	}
	before := h.bmc.State()
	evs, err = h.bmc.Apply(st.now, c)
	if err == nil && h.bmc.State().Net != before.Net {
		if err = h.rack.checkEndpoints(h.index, new(h.bmc.View())); err != nil {
			h.bmc.Restore(before)
			evs = nil
		}
	}
	st.bmc = append(st.bmc, evs...)
	if err != nil {
		if st.overdue {
			err = errors.Join(err, h.commit(st))
		}
		return evs, nil, err
	}
	if err := h.commit(st); err != nil {
		return nil, nil, err
	}
	for _, ev := range evs {
		if ev, ok := ev.(bmc.MediaRequested); ok {
			wanted = &fetch{slot: ev.Slot, cancel: begin()}
			if h.fetches == nil {
				h.fetches = map[string]*fetch{}
			}
			h.fetches[ev.Slot.ID] = wanted
		}
	}
	return evs, wanted, nil
}

// mediaEjected cancels the fetch for a slot that is empty now, or removes its image.
// The caller holds h.mu.
func (h *Host) mediaEjected(slot string) {
	if f := h.fetches[slot]; f != nil {
		f.cancel(errEjected)
		h.forgetFetch(f)
		return
	}
	if err := h.rack.store.RemoveMedia(h.Name(), slot); err != nil {
		h.rack.log.Warn("image of ejected media not deleted", "host", h.Name(), "slot", slot, "err", err)
	}
}

// cancelWork cancels the host's fetches and tasks because the rack ends.
func (h *Host) cancelWork() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, cancel := range h.running {
		cancel(errRackEnded)
	}
	for _, f := range h.fetches {
		f.cancel(errRackEnded)
	}
}

// forgetFetch forgets a fetch that has ended. The caller holds h.mu.
func (h *Host) forgetFetch(f *fetch) {
	if h.fetches[f.slot.ID] == f {
		delete(h.fetches, f.slot.ID)
	}
	if len(h.fetches) == 0 {
		h.fetches = nil
	}
}

// fetch downloads an image into its slot. The clock does not jump meanwhile.
func (h *Host) fetch(ctx context.Context, f *fetch) ([]bmc.Event, error) {
	defer h.rack.clock.Enter()()
	evs, err := h.download(ctx, f)
	if err == nil {
		return evs, nil
	}
	h.mu.Lock()
	h.forgetFetch(f)
	h.mu.Unlock()
	failed := func() (lost error) {
		evs, _, lost = h.applyBMC(context.Background(), bmc.MediaFetchFailed{Slot: f.slot.ID, Fetch: f.slot.Fetch}, nil)
		return lost
	}
	lost := failed()
	if errors.Is(lost, bmc.ErrStorageFull) { // the request is answered before
		h.rack.tasks.Go(func() {
			if err := h.rack.untilStored(failed); err != nil && !errors.Is(err, bmc.ErrNotFound) {
				h.rack.log.Error("slot of virtual media not emptied", "host", h.Name(), "slot", f.slot.ID, "err", err)
			}
		})
	}
	if lost != nil && !errors.Is(lost, bmc.ErrNotFound) { // not found: the slot was emptied before
		err = errors.Join(err, lost)
	}
	return nil, err
}

func (h *Host) download(ctx context.Context, f *fetch) ([]bmc.Event, error) {
	in, err := h.rack.store.NewMedia(h.Name(), f.slot.ID, f.slot.Fetch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bmc.ErrMedia, storageFull(err))
	}
	img := outbound.Image{URL: f.slot.Image, User: f.slot.User, Password: f.slot.Password, Unverified: !f.slot.Verify}
	for _, c := range h.BMC().Certificates.Store(bmc.MediaStore(f.slot.ID)) {
		img.Trusted = append(img.Trusted, c.Chain...)
	}
	size, err := h.rack.fetcher.Fetch(ctx, img, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name(), errors.Join(storageFull(err), in.Drop()))
	}
	return h.mediaArrived(f, in, size)
}

// mediaArrived makes a downloaded image the content of its slot.
func (h *Host) mediaArrived(f *fetch, in *store.Incoming, size int64) ([]bmc.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fetches[f.slot.ID] != f {
		return nil, fmt.Errorf("%s: %w: %w", h.Name(), bmc.ErrMedia, errors.Join(errEjected, in.Drop()))
	}
	h.forgetFetch(f)
	// The file comes first: a rack that is killed in between finds a slot whose image
	// has not arrived, and empties it.
	if err := in.Keep(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", h.Name(), bmc.ErrMedia, storageFull(err))
	}
	st := h.begin()
	evs, err := h.bmc.Apply(st.now, bmc.MediaFetched{Slot: f.slot.ID, Fetch: f.slot.Fetch, Size: size})
	st.bmc = append(st.bmc, evs...)
	err = errors.Join(err, h.commit(st))
	if err != nil {
		h.mediaEjected(f.slot.ID)
		return nil, err
	}
	return evs, nil
}

// Media is the image in a slot of virtual media.
type Media struct {
	*os.File       // opened for reading
	Size     int64 // bytes
}

// Media opens the image in a slot; false when the slot is empty. The caller closes
// it, and can read on after it was ejected.
func (h *Host) Media(slot string) (*Media, bool) {
	for _, s := range h.BMC().Slots {
		if s.ID != slot || !s.Inserted {
			continue
		}
		f, err := h.rack.store.Media(h.Name(), slot)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // ejected at this moment
				h.rack.log.Warn("image of virtual media not readable", "host", h.Name(), "slot", slot, "err", err)
			}
			return nil, false
		}
		return &Media{File: f, Size: s.Size}, true
	}
	return nil, false
}

// imageSize returns the size of a slot's image file in bytes, or -1 when there is
// none.
func (h *Host) imageSize(slot string) int64 {
	f, err := h.rack.store.Media(h.Name(), slot)
	if err != nil {
		return -1
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return -1
	}
	return st.Size()
}

package rack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/rack/outbound"
	"github.com/metalab-dev/metalab/emulator/rack/store"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// StoreImage stores a firmware image of at most most bytes in a file that stays
// until its update has ended or DropImage is called. A defect of the image is part
// of the result; an image that is too large is resource.ErrTooLarge.
func (h *Host) StoreImage(ctx context.Context, r io.Reader, most int64) (resource.Image, error) {
	if ctx.Err() != nil {
		return resource.Image{}, context.Cause(ctx)
	}
	return h.saveImage(func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(r, most+1))
		if err == nil && n > most {
			err = resource.ErrTooLarge
		}
		return err
	})
}

// saveImage stores the image that fill writes, and parses it.
func (h *Host) saveImage(fill func(io.Writer) error) (resource.Image, error) {
	in, id, err := h.rack.store.NewUpdate(h.Name())
	if err != nil {
		return resource.Image{}, fmt.Errorf("%s: %w", h.Name(), storageFull(err))
	}
	img := resource.Image{ID: id}
	if err = fill(in); err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	if err == nil {
		img.Image, err = firmware.ParseImage(bufio.NewReaderSize(in, 1<<16))
		if bad := (*firmware.ImageError)(nil); errors.As(err, &bad) {
			img.Defect, err = bad.Defect, nil
		}
	}
	if err != nil {
		return resource.Image{}, fmt.Errorf("%s: firmware image: %w", h.Name(), errors.Join(storageFull(err), in.Drop()))
	}
	if err := in.Keep(); err != nil {
		return resource.Image{}, fmt.Errorf("%s: firmware image: %w", h.Name(), storageFull(err))
	}
	return img, nil
}

// DropImage removes an image that no update needs.
func (h *Host) DropImage(id string) {
	if err := h.rack.store.RemoveUpdate(h.Name(), id); err != nil {
		h.rack.log.Warn("firmware image not deleted", "host", h.Name(), "image", id, "err", err)
	}
}

// Image opens the image of an update in progress. The caller closes it.
func (h *Host) Image(update string) (io.ReadCloser, error) {
	f, err := h.rack.store.Update(h.Name(), update)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name(), err)
	}
	return f, nil
}

// FetchUpdate opens a task that fetches an image, and then continues as the update
// of the machine that stage describes.
func (h *Host) FetchUpdate(ctx context.Context, o bmc.OpenTask, from resource.ImageSource, stage firmware.Stage) (bmc.Task, error) {
	return h.RunTask(ctx, o, func(ctx context.Context, task string) bmc.CloseTask {
		img, err := h.saveImage(func(w io.Writer) error {
			_, err := h.rack.fetcher.Fetch(ctx, outbound.Image{
				URL: from.URL, User: from.User, Password: from.Password, Unverified: from.Unverified, MaxSize: from.Most,
			}, w)
			return err
		})
		if err != nil {
			return notFetched(h.Now(), from.URL, err)
		}
		stage.ID, stage.Task, stage.Image, stage.Defect = img.ID, task, img.Image, img.Defect
		if err := h.Apply(ctx, machine.Firmware{Command: stage}); err != nil {
			h.DropImage(img.ID)
			return bmc.CloseTask{Fault: err.Error()}
		}
		return bmc.CloseTask{} // the machine ends the task
	})
}

// notFetched returns the end of a task whose image could not be fetched.
func notFetched(at time.Time, from string, err error) bmc.CloseTask {
	why := err
	if known := (*bmc.MediaError)(nil); errors.As(err, &known) {
		why = known.Err
	}
	name := "an image"
	if u, err := url.Parse(from); err == nil {
		name = path.Base(u.Path)
	}
	return bmc.CloseTask{
		Fault: "the image could not be fetched: " + why.Error(),
		Messages: []event.Note{{
			At: at, Kind: event.UpdateNotTransferred, Subject: event.Subject{Part: event.BMC}, Args: []string{name, "the update service"},
		}},
	}
}

// forgetImages removes the images of updates that have ended in a step.
func (h *Host) forgetImages(st *step) {
	was, is := st.was.Machine.Firmware, st.is.Machine.Firmware
	if was == nil || was == is {
		return
	}
	for _, u := range was.Updates {
		if is == nil || !slices.ContainsFunc(is.Updates, func(o firmware.Update) bool { return o.ID == u.ID }) {
			h.DropImage(u.ID)
		}
	}
}

// imagesInUse returns the images of updates in progress. It cancels an update whose
// image was lost, when the machine allows that.
func (h *Host) imagesInUse(st *step) []store.Image {
	var images []store.Image
	for _, u := range h.machine.View().Firmware.Updates() {
		if u.Restore {
			continue
		}
		f, err := h.rack.store.Update(h.Name(), u.ID)
		if err == nil {
			f.Close()
			images = append(images, store.Image{Host: h.Name(), ID: u.ID})
			continue
		}
		h.rack.log.Warn("firmware image lost in a restart", "host", h.Name(), "update", u.ID, "err", err)
		evs, err := h.machine.Apply(st.now, machine.Firmware{Command: firmware.CancelUpdate{ID: u.ID}})
		if err != nil {
			h.rack.log.Warn("update without its image not cancelled", "host", h.Name(), "update", u.ID, "err", err)
		}
		st.machine = append(st.machine, evs...)
	}
	return images
}

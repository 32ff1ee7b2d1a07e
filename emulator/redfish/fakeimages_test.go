package redfish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// images are the firmware images of a host under test.
type images struct {
	last   int
	stored map[string]bool
	remote map[string][]byte    // by URL
	from   resource.ImageSource // source of the last fetch
}

func (h *host) StoreImage(_ context.Context, r io.Reader, most int64) (resource.Image, error) {
	raw, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return resource.Image{}, err
	}
	if int64(len(raw)) > most {
		return resource.Image{}, resource.ErrTooLarge
	}
	head, err := firmware.ParseImage(bytes.NewReader(raw))
	defer h.locked()()
	h.images.last++
	img := resource.Image{ID: strconv.Itoa(h.images.last), Image: head}
	if bad := (*firmware.ImageError)(nil); errors.As(err, &bad) {
		img.Defect = bad.Defect
	}
	if h.images.stored == nil {
		h.images.stored = map[string]bool{}
	}
	h.images.stored[img.ID] = true
	return img, nil
}

func (h *host) DropImage(id string) {
	defer h.locked()()
	delete(h.images.stored, id)
}

func (h *host) FetchUpdate(ctx context.Context, o bmc.OpenTask, from resource.ImageSource, stage firmware.Stage) (bmc.Task, error) {
	raw, ok := h.images.remote[from.URL]
	h.images.from = from
	evs, err := h.ApplyBMC(ctx, o)
	if err != nil {
		return bmc.Task{}, err
	}
	job := evs[len(evs)-1].(bmc.TaskOpened).Task
	if !ok {
		_, err := h.ApplyBMC(ctx, bmc.CloseTask{ID: job.ID, Fault: "the image could not be fetched"})
		return job, err
	}
	img, err := h.StoreImage(ctx, bytes.NewReader(raw), from.Most)
	if err != nil {
		return bmc.Task{}, err
	}
	stage.ID, stage.Task, stage.Image, stage.Defect = img.ID, job.ID, img.Image, img.Defect
	return job, h.Apply(ctx, machine.Firmware{Command: stage})
}

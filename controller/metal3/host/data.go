package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// minDataRetry is the shortest wait after a failure to attach or detach a data
// image (B-230).
const minDataRetry = 30 * time.Second

// dataRetry is the next attempt to change a data image. It applies while the
// wanted image is url.
type dataRetry struct {
	at  time.Time
	url string
}

// observeData compares the virtual CD drive with the DataImage of a server that
// is about to be powered on (B-230). At other times it does nothing: the image
// of a running system must not change.
func (r *Reconciler) observeData(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	f := &o.facts
	if !phase.TakesData(*f) || h.Status.Provisioning.Image.IsLiveISO() {
		return nil
	}
	key, d := client.ObjectKeyFromObject(h), new(metal3.DataImage)
	if err := r.Client.Get(ctx, key, d); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := r.read.Get(ctx, key, d); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.data = d
	wanted, attached := wantedData(d), d.Status.AttachedImage.URL
	if failed := r.memory.get(h.UID).dataRetry; failed != nil && failed.url == wanted && r.Clock.Now().Before(failed.at) {
		f.Data = phase.DataWaits
		return nil
	}
	m, err := o.client.Media(ctx)
	if errors.Is(err, bmc.ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	switch {
	case wanted == attached && (wanted == "" || m.Inserted):
	case wanted == "", m.Inserted && m.Image != wanted:
		f.Data = phase.DataOther
	default: // also if the drive cannot be read: attaching reports why
		f.Data = phase.DataMissing
	}
	return nil
}

// wantedData returns the URL of the image that the drive is to hold; "" for none.
func wantedData(d *metal3.DataImage) string {
	if !d.DeletionTimestamp.IsZero() {
		return ""
	}
	return d.Spec.URL
}

// attachData inserts the data image into the virtual CD drive. It records the
// image in the status first, so that an image that may be in the drive is never
// released.
func (r *Reconciler) attachData(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	o.data.Status.AttachedImage.URL = o.data.Spec.URL
	if err := r.recordData(ctx, o.data); err != nil {
		return err
	}
	err := o.client.InsertMedia(ctx, o.data.Spec.URL)
	return r.recordDataResult(ctx, h, o.data, "attach", "", err)
}

// detachData ejects the data image.
func (r *Reconciler) detachData(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	err := o.client.EjectMedia(ctx)
	attached := o.data.Status.AttachedImage.URL
	if err == nil {
		o.data.Status.AttachedImage.URL, attached = "", ""
		if err := r.recordData(ctx, o.data); err != nil {
			return err
		}
	}
	return r.recordDataResult(ctx, h, o.data, "detach", attached, err)
}

// recordDataResult records the result of attaching or detaching a data image.
// attached is the image that the drive may hold if it failed. A silent BMC is not
// a failure of the image (B-14).
func (r *Reconciler) recordDataResult(ctx context.Context, h *metal3.BareMetalHost, d *metal3.DataImage, what, attached string, err error) error {
	if err == nil {
		r.memory.update(h.UID, func(m *hostMemory) { m.dataRetry = nil })
		if d.Status.Error == (metal3.DataImageError{}) {
			return nil
		}
		d.Status.Error = metal3.DataImageError{}
		return r.recordData(ctx, d)
	}
	if errors.Is(err, bmc.ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	d.Status.AttachedImage.URL = attached
	d.Status.Error.Count++
	d.Status.Error.Message = fmt.Sprintf("failed to %s dataImage, %v", what, err)
	next := dataRetry{url: wantedData(d), at: r.Clock.Now().Add(max(minDataRetry, phase.Backoff(d.Status.Error.Count, r.Chance())))}
	r.memory.update(h.UID, func(m *hostMemory) { m.dataRetry = &next })
	return r.recordData(ctx, d)
}

func (r *Reconciler) recordData(ctx context.Context, d *metal3.DataImage) error {
	now := r.now()
	d.Status.LastReconciled = &now
	err := r.Client.Status().Update(ctx, d)
	if err == nil {
		r.read.Wrote(d)
	}
	if apierrors.IsNotFound(err) { // deleted meanwhile
		return nil
	}
	return err
}

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
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// minDataRetry is the shortest wait after a data image could not be attached or
// detached (B-230).
const minDataRetry = 30 * time.Second

// retry is when something is tried again, unless it is asked for otherwise.
type retry struct {
	at  time.Time
	url string
}

// observeData works out whether a server that is about to be switched on holds
// the data image that it shall (B-230). Nobody looks at any other time: what a
// system finds in its drive does not change under it.
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
	wanted, attached := dataWanted(d), d.Status.AttachedImage.URL
	r.mu.Lock()
	failed, waits := r.waits.data[h.UID]
	r.mu.Unlock()
	if waits && failed.url == wanted && r.Clock.Now().Before(failed.at) {
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
	default: // also where the drive cannot be read: attaching will tell why
		f.Data = phase.DataMissing
	}
	return nil
}

// dataWanted is what a server shall find in its drive.
func dataWanted(d *metal3.DataImage) string {
	if !d.DeletionTimestamp.IsZero() {
		return ""
	}
	return d.Spec.URL
}

// attachData puts the data image into the virtual CD. The status names it
// before: an image that may be in the drive is not let go.
func (r *Reconciler) attachData(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	o.data.Status.AttachedImage.URL = o.data.Spec.URL
	if err := r.recordData(ctx, o.data); err != nil {
		return err
	}
	err := o.client.InsertMedia(ctx, o.data.Spec.URL)
	return r.dataDone(ctx, h, o.data, "attach", "", err)
}

// detachData empties the virtual CD of a data image.
func (r *Reconciler) detachData(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	err := o.client.EjectMedia(ctx)
	attached := o.data.Status.AttachedImage.URL
	if err == nil {
		o.data.Status.AttachedImage.URL, attached = "", ""
		if err := r.recordData(ctx, o.data); err != nil {
			return err
		}
	}
	return r.dataDone(ctx, h, o.data, "detach", attached, err)
}

// dataDone notes what came of it; attached is what the drive may hold if it
// failed. A BMC that does not answer is no failure of the image (B-14).
func (r *Reconciler) dataDone(ctx context.Context, h *metal3.BareMetalHost, d *metal3.DataImage, what, attached string, err error) error {
	if err == nil {
		r.mu.Lock()
		delete(r.waits.data, h.UID)
		r.mu.Unlock()
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
	r.mu.Lock()
	r.waits.data[h.UID] = retry{url: dataWanted(d),
		at: r.Clock.Now().Add(max(minDataRetry, phase.Backoff(d.Status.Error.Count, r.Chance())))}
	r.mu.Unlock()
	return r.recordData(ctx, d)
}

func (r *Reconciler) recordData(ctx context.Context, d *metal3.DataImage) error {
	now := r.now()
	d.Status.LastReconciled = &now
	err := r.Client.Status().Update(ctx, d)
	if err == nil {
		r.read.Wrote(d)
	}
	if apierrors.IsNotFound(err) { // it was taken away meanwhile
		return nil
	}
	return err
}

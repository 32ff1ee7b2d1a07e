package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
)

// imageFormats lists the image formats that can be deployed. With "" the agent
// detects the format; a live ISO is booted instead of written.
var imageFormats = map[string]bool{"": true, "raw": true, "qcow2": true, "vdi": true, "vmdk": true, liveISO: true}

const liveISO = "live-iso"

// writeSpec returns the specification of the write job without secrets. Its errors
// are for the user to fix. A custom deployment needs no image (B-156).
func writeSpec(h *metal3.BareMetalHost) (job.WriteSpec, error) {
	root := JobHints(rootHints(h))
	img := h.Spec.Image
	if img == nil || img.URL == "" {
		return job.WriteSpec{Root: root}, nil
	}
	invalid := func(err error) (job.WriteSpec, error) {
		return job.WriteSpec{}, fmt.Errorf("Validation failed: %w", err) // upstream's text (B-60)
	}
	undeployable := func(err error) (job.WriteSpec, error) {
		return job.WriteSpec{}, fmt.Errorf("host validation error: %w", err) // upstream's text, too
	}
	sum, kind, err := img.GetChecksum()
	if err != nil {
		return invalid(err)
	}
	format := ""
	if img.DiskFormat != nil {
		format = *img.DiskFormat
	}
	switch {
	case !imageFormats[format]:
		return undeployable(fmt.Errorf("image format %s cannot be written: use raw, qcow2, vdi or vmdk", format))
	case img.IsOCI() && img.Checksum != "":
		return invalid(errors.New("spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)")) // B-151
	case img.IsOCI() && format == liveISO:
		return undeployable(fmt.Errorf("a live ISO cannot be booted from %s: BMCs fetch it by http or https", img.URL))
	}
	return job.WriteSpec{URL: img.URL, Format: format, Checksum: sum, ChecksumType: kind, Root: root}, nil
}

// JobHints converts root device hints to the agent's type.
func JobHints(h *metal3.RootDeviceHints) job.Hints {
	if h == nil {
		return job.Hints{}
	}
	return job.Hints{
		DeviceName: h.DeviceName, HCTL: h.HCTL, Model: h.Model, Vendor: h.Vendor,
		SerialNumber: h.SerialNumber, MinSizeGigabytes: h.MinSizeGigabytes,
		WWN: h.WWN, WWNWithExtension: h.WWNWithExtension, WWNVendorExtension: h.WWNVendorExtension,
		Rotational: h.Rotational,
	}
}

// writeJob returns the job that deploys: a write job, or a custom job if there is
// a method.
func writeJob(id string, spec job.WriteSpec, method string) job.Job {
	if method != "" {
		return job.Job{ID: id, Kind: job.Custom, Custom: &job.CustomSpec{Method: method, Write: spec}}
	}
	return job.Job{ID: id, Kind: job.Write, Write: &spec}
}

// offerWrite offers the deployment job to the agent, with the contents of the
// secrets (B-154, B-155). It reads the secrets only now and does not store them: a
// change of them does not cause a second write (B-62).
func (r *Reconciler) offerWrite(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	drive, err := r.configDrive(ctx, h)
	if err != nil {
		return err
	}
	auth, err := r.registryAuth(ctx, h)
	if err != nil {
		return err
	}
	j := o.writeJob
	spec := j.Write
	if j.Custom != nil {
		spec = &j.Custom.Write
	}
	spec.ConfigDrive, spec.Registry = drive, auth
	if p := r.rootProvider(h); p != nil {
		root, err := p.Root(ctx, r.server(h, o))
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
		spec.Root, spec.Array = root.Hints, root.Array
	}
	return r.offer(h, o, j)
}

// isLive reports whether a medium is the live ISO of an image.
func isLive(img *metal3.Image, medium string) bool {
	return img.IsLiveISO() && strings.TrimSpace(img.URL) == medium
}

func (r *Reconciler) insertLive(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	return o.client.InsertMedia(ctx, strings.TrimSpace(h.Spec.Image.URL))
}

func (r *Reconciler) bootLive(ctx context.Context, h *metal3.BareMetalHost, o *observation) error {
	return o.client.SetBoot(ctx, bmc.Boot{Device: bmc.BootCD, Mode: bmc.BootMode(h.Status.Provisioning.BootMode), Persistent: true})
}

package firmware

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// addSchemaOwner creates the object of a schema if necessary, and makes a host's
// settings one of its owners: the object is deleted with the last of them (B-04,
// B-202).
func (r *Reconciler) addSchemaOwner(ctx context.Context, h *metal3.BareMetalHost, hfs *metal3.HostFirmwareSettings, s *schema, c bmc.Client) error {
	owner, err := r.ownerRef(hfs)
	if err != nil {
		return err
	}
	var o metal3.FirmwareSchema
	err = r.read.Get(ctx, client.ObjectKey{Namespace: hfs.Namespace, Name: s.name}, &o)
	if apierrors.IsNotFound(err) {
		o = metal3.FirmwareSchema{
			ObjectMeta: metav1.ObjectMeta{Namespace: hfs.Namespace, Name: s.name, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       metal3.FirmwareSchemaSpec{Schema: s.settings},
		}
		if o.Spec.HardwareVendor, o.Spec.HardwareModel, err = vendorAndModel(ctx, h, c); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, &o); err != nil {
			return err
		}
		r.read.Wrote(&o)
		return nil
	}
	if err != nil || owns(&o, owner.UID) {
		return err
	}
	return r.queueOwner(ctx, &o, owner)
}

// vendorAndModel returns the vendor and model for the schema: from the inspection,
// else from the BMC.
func vendorAndModel(ctx context.Context, h *metal3.BareMetalHost, c bmc.Client) (vendor, model string, err error) {
	if d := h.Status.HardwareDetails; d != nil && d.SystemVendor.Manufacturer != "" {
		return d.SystemVendor.Manufacturer, d.SystemVendor.ProductName, nil
	}
	s, err := c.System(ctx)
	return s.Manufacturer, s.Model, err
}

func (r *Reconciler) ownerRef(hfs *metal3.HostFirmwareSettings) (metav1.OwnerReference, error) {
	kind, err := apiutil.GVKForObject(hfs, r.Client.Scheme())
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("firmware: settings of %s: %w", hfs.Name, err)
	}
	version, name := kind.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: version, Kind: name, Name: hfs.Name, UID: hfs.UID}, nil
}

// leaveSchema removes settings from the owners of a schema that no longer applies
// to them, and deletes a schema without owners: the garbage collector would not.
func (r *Reconciler) leaveSchema(ctx context.Context, hfs *metal3.HostFirmwareSettings, was *metal3.SchemaReference) error {
	var o metal3.FirmwareSchema
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: was.Namespace, Name: was.Name}, &o); err != nil {
		return client.IgnoreNotFound(err)
	}
	left := slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(x metav1.OwnerReference) bool { return x.UID == hfs.UID })
	switch {
	case len(left) == len(o.OwnerReferences):
		return nil
	case len(left) == 0:
		return client.IgnoreNotFound(r.Client.Delete(ctx, &o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}))
	}
	o.OwnerReferences = left
	return r.update(ctx, &o)
}

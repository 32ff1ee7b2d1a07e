package firmware

import (
	"context"
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// components returns the HostFirmwareComponents of a host; nil if it has none.
func (r *Reconciler) components(ctx context.Context, h *metal3.BareMetalHost) (*metal3.HostFirmwareComponents, error) {
	var hfc metal3.HostFirmwareComponents
	err := r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &hfc, r.adopt(ctx, h, &hfc)
}

// refreshComponents reads the firmware versions of a host's components. It creates
// the object for hosts whose BMC reports any (B-43, B-210).
func (r *Reconciler) refreshComponents(ctx context.Context, h *metal3.BareMetalHost, hfc *metal3.HostFirmwareComponents, c bmc.Client) (*metal3.HostFirmwareComponents, error) {
	u, err := updater(c)
	var found []bmc.Component
	if err == nil {
		found, err = u.Components(ctx)
	}
	if err != nil && !unsupported(err) {
		return hfc, err
	}
	if hfc == nil && len(found) == 0 {
		return nil, nil
	}
	if hfc == nil {
		hfc = &metal3.HostFirmwareComponents{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name},
			Spec:       metal3.HostFirmwareComponentsSpec{Updates: []metal3.FirmwareUpdate{}},
		}
		if err := controllerutil.SetOwnerReference(h, hfc, r.Client.Scheme()); err != nil {
			return nil, fmt.Errorf("firmware: components of %s: %w", h.Name, err)
		}
		if err := r.Client.Create(ctx, hfc); err != nil {
			return nil, err
		}
		r.read.Wrote(hfc)
	}
	return hfc, r.writeComponents(ctx, h, hfc, found, nil)
}

// writeComponents updates the status with the versions found, after edit has
// changed other fields.
func (r *Reconciler) writeComponents(ctx context.Context, h *metal3.BareMetalHost, hfc *metal3.HostFirmwareComponents, found []bmc.Component, edit func(*metal3.HostFirmwareComponentsStatus)) error {
	status := hfc.Status.DeepCopy()
	if found != nil {
		status.Components = mergeVersions(status.Components, found)
	}
	if len(hfc.Spec.Updates) == 0 {
		status.Updates = nil // without a specification nothing is to be updated
	}
	if edit != nil {
		edit(status)
	}
	bad := hfc.ValidateHostFirmwareComponents()
	differs := len(changedUpdates(hfc.Spec.Updates, status.Updates)) > 0 || len(hfc.Spec.Updates) != len(status.Updates)
	setCondition(&status.Conditions, changeDetected, differs, hfc.Generation, reasonOK, "")
	if bad != nil {
		setCondition(&status.Conditions, valid, false, hfc.Generation, reasonComponent, "Invalid Firmware Components")
	} else {
		setCondition(&status.Conditions, valid, true, hfc.Generation, reasonOK, "")
	}
	if equality.Semantic.DeepEqual(&hfc.Status, status) {
		return nil
	}
	fresh := !isObserved(hfc.Status.Conditions, hfc.Generation)
	now := r.now()
	status.LastUpdated = &now
	hfc.Status = *status
	if err := r.updateStatus(ctx, hfc); err != nil {
		return err
	}
	if fresh && bad != nil { // B-211
		r.publish(ctx, hfc, "HostFirmwareComponents", "hostfirmwarecomponents", fmt.Sprintf("Invalid Firmware Components: [%v]", bad))
	}
	if fresh {
		r.Changed(string(h.UID))
	}
	return nil
}

// mergeVersions returns the components with their present versions. It keeps the
// initial version of each.
func mergeVersions(was []metal3.FirmwareComponentStatus, found []bmc.Component) []metal3.FirmwareComponentStatus {
	var out []metal3.FirmwareComponentStatus
	for _, c := range found {
		one := metal3.FirmwareComponentStatus{Component: c.Name, InitialVersion: c.Version}
		if i := slices.IndexFunc(was, func(w metal3.FirmwareComponentStatus) bool { return w.Component == c.Name }); i >= 0 {
			one = was[i]
		}
		one.CurrentVersion = c.Version
		out = append(out, one)
	}
	return out
}

// changedUpdates returns the updates that were not requested before, compared by
// URL and not by version (B-212).
func changedUpdates(want, was []metal3.FirmwareUpdate) []metal3.FirmwareUpdate {
	var out []metal3.FirmwareUpdate
	for _, u := range want {
		if !slices.Contains(was, u) {
			out = append(out, u)
		}
	}
	return out
}

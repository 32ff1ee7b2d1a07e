package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalab-dev/metalab/agent/job"
)

const hardwareFinalizer = metal3.BareMetalHostFinalizer + "/hardwareData"

// storeHardware creates the host's HardwareData from the result of the inspection, or
// from the inventory of an externally provisioned host's BMC. It replaces an earlier
// one, and copies it to the status (B-48, B-250, B-260).
func (r *Reconciler) storeHardware(ctx context.Context, h *metal3.BareMetalHost, o *observation, events *eventList) error {
	details, reason, message := o.hardware, "UpdateHardwareDetails", "Hardware details changed: read from the BMC"
	switch {
	case details != nil && h.Status.HardwareDetails == nil:
		reason, message = "InspectionComplete", "Hardware details read from the BMC"
	case details != nil:
	case o.inventory == nil:
		return fmt.Errorf("host: inspection of %s is done but brought no inventory", h.Name)
	default:
		details, reason, message = hardwareDetails(o.inventory), "InspectionComplete", "Hardware inspection completed"
		recordForeignArrays(h, o.inventory)
	}
	hd := &metal3.HardwareData{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name, Finalizers: []string{hardwareFinalizer}},
		Spec:       metal3.HardwareDataSpec{HardwareDetails: details},
	}
	if err := controllerutil.SetControllerReference(h, hd, r.Client.Scheme()); err != nil {
		return fmt.Errorf("hardware data: %w", err)
	}
	err := r.Client.Create(ctx, hd)
	if apierrors.IsAlreadyExists(err) {
		err = r.replaceHardware(ctx, h, hd)
	}
	if err != nil {
		return fmt.Errorf("hardware data: %w", err)
	}
	h.Status.HardwareDetails = details
	events.add(reason, message)
	return nil
}

// adoptHardwareData takes the hardware details of a host that is not inspected from a
// HardwareData that is there beforehand, and ties that to the host (B-51, B-99).
func (r *Reconciler) adoptHardwareData(ctx context.Context, h *metal3.BareMetalHost, events *eventList) error {
	if h.Status.HardwareDetails != nil || !h.InspectionDisabled() {
		return nil
	}
	var hd metal3.HardwareData
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(h), &hd)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("hardware data: %w", err)
	case hd.Spec.HardwareDetails == nil || !hd.DeletionTimestamp.IsZero():
		return nil
	}
	before := hd.DeepCopy()
	var owned *controllerutil.AlreadyOwnedError
	switch err := controllerutil.SetControllerReference(h, &hd, r.Client.Scheme()); {
	case errors.As(err, &owned): // its data count all the same
	case err != nil:
		return fmt.Errorf("hardware data: %w", err)
	default:
		controllerutil.AddFinalizer(&hd, hardwareFinalizer)
		if err := r.Client.Patch(ctx, &hd, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("hardware data: %w", err)
		}
	}
	h.Status.HardwareDetails = before.Spec.HardwareDetails
	events.add("UpdateHardwareDetails", "Set HardwareDetails from the HardwareData "+hd.Name)
	return nil
}

// recordForeignArrays records that software RAID which the inspection has found, and
// which this host was not prepared with, is to be deleted: software RAID always is
// (B-170). See softRAID for the meaning of an empty list.
func recordForeignArrays(h *metal3.BareMetalHost, found *job.Hardware) {
	if some, _ := softRAID(h); some {
		return
	}
	foreign := slices.ContainsFunc(found.Disks, func(d job.Disk) bool { return d.Array != "" || d.Member })
	raid := &h.Status.Provisioning.RAID
	switch {
	case foreign && *raid == nil:
		*raid = &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{}}
	case foreign:
		(*raid).SoftwareRAIDVolumes = []metal3.SoftwareRAIDVolume{}
	case *raid != nil:
		(*raid).SoftwareRAIDVolumes = nil // they have gone
	}
}

// replaceHardware replaces the HardwareData of an earlier inspection. Most hosts
// have none, so this is not tried first.
func (r *Reconciler) replaceHardware(ctx context.Context, h *metal3.BareMetalHost, hd *metal3.HardwareData) error {
	if err := r.releaseHardware(ctx, h); err != nil {
		return err
	}
	old := &metal3.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}}
	if err := r.Client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
		return err
	}
	hd.ResourceVersion = ""
	return r.Client.Create(ctx, hd)
}

// releaseHardware removes the finalizer of the HardwareData.
func (r *Reconciler) releaseHardware(ctx context.Context, h *metal3.BareMetalHost) error {
	var hd metal3.HardwareData
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(h), &hd); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := hd.DeepCopy()
	if !controllerutil.RemoveFinalizer(&hd, hardwareFinalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, &hd, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// listenSeconds is how long the agent listens for LLDP frames: switches send them
// every 30 seconds (IEEE 802.1AB, msgTxInterval).
const listenSeconds = 31

func nicDetails(n job.NIC) metal3.NIC {
	out := metal3.NIC{
		Name: n.Name, Model: n.Model, MAC: n.MAC, IP: n.IP, SpeedGbps: n.SpeedMbps / 1000, PCIAddress: n.PCIAddress,
		PXE: n.PXE, VLANID: metal3.VLANID(n.VLANID),
	}
	for _, v := range n.VLANs {
		out.VLANs = append(out.VLANs, metal3.VLAN{ID: metal3.VLANID(v.ID), Name: v.Name})
	}
	if l := n.LLDP; l != nil {
		out.LLDP = &metal3.LLDP{SwitchID: l.SwitchID, PortID: l.PortID, SwitchSystemName: l.SwitchName}
	}
	return out
}

func hardwareDetails(in *job.Hardware) *metal3.HardwareDetails {
	out := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: in.System.Manufacturer, ProductName: in.System.Product, SerialNumber: in.System.Serial},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Vendor: in.BIOS.Vendor, Version: in.BIOS.Version, Date: in.BIOS.Date}},
		RAMMebibytes: in.RAMMiB,
		CPU: metal3.CPU{
			Arch: in.CPU.Arch, Model: in.CPU.Model, Flags: in.CPU.Flags, Count: in.CPU.Count,
			ClockMegahertz: metal3.ClockSpeed(math.Round(in.CPU.MHz)) * metal3.MegaHertz,
		},
		Hostname: in.Hostname,
	}
	for _, n := range in.NICs {
		out.NIC = append(out.NIC, nicDetails(n))
	}
	for _, d := range in.Disks {
		name, alternate := d.Name, []string(nil)
		if d.ByPath != "" { // by-path names survive a change of the disk order
			name, alternate = d.ByPath, []string{d.Name}
		}
		out.Storage = append(out.Storage, metal3.Storage{
			Name: name, AlternateNames: alternate, Rotational: d.Rotational, Type: metal3.DiskType(d.Type),
			SizeBytes: metal3.Capacity(d.SizeBytes), Vendor: d.Vendor, Model: d.Model, SerialNumber: d.Serial,
			WWN: d.WWN, WWNVendorExtension: d.WWNVendorExtension, WWNWithExtension: d.WWNWithExtension, HCTL: d.HCTL,
		})
	}
	return out
}

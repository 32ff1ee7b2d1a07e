package host

import (
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1/profile"
	"k8s.io/apimachinery/pkg/api/equality"
)

// noProfile is the spec.hardwareProfile of the specification's example. Like an empty
// one it stands for the profile that matches the hardware.
const noProfile = "default"

// vendorProfiles lists the profiles of vendors in the order in which they are compared
// with a server. A profile matches if the manufacturer or the product name contains
// the text and the server has the profile's root device.
var vendorProfiles = []struct{ profile, vendor string }{
	{"dell-raid", "Dell"}, {"dell", "Dell"}, {"openstack", "OpenStack"}, {"libvirt", "QEMU"}, {"libvirt", "KVM"},
}

// requestedProfile returns the profile that the specification requests. ok is false
// if it requests none, which is not an error.
func requestedProfile(h *metal3.BareMetalHost) (p profile.Profile, ok bool, err error) {
	name := h.Spec.HardwareProfile
	if name == "" || name == noProfile {
		return profile.Profile{}, false, nil
	}
	if p, err = profile.GetProfile(name); err != nil {
		return profile.Profile{}, false, fmt.Errorf("no hardware profile named %q", name)
	}
	return p, true, nil
}

// matchProfile compares the inspected hardware with the profiles and returns the name
// of the one that matches; unknown if none does (B-24, B-190). If the specification
// requests a profile, no other is compared.
func matchProfile(h *metal3.BareMetalHost) string {
	d := h.Status.HardwareDetails
	if d == nil {
		return profile.DefaultProfileName
	}
	if p, ok, err := requestedProfile(h); ok || err != nil {
		if ok && hasRootDevice(d, p) {
			return p.Name
		}
		return profile.DefaultProfileName
	}
	for _, row := range vendorProfiles {
		if p, err := profile.GetProfile(row.profile); err == nil && isOfVendor(d, row.vendor) && hasRootDevice(d, p) {
			return p.Name
		}
	}
	return profile.DefaultProfileName
}

func isOfVendor(d *metal3.HardwareDetails, vendor string) bool {
	contains := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(vendor)) }
	return contains(d.SystemVendor.Manufacturer) || contains(d.SystemVendor.ProductName)
}

// hasRootDevice reports whether the hardware has the root device of a profile. All
// profiles name it or its SCSI address.
func hasRootDevice(d *metal3.HardwareDetails, p profile.Profile) bool {
	hints := p.RootDeviceHints
	return hints == (metal3.RootDeviceHints{}) || slices.ContainsFunc(d.Storage, func(s metal3.Storage) bool {
		return (hints.DeviceName == "" || s.Name == hints.DeviceName || slices.Contains(s.AlternateNames, hints.DeviceName)) &&
			(hints.HCTL == "" || s.HCTL == hints.HCTL)
	})
}

// setProfile records the profile that matches.
func setProfile(h *metal3.BareMetalHost, events *eventList) {
	name := matchProfile(h)
	if h.Status.HardwareProfile == name {
		return
	}
	h.Status.HardwareProfile = name
	events.add("ProfileSet", "Hardware profile set: "+name)
}

// rootProfile returns the profile that chooses the root device if no hints do: the one
// that the specification requests, else the one that matches (B-190).
func rootProfile(h *metal3.BareMetalHost) profile.Profile {
	if p, ok, _ := requestedProfile(h); ok { // an unknown name is an error of the registration
		return p
	}
	if p, err := profile.GetProfile(h.Status.HardwareProfile); err == nil {
		return p
	}
	p, err := profile.GetProfile(profile.DefaultProfileName)
	if err != nil {
		panic(err) // it is built in
	}
	return p
}

// hintsChanged reports whether the root device hints differ from those that the
// host was prepared with (B-55).
func hintsChanged(h *metal3.BareMetalHost) bool {
	return !equality.Semantic.DeepEqual(rootHints(h), h.Status.Provisioning.RootDeviceHints)
}

// rootHints returns the root device hints of the specification, else those of the
// profile. It returns nil for a host with RAID volumes, whose first volume is the
// root device (B-163).
func rootHints(h *metal3.BareMetalHost) *metal3.RootDeviceHints {
	if h.Spec.RootDeviceHints != nil {
		return h.Spec.RootDeviceHints.DeepCopy()
	}
	if raid := h.Status.Provisioning.RAID; raid != nil && len(raid.HardwareRAIDVolumes)+len(raid.SoftwareRAIDVolumes) > 0 {
		return nil
	}
	p := rootProfile(h)
	return p.RootDeviceHints.DeepCopy()
}

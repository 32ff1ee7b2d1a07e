package host

import (
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// B-24 B-190: the profile of the status is the one that the hardware matches; the root
// device is that of the requested profile, if there is one.
func TestHardwareProfiles(t *testing.T) {
	sda := metal3.Storage{Name: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0", AlternateNames: []string{"/dev/sda"}, HCTL: "0:0:0:0"}
	volume := metal3.Storage{Name: "/dev/sdb", HCTL: "0:2:0:0"}
	vda, vdb := metal3.Storage{Name: "/dev/vda"}, metal3.Storage{Name: "/dev/vdb"}
	nvme := metal3.Storage{Name: "/dev/nvme0n1"}
	hardware := func(maker, product string, disks ...metal3.Storage) *metal3.HardwareDetails {
		return &metal3.HardwareDetails{SystemVendor: metal3.HardwareSystemVendor{Manufacturer: maker, ProductName: product}, Storage: disks}
	}
	first, second := metal3.RootDeviceHints{HCTL: "0:0:0:0"}, metal3.RootDeviceHints{HCTL: "0:2:0:0"}
	byName := func(name string) metal3.RootDeviceHints { return metal3.RootDeviceHints{DeviceName: name} }
	for _, tt := range []struct {
		name, spec string
		hardware   *metal3.HardwareDetails
		want       string
		hints      metal3.RootDeviceHints
	}{
		{"not inspected", "", nil, "unknown", byName("/dev/sda")},
		{"of no vendor", "", hardware("Contoso", "C3500", sda), "unknown", byName("/dev/sda")},
		{"of Dell", "", hardware("Dell Inc.", "PowerEdge R650", sda), "dell", first},
		{"of Dell, with a volume", "", hardware("Dell Inc.", "PowerEdge R650", sda, volume), "dell-raid", second},
		{"of Dell, without SCSI disks", "", hardware("Dell Inc.", "PowerEdge R770", nvme), "unknown", byName("/dev/sda")},
		{"of QEMU", "", hardware("QEMU", "Standard PC (Q35 + ICH9, 2009)", vda), "libvirt", byName("/dev/vda")},
		{"of Red Hat's KVM", "", hardware("Red Hat", "KVM", vda), "libvirt", byName("/dev/vda")},
		{"of QEMU, with a SATA disk", "", hardware("QEMU", "Standard PC (Q35 + ICH9, 2009)", sda), "unknown", byName("/dev/sda")},
		{"of OpenStack", "", hardware("OpenStack Foundation", "OpenStack Nova", vda, vdb), "openstack", byName("/dev/vdb")},
		{"of OpenStack by Red Hat", "", hardware("Red Hat", "OpenStack Compute", vda, vdb), "openstack", byName("/dev/vdb")},
		{"the specification's example", "default", hardware("Dell Inc.", "PowerEdge r460", sda), "dell", first},
		{"the specification's example, without a match", "default", hardware("Contoso", "C3500", sda), "unknown", byName("/dev/sda")},
		{"requested and there", "dell", hardware("Contoso", "C3500", sda), "dell", first},
		{"requested and not there", "dell-raid", hardware("Dell Inc.", "PowerEdge R650", sda), "unknown", second},
		{"requested, not inspected", "openstack", nil, "unknown", byName("/dev/vdb")},
		{"requested instead of another", "unknown", hardware("Dell Inc.", "PowerEdge R650", sda), "unknown", byName("/dev/sda")},
		{"requested, without a root device", "empty", hardware("Dell Inc.", "PowerEdge R650", sda), "empty", metal3.RootDeviceHints{}}, // B-162
	} {
		h := &metal3.BareMetalHost{}
		h.Spec.HardwareProfile, h.Status.HardwareDetails = tt.spec, tt.hardware
		var events eventList
		setProfile(h, &events)
		if got := h.Status.HardwareProfile; got != tt.want || len(events) != 1 {
			t.Errorf("%s: profile %q, events %v, want %q and one", tt.name, got, events, tt.want)
		}
		if hints := rootHints(h); hints == nil || *hints != tt.hints {
			t.Errorf("%s: hints %+v, want %+v", tt.name, hints, tt.hints)
		}
		if setProfile(h, &events); len(events) != 1 {
			t.Errorf("%s: events %v of a profile that has not changed", tt.name, events)
		}
		h.Spec.RootDeviceHints = &metal3.RootDeviceHints{Model: "x"}
		if hints := rootHints(h); hints.Model != "x" || hints.DeviceName != "" {
			t.Errorf("%s: explicit hints %+v", tt.name, hints)
		}
	}
}

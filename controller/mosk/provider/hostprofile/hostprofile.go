// Package hostprofile compares the disks of a server with a BareMetalHostProfile, and lists
// the fields of a profile that the provider does not apply. It reads no object.
package hostprofile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"

	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/unapplied"
)

// Match returns the disk of each device of a profile, in the profile's order. No two devices
// share a disk. A device gets the first fitting disk of the list, unless a later device would
// then have none. An error names the device without a disk, its bounds, and how each disk
// differs from them.
func Match(devices []hostprofilev1.ProfileDevice, disks []metal3.Storage) ([]metal3.Storage, error) {
	diskOf := make([]int, len(devices)) // index of a disk
	deviceOf := make([]int, len(disks)) // index of a device; -1 means none
	for i := range deviceOf {
		deviceOf[i] = -1
	}
	// assign gives a device a disk, and moves other devices if that makes one free: an
	// augmenting path of a bipartite matching.
	var assign func(device int, tried []bool) bool
	assign = func(device int, tried []bool) bool {
		for _, free := range []bool{true, false} { // a device moves only where no free disk fits
			for i := range disks {
				if tried[i] || (deviceOf[i] < 0) != free || differs(devices[device].Device, disks[i]) != "" {
					continue
				}
				tried[i] = true
				if free || assign(deviceOf[i], tried) {
					diskOf[device], deviceOf[i] = i, device
					return true
				}
			}
		}
		return false
	}
	for i := range devices {
		if !assign(i, make([]bool, len(disks))) {
			return nil, mismatch(i, devices[i].Device, disks)
		}
	}
	out := make([]metal3.Storage, len(devices))
	for i, disk := range diskOf {
		out[i] = disks[disk]
	}
	return out, nil
}

// mismatch describes a device that has no disk.
func mismatch(i int, d hostprofilev1.Device, disks []metal3.Storage) error {
	var why []string
	for _, disk := range disks {
		why = append(why, Name(disk)+" "+cmp.Or(differs(d, disk), "is taken by another device of the profile"))
	}
	if len(why) == 0 {
		why = []string{"the server has no disk"}
	}
	return fmt.Errorf("spec.devices[%d].device (%s) matches no disk of the server: %s", i, bounds(d), strings.Join(why, ", "))
}

// bounds returns what a device demands of its disk.
func bounds(d hostprofilev1.Device) string {
	var out []string
	for _, b := range []struct{ name, value string }{{"byName", d.ByName}, {"workBy", d.WorkBy}, {"minSize", string(d.Least())}, {"maxSize", string(d.Greatest())}, {"type", d.Type}} {
		if b.value != "" {
			out = append(out, b.name+" "+b.value)
		}
	}
	return cmp.Or(strings.Join(out, ", "), "any disk")
}

// differs returns the demand of a device that a disk does not meet, "" when it meets all.
func differs(d hostprofilev1.Device, disk metal3.Storage) string {
	size := int64(disk.SizeBytes)
	switch {
	case d.ByName != "" && !slices.Contains(names(disk), d.ByName):
		return "is not " + d.ByName
	case d.Least() != "" && size < bytesOf(d.Least()):
		return fmt.Sprintf("has %s, less than minSize %s", gibibytes(size), d.Least())
	case d.Greatest() != "" && size > bytesOf(d.Greatest()):
		return fmt.Sprintf("has %s, more than maxSize %s", gibibytes(size), d.Greatest())
	case d.Type != "" && !strings.EqualFold(d.Type, string(diskType(disk))):
		return fmt.Sprintf("is of the type %s, not %s", cmp.Or(strings.ToLower(string(diskType(disk))), "unknown"), d.Type)
	case d.WorkBy != "" && hints(d, disk) == nil:
		return "has no name of workBy " + d.WorkBy
	}
	return ""
}

// bytesOf returns a size in bytes; -1 of a text that is none, which the API refuses.
func bytesOf(s hostprofilev1.Size) int64 {
	q, err := resource.ParseQuantity(string(s))
	if err != nil {
		return -1
	}
	return q.Value()
}

// diskType returns the type of a disk. Older inspections report only whether it rotates.
func diskType(disk metal3.Storage) metal3.DiskType {
	if disk.Type == "" && disk.Rotational {
		return metal3.HDD
	}
	return disk.Type
}

// names returns the paths of a disk below /dev.
func names(disk metal3.Storage) []string { return append([]string{disk.Name}, disk.AlternateNames...) }

// Name returns the name of a disk that the kernel gives, such as /dev/sda, if the inspection
// has reported it; else any.
func Name(disk metal3.Storage) string {
	for _, name := range names(disk) {
		if !strings.HasPrefix(name, "/dev/disk/") {
			return name
		}
	}
	return disk.Name
}

// gibibytes returns a size for people, rounded down to a tenth.
func gibibytes(size int64) string {
	tenths := size * 10 >> 30
	if tenths%10 == 0 {
		return fmt.Sprintf("%dGi", tenths/10)
	}
	return fmt.Sprintf("%d.%dGi", tenths/10, tenths%10)
}

// byPath is the directory of the only links that a device name of Metal3 may have.
const byPath = "/dev/disk/by-path/"

// ways are the ways of workBy to name a disk, as root device hints. A link of
// /dev/disk/by-id is made of the disk's serial number, and is no hint itself.
var ways = map[string]func(metal3.Storage) metal3.RootDeviceHints{
	"by_id": func(d metal3.Storage) metal3.RootDeviceHints {
		return metal3.RootDeviceHints{SerialNumber: d.SerialNumber}
	},
	"by_path": func(d metal3.Storage) metal3.RootDeviceHints {
		for _, name := range names(d) {
			if strings.HasPrefix(name, byPath) {
				return metal3.RootDeviceHints{DeviceName: name}
			}
		}
		return metal3.RootDeviceHints{}
	},
	"by_wwn":  func(d metal3.Storage) metal3.RootDeviceHints { return metal3.RootDeviceHints{WWN: d.WWN} },
	"by_name": func(d metal3.Storage) metal3.RootDeviceHints { return metal3.RootDeviceHints{DeviceName: Name(d)} },
}

// defaultWays are those of a device without workBy.
const defaultWays = "by_id,by_path,by_wwn,by_name"

// hints returns the hints that name a disk in the first way of the device's workBy that the
// disk has; nil when it has none.
func hints(d hostprofilev1.Device, disk metal3.Storage) *metal3.RootDeviceHints {
	for way := range strings.SplitSeq(cmp.Or(d.WorkBy, defaultWays), ",") {
		if find, ok := ways[strings.TrimSpace(way)]; ok {
			if h := find(disk); h != (metal3.RootDeviceHints{}) {
				return &h
			}
		}
	}
	return nil
}

// RootDeviceHints returns the hints that select the disk of the first device; nil when the
// profile has no device.
func RootDeviceHints(devices []hostprofilev1.ProfileDevice, matched []metal3.Storage) *metal3.RootDeviceHints {
	if len(devices) == 0 || len(matched) == 0 {
		return nil
	}
	return hints(devices[0].Device, matched[0])
}

// Unapplied returns the fields of a profile that the provider does not apply, in the order of
// the specification.
func Unapplied(s *hostprofilev1.BareMetalHostProfileSpec) (out []string) {
	for _, field := range unapplied.Set("BareMetalHostProfile", map[string]any{"spec": s}) {
		out = append(out, strings.TrimPrefix(field, "spec."))
	}
	return out
}

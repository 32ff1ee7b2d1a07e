package raid

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Metal3's RAID interfaces with restrictions: none, or controllers only. All
// others do hardware and software RAID.
const noRAID = "no-raid"

var (
	softwareAlone = []string{"agent"}
	hardwareAlone = []string{"idrac-wsman", "ilo5", "irmc"}
)

// The specification's texts (B-172). The last is for servers whose driver does RAID.
const (
	noneSupported     = "raid settings are defined, but the node's driver %s does not support RAID."
	hardwareMissing   = "node's driver %s does not support hardware RAID."
	softwareMissing   = "node's driver %s does not support software RAID."
	controllerMissing = "hardware RAID settings are defined, but the BMC shows no RAID controller of the server: remove spec.raid.hardwareRAIDVolumes"
)

// Check returns the errors of a RAID specification for a server with this kind of
// BMC address, without asking the server (B-171, B-172).
func Check(spec *metal3.BareMetalHostSpec, t bmc.Traits) error {
	r := spec.RAID
	if r == nil {
		return nil
	}
	hard, soft := r.HardwareRAIDVolumes, r.SoftwareRAIDVolumes
	if len(hard)+len(soft) > 0 {
		switch {
		case len(hard) > 0 && len(soft) > 0:
			return errors.New("hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time")
		case t.RAID == noRAID || t.RAID == "":
			return fmt.Errorf(noneSupported, t.Hardware) // the specification's text
		case len(hard) > 0 && slices.Contains(softwareAlone, t.RAID):
			return fmt.Errorf(hardwareMissing, t.Hardware) // the specification's text
		case len(soft) > 0 && slices.Contains(hardwareAlone, t.RAID):
			return fmt.Errorf(softwareMissing, t.Hardware) // the specification's text
		}
	}
	if err := checkHardware(hard); err != nil {
		return err
	}
	return checkSoftware(soft)
}

func checkHardware(all []metal3.HardwareRAIDVolume) error {
	for i, v := range all {
		l, known := levels[bmc.Level(v.Level)]
		switch {
		case len(v.PhysicalDisks) > 0 && v.Controller == "":
			return fmt.Errorf("'physicalDisks' specified without 'controller' in hardware RAID volume %d: 'controller' must be specified if 'physicalDisks' are used", i)
		case len(v.PhysicalDisks) > 0 && v.NumberOfPhysicalDisks != nil && *v.NumberOfPhysicalDisks != len(v.PhysicalDisks):
			return fmt.Errorf("the 'numberOfPhysicalDisks'[%d] and number of 'physicalDisks'[%d] is not same for volume %d: the numberOfPhysicalDisks[%[1]d] is not same as number of items in physicalDisks[%[2]d]",
				*v.NumberOfPhysicalDisks, len(v.PhysicalDisks), i)
		case !known:
			return fmt.Errorf("hardware RAID volume %d: level %q is not supported: use 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0", i, v.Level)
		}
		switch n := diskCount(v); {
		case n < l.disks:
			return fmt.Errorf("hardware RAID volume %d: level %s needs %d physical disks, not %d", i, v.Level, l.disks, n)
		case l.even && n%2 != 0:
			return fmt.Errorf("hardware RAID volume %d: level %s needs an even number of physical disks, not %d", i, v.Level, n)
		}
		for j, other := range all[:i] {
			if v.Name != "" && v.Name == other.Name {
				return fmt.Errorf("the names(%s) of volume[%d] and volume[%d] are repeated", v.Name, j, i)
			}
		}
	}
	return nil
}

// softLevels maps levels to the least number of disks (md(4)).
var softLevels = map[string]int{"0": 2, "1": 2, "1+0": 4}

func checkSoftware(all []metal3.SoftwareRAIDVolume) error {
	if len(all) > 2 {
		return fmt.Errorf("%d softwareRAIDVolumes: use one or two", len(all))
	}
	for i, v := range all {
		least, known := softLevels[v.Level]
		n := len(v.PhysicalDisks)
		switch {
		case i == 0 && v.Level != "1":
			return errors.New("the level in first volume of software raid must be RAID1")
		case !known:
			return fmt.Errorf("software RAID volume %d: level %q is not supported: use 0, 1 or 1+0", i, v.Level)
		case n > 0 && n < least:
			return fmt.Errorf("software RAID volume %d: level %s needs %d physical disks, not %d", i, v.Level, least, n)
		case n > 0 && v.Level == "1+0" && n%2 != 0:
			return fmt.Errorf("software RAID volume %d: level 1+0 needs an even number of physical disks, not %d", i, n)
		case i == 0 && len(all) == 2 && size(v.SizeGibibytes) == 0 && mayShareDisk(v, all[1]):
			return errors.New("software RAID volume 0: sizeGibibytes must be set where the second volume shall have room on the same disks")
		}
	}
	return nil
}

// mayShareDisk reports whether two arrays may be placed on the same disk.
func mayShareDisk(a, b metal3.SoftwareRAIDVolume) bool {
	if len(a.PhysicalDisks) == 0 || len(b.PhysicalDisks) == 0 {
		return true
	}
	for _, x := range a.PhysicalDisks {
		for _, y := range b.PhysicalDisks {
			if x.DeviceName == y.DeviceName && strings.EqualFold(x.SerialNumber, y.SerialNumber) && x.WWN == y.WWN && x.HCTL == y.HCTL &&
				x.Model == y.Model && x.MinSizeGigabytes == y.MinSizeGigabytes {
				return true
			}
		}
	}
	return false
}

func size(gib *int) int64 {
	if gib == nil {
		return 0
	}
	return int64(*gib) << 30
}

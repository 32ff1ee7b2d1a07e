package hostprofile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
)

// The disks of a server: two SSDs of 100 GiB and 500 GiB, an HDD of 4 TiB.
func disks() []metal3.Storage {
	return []metal3.Storage{
		{Name: "/dev/disk/by-path/pci-0", Type: metal3.SSD, SizeBytes: 100 << 30, SerialNumber: "S-A", WWN: "0x5a", AlternateNames: []string{"/dev/sda", "/dev/disk/by-id/ata-a"}},
		{Name: "/dev/sdb", Type: metal3.SSD, SizeBytes: 500 << 30, WWN: "0x5b"},
		{Name: "/dev/sdc", Rotational: true, SizeBytes: 4 << 40},
	}
}

func profileOf(devices ...hostprofilev1.Device) (out []hostprofilev1.ProfileDevice) {
	for _, d := range devices {
		out = append(out, hostprofilev1.ProfileDevice{Device: d})
	}
	return out
}

func TestDisksAreMatchedWithDevices(t *testing.T) {
	for _, tt := range []struct {
		name    string
		devices []hostprofilev1.Device
		want    string   // names of disks
		err     []string // its parts
	}{
		{"no device", nil, "", nil},
		{"any disk", []hostprofilev1.Device{{}}, "/dev/sda", nil},
		{"a disk for each device", []hostprofilev1.Device{{}, {}, {}}, "/dev/sda /dev/sdb /dev/sdc", nil},
		{"more devices than disks", []hostprofilev1.Device{{}, {}, {}, {}}, "", []string{"spec.devices[3].device (any disk)", "/dev/sda is taken by another device"}},
		{"least size", []hostprofilev1.Device{{MinSize: "101Gi"}}, "/dev/sdb", nil},
		{"exactly the least size", []hostprofilev1.Device{{MinSize: "100Gi"}}, "/dev/sda", nil},
		{"greatest size", []hostprofilev1.Device{{MinSize: "101Gi", MaxSize: "5Ti", Type: "hdd"}}, "/dev/sdc", nil},
		{"exactly the greatest size", []hostprofilev1.Device{{MaxSize: "100Gi"}}, "/dev/sda", nil},
		{"disks that are too small", []hostprofilev1.Device{{}, {MinSize: "5Ti"}}, "", []string{"spec.devices[1].device (minSize 5Ti)", "/dev/sda has 100Gi, less than minSize 5Ti", "/dev/sdc has 4096Gi, less than"}},
		{"disks that are too big", []hostprofilev1.Device{{MaxSize: "50Gi"}}, "", []string{"spec.devices[0].device (maxSize 50Gi)", "/dev/sda has 100Gi, more than maxSize 50Gi"}},
		{"type", []hostprofilev1.Device{{Type: "HDD"}}, "/dev/sdc", nil},
		{"type that no disk has", []hostprofilev1.Device{{Type: "nvme"}}, "", []string{"type nvme", "/dev/sda is of the type ssd, not nvme", "/dev/sdc is of the type hdd, not nvme"}},
		{"name", []hostprofilev1.Device{{ByName: "/dev/sdb"}}, "/dev/sdb", nil},
		{"another name of a disk", []hostprofilev1.Device{{ByName: "/dev/disk/by-id/ata-a"}}, "/dev/sda", nil},
		{"name that no disk has", []hostprofilev1.Device{{ByName: "/dev/nvme0n1"}}, "", []string{"byName /dev/nvme0n1", "/dev/sda is not /dev/nvme0n1"}},
		{"name of a disk that is too small", []hostprofilev1.Device{{ByName: "/dev/sda", MinSize: "1Ti"}}, "", []string{"/dev/sda has 100Gi, less than minSize 1Ti", "/dev/sdb is not /dev/sda"}},
		{"way that some disks have", []hostprofilev1.Device{{WorkBy: "by_wwn", MinSize: "101Gi"}}, "/dev/sdb", nil},
		{"way that no disk has", []hostprofilev1.Device{{WorkBy: "by_path", MinSize: "1Ti"}}, "", []string{"workBy by_path", "/dev/sdc has no name of workBy by_path"}},
		{"later device that needs the first disk", []hostprofilev1.Device{{MinSize: "60Gi"}, {ByName: "/dev/sda"}}, "/dev/sdb /dev/sda", nil},
		{"chain of devices that move", []hostprofilev1.Device{{}, {Type: "ssd"}, {ByName: "/dev/sda"}}, "/dev/sdc /dev/sdb /dev/sda", nil},
		{"disk that two devices name", []hostprofilev1.Device{{ByName: "/dev/sdc"}, {ByName: "/dev/sdc"}}, "", []string{"spec.devices[1].device", "/dev/sdc is taken by another device"}},
	} {
		got, err := Match(profileOf(tt.devices...), disks())
		var names []string
		for _, d := range got {
			names = append(names, Name(d))
		}
		if strings.Join(names, " ") != tt.want || (err != nil) != (tt.err != nil) {
			t.Errorf("%s: Match = %q, %v, want %q", tt.name, names, err, tt.want)
		}
		for _, part := range tt.err {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error lacks %q: %v", tt.name, part, err)
			}
		}
	}
	if _, err := Match(profileOf(hostprofilev1.Device{}), nil); err == nil || !strings.Contains(err.Error(), "the server has no disk") {
		t.Errorf("Match without disks = %v", err)
	}
}

// The hint names the disk of the first device in the first way of workBy that the disk has.
func TestRootDeviceHints(t *testing.T) {
	hint := func(h metal3.RootDeviceHints) *metal3.RootDeviceHints { return &h }
	for _, tt := range []struct {
		name   string
		device hostprofilev1.Device
		want   *metal3.RootDeviceHints
	}{
		{"by default the serial number", hostprofilev1.Device{}, hint(metal3.RootDeviceHints{SerialNumber: "S-A"})},
		{"disk without a serial number", hostprofilev1.Device{ByName: "/dev/sdb"}, hint(metal3.RootDeviceHints{WWN: "0x5b"})},
		{"disk that has a name alone", hostprofilev1.Device{ByName: "/dev/sdc"}, hint(metal3.RootDeviceHints{DeviceName: "/dev/sdc"})},
		{"name", hostprofilev1.Device{WorkBy: "by_name"}, hint(metal3.RootDeviceHints{DeviceName: "/dev/sda"})},
		{"path", hostprofilev1.Device{WorkBy: " by_path , by_name"}, hint(metal3.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0"})},
		{"World Wide Name", hostprofilev1.Device{WorkBy: "by_wwn,by_id"}, hint(metal3.RootDeviceHints{WWN: "0x5a"})},
	} {
		devices := profileOf(tt.device, hostprofilev1.Device{})
		matched, err := Match(devices, disks())
		if err != nil {
			t.Fatal(err)
		}
		if got := RootDeviceHints(devices, matched); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: RootDeviceHints = %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if got := RootDeviceHints(nil, nil); got != nil {
		t.Errorf("RootDeviceHints without devices = %+v, want nil", got)
	}
}

// Each field of the specification is either applied, by this package and by userdata, or
// listed as one that is not.
func TestEachFieldIsAppliedOrListed(t *testing.T) {
	applied := []string{"preDeployScript", "postDeployScript", "kernelParameters", "devices"}
	all := hostprofilev1.BareMetalHostProfileSpec{
		PreDeployScript: "#!/bin/sh", PostDeployScript: "#!/bin/sh", GrubConfig: &hostprofilev1.GrubConfig{ToDevices: []string{"/dev/sda"}}, RootFSURL: "http://192.0.2.1/r",
		Devices:         []hostprofilev1.ProfileDevice{{Device: hostprofilev1.Device{ByName: "/dev/sda", WorkBy: "by_name", MinSize: "1", MaxSize: "2", Type: "ssd", Wipe: true, UseFor: []string{"a"}}, Partitions: []hostprofilev1.Partition{{Name: "a"}}}},
		SoftRaidDevices: []hostprofilev1.SoftRaidDevice{{}}, VolumeGroups: []hostprofilev1.VolumeGroup{{}}, LogicalVolumes: []hostprofilev1.LogicalVolume{{}}, FileSystems: []hostprofilev1.FileSystem{{}},
		KernelParameters: &hostprofilev1.KernelParameters{},
	}
	got := Unapplied(&all)
	for i, v := range reflect.ValueOf(all).Fields() {
		name, _, _ := strings.Cut(i.Tag.Get("json"), ",")
		if v.IsZero() {
			t.Errorf("the test sets no %s", name)
		}
		if !slices.Contains(applied, name) && !slices.Contains(got, name) {
			t.Errorf("%s is neither applied nor listed: %q", name, got)
		}
	}
	for _, name := range []string{"devices[].device.wipe", "devices[].device.useFor", "devices[].partitions"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not listed: %q", name, got)
		}
	}
	all.GrubConfig, all.RootFSURL, all.SoftRaidDevices, all.VolumeGroups, all.LogicalVolumes, all.FileSystems = nil, "", nil, nil, nil, nil
	all.Devices = profileOf(hostprofilev1.Device{ByName: "/dev/sda"})
	if got := Unapplied(&all); got != nil {
		t.Errorf("Unapplied = %q of a profile of which all is applied", got)
	}
}

// The older public types give sizes in GiB; a size with a suffix takes precedence.
func TestSizesInGiB(t *testing.T) {
	disks := []metal3.Storage{{Name: "/dev/sda", SizeBytes: 100 << 30}}
	for _, tt := range []struct {
		device string
		want   string
	}{
		{`{"minSizeGiB": 60, "maxSizeGiB": 100}`, ""},
		{`{"minSizeGiB": 100.5}`, "minSize 102912Mi"},
		{`{"maxSizeGiB": 60}`, "more than maxSize 60Gi"},
		{`{"minSizeGiB": 200, "minSize": "60Gi"}`, ""},
	} {
		var d hostprofilev1.Device
		if err := json.Unmarshal([]byte(tt.device), &d); err != nil {
			t.Fatal(err)
		}
		_, err := Match([]hostprofilev1.ProfileDevice{{Device: d}}, disks)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Match() = %v, want %q", tt.device, err, tt.want)
		}
	}
}

// What the vendor's older and newer manifests have in the layout of disks is taken, and listed
// as not applied.
func TestOlderProfileIsTaken(t *testing.T) {
	const text = `{
		"grubConfig": {"toDevices": ["/dev/sda"], "toDeviceFailOver": "/dev/sdb"},
		"devices": [{"device": {"minSizeGiB": 60, "wipeDevice": {"eraseMetadata": {"enabled": true}}}, "partitions": [{"sizeGiB": 0.2, "name": "uefi"}, {"name": "config-2", "sizeGiB": 0.0625}]}],
		"softRaidDevices": [{"name": "/dev/md0", "devices": [{"partition": "root"}]}],
		"volumeGroups": [{"name": "lvm", "minSizeGiB": 10, "devices": [{"softRaidDevice": "/dev/md0"}, {"type": "hdd", "minSizeGiB": 10, "maxDevices": 2}]}],
		"logicalVolumes": [{"name": "root", "vg": "lvm", "sizeGiB": 40}]}`
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var spec hostprofilev1.BareMetalHostProfileSpec
	if err := d.Decode(&spec); err != nil {
		t.Fatal(err)
	}
	want := []string{"grubConfig", "devices[].device.wipeDevice", "devices[].partitions", "softRaidDevices", "volumeGroups", "logicalVolumes"}
	if diff := cmp.Diff(want, Unapplied(&spec)); diff != "" {
		t.Errorf("not applied (-want +got):\n%s", diff)
	}
	for text, want := range map[string]hostprofilev1.FailOver{`true`: "true", `false`: "", `"/dev/sdb"`: "/dev/sdb"} {
		var f hostprofilev1.FailOver
		if err := json.Unmarshal([]byte(text), &f); err != nil || f != want {
			t.Errorf("toDeviceFailOver %s = %q, %v, want %q", text, f, err, want)
		}
	}
}

package disk

import (
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/job"
)

var server = []job.Disk{
	{Name: "/dev/nvme0n1", Type: "NVME", SizeBytes: 1600321314816, Model: "Dell Ent NVMe P5600", Serial: "PHAB01", WWN: "eui.5cd2e4aa00000001"},
	{Name: "/dev/sda", ByPath: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0", Type: "SSD", SizeBytes: 480 * gib, Vendor: "ATA",
		Model: "MZ7LH480HBHQ0D3", Serial: "S5CNNA0N000001", WWN: "0x5002538e00000001", WWNWithExtension: "0x5002538e00000001", HCTL: "0:0:0:0"},
	{Name: "/dev/sdb", Type: "HDD", Rotational: true, SizeBytes: 900*gib - 1, Vendor: "SEAGATE", Model: "ST900MP0146", Serial: "WFK1", HCTL: "1:0:0:0"},
	{Name: "/dev/sdc", Type: "HDD", Rotational: true, SizeBytes: 900 * gib, Vendor: "SEAGATE", Model: "ST900MP0146", Serial: "WFK2", HCTL: "1:0:1:0",
		WWN: "0x6f4ee08000000001", WWNVendorExtension: "0x0a0b", WWNWithExtension: "0x6f4ee080000000010a0b"},
	{Name: "/dev/sdd", Type: "SSD", SizeBytes: 2 * gib, Vendor: "ATA", Model: "SATADOM"},
}

// B-160 B-162
func TestChoose(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name  string
		hints job.Hints
		want  string // "" means an error
	}{
		{"no hints: the smallest of 4 GiB", job.Hints{}, "/dev/sda"},
		{"deviceName", job.Hints{DeviceName: "/dev/sdb"}, "/dev/sdb"},
		{"deviceName, case", job.Hints{DeviceName: "/DEV/SDB"}, ""},
		{"deviceName, part of one", job.Hints{DeviceName: "/dev/sd"}, ""},
		{"deviceName by path", job.Hints{DeviceName: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0"}, "/dev/sda"},
		{"hctl", job.Hints{HCTL: "1:0:1:0"}, "/dev/sdc"},
		{"hctl, part", job.Hints{HCTL: "1:0"}, ""},
		{"model", job.Hints{Model: "ST900MP0146"}, "/dev/sdb"},
		{"model, part", job.Hints{Model: "900MP"}, "/dev/sdb"},
		{"model, case", job.Hints{Model: "st900"}, ""},
		{"vendor, part", job.Hints{Vendor: "EAG"}, "/dev/sdb"},
		{"vendor, case", job.Hints{Vendor: "eag"}, ""},
		{"vendor that a disk does not tell", job.Hints{Vendor: "DELL"}, ""},
		{"serial", job.Hints{SerialNumber: "WFK2"}, "/dev/sdc"},
		{"serial, case", job.Hints{SerialNumber: "wfk2"}, ""},
		{"serial, part", job.Hints{SerialNumber: "WFK"}, ""},
		{"size in whole GiB, rounded down", job.Hints{MinSizeGigabytes: 900, Rotational: &yes}, "/dev/sdc"},
		{"size, first in order", job.Hints{MinSizeGigabytes: 900}, "/dev/nvme0n1"},
		{"size too large", job.Hints{MinSizeGigabytes: 100000}, ""},
		{"wwn", job.Hints{WWN: "0x5002538e00000001"}, "/dev/sda"},
		{"wwn, case", job.Hints{WWN: "0x5002538E00000001"}, ""},
		{"wwn, part", job.Hints{WWN: "0x5002538e"}, ""},
		{"wwnWithExtension", job.Hints{WWNWithExtension: "0x6f4ee080000000010a0b"}, "/dev/sdc"},
		{"wwnWithExtension, part", job.Hints{WWNWithExtension: "0x6f4ee08000000001"}, ""},
		{"wwnVendorExtension", job.Hints{WWNVendorExtension: "0x0a0b"}, "/dev/sdc"},
		{"wwnVendorExtension, case", job.Hints{WWNVendorExtension: "0x0A0B"}, ""},
		{"rotational", job.Hints{Rotational: &yes}, "/dev/sdb"},
		{"not rotational", job.Hints{Rotational: &no, Vendor: "ATA"}, "/dev/sda"},
		{"all must match", job.Hints{Vendor: "SEAGATE", HCTL: "0:0:0:0"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(server, tt.hints)
			if got.Name != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("Choose(%+v) = %q, %v; want %q", tt.hints, got.Name, err, tt.want)
			}
		})
	}
}

// A disk that an array uses holds a part of it: no hint chooses it, however
// exactly it describes it, and neither does its size.
func TestChooseSkipsMembersOfSoftwareRAID(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name    string
		hints   job.Hints
		members []string
		want    string // "" means an error
	}{
		{"the smallest", job.Hints{}, []string{"/dev/sda"}, "/dev/sdb"},
		{"the two smallest", job.Hints{}, []string{"/dev/sda", "/dev/sdb"}, "/dev/sdc"},
		{"all", job.Hints{}, []string{"/dev/nvme0n1", "/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd"}, ""},
		{"deviceName", job.Hints{DeviceName: "/dev/sdb"}, []string{"/dev/sdb"}, ""},
		{"deviceName by path", job.Hints{DeviceName: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0"}, []string{"/dev/sda"}, ""},
		{"hctl", job.Hints{HCTL: "1:0:1:0"}, []string{"/dev/sdc"}, ""},
		{"model", job.Hints{Model: "ST900"}, []string{"/dev/sdb"}, "/dev/sdc"},
		{"vendor", job.Hints{Vendor: "SEAGATE"}, []string{"/dev/sdb", "/dev/sdc"}, ""},
		{"serialNumber", job.Hints{SerialNumber: "WFK2"}, []string{"/dev/sdc"}, ""},
		{"minSizeGigabytes", job.Hints{MinSizeGigabytes: 900}, []string{"/dev/nvme0n1"}, "/dev/sdc"},
		{"wwn", job.Hints{WWN: "eui.5cd2e4aa00000001"}, []string{"/dev/nvme0n1"}, ""},
		{"wwnWithExtension", job.Hints{WWNWithExtension: "0x5002538e00000001"}, []string{"/dev/sda"}, ""},
		{"wwnVendorExtension", job.Hints{WWNVendorExtension: "0x0a0b"}, []string{"/dev/sdc"}, ""},
		{"rotational", job.Hints{Rotational: &yes}, []string{"/dev/sdb"}, "/dev/sdc"},
		{"not rotational", job.Hints{Rotational: &no}, []string{"/dev/nvme0n1"}, "/dev/sda"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disks := slices.Clone(server)
			for i := range disks {
				disks[i].Member = slices.Contains(tt.members, disks[i].Name)
			}
			got, err := Choose(disks, tt.hints)
			if got.Name != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("Choose(%+v) = %q, %v; want %q", tt.hints, got.Name, err, tt.want)
			}
		})
	}
}

// The array itself is a disk, and no member of one.
func TestChooseTakesTheArrayThatUsesTheDisks(t *testing.T) {
	disks := slices.Clone(server)
	for i := range disks {
		disks[i].Member = true
	}
	disks = append(disks, job.Disk{Name: "/dev/md127", Type: "SSD", Array: "node-1:root", SizeBytes: 400 * gib})
	for name, choose := range map[string]func() (job.Disk, error){
		"without hints": func() (job.Disk, error) { return Choose(disks, job.Hints{}) },
		"by a hint":     func() (job.Disk, error) { return Choose(disks, job.Hints{MinSizeGigabytes: 100}) },
		"by its name":   func() (job.Disk, error) { return chooseArray(disks, "root") },
	} {
		if got, err := choose(); err != nil || got.Name != "/dev/md127" {
			t.Errorf("%s: %q, %v; want the array", name, got.Name, err)
		}
	}
}

func TestChooseErrorListsTheDisks(t *testing.T) {
	_, err := Choose(server, job.Hints{Vendor: "HITACHI", MinSizeGigabytes: 7})
	for _, part := range []string{`vendor="HITACHI"`, "minSizeGigabytes=7", "/dev/sdc (HDD, 900 GiB, vendor SEAGATE, model ST900MP0146, serial WFK2,", "/dev/nvme0n1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error is %v, want it to say %q", err, part)
		}
	}
	for _, tt := range []struct {
		name  string
		disks []job.Disk
		hints job.Hints
		want  string
	}{
		{"no disks", nil, job.Hints{HCTL: "0:0:0:0"}, "disks seen: none"},
		{"no disks, no hints", nil, job.Hints{}, "no disk has 4 GiB; disks seen: none"},
		{"small disks, no hints", server[4:], job.Hints{}, "/dev/sdd (SSD, 2 GiB"},
		{"very many", make([]job.Disk, 500), job.Hints{HCTL: "9:9:9:9"}, "and 484 more"},
	} {
		if _, err := Choose(tt.disks, tt.hints); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want it to say %q", tt.name, err, tt.want)
		}
	}
}

package inventory

import (
	"context"
	"encoding/hex"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

func TestDisks(t *testing.T) {
	for _, tt := range []struct {
		name string
		tree string
		want []job.Disk
	}{
		{name: "none"},
		{name: "kernel and udev", tree: storage, want: []job.Disk{
			{Name: "/dev/cciss/c0d0", ByPath: "/dev/disk/by-path/pci-0000:06:00.0-cciss-0:0", Type: "HDD", Rotational: true, SizeBytes: 143305920 * 512, Member: true},
			{Name: "/dev/nvme2n1", Type: "NVME", SizeBytes: 3125627568 * 512, Model: "SAMSUNG MZQL21T9HCJR-00A07", Serial: "S64G000001"},
			{Name: "/dev/nvme10n1", Type: "NVME", SizeBytes: 3125627568 * 512, Model: "Dell Ent NVMe P5600 MU U.2 1.6TB",
				Serial: "PHAB0000000000000001", WWN: "eui.01000000000000005cd2e4aa00000001"},
			{Name: "/dev/sda", ByPath: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0", Type: "SSD", SizeBytes: 937703088 * 512,
				Vendor: "ATA", Model: "MZ7LH480HBHQ0D3", Serial: "S5CNNA0N000001",
				WWN: "0x5002538e00000001", WWNWithExtension: "0x5002538e00000001", HCTL: "0:0:0:0"},
			{Name: "/dev/sdb", ByPath: "/dev/disk/by-path/pci-0000:17:00.0-scsi-0:2:0:0", Type: "HDD", Rotational: true, SizeBytes: 1170997248 * 512,
				Vendor: "DELL", Model: "PERC H745 Frnt", Serial: "000a0b0c0d0e0f10",
				WWN: "0x6f4ee08000000001", WWNVendorExtension: "0x0000000000000a0b", WWNWithExtension: "0x6f4ee080000000010000000000000a0b", HCTL: "1:2:0:0"},
			{Name: "/dev/vda", ByPath: "/dev/disk/by-path/pci-0000:00:04.0", Type: "HDD", Rotational: true, SizeBytes: 41943040 * 512, Serial: "volume-7"},
			{Name: "/dev/md127", Type: "SSD", SizeBytes: 8192 * 512, Serial: "01020304:05060708:090a0b0c:0d0e0f10", Array: "any:root"},
		}},
		{name: "kernel alone", tree: withoutUdev, want: []job.Disk{
			{Name: "/dev/sda", Type: "HDD", Rotational: true, SizeBytes: 1758174768 * 512, Vendor: "SEAGATE", Model: "ST900MP0146",
				Serial: "WFK000001", WWN: "0x5000c500a1b2c3d4", WWNWithExtension: "0x5000c500a1b2c3d4", HCTL: "0:0:0:0"},
			{Name: "/dev/sdb", Type: "SSD", SizeBytes: 1 << 20, HCTL: "1:2:0:0",
				WWN: "0x6f4ee08000000001", WWNVendorExtension: "0x0000000000000a0b", WWNWithExtension: "0x6f4ee080000000010000000000000a0b"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Collect(t.Context(), fixture{MapFS: tree(tt.tree)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]job.Disk{}, tt.want...), h.Disks); diff != "" {
				t.Errorf("disks (-want +got):\n%s", diff)
			}
		})
	}
}

const network = `
sys/class/net/eno1 -> ../../devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/vendor 0x8086
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/device 0x1592
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1/device -> ../../../0000:18:00.0
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1/address B4:96:91:00:00:01
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1/carrier 1
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1/speed 25000
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.0/net/eno1/type 1
sys/class/net/eno2 -> ../../devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2/device -> ../../../0000:18:00.1
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2/address b4:96:91:00:00:02
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2/carrier 0
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2/speed -1
sys/devices/pci0000:17/0000:17:02.0/0000:18:00.1/net/eno2/type 1
sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio0/net/eth0
sys/devices/pci0000:00/0000:00:03.0/virtio0/vendor 0x1af4
sys/devices/pci0000:00/0000:00:03.0/virtio0/device 0x0001
sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/device -> ../../../virtio0
sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/address 52:54:00:00:00:01
sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/type 1
sys/class/net/lo -> ../../devices/virtual/net/lo
sys/devices/virtual/net/lo/address 00:00:00:00:00:00
sys/devices/virtual/net/lo/type 772
sys/class/net/bond0 -> ../../devices/virtual/net/bond0
sys/devices/virtual/net/bond0/address b4:96:91:00:00:01
sys/devices/virtual/net/bond0/type 1
sys/class/net/bonding_masters bond0
sys/class/net/eno2.100 -> ../../devices/virtual/net/eno2.100
sys/devices/virtual/net/eno2.100/address b4:96:91:00:00:02
sys/devices/virtual/net/eno2.100/type 1
proc/net/vlan/config VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\neno2.100       | 100  | eno2\nstorage        | 20  | eno2\neno20.7  | 7  | eno20\nbad | 4095 | eno2
proc/cmdline ro initrd=a BOOTIF=01-B4-96-91-00-00-01 quiet
sys/class/net/tty0/device/vendor 0x1234
sys/class/net/tty0/type 280
`

func TestNICs(t *testing.T) { // B-250
	h, err := Collect(t.Context(), fixture{tree(network), map[string][]string{
		"eno1": {"fe80::1", "2001:db8::9", "192.0.2.9", "192.0.2.10", "2001:db8::10"},
		"eno2": {"169.254.3.4", "fe80::2", "rubbish"},
		"eth0": {"2001:db8::3"},
		"lo":   {"127.0.0.1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	eno1 := job.NIC{Name: "eno1", MAC: "b4:96:91:00:00:01", Model: "0x8086 0x1592", IP: "192.0.2.9", SpeedMbps: 25000, Carrier: true, PCIAddress: "0000:18:00.0", PXE: true}
	eno1v6 := eno1
	eno1v6.IP = "2001:db8::9"
	want := []job.NIC{
		eno1, eno1v6,
		{Name: "eno2", MAC: "b4:96:91:00:00:02", PCIAddress: "0000:18:00.1", VLANs: []job.VLAN{{ID: 20, Name: "storage"}, {ID: 100, Name: "eno2.100"}}},
		{Name: "eth0", MAC: "52:54:00:00:00:01", Model: "0x1af4 0x0001", IP: "2001:db8::3", PCIAddress: "0000:00:03.0"},
	}
	if diff := cmp.Diff(want, h.NICs); diff != "" {
		t.Errorf("NICs (-want +got):\n%s", diff)
	}
}

func TestCPUAndMemory(t *testing.T) {
	const meminfo = "proc/meminfo MemTotal:       263572340 kB\\nMemFree:        1 kB\n"
	for _, tt := range []struct {
		name, tree string
		cpu        job.CPU
		ram        int
	}{
		{
			name: "nothing", cpu: job.CPU{Arch: "x86_64", Flags: []string{}},
		},
		{
			name: "Xeon",
			tree: `proc/cpuinfo processor\t: 0\nmodel\t\t: 106\nmodel name\t: Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz\ncpu MHz\t\t: 1995.312\nflags\t\t: vmx fpu aes\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz\ncpu MHz\t\t: 800.000\nflags\t\t: vmx fpu aes\n` + "\n" +
				"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq 3200000\n" + meminfo,
			cpu: job.CPU{Arch: "x86_64", Model: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", MHz: 3200, Count: 2, Flags: []string{"aes", "fpu", "vmx"}},
			ram: 257394,
		},
		{
			name: "ARM",
			tree: `proc/cpuinfo processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd aes\nCPU implementer\t: 0x41\n\nprocessor\t: 1\nFeatures\t: fp asimd aes\n` + "\n",
			cpu:  job.CPU{Arch: "x86_64", Count: 2, Flags: []string{"aes", "asimd", "fp"}},
		},
		{
			name: "POWER",
			tree: `proc/cpuinfo processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2500.000000MHz\n\nmachine\t\t: PowerNV 8335-GTH\n` + "\n",
			cpu:  job.CPU{Arch: "x86_64", Model: "POWER9, altivec supported", MHz: 2500, Count: 1, Flags: []string{}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Collect(t.Context(), fixture{MapFS: tree(tt.tree)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.cpu, h.CPU); diff != "" {
				t.Errorf("CPU (-want +got):\n%s", diff)
			}
			if h.RAMMiB != tt.ram {
				t.Errorf("RAMMiB = %d, want %d", h.RAMMiB, tt.ram)
			}
		})
	}
}

// TestInstalledMemory reads hand-made tables in the format of DSP0134; the first
// is part of a real one (type 16, then a module of 32 GiB).
func TestInstalledMemory(t *testing.T) {
	const (
		array  = "10 17 0010 03 03 06 00000010 feff 0200 0000000000000000 0000"
		dimm32 = "11 28 0011 0010 feff 4800 4000 ff7f 09 01 01 02 1a 8000 800c 03 04 05 06 02 00800000 800c b004 b004 b004 41 31 00 42 00 43 00 44 00 45 00 46 00 00"
		dimm4  = "11 22 0111 0010 feff 4800 4000 0010 09 00 00 00 1a 8000 800c 00 00 00 00 00 00000000 800c 0000"
		kib    = "11 22 0211 0010 feff 4800 4000 0084 09 00 00 00 1a 8000 800c 00 00 00 00 00 00000000 800c 0000"
		empty  = "11 22 0311 0010 feff 4800 4000 0000 09 00 00 00 1a 8000 800c 00 00 00 00 00 00000000 800c 0000"
		what   = "11 22 0411 0010 feff 4800 4000 ffff 09 00 00 00 1a 8000 800c 00 00 00 00 00 00000000 800c 0000"
		end    = "7f 04 fffe 0000"
	)
	for _, tt := range []struct {
		name   string
		tables []string
		want   int
	}{
		{"nothing", nil, 0},
		{"one module", []string{array, dimm32, end}, 32 << 10},
		{"modules, an empty slot, an unknown one", []string{dimm32, empty, dimm4, what, kib, end}, 36<<10 + 1},
		{"after the end", []string{end, dimm32}, 0},
		{"cut", []string{dimm4, dimm32[:30]}, 4 << 10},
		{"length of nothing", []string{dimm4, "11 00 0000 0000"}, 4 << 10},
	} {
		table, err := hex.DecodeString(strings.ReplaceAll(strings.Join(tt.tables, ""), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := installedMiB(table); got != tt.want {
			t.Errorf("installedMiB(%s) = %d, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzInstalledMemory(f *testing.F) {
	f.Add([]byte{17, 0x22, 0, 0, 127, 4, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, table []byte) { installedMiB(table) })
}

// The inventory of a systest.System must agree with its description in every
// field.
func TestInventoryOfSystest(t *testing.T) {
	s := systest.New(systest.Machine{
		Hostname: "node-1", Vendor: "Dell Inc.", Product: "PowerEdge R650", Serial: "ABC1234",
		UUID: "4C4C4544-0041-4210-8043-B1C04F313233", BIOSVendor: "Dell Inc.", BIOSVersion: "1.12.1", BIOSDate: "09/13/2023",
		CPU:    systest.CPU{Model: "Intel(R) Xeon(R) Gold 6338", MHz: 3200, Threads: 128, Flags: []string{"vmx", "aes"}},
		RAMMiB: 200 << 10,
		NICs: []systest.NIC{
			{Name: "eno1", MAC: "02:00:00:00:00:0A", PCI: "0000:18:00.0", Vendor: 0x8086, Device: 0x1592, Mbps: 25000, Carrier: true, IPs: []string{"192.0.2.10"}},
			{Name: "eno2", MAC: "02:00:00:00:00:0b", Vendor: 0x8086, Device: 0x1592},
			{Name: "eno3", MAC: "02:00:00:00:00:0c", Vendor: 0x15b3, Device: 0x1017, Down: true, Mbps: 100000},
		},
		Disks: []systest.Disk{
			{Kind: systest.SATA, Size: 480 << 30, Vendor: "Samsung", Model: "MZ7LH480HBHQ0D3", Serial: "S1 A", WWN: "0x5002538e00000001"},
			{Kind: systest.SAS, Size: 900 << 30, Rotational: true, Vendor: "SEAGATE", Model: "ST900MP0146", Serial: "S2", WWN: "0x5000c50000000002", HCTL: "4:0:7:0", PCI: "0000:af:00.0"},
			{Kind: systest.Volume, Size: 1 << 40, Rotational: true, Vendor: "DELL", Model: "PERC H755 Front", Serial: "S3", WWN: "0x6f4ee0800000000300000000000000ff"},
			{Kind: systest.NVMe, Size: 2 << 40, Model: "Dell Ent NVMe P5600", Serial: "S4", WWN: "eui.0025385b71b00d2a"},
			{Kind: systest.Virtio, Size: 20 << 30, Serial: "S5", Rotational: true},
			{Kind: systest.SATA, Size: 8 << 30, Removable: true, Model: "Stick", Serial: "S6"},
			{Kind: systest.SATA, Size: 8 << 30, ReadOnly: true, Serial: "S7"},
			{Kind: systest.SATA, Size: 0, Serial: "S8"},
		},
		VirtualCD: "Virtual CD",
	})
	want := job.Hardware{
		Hostname: "node-1",
		System:   job.System{Manufacturer: "Dell Inc.", Product: "PowerEdge R650", Serial: "ABC1234", UUID: "4c4c4544-0041-4210-8043-b1c04f313233"},
		BIOS:     job.BIOS{Vendor: "Dell Inc.", Version: "1.12.1", Date: "09/13/2023"},
		CPU:      job.CPU{Arch: "x86_64", Model: "Intel(R) Xeon(R) Gold 6338", MHz: 3200, Count: 128, Flags: []string{"aes", "vmx"}},
		RAMMiB:   200 << 10,
		NICs: []job.NIC{
			{Name: "eno1", MAC: "02:00:00:00:00:0a", Model: "0x8086 0x1592", IP: "192.0.2.10", SpeedMbps: 25000, Carrier: true, PCIAddress: "0000:18:00.0"},
			{Name: "eno2", MAC: "02:00:00:00:00:0b", Model: "0x8086 0x1592", PCIAddress: "0000:18:00.1"},
			{Name: "eno3", MAC: "02:00:00:00:00:0c", Model: "0x15b3 0x1017", PCIAddress: "0000:18:00.2"},
		},
		Disks: []job.Disk{
			{Name: "/dev/nvme0n1", ByPath: "/dev/disk/by-path/pci-0000:65:00.0-nvme-1", Type: "NVME", SizeBytes: 2 << 40,
				Model: "Dell Ent NVMe P5600", Serial: "S4", WWN: "eui.0025385b71b00d2a"},
			{Name: "/dev/sda", ByPath: "/dev/disk/by-path/pci-0000:00:17.0-ata-1.0", Type: "SSD", SizeBytes: 480 << 30,
				Vendor: "ATA", Model: "MZ7LH480HBHQ0D3", Serial: "S1_A", WWN: "0x5002538e00000001", WWNWithExtension: "0x5002538e00000001", HCTL: "0:0:0:0"},
			{Name: "/dev/sdb", ByPath: "/dev/disk/by-path/pci-0000:af:00.0-sas-phy7-lun-0", Type: "HDD", Rotational: true, SizeBytes: 900 << 30,
				Vendor: "SEAGATE", Model: "ST900MP0146", Serial: "S2", WWN: "0x5000c50000000002", WWNWithExtension: "0x5000c50000000002", HCTL: "4:0:7:0"},
			{Name: "/dev/sdc", ByPath: "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0", Type: "HDD", Rotational: true, SizeBytes: 1 << 40,
				Vendor: "DELL", Model: "PERC H755 Front", Serial: "S3", WWN: "0x6f4ee08000000003", WWNVendorExtension: "0x00000000000000ff",
				WWNWithExtension: "0x6f4ee0800000000300000000000000ff", HCTL: "0:2:0:0"},
			{Name: "/dev/vda", ByPath: "/dev/disk/by-path/pci-0000:00:04.0", Type: "HDD", Rotational: true, SizeBytes: 20 << 30, Serial: "S5"},
		},
	}
	got, err := Collect(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Collect (-want +got):\n%s", diff)
	}
}

func TestDisksAreSortedAsTheKernelNamesThem(t *testing.T) {
	want := []string{"hda", "mmcblk0", "nvme0n1", "nvme0n2", "nvme2n1", "nvme10n1", "sda", "sdb", "sdz", "sdaa", "sdab", "sdaaa", "vda", "vdb"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareNames)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of disks (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Collect(t.Context(), fixture{MapFS: fstest.MapFS{}}); err == nil {
		t.Error("Collect without /sys and /proc succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Collect(ctx, fixture{MapFS: tree(storage)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Collect with a cancelled context: %v, want context.Canceled", err)
	}
}

func BenchmarkCollect(b *testing.B) {
	m := systest.Machine{CPU: systest.CPU{Threads: 64}, RAMMiB: 1 << 18}
	for range 24 {
		m.Disks = append(m.Disks, systest.Disk{Kind: systest.SAS, Size: 1 << 40})
	}
	s := systest.New(m)
	for b.Loop() {
		if _, err := Collect(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	runtime.KeepAlive(s)
}

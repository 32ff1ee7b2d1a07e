package systest_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
)

// server returns a machine with one disk of each kind.
func server(m *systest.Memory) systest.Machine {
	open := func() (sys.Block, error) { return m, nil }
	return systest.Machine{
		Hostname: "node-1", Vendor: "Dell Inc.", Product: "PowerEdge R650", Serial: "ABC1234",
		CPU:    systest.CPU{Model: "Intel(R) Xeon(R) Gold 6338", MHz: 3200, Threads: 2, Flags: []string{"vmx", "aes"}},
		RAMMiB: 192 << 10,
		NICs: []systest.NIC{
			{Name: "eno1", MAC: "02:00:00:00:00:01", Vendor: 0x8086, Device: 0x1592, Mbps: 25000, Carrier: true, IPs: []string{"192.0.2.10"}},
			{Name: "eno2", MAC: "02:00:00:00:00:02", Vendor: 0x8086, Device: 0x1592, Down: true},
		},
		Disks: []systest.Disk{
			{Kind: systest.SATA, Size: 480e9, Model: "MZ7LH480", Serial: "S1", WWN: "0x5002538e00000001", Open: open},
			{Kind: systest.SAS, Size: 900e9, Rotational: true, Vendor: "SEAGATE", Model: "ST900MM", Serial: "S2", WWN: "0x5000c50000000002", Open: open},
			{Kind: systest.Volume, Size: 1e12, Vendor: "DELL", Model: "PERC H755", Serial: "S3", WWN: "0x6f4ee0800000000300000000000000ff", Open: open},
			{Kind: systest.NVMe, Size: 2e12, Model: "P5600", Serial: "S4", WWN: "eui.0025385b71b00d2a", Open: open},
			{Kind: systest.Virtio, Size: 4e9, Serial: "S5", Open: open},
			{Kind: systest.SATA, Size: 8e9, Removable: true, Model: "Stick", Serial: "S6"},
		},
		VirtualCD: "Virtual CD",
	}
}

// TestSysfsLinksEqualThoseOfRealServers compares the links with those of real servers.
func TestSysfsLinksEqualThoseOfRealServers(t *testing.T) {
	s := systest.New(server(systest.NewMemory(1 << 20)))
	for name, want := range map[string]string{
		"sys/block/sda":                                    "../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
		"sys/block/sda/device":                             "../../../0:0:0:0",
		"sys/block/sdb":                                    "../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:1/end_device-0:1/target0:0:1/0:0:1:0/block/sdb",
		"sys/block/sdc/device":                             "../../../0:2:0:0",
		"sys/block/nvme0n1":                                "../devices/pci0000:64/0000:64:00.0/0000:65:00.0/nvme/nvme0/nvme0n1",
		"sys/block/nvme0n1/device":                         "../../nvme0",
		"sys/class/block/sda":                              "../../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
		"sys/block/vda":                                    "../devices/pci0000:00/0000:00:04.0/virtio1/block/vda",
		"sys/class/net/eno1":                               "../../devices/pci0000:17/0000:17:00.0/0000:18:00.0/net/eno1",
		"sys/class/net/eno1/device":                        "../../../0000:18:00.0",
		"sys/class/net/lo":                                 "../../devices/virtual/net/lo",
		"sys/class/dmi/id":                                 "../../devices/virtual/dmi/id",
		"dev/disk/by-path/pci-0000:00:17.0-ata-1":          "../../sda",
		"dev/disk/by-path/pci-0000:00:17.0-ata-1.0":        "../../sda",
		"dev/disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0":   "../../sdc",
		"dev/disk/by-path/pci-0000:65:00.0-nvme-1":         "../../nvme0n1",
		"dev/disk/by-path/pci-0000:3b:00.0-sas-phy1-lun-0": "../../sdb",
	} {
		if got, err := s.FS().ReadLink(name); got != want || err != nil {
			t.Errorf("ReadLink(%s) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestUdevOfVolume(t *testing.T) {
	got, err := fs.ReadFile(systest.New(server(systest.NewMemory(1<<20))).FS(), "run/udev/data/b8:32")
	if err != nil {
		t.Fatal(err)
	}
	want := `S:disk/by-path/pci-0000:3b:00.0-scsi-0:2:0:0
I:1500000
E:ID_PATH=pci-0000:3b:00.0-scsi-0:2:0:0
E:ID_TYPE=disk
E:ID_SCSI=1
E:ID_BUS=scsi
E:ID_VENDOR=DELL
E:ID_MODEL=PERC_H755
E:ID_SERIAL=36f4ee0800000000300000000000000ff
E:ID_SERIAL_SHORT=6f4ee0800000000300000000000000ff
E:ID_SCSI_SERIAL=S3
E:ID_WWN=0x6f4ee08000000003
E:ID_WWN_VENDOR_EXTENSION=0x00000000000000ff
E:ID_WWN_WITH_EXTENSION=0x6f4ee0800000000300000000000000ff
V:1
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("udev entry of sdc (-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	var disks []systest.Disk
	for range 28 {
		disks = append(disks, systest.Disk{Kind: systest.SAS, Size: 1 << 20})
	}
	disks[1].Name = "sda" // stays: names are assigned after this
	disks[2].Name = "sda" // in use
	disks[3].Name = "sdd"
	s := systest.New(systest.Machine{Disks: disks})
	for _, name := range []string{"sda", "sdb", "sdc", "sdd", "sdz", "sdaa", "sdab"} {
		if _, err := fs.Stat(s.FS(), "sys/block/"+name+"/size"); err != nil {
			t.Errorf("disk %s is missing: %v", name, err)
		}
	}
	if got, err := fs.ReadFile(s.FS(), "sys/block/sdr/dev"); string(got) != "65:16\n" {
		t.Errorf("device number of sdr = %q, %v; want 65:16", got, err)
	}
}

func TestOpenBlockIsExclusive(t *testing.T) {
	s := systest.New(server(systest.NewMemory(1 << 20)))
	b, err := s.OpenBlock("sda")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenBlock("sda"); err == nil {
		t.Error("OpenBlock(sda) a second time succeeded")
	}
	b.Close()
	b.Close() // harmless
	again, err := s.OpenBlock("sda")
	if err != nil {
		t.Errorf("OpenBlock(sda) after Close = %v", err)
	}
	again.Close()
	for _, name := range []string{"sdd", "sdx", "", "loop0"} { // sdd is the USB stick, which has no medium
		if _, err := s.OpenBlock(name); !errors.Is(err, sys.ErrNoDevice) {
			t.Errorf("OpenBlock(%q) = %v, want ErrNoDevice", name, err)
		}
	}
}

func TestZeroFreesTheMemoryOfAllBlocks(t *testing.T) {
	m := systest.NewMemory(4 << 40)
	for _, off := range []int64{0, 1 << 30, 4<<40 - 512} {
		if _, err := m.WriteAt(make([]byte, 512), off); err != nil {
			t.Fatal(err)
		}
	}
	if m.Held() == 0 {
		t.Fatal("Held() = 0 after writes")
	}
	if err := m.Zero(512, 4<<40-512); err != nil { // almost all of it, in no time
		t.Fatal(err)
	}
	if err := m.Zero(0, 512); err != nil {
		t.Fatal(err)
	}
	if m.Held() != 0 {
		t.Errorf("Held() = %d after zeroing everything", m.Held())
	}
}

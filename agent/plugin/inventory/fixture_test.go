package inventory

import (
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/metalab-dev/metalab/agent/sys"
)

// fixture is a system that consists of files.
type fixture struct {
	fstest.MapFS
	addrs map[string][]string
}

func (f fixture) FS() fs.ReadLinkFS                   { return f.MapFS }
func (f fixture) OpenBlock(string) (sys.Block, error) { return nil, sys.ErrNoDevice }
func (f fixture) TempFile() (sys.Scratch, error)      { return nil, fs.ErrPermission }
func (f fixture) Arch() string                        { return "x86_64" }
func (f fixture) Hostname() string                    { return "localhost" }
func (f fixture) Addresses(nic string) []string       { return f.addrs[nic] }

// tree reads lines "path content" and "path -> target"; \n and \0 in content are
// escapes. Files end with a line feed, like attributes.
func tree(text string) fstest.MapFS {
	m := fstest.MapFS{"proc/cpuinfo": {}, "sys/block": {Mode: fs.ModeDir | 0o555}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		name, content, _ := strings.Cut(strings.TrimLeft(line, "\t"), " ")
		if name == "" {
			continue
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			m[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
			continue
		}
		content = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00").Replace(content)
		m[name] = &fstest.MapFile{Data: []byte(content + "\n")}
	}
	return m
}

// storage is a server in the files of the kernel and udev: a SATA SSD, a SAS
// drive, a volume, two NVMe drives (one multipath), a virtio disk, and devices
// that are not disks.
const storage = `
sys/block/sda -> ../devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/device -> ../../../0:0:0:0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/dev 8:0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/size 937703088
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/ro 0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/removable 0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/rotational 0
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/vendor ATA     
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/model MZ7LH480HBHQ0D3 
sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/type 0
run/udev/data/b8:0 S:disk/by-path/pci-0000:00:17.0-ata-1\nI:2154127\nE:ID_ATA=1\nE:ID_SERIAL=MZ7LH480HBHQ0D3_S5CNNA0N000001\nE:ID_SERIAL_SHORT=S5CNNA0N000001\nE:ID_WWN=0x5002538e00000001\nE:ID_WWN_WITH_EXTENSION=0x5002538e00000001\nE:ID_PATH=pci-0000:00:17.0-ata-1.0\nE:ID_PATH_ATA_COMPAT=pci-0000:00:17.0-ata-1\nG:systemd
dev/disk/by-path/pci-0000:00:17.0-ata-1 -> ../../sda
dev/disk/by-path/pci-0000:00:17.0-ata-1.0 -> ../../sda
dev/disk/by-path/pci-0000:00:17.0-ata-1-part1 -> ../../sda1

sys/block/sdb -> ../devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/device -> ../../../1:2:0:0
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/dev 8:16
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/size 1170997248
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/ro 0
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/queue/rotational 1
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/vendor DELL    
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/model PERC H745 Frnt  
sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/host1/target1:2:0/1:2:0:0/type 0
run/udev/data/b8:16 E:ID_SCSI=1\nE:ID_SERIAL=36f4ee080000000010000000000000a0b\nE:ID_SERIAL_SHORT=6f4ee080000000010000000000000a0b\nE:ID_SCSI_SERIAL=000a0b0c0d0e0f10\nE:ID_WWN=0x6f4ee08000000001\nE:ID_WWN_VENDOR_EXTENSION=0x0000000000000a0b\nE:ID_WWN_WITH_EXTENSION=0x6f4ee080000000010000000000000a0b\nE:ID_PATH=pci-0000:17:00.0-scsi-0:2:0:0
dev/disk/by-path/pci-0000:17:00.0-scsi-0:2:0:0 -> ../../sdb

sys/block/nvme10n1 -> ../devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1/device -> ../../nvme10
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1/dev 259:1
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1/size 3125627568
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1/wwid eui.01000000000000005cd2e4aa00000001
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/nvme10n1/queue/rotational 0
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/model Dell Ent NVMe P5600 MU U.2 1.6TB        
sys/devices/pci0000:64/0000:64:02.0/0000:65:00.0/nvme/nvme10/serial PHAB0000000000000001

sys/block/nvme2n1 -> ../devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1
sys/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1/device -> ../../nvme-subsys2
sys/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1/size 3125627568
sys/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1/hidden 0
sys/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1/queue/rotational 0
sys/devices/virtual/nvme-subsystem/nvme-subsys2/model SAMSUNG MZQL21T9HCJR-00A07
sys/devices/virtual/nvme-subsystem/nvme-subsys2/serial S64G000001
sys/block/nvme2c2n1/size 3125627568
sys/block/nvme2c2n1/hidden 1

sys/block/vda -> ../devices/pci0000:00/0000:00:04.0/virtio1/block/vda
sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/device -> ../../../virtio1
sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/dev 252:0
sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/size 41943040
sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/serial volume-7
sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/queue/rotational 1
sys/devices/pci0000:00/0000:00:04.0/virtio1/vendor 0x1af4
dev/disk/by-path/virtio-pci-0000:00:04.0 -> ../../vda
dev/disk/by-path/pci-0000:00:04.0 -> ../../vda

sys/block/cciss!c0d0/size 143305920
sys/block/cciss!c0d0/queue/rotational 1
sys/block/cciss!c0d0/cciss!c0d0p1/holders/md127/size 8192
dev/disk/by-path/pci-0000:06:00.0-cciss-0:0 -> ../../cciss/c0d0

sys/block/loop0/size 8192
sys/block/ram0/size 8192
sys/block/zram0/size 8192
sys/block/dm-0/size 8192
sys/block/md127/size 8192
sys/block/md127/dev 9:127
run/udev/data/b9:127 E:MD_LEVEL=raid1\nE:MD_NAME=any:root\nE:MD_UUID=01020304:05060708:090a0b0c:0d0e0f10\n
sys/block/nbd0/size 8192
sys/block/sr0/size 2097151
sys/block/fd0/size 8
sys/block/mmcblk0boot0/size 8192
sys/block/sdc/size 0
sys/block/sdd/size 8192
sys/block/sdd/ro 1
sys/block/sde/size unknown
sys/block/sdf/size 8192
sys/block/sdf/device/type 5
sys/block/sdg -> ../devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host14/target14:0:0/14:0:0:0/block/sdg
sys/devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host14/target14:0:0/14:0:0:0/block/sdg/size 30310400
sys/devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host14/target14:0:0/14:0:0:0/block/sdg/removable 1
`

// withoutUdev has the kernel's files of two disks.
const withoutUdev = `
sys/block/sda -> ../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda/device -> ../../../0:0:0:0
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda/dev 8:0
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda/size 1758174768
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda/queue/rotational 1
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/vendor SEAGATE 
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/model ST900MP0146     
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/wwid naa.5000c500a1b2c3d4
sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/vpd_pg80 \0` + "\x80" + `\0` + "\x14" + `WFK000001           
sys/block/sdb -> ../devices/pci0000:16/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb
sys/devices/pci0000:16/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/device -> ../../../1:2:0:0
sys/devices/pci0000:16/0000:17:00.0/host1/target1:2:0/1:2:0:0/block/sdb/size 2048
sys/devices/pci0000:16/0000:17:00.0/host1/target1:2:0/1:2:0:0/wwid naa.6F4EE080000000010000000000000A0B
`

package systest

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// placedDisk is a disk with all names and addresses assigned.
type placedDisk struct {
	Disk
	host, channel, target, lun int    // SCSI address
	dev                        string // major:minor
	index                      int    // among the disks of its driver
}

// placeDisks assigns names, SCSI addresses and PCI addresses to disks that have
// none.
func placeDisks(disks []Disk) []placedDisk {
	taken, scsi := map[string]bool{}, map[string]bool{}
	for _, d := range disks {
		scsi[d.HCTL] = true
	}
	var out []placedDisk
	for _, d := range disks {
		p := placedDisk{Disk: d}
		if p.Name == "" || taken[p.Name] {
			for i := 0; p.Name == "" || taken[p.Name]; i++ {
				p.Name = diskName(p.Kind, i)
			}
		}
		taken[p.Name] = true
		p.index = indexOf(p.Kind, p.Name)
		p.dev = devNumber(p.Kind, p.index)
		if p.PCI == "" {
			p.PCI = defaultPCI(p.Kind, p.index)
		}
		if p.Kind == SATA || p.Kind == SAS || p.Kind == Volume {
			for i := 0; p.HCTL == ""; i++ {
				if a := address(p.Kind, i); !scsi[a] {
					p.HCTL, scsi[a] = a, true
				}
			}
			if _, err := fmt.Sscanf(p.HCTL, "%d:%d:%d:%d", &p.host, &p.channel, &p.target, &p.lun); err != nil {
				p.HCTL = "0:0:0:0" // an invalid address counts as none
			}
		}
		out = append(out, p)
	}
	return out
}

// diskName returns the i-th name of the driver for a kind of disk.
func diskName(k Kind, i int) string {
	switch k {
	case NVMe:
		return fmt.Sprintf("nvme%dn1", i)
	case Virtio:
		return "vd" + letters(i)
	}
	return "sd" + letters(i)
}

// letters returns a … z, aa, ab … like sd_format_disk_name in drivers/scsi/sd.c.
func letters(i int) string {
	s := ""
	for ; i >= 0; i = i/26 - 1 {
		s = string(rune('a'+i%26)) + s
	}
	return s
}

func indexOf(k Kind, name string) int {
	if k == NVMe {
		i, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "nvme"), "n1"))
		return i
	}
	i := 0
	for _, r := range name[min(2, len(name)):] {
		i = i*26 + int(r-'a') + 1
	}
	return i - 1
}

// devNumber returns the device number by Documentation/admin-guide/devices.txt:
// SCSI disks have the majors 8, 65 to 71 and 128 to 135, sixteen disks each.
func devNumber(k Kind, i int) string {
	switch k {
	case NVMe:
		return fmt.Sprintf("259:%d", i)
	case Virtio:
		return fmt.Sprintf("252:%d", 16*i)
	}
	major := 8
	switch block := i / 16; {
	case block >= 8:
		major = 128 + block - 8
	case block > 0:
		major = 64 + block
	}
	return fmt.Sprintf("%d:%d", major, i%16*16)
}

func defaultPCI(k Kind, i int) string {
	switch k {
	case NVMe:
		return fmt.Sprintf("0000:%02x:00.0", 0x65+i)
	case Virtio:
		return fmt.Sprintf("0000:00:%02x.0", 4+i)
	case SATA:
		return "0000:00:17.0"
	}
	return "0000:3b:00.0"
}

// address returns the i-th SCSI address: each SATA port is a host, drives of a SAS
// controller are targets on channel 0, and its volumes are on channel 2, as with
// megaraid_sas.
func address(k Kind, i int) string {
	switch k {
	case SATA:
		return fmt.Sprintf("%d:0:0:0", i)
	case Volume:
		return fmt.Sprintf("0:2:%d:0", i)
	}
	return fmt.Sprintf("0:0:%d:0", i)
}

// home returns the directory of the disk's parent device, and the ID_PATH that
// udev's path_id makes of it.
func (p placedDisk) home() (dir, idPath string) {
	pci := pciPath(p.PCI)
	scsi := fmt.Sprintf("target%d:%d:%d/%s", p.host, p.channel, p.target, p.HCTL)
	switch {
	case p.Removable:
		return "sys/devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/host14/target14:0:0/14:0:0:0",
			"pci-0000:00:14.0-usb-0:3:1.0-scsi-0:0:0:0"
	case p.Kind == NVMe:
		return fmt.Sprintf("%s/nvme/nvme%d", pci, p.index), "pci-" + p.PCI + "-nvme-1"
	case p.Kind == Virtio:
		return fmt.Sprintf("%s/virtio%d", pci, p.index+1), "pci-" + p.PCI
	case p.Kind == SATA:
		return fmt.Sprintf("%s/ata%d/host%d/%s", pci, p.host+1, p.host, scsi),
			fmt.Sprintf("pci-%s-ata-%d.0", p.PCI, p.host+1)
	case p.Kind == SAS:
		return fmt.Sprintf("%s/host%d/port-%d:%d/end_device-%d:%d/%s", pci, p.host, p.host, p.target, p.host, p.target, scsi),
			fmt.Sprintf("pci-%s-sas-phy%d-lun-%d", p.PCI, p.target, p.lun)
	}
	return fmt.Sprintf("%s/host%d/%s", pci, p.host, scsi),
		fmt.Sprintf("pci-%s-scsi-0:%d:%d:%d", p.PCI, p.channel, p.target, p.lun)
}

// block returns the directory of the disk itself.
func (p placedDisk) block() string {
	home, _ := p.home()
	if p.Kind == NVMe && !p.Removable {
		return home + "/" + p.Name
	}
	return home + "/block/" + p.Name
}

func renderDisk(t *tree, p placedDisk) {
	home, idPath := p.home()
	block := p.block()
	renderBlock(t, block, p.Name, p.dev, p.Size, p.Rotational)
	t.line(block+"/ro", flag(p.ReadOnly))
	t.line(block+"/removable", flag(p.Removable))
	t.link(block+"/device", home)
	switch p.Kind {
	case NVMe:
		t.line(home+"/model", fmt.Sprintf("%-40s", p.Model))
		t.line(home+"/serial", fmt.Sprintf("%-20s", p.Serial))
		t.line(home+"/transport", "pcie")
		t.line(home+"/address", p.PCI)
		if p.WWN != "" {
			t.line(block+"/wwid", p.WWN)
		}
	case Virtio:
		t.line(home+"/vendor", "0x1af4")
		t.line(home+"/device", "0x0002")
		t.file(block+"/serial", p.Serial) // like virtio_blk, without a line feed
	default:
		renderSCSI(t, home, p)
	}
	renderUdev(t, p, idPath)
	t.broken("dev/"+p.Name, syscall.EACCES)
	t.link("dev/disk/by-path/"+idPath, "dev/"+p.Name)
	if p.Kind == SATA && !p.Removable { // ID_PATH_ATA_COMPAT
		t.link("dev/disk/by-path/"+strings.TrimSuffix(idPath, ".0"), "dev/"+p.Name)
	}
}

// renderSCSI writes the attributes of a SCSI device. Vendor and model have the
// widths of INQUIRY data (SPC-4 §6.4.2); the vendor of SATA drives is ATA.
func renderSCSI(t *tree, home string, p placedDisk) {
	vendor := p.Vendor
	if p.Kind == SATA {
		vendor = "ATA"
	}
	t.line(home+"/vendor", fmt.Sprintf("%-8.8s", vendor))
	t.line(home+"/model", fmt.Sprintf("%-16.16s", p.Model))
	t.line(home+"/rev", "0001")
	t.line(home+"/type", "0")
	if naa, ok := strings.CutPrefix(p.WWN, "0x"); ok {
		t.line(home+"/wwid", "naa."+naa)
	}
	// Unit serial number page: device type, page, length in two bytes, text.
	t.file(home+"/vpd_pg80", string([]byte{0, 0x80, 0, byte(len(p.Serial))})+p.Serial)
}

// renderUdev writes the database entry of 60-persistent-storage.rules.
func renderUdev(t *tree, p placedDisk, idPath string) {
	var b strings.Builder
	set := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "E:%s=%s\n", key, value)
		}
	}
	model, serial := underscored(p.Model), underscored(p.Serial)
	fmt.Fprintf(&b, "S:disk/by-path/%s\nI:1500000\n", idPath)
	set("ID_PATH", idPath)
	set("ID_TYPE", "disk")
	switch p.Kind {
	case Virtio:
		set("ID_SERIAL", serial)
	case NVMe:
		set("ID_MODEL", model)
		set("ID_SERIAL_SHORT", serial)
		set("ID_SERIAL", model+"_"+serial)
		set("ID_WWN", p.WWN)
	case SATA:
		set("ID_ATA", "1")
		set("ID_BUS", "ata")
		set("ID_MODEL", model)
		set("ID_SERIAL", model+"_"+serial)
		set("ID_SERIAL_SHORT", serial)
		setWWN(set, p.WWN)
	default:
		set("ID_SCSI", "1")
		set("ID_BUS", "scsi")
		set("ID_VENDOR", underscored(p.Vendor))
		set("ID_MODEL", model)
		set("ID_SERIAL", "3"+strings.TrimPrefix(p.WWN, "0x"))
		set("ID_SERIAL_SHORT", strings.TrimPrefix(p.WWN, "0x"))
		set("ID_SCSI_SERIAL", serial)
		setWWN(set, p.WWN)
	}
	b.WriteString("V:1\n")
	t.file("run/udev/data/b"+p.dev, b.String())
}

// setWWN splits a WWN like scsi_id: the second half of a NAA 6 identifier is the
// vendor extension.
func setWWN(set func(key, value string), wwn string) {
	const short = len("0x") + 16
	if len(wwn) == short+16 {
		set("ID_WWN", wwn[:short])
		set("ID_WWN_VENDOR_EXTENSION", "0x"+wwn[short:])
	} else {
		set("ID_WWN", wwn)
	}
	set("ID_WWN_WITH_EXTENSION", wwn)
}

// renderBlock writes the attributes of every block device.
func renderBlock(t *tree, dir, name, dev string, size int64, rotational bool) {
	t.link("sys/block/"+name, dir)
	t.link("sys/class/block/"+name, dir) // which has partitions, too
	t.line(dir+"/dev", dev)
	t.link("sys/dev/block/"+dev, dir)
	t.line(dir+"/size", strconv.FormatInt(size/512, 10)) // always in 512-byte units
	t.line(dir+"/hidden", "0")
	t.line(dir+"/queue/rotational", flag(rotational))
	t.line(dir+"/queue/logical_block_size", "512")
}

// renderCD writes a BMC's virtual CD drive: USB mass storage, SCSI type 5.
func renderCD(t *tree, model string) {
	const home = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-14/1-14:1.0/host15/target15:0:0/15:0:0:0"
	block := path.Join(home, "block/sr0")
	renderBlock(t, block, "sr0", "11:0", 700<<20, true)
	t.line(block+"/ro", "0") // the kernel's value, even for CD-ROMs
	t.line(block+"/removable", "1")
	t.link(block+"/device", home)
	t.line(home+"/vendor", "Virtual ")
	t.line(home+"/model", fmt.Sprintf("%-16.16s", model))
	t.line(home+"/type", "5")
	t.broken("dev/sr0", syscall.EACCES)
}

func underscored(s string) string { return strings.Join(strings.Fields(s), "_") }

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

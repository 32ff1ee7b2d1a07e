package inventory

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
)

// Devices that are not disks, or not whole ones, by kernel name. (The path does
// not tell: NVMe multipath puts real disks under /sys/devices/virtual.)
var notDisks = regexp.MustCompile(`^(loop|ram|zram|dm-|sr|fd|nbd|mtdblock|ubiblock)\d|^mmcblk\d+(boot|rpmb|gp)\d*$`)

// isArray matches software RAID.
var isArray = regexp.MustCompile(`^md[_\d]`)

// diskNames lists /sys/block in the order of the kernel's names: sda … sdz, sdaa;
// nvme2n1 before nvme10n1. Software RAID comes last.
func (r reader) diskNames() []string {
	var names, arrays []string
	for _, n := range r.names("sys/block") {
		switch {
		case isArray.MatchString(n):
			arrays = append(arrays, n)
		case !notDisks.MatchString(n):
			names = append(names, n)
		}
	}
	slices.SortFunc(names, compareNames)
	slices.SortFunc(arrays, compareNames)
	return append(names, arrays...)
}

// member reports whether an array uses a disk or one of its partitions.
func (r reader) member(dir, name string) bool {
	for _, n := range r.names(dir) {
		if n == "holders" || strings.HasPrefix(n, name) {
			held := dir + "/" + n
			if n != "holders" {
				held += "/holders"
			}
			if slices.ContainsFunc(r.names(held), isArray.MatchString) {
				return true
			}
		}
	}
	return false
}

var driverPrefix = regexp.MustCompile(`^(sd|vd|hd|xvd)([a-z]+)$`)

// compareNames orders lettered names of a driver by length first; in other names
// it compares numbers by value.
func compareNames(a, b string) int {
	am, bm := driverPrefix.FindStringSubmatch(a), driverPrefix.FindStringSubmatch(b)
	if am != nil && bm != nil && am[1] == bm[1] {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	for a != "" && b != "" {
		an, arest := leadingNumber(a)
		bn, brest := leadingNumber(b)
		switch {
		case an >= 0 && bn >= 0:
			if an != bn {
				return cmp.Compare(an, bn)
			}
			a, b = arest, brest
		case a[0] != b[0]:
			return cmp.Compare(a[0], b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return cmp.Compare(len(a), len(b))
}

func leadingNumber(s string) (int, string) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return -1, s
	}
	return n, s[end:]
}

// scsiCDROM is the peripheral device type of CD drives (SPC-4 §6.4.2).
const scsiCDROM = "5"

var hctl = regexp.MustCompile(`^\d+:\d+:\d+:\d+$`)

// disk reads one block device. It returns false if an image cannot be written to
// it: no medium, read-only, a path of a multipath NVMe, a CD drive, a USB stick.
func (r reader) disk(name string, links map[string][]string) (job.Disk, bool) {
	dir := "sys/block/" + name
	sectors, err := strconv.ParseInt(r.value(dir+"/size"), 10, 64)
	if err != nil || sectors <= 0 || r.value(dir+"/ro") == "1" || r.value(dir+"/hidden") == "1" {
		return job.Disk{}, false
	}
	usb := strings.Contains(r.readLink(dir), "/usb")
	if r.value(dir+"/device/type") == scsiCDROM || (usb && r.value(dir+"/removable") == "1") {
		return job.Disk{}, false
	}
	udev := r.udev(dir)
	d := job.Disk{
		Name:       "/dev/" + strings.ReplaceAll(name, "!", "/"),
		Rotational: r.value(dir+"/queue/rotational") == "1",
		SizeBytes:  sectors * 512, // in any logical block size
		Vendor:     r.vendor(dir),
		Model:      cmp.Or(r.value(dir+"/device/model"), strings.ReplaceAll(udev["ID_MODEL"], "_", " ")),
		Serial:     r.serial(dir, udev),
		ByPath:     choosePath(links[name], udev["ID_PATH"]),
		Member:     r.member(dir, name),
	}
	if isArray.MatchString(name) { // an array without a name has that of its device
		d.Array, d.Serial = cmp.Or(udev["MD_NAME"], name), udev["MD_UUID"]
	}
	switch {
	case strings.HasPrefix(name, "nvme"):
		d.Type = "NVME"
	case d.Rotational:
		d.Type = "HDD"
	default:
		d.Type = "SSD"
	}
	if base := path.Base(r.readLink(dir + "/device")); hctl.MatchString(base) {
		d.HCTL = base
	}
	d.WWN, d.WWNVendorExtension, d.WWNWithExtension = r.wwn(dir, udev)
	return d, true
}

// vendor returns the SCSI vendor. Virtio and NVMe devices have a PCI ID there,
// which is not a readable name.
func (r reader) vendor(dir string) string {
	v := r.value(dir + "/device/vendor")
	if strings.HasPrefix(v, "0x") {
		return ""
	}
	return v
}

// serial returns the serial number on the drive's label: that of lsblk, in its
// order of preference, and without udev that of the kernel.
func (r reader) serial(dir string, udev map[string]string) string {
	return cmp.Or(
		udev["ID_SCSI_SERIAL"], // serial number of SCSI disks, whose ID_SERIAL_SHORT is the WWN
		udev["ID_SERIAL_SHORT"],
		udev["ID_SERIAL"],
		r.value(dir+"/device/serial"), // NVMe
		r.value(dir+"/serial"),        // virtio
		vpdSerial(r.text(dir+"/device/vpd_pg80")),
	)
}

// vpdSerial reads a unit serial number page (SPC-4 §7.8.15): a header of four
// bytes, of which the last two are the length.
func vpdSerial(page string) string {
	if len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	n := int(page[2])<<8 | int(page[3])
	return strings.Trim(page[4:min(len(page), 4+n)], " \x00")
}

var naa = regexp.MustCompile(`^naa\.([0-9a-f]{16})([0-9a-f]{16})?$`)

// wwn returns udev's identifiers by scsi_id, or the same derived from the
// kernel's: the first 64 bits, the rest if any, and both together.
func (r reader) wwn(dir string, udev map[string]string) (wwn, extension, with string) {
	if udev["ID_WWN"] != "" {
		return udev["ID_WWN"], udev["ID_WWN_VENDOR_EXTENSION"], udev["ID_WWN_WITH_EXTENSION"]
	}
	wwid := strings.ToLower(cmp.Or(r.value(dir+"/device/wwid"), r.value(dir+"/wwid")))
	if m := naa.FindStringSubmatch(wwid); m != nil {
		if m[2] != "" {
			extension = "0x" + m[2]
		}
		return "0x" + m[1], extension, "0x" + m[1] + m[2]
	}
	if strings.HasPrefix(wwid, "eui.") || strings.HasPrefix(wwid, "nvme.") {
		return wwid, "", "" // like udev's rule for NVMe
	}
	return "", "", ""
}

// udev returns udevd's properties of a block device; none if udevd does not run.
func (r reader) udev(dir string) map[string]string {
	props := map[string]string{}
	dev := r.value(dir + "/dev")
	if dev == "" {
		return props
	}
	for line := range strings.Lines(r.text("run/udev/data/b" + dev)) {
		if line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "E:"); ok {
			if key, value, ok := strings.Cut(line, "="); ok {
				props[key] = value
			}
		}
	}
	return props
}

// byPath returns the links to each kernel name.
func (r reader) byPath() map[string][]string {
	const dir = "dev/disk/by-path"
	links := map[string][]string{}
	for _, name := range r.names(dir) {
		if to, ok := strings.CutPrefix(r.readLink(dir+"/"+name), "dev/"); ok {
			to = strings.ReplaceAll(to, "/", "!")
			links[to] = append(links[to], name)
		}
	}
	return links
}

// choosePath returns the link with udev's main name for the path; the others are
// for compatibility.
func choosePath(links []string, idPath string) string {
	if len(links) == 0 {
		return ""
	}
	slices.Sort(links)
	if slices.Contains(links, idPath) {
		return "/dev/disk/by-path/" + idPath
	}
	return "/dev/disk/by-path/" + links[0]
}

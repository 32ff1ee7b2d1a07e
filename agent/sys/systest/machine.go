// Package systest is the in-memory twin of sys.Linux: from a description of
// the hardware it renders the files that a Linux kernel and udev would show,
// in their formats. Tests use it, and so do emulated servers, whose disks are
// reached through the Open function of each Disk. It knows the formats but
// neither who reads them nor where the description comes from.
package systest

import "github.com/metalab-dev/metalab/agent/sys"

// Machine describes the hardware and the running system.
type Machine struct {
	Hostname string
	Arch     string // as uname -m says; empty means x86_64

	Vendor, Product, Serial, UUID string // SMBIOS type 1

	BIOSVendor, BIOSVersion, BIOSDate string // SMBIOS type 0; date as MM/DD/YYYY

	// Cmdline is what the kernel was told beside the usual.
	Cmdline string

	CPU    CPU
	RAMMiB int // installed memory
	NICs   []NIC
	Disks  []Disk
	// VirtualCD is the model of the BMC's virtual CD drive ("Virtual CD"), which
	// the kernel shows as sr0; empty when the BMC shows none.
	VirtualCD string
	// Scratch makes scratch files; nil means unnamed files in the directory for
	// temporary files.
	Scratch func() (sys.Scratch, error)
}

// CPU describes all processors together.
type CPU struct {
	Model   string
	MHz     float64 // highest frequency
	Threads int     // logical CPUs
	Flags   []string
}

// NIC is a physical network interface.
type NIC struct {
	Name    string
	MAC     string
	PCI     string // address, 0000:18:00.0; empty means one of our choice
	Vendor  uint16 // PCI vendor ID
	Device  uint16 // PCI device ID
	Mbps    int    // speed of the link
	Carrier bool
	Down    bool     // administratively; speed and carrier cannot be read then
	IPs     []string // addresses without prefix length
	VLANs   []int    // IDs of the VLANs that the system has interfaces for
	Frames  [][]byte // that come in again and again, as those do that switches send
}

// Kind is how a disk is attached. Its values decide where the disk appears in
// sysfs and which paths and identifiers udev finds.
type Kind string

// The kinds of disk.
const (
	SATA   Kind = "sata"
	SAS    Kind = "sas"
	NVMe   Kind = "nvme"
	Volume Kind = "volume" // logical drive of a RAID controller
	Virtio Kind = "virtio"
)

// Disk is a block device.
type Disk struct {
	Name       string // kernel name: sda, nvme0n1, vda; empty means the next free one
	Kind       Kind
	Rotational bool
	Size       int64 // bytes
	Vendor     string
	Model      string
	Serial     string
	// WWN is 0x and 16 hex digits (NAA 5, a drive) or 32 (NAA 6, a volume), or
	// eui. and 16 digits for NVMe. Empty means that the disk has none.
	WWN      string
	HCTL     string // SCSI address; empty means the next free one
	PCI      string // address of the controller; empty means one of our choice
	ReadOnly bool
	// Removable marks USB sticks and the like: a disk behind a USB host
	// controller instead of where Kind says.
	Removable bool
	// Erase is the command by which the device erases itself; empty when it has
	// none.
	Erase string
	// Open opens the medium. nil is a device that cannot be opened.
	Open func() (sys.Block, error)
}

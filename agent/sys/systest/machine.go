// Package systest is an in-memory sys.System: from a description of the hardware
// it renders the files of a Linux kernel and udev, in their formats. Tests use it,
// and so do emulated servers, whose disks it opens through the Open function of
// each Disk. It knows neither who reads the files nor where the description comes
// from.
package systest

import "github.com/metalab-dev/metalab/agent/sys"

// Machine describes the hardware and the running system.
type Machine struct {
	Hostname string
	Arch     string // like uname -m; empty means x86_64

	Vendor, Product, Serial, UUID string // SMBIOS type 1

	BIOSVendor, BIOSVersion, BIOSDate string // SMBIOS type 0; date as MM/DD/YYYY

	// Cmdline is added to the usual kernel command line.
	Cmdline string

	CPU    CPU
	RAMMiB int // installed memory
	NICs   []NIC
	Disks  []Disk
	// VirtualCD is the model of the BMC's virtual CD drive ("Virtual CD"), which
	// the kernel shows as sr0; empty if the BMC shows none.
	VirtualCD string
	// Scratch creates scratch files; nil means unnamed files in the directory for
	// temporary files.
	Scratch func() (sys.Scratch, error)
}

// CPU describes all processors together.
type CPU struct {
	Vendor  string // "" is GenuineIntel
	Model   string
	MHz     float64 // highest frequency
	Threads int     // logical CPUs
	Sockets int     // 0 is 1
	Cores   int     // per socket; 0 is one for each logical CPU
	Flags   []string
}

// NIC is a physical network interface.
type NIC struct {
	Name    string
	MAC     string
	PCI     string // 0000:18:00.0; empty means any free address
	Vendor  uint16 // PCI vendor ID
	Device  uint16 // PCI device ID
	Mbps    int    // link speed
	Carrier bool
	Down    bool     // administratively down: speed and carrier cannot be read
	IPs     []string // addresses without prefix length
	VLANs   []int    // IDs of the VLANs with interfaces
	Frames  [][]byte // received periodically, like the frames of a switch
}

// Kind is how a disk is attached. It determines the disk's place in sysfs and the
// paths and identifiers of udev.
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
	Name       string // sda, nvme0n1, vda; empty means the next free one
	Kind       Kind
	Rotational bool
	Size       int64 // bytes
	Vendor     string
	Model      string
	Serial     string
	// WWN is 0x and 16 hex digits (NAA 5, a drive) or 32 (NAA 6, a volume), or
	// eui. and 16 digits for NVMe. Empty means none.
	WWN      string
	HCTL     string // SCSI address; empty means the next free one
	PCI      string // address of the controller; empty means any free address
	ReadOnly bool
	// Removable marks USB sticks and similar disks: behind a USB host controller,
	// whatever Kind says.
	Removable bool
	// Erase is the command by which the device erases itself; empty if it has
	// none.
	Erase string
	// Open opens the medium. If it is nil the device cannot be opened.
	Open func() (sys.Block, error)
}

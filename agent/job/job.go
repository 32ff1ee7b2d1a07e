// Package job is the wire contract between the in-band agent and the
// controller: what a job is, how it is leased and how it is reported. It knows
// neither side; both import it. The transport is JSON over HTTPS, authenticated
// by a bearer token that is good for one boot of one host.
//
//	POST /v1/lease            Lease    → 200 Job | 204 nothing to do
//	POST /v1/jobs/{id}/report Report   → 204 noted | 410 cancelled: stop working on it
//
// A wrong token answers 401, a token of another host's or an earlier boot 403,
// and 503 means that the controller does not know the boot yet (it has just
// started): ask again later. Errors are text/plain.
//
// A lease is not exclusive and needs no return: the agent of a boot is the only
// one that can ask. The controller may offer the same job again after it was
// restarted; the agent answers a job that it has finished from memory, by ID,
// without doing it twice.
package job

// Paths of the two calls; ReportPath takes the job's ID.
const (
	LeasePath  = "/v1/lease"
	ReportPath = "/v1/jobs/%s/report"
)

// MaxBody is the size in bytes that neither side's bodies may exceed. A Secret
// has at most 1 MiB, a config drive is made of three, and in JSON bytes take a
// third more.
const MaxBody = 6 << 20

// MediaConfigPath is where boot media carry the agent's Media document.
const MediaConfigPath = "/metalab/agent.json"

// Media tells a freshly booted agent where its controller is: it lies on the
// boot ISO as JSON at MediaConfigPath.
type Media struct {
	Server string `json:"server"` // base URL, https://HOST:PORT
	CA     string `json:"ca"`     // PEM certificates that the server's must chain to
	Token  string `json:"token"`  // bearer token of this boot
	Boot   string `json:"boot"`   // boot ID that the token is bound to
}

// Lease asks for work. It is also the agent's sign of life.
type Lease struct {
	Agent string `json:"agent"` // version of the agent
}

// Kind says what a job does.
type Kind string

// The kinds of job. A kind that an agent does not know is reported Failed.
const (
	Inventory Kind = "inventory" // report the hardware
	Clean     Kind = "clean"     // erase every disk
	Write     Kind = "write"     // write an image to the root device
	Custom    Kind = "custom"    // deploy by a method that the agent knows by name
	RAID      Kind = "raid"      // erase every disk and make software RAID of them
)

// Job is one piece of work. Exactly the member that Kind names may be set.
type Job struct {
	ID     string      `json:"id"`
	Kind   Kind        `json:"kind"`
	Clean  *CleanSpec  `json:"clean,omitempty"`
	Write  *WriteSpec  `json:"write,omitempty"`
	Custom *CustomSpec `json:"custom,omitempty"`
	RAID   *RAIDSpec   `json:"raid,omitempty"`
	// Inspect is of an inventory; nil asks for what can be told at once.
	Inspect *InspectSpec `json:"inspect,omitempty"`
}

// InspectSpec says how an inventory is taken.
type InspectSpec struct {
	// ListenSeconds bounds how long the agent listens for what switches tell of
	// themselves; 0 is not at all.
	ListenSeconds int `json:"listenSeconds,omitempty"`
}

// CleanSpec says which erasure is wanted, of every disk.
type CleanSpec struct {
	Erase  Erase  `json:"erase,omitempty"`
	Arrays Arrays `json:"arrays,omitempty"`
}

// Arrays says what cleaning does to software RAID.
type Arrays string

// The ways with software RAID. Kept arrays are erased in place of the disks
// that they are made of; ArraysOnly erases nothing but the disks of arrays.
const (
	ArraysDeleted Arrays = ""
	ArraysKept    Arrays = "keep"
	ArraysOnly    Arrays = "only"
)

// RAIDSpec is the software RAID that a server shall have: the arrays that it
// has are taken apart, every disk's metadata is erased, and these are made.
// There may be none.
type RAIDSpec struct {
	Arrays []ArraySpec `json:"arrays,omitempty"`
	// ID is what the identifiers of arrays, members and partitions are derived
	// from: the same for the same job, and never used for another.
	ID   string `json:"id"`
	Made int64  `json:"made"` // when, in seconds since 1970: the server's own clock may be wrong
}

// ArraySpec is one array.
type ArraySpec struct {
	Name    string  `json:"name"`              // unique in the server; WriteSpec.Array has it
	Level   string  `json:"level"`             // "0", "1" or "1+0"
	SizeGiB int     `json:"sizeGiB,omitempty"` // 0 is all that is left
	Disks   []Hints `json:"disks,omitempty"`   // each chooses one; none is all disks
}

// Erase is how thoroughly a disk is erased.
type Erase string

// The erasures. Secure is the disk's own command (ATA Security Erase, NVMe
// Format) where it has one, and Full where it has not.
const (
	EraseMetadata Erase = ""       // tables, file system and RAID signatures; seconds
	EraseFull     Erase = "full"   // every byte, by writing zeros
	EraseSecure   Erase = "secure" // what cannot be reached by writing, too
)

// WriteSpec is an image and the device that it goes to.
type WriteSpec struct {
	// URL is http, https, or oci://REGISTRY/REPOSITORY[:TAG][@DIGEST], of which
	// the registry tells the checksum.
	URL          string        `json:"url"`
	Format       string        `json:"format"`             // raw, qcow2, vdi, vmdk, or "" to detect it
	Checksum     string        `json:"checksum,omitempty"` // hex digest, or URL of a checksum file
	ChecksumType string        `json:"checksumType"`       // md5, sha256, sha512, or "" to tell by length
	Root         Hints         `json:"root"`
	Array        string        `json:"array,omitempty"`       // name of the software RAID that is the root device, in place of Root
	Registry     *RegistryAuth `json:"registry,omitempty"`    // for an oci URL; nil is anonymous
	ConfigDrive  *ConfigDrive  `json:"configDrive,omitempty"` // beside the image; nil is none
}

// RegistryAuth is who a registry is told that the agent is.
type RegistryAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// ConfigDrive is what goes into a config drive in OpenStack's format.
type ConfigDrive struct {
	MetaData    []byte `json:"metaData,omitempty"`    // a JSON object
	NetworkData []byte `json:"networkData,omitempty"` // a JSON object
	UserData    []byte `json:"userData,omitempty"`    // whatever the image's cloud-init takes
}

// CustomSpec is a deployment by a method that the agent knows by its name. The
// image is the method's to use; its URL may be empty.
type CustomSpec struct {
	Method string    `json:"method"`
	Write  WriteSpec `json:"write"`
}

// Hints choose the root device: the first disk, in inventory order, that
// matches all of them (BareMetalHost rootDeviceHints).
type Hints struct {
	DeviceName         string `json:"deviceName,omitempty"` // /dev/sda, or a /dev/disk/by-path/ link
	HCTL               string `json:"hctl,omitempty"`
	Model              string `json:"model,omitempty"`  // substring
	Vendor             string `json:"vendor,omitempty"` // substring
	SerialNumber       string `json:"serialNumber,omitempty"`
	MinSizeGigabytes   int    `json:"minSizeGigabytes,omitempty"` // GiB, as Ironic counts
	WWN                string `json:"wwn,omitempty"`
	WWNWithExtension   string `json:"wwnWithExtension,omitempty"`
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`
	Rotational         *bool  `json:"rotational,omitempty"`
}

// State of a job as the agent reports it.
type State string

// The states of a job. Done and Failed are final.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Report tells how a job stands.
type Report struct {
	State     State     `json:"state"`
	Percent   int       `json:"percent,omitempty"` // of a Running job, 0 to 100
	Error     string    `json:"error,omitempty"`   // why it Failed
	Inventory *Hardware `json:"inventory,omitempty"`
	Written   *Written  `json:"written,omitempty"`
	Cleaned   []Erased  `json:"cleaned,omitempty"`
	Arrays    []Array   `json:"arrays,omitempty"`
}

// Array is software RAID that the agent has made.
type Array struct {
	Name      string   `json:"name"`
	UUID      string   `json:"uuid"` // as mdadm writes it
	Level     string   `json:"level"`
	SizeBytes int64    `json:"sizeBytes"`
	Disks     []string `json:"disks"` // devices that hold its members
}

// Erased is a disk that Clean erased.
type Erased struct {
	Device string `json:"device"`
	By     string `json:"by"` // metadata, zeros, or the device's own command
}

// Written is what Write did.
type Written struct {
	Device string `json:"device"` // name of the root device
	Bytes  int64  `json:"bytes"`  // size of the image on the disk
	Sum    string `json:"sum"`    // verified digest of the downloaded file, hex
	// ConfigDrive is where the config drive begins on the disk, in bytes; 0 when
	// there is none.
	ConfigDrive int64 `json:"configDrive,omitempty"`
}

// Hardware is what Inventory found. Units stand in the names.
type Hardware struct {
	Hostname string `json:"hostname"`
	System   System `json:"system"`
	BIOS     BIOS   `json:"bios"`
	CPU      CPU    `json:"cpu"`
	RAMMiB   int    `json:"ramMiB"`
	NICs     []NIC  `json:"nics"`
	Disks    []Disk `json:"disks"` // in the order in which the kernel names them
}

// System identifies the server (SMBIOS type 1).
type System struct {
	Manufacturer string `json:"manufacturer"`
	Product      string `json:"product"`
	Serial       string `json:"serial"`
	UUID         string `json:"uuid"`
}

// BIOS is SMBIOS type 0.
type BIOS struct {
	Vendor  string `json:"vendor"`
	Version string `json:"version"`
	Date    string `json:"date"`
}

// CPU describes the processors; Count is of logical CPUs.
type CPU struct {
	Arch  string   `json:"arch"` // as uname -m says
	Model string   `json:"model"`
	MHz   float64  `json:"mhz"`
	Count int      `json:"count"`
	Flags []string `json:"flags"` // sorted
}

// NIC is one physical network interface. One that has an IPv4 and an IPv6
// address stands there twice, once with each, as in BareMetalHost.
type NIC struct {
	Name       string `json:"name"`
	MAC        string `json:"mac"`             // lower case, colons
	Model      string `json:"model,omitempty"` // "0x8086 0x1592": PCI vendor and device
	IP         string `json:"ip,omitempty"`
	SpeedMbps  int    `json:"speedMbps,omitempty"` // 0 when there is no link
	Carrier    bool   `json:"carrier"`
	PCIAddress string `json:"pciAddress,omitempty"`
	PXE        bool   `json:"pxe,omitempty"`    // the system was loaded through it
	VLANs      []VLAN `json:"vlans,omitempty"`  // that are tagged on it, by ID
	VLANID     int    `json:"vlanId,omitempty"` // of what is untagged; 0 when nobody tells
	LLDP       *LLDP  `json:"lldp,omitempty"`   // nil when no switch has told
}

// VLAN is one virtual LAN; the name may be empty.
type VLAN struct {
	ID   int    `json:"id"` // 1 to 4094
	Name string `json:"name,omitempty"`
}

// LLDP is what a switch tells of itself and of the port that a NIC is cabled to.
type LLDP struct {
	SwitchID   string `json:"switchID,omitempty"` // of the chassis
	PortID     string `json:"portID,omitempty"`
	SwitchName string `json:"switchName,omitempty"`
}

// Disk is one whole block device.
type Disk struct {
	Name               string `json:"name"`             // /dev/sda
	ByPath             string `json:"byPath,omitempty"` // /dev/disk/by-path/…
	Type               string `json:"type"`             // HDD, SSD or NVME
	Rotational         bool   `json:"rotational"`
	SizeBytes          int64  `json:"sizeBytes"`
	Vendor             string `json:"vendor,omitempty"`
	Model              string `json:"model,omitempty"`
	Serial             string `json:"serial,omitempty"`
	WWN                string `json:"wwn,omitempty"` // 0x…
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`
	WWNWithExtension   string `json:"wwnWithExtension,omitempty"`
	HCTL               string `json:"hctl,omitempty"` // 0:0:0:0
	// Array is the name of the software RAID that the device is; "" when it is
	// none. Member says that one has taken the device, or a part of it.
	Array  string `json:"array,omitempty"`
	Member bool   `json:"member,omitempty"`
}

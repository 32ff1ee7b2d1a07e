// Package job is the wire contract between the in-band agent and the controller:
// jobs, leases and reports. It knows neither side; both import it. The transport
// is JSON over HTTPS.
//
//	POST /v1/lease            Lease    → 200 Job | 204 nothing to do
//	POST /v1/jobs/{id}/report Report   → 204 noted | 410 cancelled: stop working on it
//
// An agent authenticates itself by two things. The bearer token, from its boot
// medium, is valid for one boot of one host; but every user who can read the medium
// can read it. So the agent makes a key when its system boots, and shows a client
// certificate of it, which nobody has signed, in the TLS handshake. The first agent
// that leases with a token binds the token to its key (as RFC 8705, §3, binds
// tokens to certificates): from then on the token is worth nothing without it.
//
// An invalid token and a missing certificate get 401; a token of another host, of
// an earlier boot, or that is bound to another key, 403. 503 means that the
// controller does not know the boot or the binding yet, because it has just
// started: ask again later. Errors are text/plain.
//
// A lease is not exclusive and needs no return: only the agent of a boot can ask.
// A restarted controller may offer the same job again; the agent reports a
// finished job from memory, by ID, without doing it twice.
package job

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
)

// Paths of the two calls; ReportPath takes the job's ID.
const (
	LeasePath  = "/v1/lease"
	ReportPath = "/v1/jobs/%s/report"
)

// MaxBody is the maximum size of a body in bytes. A Secret has at most 1 MiB, a
// config drive is made of three, and bytes take a third more in JSON.
const MaxBody = 6 << 20

// Fingerprint identifies an agent by the key of its certificate, as OpenSSH prints
// keys: SHA256: and the digest of the SubjectPublicKeyInfo in base64.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// MediaConfigPath is the path of the agent's Media document on boot media.
const MediaConfigPath = "/metalab/agent.json"

// Media holds the address of the controller for a freshly booted agent. It is on
// the boot ISO as JSON at MediaConfigPath.
type Media struct {
	Server string `json:"server"` // base URL, https://HOST:PORT
	CA     string `json:"ca"`     // PEM certificates that the server's must chain to
	Token  string `json:"token"`  // bearer token of this boot
	Boot   string `json:"boot"`   // ID of the boot that the token is for
}

// Lease asks for work. It also shows that the agent is alive.
type Lease struct {
	Agent string `json:"agent"` // version of the agent
}

// Kind is the kind of work of a job.
type Kind string

// The kinds of jobs. An agent reports an unknown kind as Failed.
const (
	Inventory Kind = "inventory" // report the hardware
	Clean     Kind = "clean"     // erase every disk
	Write     Kind = "write"     // write an image to the root device
	Custom    Kind = "custom"    // deploy by a named method
	RAID      Kind = "raid"      // erase every disk and create software RAID
)

// Job is a unit of work. Exactly the field for its Kind may be set.
type Job struct {
	ID     string      `json:"id"`
	Kind   Kind        `json:"kind"`
	Clean  *CleanSpec  `json:"clean,omitempty"`
	Write  *WriteSpec  `json:"write,omitempty"`
	Custom *CustomSpec `json:"custom,omitempty"`
	RAID   *RAIDSpec   `json:"raid,omitempty"`
	// Inspect is for an inventory; nil means without listening.
	Inspect *InspectSpec `json:"inspect,omitempty"`
}

// InspectSpec has the options of an inventory.
type InspectSpec struct {
	// ListenSeconds bounds how long the agent listens for LLDP frames of switches;
	// 0 means not at all.
	ListenSeconds int `json:"listenSeconds,omitempty"`
}

// CleanSpec selects the erasure, of every disk.
type CleanSpec struct {
	Erase  Erase  `json:"erase,omitempty"`
	Arrays Arrays `json:"arrays,omitempty"`
}

// Arrays is how cleaning treats software RAID.
type Arrays string

// The options for software RAID. ArraysPreserved erases the arrays in place of their
// disks; ArraysOnly erases only the disks of arrays.
const (
	ArraysDeleted   Arrays = ""
	ArraysPreserved Arrays = "keep"
	ArraysOnly      Arrays = "only"
)

// RAIDSpec is the software RAID of a server: the agent deletes the existing
// arrays, erases every disk's metadata, and creates these. The list may be empty.
type RAIDSpec struct {
	Arrays []ArraySpec `json:"arrays,omitempty"`
	// ID is the seed of the identifiers of arrays, members and partitions. It is
	// the same for the same job, and never used for another.
	ID   string `json:"id"`
	Made int64  `json:"made"` // time of the job, in seconds since 1970: the server's clock may be wrong
}

// ArraySpec describes one array.
type ArraySpec struct {
	Name    string  `json:"name"`              // unique in the server; see WriteSpec.Array
	Level   string  `json:"level"`             // "0", "1" or "1+0"
	SizeGiB int     `json:"sizeGiB,omitempty"` // 0 means all remaining space
	Disks   []Hints `json:"disks,omitempty"`   // each chooses one; empty means all disks
}

// Erase is how thoroughly a disk is erased.
type Erase string

// The erasures. Secure uses the disk's own command (ATA Security Erase, NVMe
// Format), and Full where it has none.
const (
	EraseMetadata Erase = ""       // tables, file system and RAID signatures; seconds
	EraseFull     Erase = "full"   // every byte, with zeros
	EraseSecure   Erase = "secure" // including blocks that writes cannot reach
)

// WriteSpec describes an image and its root device.
type WriteSpec struct {
	// URL is http, https, or oci://REGISTRY/REPOSITORY[:TAG][@DIGEST]; for oci the
	// registry has the checksum.
	URL          string        `json:"url"`
	Format       string        `json:"format"`             // raw, qcow2, vdi, vmdk, or "" to detect it
	Checksum     string        `json:"checksum,omitempty"` // hex digest, or URL of a checksum file
	ChecksumType string        `json:"checksumType"`       // md5, sha256, sha512, or "" to detect it by length
	Root         Hints         `json:"root"`
	Array        string        `json:"array,omitempty"`       // name of the software RAID to use as root device in place of Root
	Registry     *RegistryAuth `json:"registry,omitempty"`    // for an oci URL; nil means anonymous
	ConfigDrive  *ConfigDrive  `json:"configDrive,omitempty"` // added to the image; nil means none
}

// RegistryAuth is the agent's account at a registry.
type RegistryAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// ConfigDrive is the content of a config drive in OpenStack's format.
type ConfigDrive struct {
	MetaData    []byte `json:"metaData,omitempty"`    // a JSON object
	NetworkData []byte `json:"networkData,omitempty"` // a JSON object
	UserData    []byte `json:"userData,omitempty"`    // any format that the image's cloud-init takes
	// Optional: nobody has asked for data. An image that has no partition table, or no
	// room for the drive, is written without it.
	Optional bool `json:"optional,omitempty"`
}

// CustomSpec is a deployment by a named method. The method may use the image; its
// URL may be empty.
type CustomSpec struct {
	Method string    `json:"method"`
	Write  WriteSpec `json:"write"`
}

// Hints choose the root device: the first disk in inventory order that matches all
// of them (BareMetalHost rootDeviceHints).
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

// State is the state of a job in a report.
type State string

// The states of a job. Done and Failed are final.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Report is the state and the result of a job.
type Report struct {
	State   State  `json:"state"`
	Percent int    `json:"percent,omitempty"` // 0 to 100, while Running
	Error   string `json:"error,omitempty"`   // reason, if Failed
	// Impossible: the server cannot have what the job asks for, and the job has changed
	// nothing. It would fail again until the server or the specification changes.
	Impossible bool      `json:"impossible,omitempty"`
	Inventory  *Hardware `json:"inventory,omitempty"`
	Written    *Written  `json:"written,omitempty"`
	Cleaned    []Erased  `json:"cleaned,omitempty"`
	Arrays     []Array   `json:"arrays,omitempty"`
}

// Array is a software RAID that the agent has created.
type Array struct {
	Name      string   `json:"name"`
	UUID      string   `json:"uuid"` // in the notation of mdadm
	Level     string   `json:"level"`
	SizeBytes int64    `json:"sizeBytes"`
	Disks     []string `json:"disks"` // devices of its members
}

// Erased is a disk that Clean has erased.
type Erased struct {
	Device string `json:"device"`
	By     string `json:"by"` // metadata, zeros, or the device's command
}

// Written is the result of a write job.
type Written struct {
	Device string `json:"device"` // name of the root device
	Bytes  int64  `json:"bytes"`  // size of the image on the disk
	Sum    string `json:"sum"`    // verified digest of the downloaded file, in hex
	// ConfigDrive is the offset of the config drive on the disk in bytes; 0 if
	// there is none.
	ConfigDrive int64 `json:"configDrive,omitempty"`
}

// Hardware is the result of an inventory. Names include the units.
type Hardware struct {
	Hostname string `json:"hostname"`
	System   System `json:"system"`
	BIOS     BIOS   `json:"bios"`
	CPU      CPU    `json:"cpu"`
	RAMMiB   int    `json:"ramMiB"`
	NICs     []NIC  `json:"nics"`
	Disks    []Disk `json:"disks"` // in the kernel's order
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

// CPU describes the processors; Count is the number of logical CPUs.
type CPU struct {
	Arch  string   `json:"arch"` // as uname -m prints
	Model string   `json:"model"`
	MHz   float64  `json:"mhz"`
	Count int      `json:"count"`
	Flags []string `json:"flags"` // sorted
}

// NIC is one physical network interface. One with an IPv4 and an IPv6 address is
// listed twice, once with each, as in BareMetalHost.
type NIC struct {
	Name       string `json:"name"`
	MAC        string `json:"mac"`             // lower case, colons
	Model      string `json:"model,omitempty"` // "0x8086 0x1592": PCI vendor and device
	IP         string `json:"ip,omitempty"`
	SpeedMbps  int    `json:"speedMbps,omitempty"` // 0 without a link
	Carrier    bool   `json:"carrier"`
	PCIAddress string `json:"pciAddress,omitempty"`
	PXE        bool   `json:"pxe,omitempty"`    // the system was booted through it
	VLANs      []VLAN `json:"vlans,omitempty"`  // tagged VLANs, by ID
	VLANID     int    `json:"vlanId,omitempty"` // VLAN of untagged frames; 0 if unknown
	LLDP       *LLDP  `json:"lldp,omitempty"`   // nil if no switch has sent any
}

// VLAN is a virtual LAN; its name may be empty.
type VLAN struct {
	ID   int    `json:"id"` // 1 to 4094
	Name string `json:"name,omitempty"`
}

// LLDP holds the identity of a switch and of its port that a NIC is connected to,
// from the frames that the switch sends.
type LLDP struct {
	SwitchID   string `json:"switchID,omitempty"` // chassis ID
	PortID     string `json:"portID,omitempty"`
	SwitchName string `json:"switchName,omitempty"`
}

// Disk is a whole block device.
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
	// Array is the name of the software RAID that this device is; "" if it is
	// none. Member reports whether an array uses the device or a partition of it.
	Array  string `json:"array,omitempty"`
	Member bool   `json:"member,omitempty"`
}

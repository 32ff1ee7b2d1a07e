package bmc

// Medium is the boot medium of the agent.
type Medium string

// The boot media.
const (
	MediumPXE  Medium = "pxe"           // DHCP and TFTP or HTTP on the provisioning network
	MediumCD   Medium = "virtual media" // an ISO in the BMC's virtual drive
	MediumHTTP Medium = "uefi http"     // an ISO that the firmware fetches itself
)

// Traits holds the properties of a host that the scheme of its BMC address
// determines.
type Traits struct {
	Driver   string // driver of this project: "redfish" or "ipmi"
	Hardware string // Metal3's name of the driver, used in its messages
	Boot     Medium
	RAID     string // Metal3's RAID interface; "no-raid" for none
	Manage   string // Metal3's BIOS, management and power interface; "" for the driver's own
	Firmware string // Metal3's firmware update interface; "" for none

	NeedsMAC     bool // bootMACAddress is required even for a host that is inspected
	NeedsNetwork bool // requires a provisioning network
	SecureBoot   bool // secure boot can be switched
	FastInspect  bool // hardware can be inspected without an agent
	ISO          bool // boots a pre-provisioning image that is an ISO
}

// pathRule is the meaning of an address's path.
type pathRule string

const (
	pathNone   pathRule = "none"   // ignored: the protocol has one system, or the path is another protocol's
	pathSystem pathRule = "system" // the system; if empty or /redfish/v1, the only system
	pathAsIs   pathRule = "as is"  // the system, even if it is the service root
)

// web lists the suffixes that choose the transport; the default is HTTPS.
var web = []string{"http", "https"}

// schemes lists the address schemes of Metal3: first those of its current release
// (B-131, B-132), then those that the specification lists and the release has
// dropped (B-133). The latter reach their BMC over Redfish, which all of these
// BMCs speak, in place of the original protocol.
var schemes = []struct {
	name string
	plus []string // suffixes: name+http and so on
	path pathRule
	Traits
}{
	{"ipmi", nil, pathNone, Traits{Driver: "ipmi", Hardware: "ipmi", Boot: MediumPXE, RAID: "no-raid",
		NeedsNetwork: true}},
	{"libvirt", nil, pathNone, Traits{Driver: "ipmi", Hardware: "ipmi", Boot: MediumPXE, RAID: "no-raid",
		NeedsMAC: true, NeedsNetwork: true}},
	{"redfish", web, pathSystem, Traits{Driver: "redfish", Hardware: "redfish", Boot: MediumPXE, RAID: "redfish",
		Firmware: "redfish", NeedsNetwork: true, SecureBoot: true, FastInspect: true}},
	{"ilo5-redfish", web, pathSystem, Traits{Driver: "redfish", Hardware: "redfish", Boot: MediumPXE, RAID: "redfish",
		Firmware: "redfish", NeedsNetwork: true, SecureBoot: true, FastInspect: true}},
	{"idrac-redfish", web, pathSystem, Traits{Driver: "redfish", Hardware: "idrac", Boot: MediumPXE, RAID: "idrac-redfish",
		Manage: "idrac-redfish", Firmware: "redfish", NeedsNetwork: true, SecureBoot: true, FastInspect: true}},
	{"redfish-virtualmedia", web, pathSystem, Traits{Driver: "redfish", Hardware: "redfish", Boot: MediumCD, RAID: "redfish",
		Firmware: "redfish", SecureBoot: true, FastInspect: true, ISO: true}},
	{"ilo5-virtualmedia", web, pathSystem, Traits{Driver: "redfish", Hardware: "redfish", Boot: MediumCD, RAID: "redfish",
		Firmware: "redfish", SecureBoot: true, FastInspect: true, ISO: true}},
	{"idrac-virtualmedia", web, pathSystem, Traits{Driver: "redfish", Hardware: "idrac", Boot: MediumCD, RAID: "idrac-redfish",
		Manage: "idrac-redfish", Firmware: "redfish", SecureBoot: true, FastInspect: true, ISO: true}},
	{"redfish-uefihttp", web, pathAsIs, Traits{Driver: "redfish", Hardware: "redfish", Boot: MediumHTTP, RAID: "redfish",
		Firmware: "redfish", SecureBoot: true, FastInspect: true, ISO: true}},

	{"ibmc", web, pathSystem, Traits{Driver: "redfish", Hardware: "ibmc", Boot: MediumPXE, RAID: "no-raid",
		Manage: "ibmc", NeedsMAC: true, NeedsNetwork: true}},
	{"idrac", web, pathNone, Traits{Driver: "redfish", Hardware: "idrac", Boot: MediumPXE, RAID: "idrac-wsman",
		NeedsNetwork: true}},
	{"ilo4", []string{"https"}, pathNone, Traits{Driver: "redfish", Hardware: "ilo", Boot: MediumPXE, RAID: "no-raid",
		NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}},
	{"ilo4-virtualmedia", []string{"https"}, pathNone, Traits{Driver: "redfish", Hardware: "ilo", Boot: MediumCD, RAID: "no-raid",
		NeedsMAC: true, SecureBoot: true, ISO: true}},
	{"ilo5", []string{"https"}, pathNone, Traits{Driver: "redfish", Hardware: "ilo5", Boot: MediumPXE, RAID: "ilo5",
		NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}},
	{"irmc", nil, pathNone, Traits{Driver: "redfish", Hardware: "irmc", Boot: MediumPXE, RAID: "irmc",
		NeedsMAC: true, NeedsNetwork: true, SecureBoot: true}},
}

// Schemes are all schemes of addresses: each in its plain form and then with the
// suffixes that it takes.
func Schemes() []string {
	var all []string
	for _, row := range schemes {
		all = append(all, row.name)
		for _, suffix := range row.plus {
			all = append(all, row.name+"+"+suffix)
		}
	}
	return all
}

package bmc

// Medium is how a host gets the image that it is provisioned with.
type Medium string

// The boot media.
const (
	MediumPXE  Medium = "pxe"           // DHCP and TFTP or HTTP on the provisioning network
	MediumCD   Medium = "virtual media" // an ISO in the BMC's virtual drive
	MediumHTTP Medium = "uefi http"     // an ISO that the firmware fetches itself
)

// Traits are what the scheme of an address says of a BMC, whatever its host.
type Traits struct {
	Driver   string // ours that talks to it: "redfish" or "ipmi"
	Hardware string // Metal3's name of the driver, found in its texts
	Boot     Medium
	RAID     string // Metal3's RAID interface; "no-raid" is none
	Manage   string // Metal3's BIOS, management and power interface; "" is the driver's own
	Firmware string // Metal3's firmware update interface; "" is none

	NeedsMAC     bool // bootMACAddress is required even when the host is inspected
	NeedsNetwork bool // useless without a provisioning network
	SecureBoot   bool // secure boot can be switched
	FastInspect  bool // hardware can be inspected without an agent
	ISO          bool // boots a pre-provisioning image that is an ISO
}

// pathRule is what the path of an address means.
type pathRule string

const (
	pathNone   pathRule = "none"   // nothing: the protocol knows one system, or it is another protocol's
	pathSystem pathRule = "system" // the system; without one, or as /redfish/v1, the only system
	pathAsIs   pathRule = "as is"  // the system, even when it is the service root
)

// web are the suffixes that choose the transport; without one it is HTTPS.
var web = []string{"http", "https"}

// schemes are the kinds of address of Metal3: first those of its current
// release (B-131, B-132), then those that the specification lists and that
// it has dropped since (B-133). The latter reach their BMC over Redfish,
// which all of them speak, rather than over the protocol that once was meant.
var schemes = []struct {
	name string
	plus []string // name+http and so on
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

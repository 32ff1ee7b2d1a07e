package clients

import (
	"cmp"
	"slices"
	"strings"
)

// names are the names of the clients.
var names = []string{"gofish", "sushy", "redfishtool", "ipmitool"}

// vendorSettings is what a user must know about a vendor's BMCs from its manual,
// with any client.
type vendorSettings struct {
	bootMode  string // BootSourceOverrideMode to send; "": none
	cdTarget  string // BootSourceOverrideTarget of virtual media
	protocol  string // TransferProtocolType of InsertMedia; "": none
	applyTime string // ApplyTime of BIOS settings; "": none
	inserted  bool   // InsertMedia needs Inserted
	restart   string // ResetType of a restart
	shutdown  string // ResetType of a graceful shutdown
	https     bool   // the BMC fetches images by HTTPS alone
}

// vendors are the settings of dialects that differ from the default. The records of
// the dialects cite the sources.
var vendors = map[string]vendorSettings{
	"idrac8":         {restart: "GracefulRestart"}, // there is no ForceRestart
	"idrac9-5":       {applyTime: "OnReset"},
	"idrac9":         {applyTime: "OnReset"},
	"idrac10":        {applyTime: "OnReset"},
	"ilo4":           {bootMode: "none", shutdown: "PushPowerButton"}, // the boot mode is a setting of the BIOS; there is no GracefulShutdown
	"ilo5":           {bootMode: "none"},
	"ilo6":           {bootMode: "none"},
	"ilo7":           {bootMode: "none"},
	"supermicro-x11": {cdTarget: "UsbCd"},
	"supermicro-x13": {cdTarget: "UsbCd"},
	"megarac":        {protocol: "HTTP"},
	"ibmc":           {https: true},
	"openbmc":        {https: true},
	"xcc":            {inserted: true}, // vmedia-patch-only
	"xcc2":           {inserted: true},
}

// withoutBIOSAttributes are the dialects that show no BIOS attributes.
var withoutBIOSAttributes = []string{"openbmc"}

func settingsOf(dialect string) vendorSettings {
	h := vendors[dialect]
	h.bootMode, h.cdTarget, h.restart = cmp.Or(h.bootMode, "UEFI"), cmp.Or(h.cdTarget, "Cd"), cmp.Or(h.restart, "ForceRestart")
	h.shutdown = cmp.Or(h.shutdown, "GracefulShutdown")
	if h.bootMode == "none" {
		h.bootMode = ""
	}
	return h
}

// limitation is an operation that a client cannot do with a dialect by its general
// commands.
type limitation struct {
	client     string
	dialects   string // names, separated by blanks
	operation  string
	err        string                           // part of the error
	why        string                           // from the dialect's record, or what the client lacks
	workaround func(*testServer, client) client // uses the vendor's way; nil: there is none
}

// limitations are all known limitations. Any other failure is a fault, and so is an
// operation that succeeds in spite of its limitation.
var limitations = []limitation{
	{"gofish", "openbmc", "inventory", "0 interfaces", "bmcweb shows no interfaces of the system", systemOnly},
	{"gofish", "ilo4", "inventory", "0 drives", "iLO 4 shows drives by SmartStorage alone", smartDrives},
	{"gofish", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"gofish", "ilo4", "raid", "no subsystem makes mirrors", "iLO 4 shows arrays, and makes none", nil},
	{"gofish", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"gofish", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"gofish", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},

	{"sushy", "openbmc", "inventory", "EthernetInterfaces is missing", "bmcweb shows no interfaces of the system", systemOnly},
	{"sushy", "ilo4", "inventory", "Storage is missing", "iLO 4 shows drives by SmartStorage alone", smartDrives},
	{"sushy", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"sushy", "ilo4", "raid", "Storage is missing", "iLO 4 shows arrays, and makes none", nil},
	{"sushy", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"sushy", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"sushy", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},
	// sushy before 4.6 sends no If-Match with settings (its release note
	// fix-missing-etags), and these services insist: MegaRAC's ansible#6434, of
	// Bios/SD; iBMC's ansible#60031, of Bios/Settings; for iRMC the note was written.
	{"sushy", "megarac irmc-s5 irmc-s6 ibmc", "bios", "428", "settings are not changed without If-Match", withIfMatch},

	{"redfishtool", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"redfishtool", "ilo4", "raid", "no subsystem makes mirrors", "iLO 4 shows arrays, and makes none", nil},
	{"redfishtool", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"redfishtool", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"redfishtool", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},
	{"redfishtool", "idrac10", "boot", "405", "boots are set by @Redfish.Settings (boot-readonly-use-settings), which redfishtool does not follow", bootSettings},
	{"redfishtool", "idrac10", "media", "405", "boots are set by @Redfish.Settings (boot-readonly-use-settings), which redfishtool does not follow", bootSettings},
	{"redfishtool", "supermicro-x11 supermicro-x13", "media", "invalid BootSourceOverrideTarget", "UsbCd, which virtual media boot by, is no word of redfishtool's", fullBootOverride},

	// Everything works when IPMI is enabled.
	{"ipmitool", "irmc-s6 xcc2", "inventory", "Unable to establish IPMI v2", "IPMI over LAN is off until somebody switches it on", ipmiEnabled},
}

func limitationOf(client, dialect, job string) *limitation {
	i := slices.IndexFunc(limitations, func(r limitation) bool {
		return r.client == client && r.operation == job && slices.Contains(strings.Fields(r.dialects), dialect)
	})
	if i < 0 {
		return nil
	}
	return &limitations[i]
}

package clients

import (
	"cmp"
	"slices"
	"strings"
)

// names are those of the clients.
var names = []string{"gofish", "sushy", "redfishtool", "ipmitool"}

// habit is what one has to know of a vendor's BMCs, whatever the client: what
// its manual says.
type habit struct {
	mode     string // boot mode that goes with an override; "": none
	cd       string // boot target of virtual media
	protocol string // TransferProtocolType that an image comes with
	when     string // apply time of settings
	inserted bool   // an image comes with Inserted
	restart  string // ResetType
	soft     string // ResetType that has the operating system switch off
	tls      bool   // images come by HTTPS
}

// habits are those of dialects that differ; what a row leaves open is as others
// have it. The records of the dialects have the sources.
var habits = map[string]habit{
	"idrac8":         {restart: "GracefulRestart"}, // there is no ForceRestart
	"idrac9-5":       {when: "OnReset"},
	"idrac9":         {when: "OnReset"},
	"idrac10":        {when: "OnReset"},
	"ilo4":           {mode: "none", soft: "PushPowerButton"}, // the boot mode is a setting of the BIOS; there is no GracefulShutdown
	"ilo5":           {mode: "none"},
	"ilo6":           {mode: "none"},
	"ilo7":           {mode: "none"},
	"supermicro-x11": {cd: "UsbCd"},
	"supermicro-x13": {cd: "UsbCd"},
	"megarac":        {protocol: "HTTP"},
	"ibmc":           {tls: true},
	"openbmc":        {tls: true},
	"xcc":            {inserted: true}, // vmedia-patch-only
	"xcc2":           {inserted: true},
}

// unset are dialects that show no BIOS attributes.
var unset = []string{"openbmc"}

func habitOf(dialect string) habit {
	h := habits[dialect]
	h.mode, h.cd, h.restart = cmp.Or(h.mode, "UEFI"), cmp.Or(h.cd, "Cd"), cmp.Or(h.restart, "ForceRestart")
	h.soft = cmp.Or(h.soft, "GracefulShutdown")
	if h.mode == "none" {
		h.mode = ""
	}
	return h
}

// refusal is a job that a client cannot do to a dialect by what it has for any.
type refusal struct {
	client   string
	dialects string // names, with blanks
	job      string
	says     string                      // in the error
	why      string                      // what in the record says so, or what the client lacks
	way      func(*bench, client) client // as the vendor has it done; nil: not at all
}

// refusals are all of them: what else fails is a fault, and so is what succeeds.
var refusals = []refusal{
	{"gofish", "openbmc", "inventory", "0 interfaces", "bmcweb shows no interfaces of the system", plain},
	{"gofish", "ilo4", "inventory", "0 drives", "iLO 4 shows drives by SmartStorage alone", smartDrives},
	{"gofish", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"gofish", "ilo4", "raid", "no subsystem makes mirrors", "iLO 4 shows arrays, and makes none", nil},
	{"gofish", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"gofish", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"gofish", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},

	{"sushy", "openbmc", "inventory", "EthernetInterfaces is missing", "bmcweb shows no interfaces of the system", plain},
	{"sushy", "ilo4", "inventory", "Storage is missing", "iLO 4 shows drives by SmartStorage alone", smartDrives},
	{"sushy", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"sushy", "ilo4", "raid", "Storage is missing", "iLO 4 shows arrays, and makes none", nil},
	{"sushy", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"sushy", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"sushy", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},
	// sushy before 4.6 sends no If-Match with settings (its release note
	// fix-missing-etags), and these services insist: MegaRAC's ansible#6434, of
	// Bios/SD; iBMC's ansible#60031, of Bios/Settings; for iRMC the note was written.
	{"sushy", "megarac irmc-s5 irmc-s6 ibmc", "bios", "428", "settings are not changed without If-Match", guarded},

	{"redfishtool", "ilo4", "bios", "of 0 settings none", "settings of iLO 4 stand beside the properties, not in Attributes", flatSettings},
	{"redfishtool", "ilo4", "raid", "no subsystem makes mirrors", "iLO 4 shows arrays, and makes none", nil},
	{"redfishtool", "ilo5", "raid", "405", "a Smart Array takes its volumes by SmartStorageConfig alone", smartVolumes},
	{"redfishtool", "idrac8", "media", "it boots from Hdd", "Cd is a drive of the server's own: virtual media boot by FirstBootDevice", firstDevice},
	{"redfishtool", "idrac8", "bios", "is Disabled", "settings are applied by a job alone, which is made of them", settingsJob},
	{"redfishtool", "idrac10", "boot", "405", "boots are set by @Redfish.Settings (boot-readonly-use-settings), which redfishtool does not follow", bootSettings},
	{"redfishtool", "idrac10", "media", "405", "boots are set by @Redfish.Settings (boot-readonly-use-settings), which redfishtool does not follow", bootSettings},
	{"redfishtool", "megarac", "boot", "400", "an override needs its mode, too (boot-full-request), for which redfishtool has no word", wholeBoot},
	{"redfishtool", "megarac", "media", "400", "an override needs its mode, too (boot-full-request), for which redfishtool has no word", wholeBoot},
	{"redfishtool", "supermicro-x11 supermicro-x13", "media", "invalid BootSourceOverrideTarget", "UsbCd, which virtual media boot by, is no word of redfishtool's", wholeBoot},

	// Once it is on, all works.
	{"ipmitool", "irmc-s6 xcc2", "inventory", "Unable to establish IPMI v2", "IPMI over LAN is off until somebody switches it on", switchedOn},
}

func refusalOf(client, dialect, job string) *refusal {
	i := slices.IndexFunc(refusals, func(r refusal) bool {
		return r.client == client && r.job == job && slices.Contains(strings.Fields(r.dialects), dialect)
	})
	if i < 0 {
		return nil
	}
	return &refusals[i]
}

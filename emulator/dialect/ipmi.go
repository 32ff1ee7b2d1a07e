package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// IPMI describes a vendor's implementation of IPMI. Numbers are as on the wire;
// sections and tables are those of IPMI v2.0 rev 1.1.
type IPMI struct {
	Manufacturer uint32 // IANA enterprise number in Get Device ID, 20 bits (§20.1)
	Product      uint16 // product ID in Get Device ID
	DeviceID     byte   // device ID in Get Device ID
	Revision     byte   // device revision in Get Device ID, 0 to 15
	// FirstUser is the IPMI user ID of the account with Redfish ID 1, from 1 to 63.
	// User 1 is the user without a name, which is no Redfish account.
	FirstUser byte
	// CipherSuites are the IDs of the cipher suites that the BMC accepts, the best
	// first (§22.15.2).
	CipherSuites []byte
	// DisabledSuites are cipher suites that the BMC implements and has switched off.
	DisabledSuites      []byte
	MaxSessions         int           // sessions at the same time; 0 is 16
	MaxPendingLogins    int           // handshakes under way at the same time, of which a new one ends the oldest; 0 is 16
	ClearSELDuration    time.Duration // how long Clear SEL takes: at most a minute
	AddedSDRBytes       int           // bytes of sensor data records that clients may add; 0: clients cannot write any (§33)
	RejectResetWhileOff bool          // reject power cycle and reset while the system is off (§28.3), instead of switching it on
	RejectOffWhileOff   bool          // reject power off while the system is off (§28.3)
	// AdvertisedSuites are what Get Channel Cipher Suites lists; empty: CipherSuites
	// (§22.15).
	AdvertisedSuites []byte
	NoSuiteList      bool // Get Channel Cipher Suites is not answered
	Faults           IPMIFaults
	// MissingBootOptions are the boot option parameters that the BMC does not
	// implement, 0 to 7 (table 28-14).
	MissingBootOptions []byte
	// EFIBootDevices are boot device selectors, 0 to 15, that select another boot
	// source than the standard's when the boot flags ask for UEFI (table 28-14, boot
	// flags).
	EFIBootDevices map[byte]machine.SourceKind
	// AdvertisedSOLPort is the UDP port that Activate Payload names for serial over
	// LAN; 0 is the port that the client has reached.
	AdvertisedSOLPort uint16
	OEMCommands       []OEMCommand
	OEMSystemInfo     []OEMInfo
}

// IPMIFaults are violations of IPMI 2.0 that BMCs have in the field, and for which
// ipmitool and FreeIPMI have workarounds.
type IPMIFaults struct {
	AuthCap         bool // Get Channel Authentication Capabilities says that there are no users with names (§22.13)
	OpenSessPriv    bool // codes of the handshake use the privilege level of Open Session instead of that of RAKP 1 (§13.31)
	IntegrityCheck  bool // RAKP 4 has an integrity check value even when the suite has no authentication (§13.23)
	SOLPayloadSizes bool // Activate Payload names payload sizes of 0 (§24.1)
	LongAuthCode    bool // a stray byte follows the authentication code of RAKP 2 (§13.21)
	// PaddedKeys computes codes and keys differently: user names are padded to 16
	// bytes, except that RAKP 3 uses the name as sent and the role without its
	// lookup bit; suites with MD5 use 16 bytes of the password; RAKP 4 uses the
	// suite's integrity algorithm; and Open Session confirms the requested privilege
	// level, even none (§13.18 to §13.23).
	PaddedKeys        bool
	ZeroSessionID     bool // packets of IPMI 1.5 sessions have the session ID 0 (§13.6)
	BigEndianSequence bool // session sequence numbers of IPMI 1.5 have their most significant byte first
	BadAuthCode       bool // authentication codes of IPMI 1.5 packets are wrong (§22.17.1)
	BadChecksum       bool // the second checksum of responses within a session is wrong (§13.8)
	// WritesPerWindow is how many configuration writes within WriteWindow take effect.
	// The BMC confirms the others and loses them. 0: all take effect.
	WritesPerWindow int
	WriteWindow     time.Duration // see WritesPerWindow
	// DiscreteReadings marks the records of threshold sensors as discrete (§43.1).
	DiscreteReadings bool
	ForeignOwner     bool // the records of threshold sensors name another controller as the owner
	ScanningDisabled bool // threshold sensors report that scanning is disabled, although their readings change (§35.14)
}

// validateIPMI checks IPMI.
func (r *Record) validateIPMI(need func(ok bool, field, fix string)) {
	i := &r.IPMI
	need(i.Manufacturer > 0 && i.Manufacturer < 1<<20, "ipmi.manufacturer", "must be an IANA enterprise number that fits 20 bits (§20.1)")
	need(i.Revision < 16, "ipmi.revision", "must fit 4 bits (§20.1)")
	need(i.FirstUser >= 1 && i.FirstUser <= 63, "ipmi.firstUser", "must be 1 to 63")
	need(i.MaxSessions >= 0 && i.MaxSessions <= 255, "ipmi.maxSessions", "must be 0 to 255")
	need(i.MaxPendingLogins >= 0 && i.MaxPendingLogins <= 256, "ipmi.maxPendingLogins", "must be 0 to 256")
	need(i.AddedSDRBytes >= 0 && i.AddedSDRBytes < 1<<16, "ipmi.addedSDRBytes", "must be 0 to 65535")
	need(i.ClearSELDuration >= 0 && i.ClearSELDuration <= time.Minute, "ipmi.clearSELDuration", "must be 0 to a minute")
	need(i.Faults.WritesPerWindow >= 0 && (i.Faults.WritesPerWindow == 0 || i.Faults.WriteWindow > 0), "ipmi.faults.writesPerWindow", "must not be negative, and needs writeWindow")
	for s, to := range i.EFIBootDevices {
		need(s < 16 && slices.Contains(machine.SourceKinds, to), "ipmi.efiBootDevices", fmt.Sprintf("%d: %q: must be a selector from 0 to 15 and one of %v", s, to, machine.SourceKinds))
	}
	for k, n := range i.MissingBootOptions {
		need(n <= 7, item("ipmi.missingBootOptions", k), "must be 0 to 7 (table 28-14)")
	}
	need(len(i.CipherSuites) > 0, "ipmi.cipherSuites", "must not be empty")
	for k, c := range i.OEMCommands {
		at := item("ipmi.oemCommands", k)
		need(c.NetFn >= 0x2e && c.NetFn <= 0x3e && c.NetFn%2 == 0, at, fmt.Sprintf("%s: netFn %#x: must be even, from 0x2e to 0x3e (§5.1)", c.Name, c.NetFn))
		need(c.Name != "" && c.Privilege >= 1 && c.Privilege <= 5, at, c.Name+": needs name, and privilege from 1 to 5")
		need(c.MinLength >= len(c.Prefix) && (c.MaxLength < 0 || c.MaxLength >= c.MinLength), at, c.Name+": minLength and maxLength must count prefix")
		validateFields(at+".response", c.Response, need)
	}
	for k, p := range i.OEMSystemInfo {
		at := item("ipmi.oemSystemInfo", k)
		need(p.Param >= 0xc0, at+".param", "parameters of OEMs begin at C0h (table 22-16c)")
		need(slices.Contains(oemTexts, p.Text), at+".text", fmt.Sprintf("parameter %02Xh: text %q: must be one of %q", p.Param, p.Text, oemTexts))
		validateFields(at+".response", p.Response, need)
	}
	for _, list := range []struct {
		key    string
		suites []byte
	}{{"cipherSuites", i.CipherSuites}, {"disabledSuites", i.DisabledSuites}, {"advertisedSuites", i.AdvertisedSuites}} {
		for k, id := range list.suites {
			need(id <= 17, item("ipmi."+list.key, k), fmt.Sprintf("%d: must be 0 to 17 (table 22-20)", id))
		}
	}
}

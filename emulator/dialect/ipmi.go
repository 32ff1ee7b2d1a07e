package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine"
)

// IPMI is what a vendor makes of IPMI. Numbers are as they go over the wire.
type IPMI struct {
	Manufacturer uint32 // IANA enterprise number (IPMI v2.0 rev 1.1, §20.1)
	Product      uint16
	DeviceID     byte
	Revision     byte // of the device, 0 to 15
	// FirstUser is the user ID of the account whose Redfish ID is 1; user 1 is
	// the one without a name, which no Redfish account is.
	FirstUser byte
	// Suites are the cipher suites that are taken, best first (§22.15.2).
	CipherSuites []byte
	// Insecure are those that the BMC could take and has switched off.
	DisabledSuites      []byte
	MaxSessions         int           // open at most; 0 is 16
	MaxPendingLogins    int           // logins under way at most, of which the oldest make room; 0 is 16
	ClearSELDuration    time.Duration // that clearing the event log takes
	AddedSDRBytes       int           // bytes of sensor data records that clients may add; 0: they cannot write any (§33)
	RejectResetWhileOff bool          // a power cycle or reset while off is refused (§28.3)
	RejectOffWhileOff   bool          // to power off while off is refused (§28.3)
	// Listed are the cipher suites that it says it takes; none: the truth
	// (§22.15). Unlisted says that who asks for them has no answer.
	AdvertisedSuites []byte
	NoSuiteList      bool
	Faults           IPMIFaults
	// NoBoot are boot options that the BMC lacks (table 28-14).
	MissingBootOptions []byte
	// Selectors are boot device selectors that stand for something else than by
	// the book when the boot is to be by UEFI (table 28-14, boot flags).
	EFIBootDevices map[byte]machine.SourceKind
	// Advertised is the UDP port that clients are told to find serial over LAN
	// at; 0 is that which they have reached.
	AdvertisedSOLPort uint16
	OEMCommands       []OEMCommand
	OEMSystemInfo     []OEMInfo
}

// IPMIFaults are what a BMC sends otherwise than IPMI has it, and for which
// clients have a workaround of that name.
type IPMIFaults struct {
	AuthCap         bool // it tells of no users with names (§22.13)
	OpenSessPriv    bool // codes are made with the privilege of Open Session, not with that of RAKP 1 (§13.31)
	IntegrityCheck  bool // RAKP 4 has an integrity check value even where the suite has none (§13.23)
	SOLPayloadSizes bool // Activate Payload tells sizes of 0 (§24.1)
	LongAuthCode    bool // the code of RAKP 2 is followed by a byte that is none of it (§13.21)
	// Padded makes codes and keys of names with 16 bytes, that of RAKP 3 of the
	// name as it is and a role without the bit for lookup, those of suites with
	// MD5 with 16 bytes of the password, and RAKP 4 by the suite's integrity
	// algorithm; Open Session tells of the privilege that was asked for, be it
	// none (§13.18 to §13.23).
	PaddedKeys        bool
	ZeroSessionID     bool // packets of sessions of IPMI 1.5 have the session ID 0 (§13.6)
	BigEndianSequence bool // and their sequence numbers have their highest byte first
	BadAuthCode       bool // and their codes are wrong (§22.17.1)
	BadChecksum       bool // the second checksum of what is answered in a session is wrong (§13.8)
	// Commits is how many writes of configuration are kept that come within
	// Settling of one another; more are taken and lost. 0: all are kept.
	KeptWrites  int
	WriteWindow time.Duration
	// Discrete says that records of sensors with numbers say that they have
	// states (§43.1).
	DiscreteReadings bool
	ForeignOwner     bool // and records of sensors that they are another controller's
	ScanningDisabled bool // sensors with numbers say that they are not scanned, and are (§35.14)
}

// validateIPMI says what is wrong with it.
func (r *Record) validateIPMI(need func(ok bool, field, fix string)) {
	i := &r.IPMI
	need(i.Manufacturer < 1<<20, "ipmi.manufacturer", "must fit 20 bits (§20.1)")
	need(i.Revision < 16, "ipmi.revision", "must fit 4 bits (§20.1)")
	need(i.FirstUser >= 1 && i.FirstUser <= 63, "ipmi.firstUser", "must be 1 to 63")
	need(i.MaxSessions >= 0 && i.MaxSessions <= 255, "ipmi.maxSessions", "must be 0 to 255")
	need(i.MaxPendingLogins >= 0 && i.MaxPendingLogins <= 256, "ipmi.maxPendingLogins", "must be 0 to 256")
	need(i.AddedSDRBytes >= 0 && i.AddedSDRBytes < 1<<16, "ipmi.addedSDRBytes", "must be 0 to 65535")
	need(i.ClearSELDuration >= 0 && i.ClearSELDuration <= time.Minute, "ipmi.clearSELDuration", "must be 0 to a minute")
	need(i.Faults.KeptWrites >= 0 && (i.Faults.KeptWrites == 0 || i.Faults.WriteWindow > 0), "ipmi.faults.keptWrites", "must not be negative, and needs writeWindow")
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

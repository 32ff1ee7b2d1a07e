package sel

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// The offsets of sensor-specific events, as table 42-3 of IPMI v2.0 rev 1.1 has
// them, with a mark before the names of those that are no good news: ! for Critical,
// ? for Warning.
var specificEvents = map[Sensor]string{
	0x05: "!General Chassis Intrusion; ?Drive Bay intrusion; ?I/O Card area intrusion; ?Processor area intrusion; ?LAN Leash Lost; ?Unauthorized dock; ?FAN area intrusion",
	0x06: "?Secure Mode Violation attempt; ?Pre-boot Password Violation - user password; ?setup password; ?network boot password; ?Other pre-boot Password Violation; ?Out-of-band Access Password Violation",
	0x07: "!IERR; !Thermal Trip; !FRB1/BIST failure; !FRB2/Hang in POST failure; !FRB3/Processor Startup failure; !Configuration Error; " +
		"!SM BIOS Uncorrectable CPU-complex Error; Processor Presence detected; ?Processor disabled; Terminator Presence Detected; " +
		"?Processor Automatically Throttled; !Machine Check Exception (Uncorrectable); ?Correctable Machine Check Error",
	0x08: "Presence detected; !Power Supply Failure detected; ?Predictive Failure; ?input lost (AC/DC); ?input lost or out-of-range; " +
		"?input out-of-range, but present; ?Configuration error; Inactive (in standby state)",
	0x09: "Power Off; Power Cycle; ?240VA Power Down; ?Interlock Power Down; !AC lost; !Soft Power Control Failure; !Power Unit Failure detected; ?Predictive Failure",
	0x0c: "?Correctable ECC; !Uncorrectable ECC; ?Parity; !Memory Scrub Failed (stuck bit); ?Memory Device Disabled; " +
		"?Correctable ECC logging limit reached; Presence detected; !Configuration error; Spare; ?Memory Automatically Throttled; !Critical Overtemperature",
	0x0d: "Drive Presence; !Drive Fault; ?Predictive Failure; Hot Spare; Consistency Check in progress; ?In Critical Array; !In Failed Array; Rebuild in progress; ?Rebuild Aborted",
	0x0f: "!System Firmware Error (POST Error); !System Firmware Hang; System Firmware Progress",
	0x10: "?Correctable Memory Error Logging Disabled; ?Event Type Logging Disabled; Log Area Reset/Cleared; ?All Event Logging Disabled; ?SEL Full; " +
		"?SEL Almost Full; ?Correctable Machine Check Error Logging Disabled",
	0x12: "System Reconfigured; OEM System Boot Event; !Undetermined system hardware failure; Entry added to Auxiliary Log; PEF Action; Timestamp Clock Synch",
	0x13: "?Front Panel NMI; !Bus Timeout; !I/O channel check NMI; ?Software NMI; !PCI PERR; !PCI SERR; !EISA Fail Safe Timeout; " +
		"?Bus Correctable Error; !Bus Uncorrectable Error; !Fatal NMI; !Bus Fatal Error; ?Bus Degraded",
	0x14: "Power Button pressed; Sleep Button pressed; Reset Button pressed; FRU latch open; FRU service request button",
	0x1d: "Initiated by power up; by hard reset; by warm reset; User requested PXE boot; Automatic boot to diagnostic; OS initiated hard reset; OS initiated warm reset; System Restart",
	0x1e: "!No bootable media; ?Non-bootable diskette left in drive; ?PXE Server not found; !Invalid boot sector; ?Timeout waiting for user selection of boot source",
	0x1f: "A: boot completed; C: boot completed; PXE boot completed; Diagnostic boot completed; CD-ROM boot completed; ROM boot completed; " +
		"boot completed, device not specified; installation started; installation completed; ?installation aborted; !installation failed",
	0x20: "!Critical stop during OS load; !Run-time Critical Stop; OS Graceful Stop; OS Graceful Shutdown; Soft Shutdown initiated by PEF; ?Agent Not Responding",
	0x21: "!Fault Status; Identify Status; Device installed; Ready for Device Installation; Ready for Device Removal; Slot Power is Off; " +
		"Device Removal Request; ?Interlock; ?Slot is Disabled; Slot holds spare device",
	0x22: "S0; S1; S2; S3; S4; S5; S4/S5 soft-off; G3; Sleeping in an S1, S2, or S3; G1 sleeping; S5 entered by override; Legacy ON; Legacy OFF; ; Unknown",
	0x23: "!Timer expired, status only; !Hard Reset; !Power Down; !Power Cycle; ; ; ; ; ?Timer interrupt",
	0x24: "page; LAN alert; Event Trap; SNMP trap",
	0x25: "Entity Present; ?Entity Absent; ?Entity Disabled",
	0x27: "?LAN Heartbeat Lost; LAN Heartbeat",
	0x28: "?sensor access degraded; ?controller access degraded; !management controller off-line; !management controller unavailable; ?Sensor failure; ?FRU failure",
	0x29: "?battery low; !battery failed; battery presence detected",
	0x2a: "Session Activated; Session Deactivated; ?Invalid Username or Password; ?account disabled due to Invalid Passwords",
	0x2b: "Hardware change detected; Firmware change detected; !Hardware incompatibility; !Firmware incompatibility; !invalid hardware version; " +
		"!invalid firmware version; Hardware Change successful; Firmware Change successful",
	0x2c: "?FRU Not Installed; ?FRU Inactive; FRU Activation Requested; Activation In Progress; FRU Active; Deactivation Requested; Deactivation In Progress; !Communication Lost",
}

// The offsets of generic events (table 42-2), likewise.
var genericEvents = map[Type]string{
	0x01: "?Lower Non-critical - going low; ?Lower Non-critical - going high; !Lower Critical - going low; !Lower Critical - going high; " +
		"!Lower Non-recoverable - going low; !Lower Non-recoverable - going high; ?Upper Non-critical - going low; ?Upper Non-critical - going high; " +
		"!Upper Critical - going low; !Upper Critical - going high; !Upper Non-recoverable - going low; !Upper Non-recoverable - going high",
	0x02: "Idle; Active; Busy",
	0x03: "State Deasserted; State Asserted",
	0x04: "Predictive Failure deasserted; ?Predictive Failure asserted",
	0x05: "Limit Not Exceeded; ?Limit Exceeded",
	0x06: "Performance Met; ?Performance Lags",
	0x07: "OK; ?Non-Critical from OK; !Critical from less severe; !Non-recoverable from less severe; ?Non-Critical from more severe; " +
		"!Critical from Non-recoverable; !Non-recoverable; Monitor; Informational",
	0x08: "Device Absent; Device Present",
	0x09: "Device Disabled; Device Enabled",
	0x0b: "Fully Redundant; ?Redundancy Lost; ?Redundancy Degraded; ?Non-redundant: Sufficient Resources from Redundant; " +
		"?Non-redundant: Sufficient Resources from Insufficient; !Non-redundant: Insufficient Resources; ?Degraded from Fully Redundant; ?Degraded from Non-redundant",
	0x0c: "D0; D1; D2; D3",
}

// TestSeverityOfEveryEvent goes through all events that a record can have.
func TestSeverityOfEveryEvent(t *testing.T) {
	marked := func(names string, offset int) (event.Severity, string) {
		all := strings.Split(names, ";")
		if names == "" || offset >= len(all) {
			return event.OK, "reserved"
		}
		switch name := strings.TrimSpace(all[offset]); {
		case strings.HasPrefix(name, "!"):
			return event.Critical, name[1:]
		case strings.HasPrefix(name, "?"):
			return event.Warning, name[1:]
		default:
			return event.OK, name
		}
	}
	found := 0
	for sensor := range 0x100 {
		for kind := range 0x80 {
			names := genericEvents[Type(kind)]
			if Type(kind) == Specific {
				names = specificEvents[Sensor(sensor)]
			}
			for offset := range 0x10 {
				want, name := marked(names, offset)
				if want != event.OK {
					found++
				}
				// The upper half of event data byte 1 has the types of bytes 2 and 3.
				for _, data := range []byte{byte(offset), 0xa0 | byte(offset)} {
					e := Event{Sensor: Sensor(sensor), Type: Type(kind), Data: [3]byte{data, 0xff, 0xff}}
					if got := e.Severity(); got != want {
						t.Errorf("sensor type %02Xh, event type %02Xh, offset %Xh (%s) is %s, want %s", sensor, kind, offset, name, got, want)
					}
					if e.Gone = true; e.Severity() != event.OK {
						t.Errorf("sensor type %02Xh, event type %02Xh, offset %Xh (%s) is %s after it is gone", sensor, kind, offset, name, e.Severity())
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d events are no good news: the tables of the test are not read", found)
	}
}

package resource

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// sensorTypes maps IPMI sensor types to LogEntry.SensorType (DSP2046). All others are OEM.
var sensorTypes = map[sel.Sensor]string{
	sel.Temperature: "Temperature", sel.Voltage: "Voltage", sel.Current: "Current", sel.Fan: "Fan",
	sel.Intrusion: "Physical Chassis Security", sel.Violation: "Platform Security Violation Attempt",
	sel.Processor: "Processor", sel.Supply: "Power Supply / Converter", sel.PowerUnit: "PowerUnit", sel.Cooling: "CoolingDevice",
	sel.Units: "Other Units-based Sensor", sel.Memory: "Memory", sel.Drive: "Drive Slot/Bay", sel.MemorySize: "POST Memory Resize",
	sel.Firmware: "System Firmware Progress", sel.Logging: "Event Logging Disabled", sel.System: "System Event",
	sel.Interrupt: "Critical Interrupt", sel.Button: "Button/Switch", sel.Board: "Module/Board",
	sel.Controller: "Microcontroller/Coprocessor", sel.Card: "Add-in Card", sel.Chassis: "Chassis", sel.ChipSet: "ChipSet",
	sel.OtherFRU: "Other FRU", sel.Cable: "Cable/Interconnect", sel.Terminator: "Terminator", sel.Restart: "SystemBoot/Restart",
	sel.BootError: "Boot Error", sel.OSBoot: "BaseOSBoot/InstallationStatus", sel.OSStop: "OS Stop/Shutdown",
	sel.Slot: "Slot/Connector", sel.ACPI: "System ACPI PowerState", sel.Watchdog: "Watchdog", sel.Alert: "Platform Alert",
	sel.Presence: "Entity Presence", sel.MonitorIC: "Monitor ASIC/IC", sel.LAN: "LAN", sel.Management: "Management Subsystem Health",
	sel.Battery: "Battery", sel.Sessions: "Session Audit", sel.Version: "Version Change", sel.FRUState: "FRUState",
}

// entryCodes maps an IPMI event type to LogEntry.EntryCode (DSP2046), by the offset of the
// event. An event of a sensor-specific type is "Assert" or "Deassert".
var entryCodes = map[sel.Type][]string{
	sel.Threshold: {
		"Lower Non-critical - going low", "Lower Non-critical - going high", "Lower Critical - going low", "Lower Critical - going high",
		"Lower Non-recoverable - going low", "Lower Non-recoverable - going high",
		"Upper Non-critical - going low", "Upper Non-critical - going high", "Upper Critical - going low", "Upper Critical - going high",
		"Upper Non-recoverable - going low", "Upper Non-recoverable - going high",
	},
	sel.Usage:      {"Transition to Idle", "Transition to Active", "Transition to Busy"},
	sel.Asserting:  {"State Deasserted", "State Asserted"},
	sel.Predictive: {"Predictive Failure deasserted", "Predictive Failure asserted"},
	sel.Limit:      {"Limit Not Exceeded", "Limit Exceeded"},
	sel.Performing: {"Performance Met", "Performance Lags"},
	sel.Severity: {
		"Transition to OK", "Transition to Non-Critical from OK", "Transition to Critical from less severe",
		"Transition to Non-recoverable from less severe", "Transition to Non-Critical from more severe",
		"Transition to Critical from Non-recoverable", "Transition to Non-recoverable", "Monitor", "Informational",
	},
	sel.Present: {"Device Removed / Device Absent", "Device Inserted / Device Present"},
	sel.Enabled: {"Device Disabled", "Device Enabled"},
	sel.Available: {
		"Transition to Running", "Transition to In Test", "Transition to Power Off", "Transition to On Line", "Transition to Off Line",
		"Transition to Off Duty", "Transition to Degraded", "Transition to Power Save", "Install Error",
	},
	sel.Redundancy: {
		"Fully Redundant", "Redundancy Lost", "Redundancy Degraded", "Non-redundant:Sufficient Resources from Redundant",
		"Non-redundant:Sufficient Resources from Insufficient Resources", "Non-redundant:Insufficient Resources",
		"Redundancy Degraded from Fully Redundant", "Redundancy Degraded from Non-redundant",
	},
	sel.ACPIDevice: {"D0 Power State", "D1 Power State", "D2 Power State", "D3 Power State"},
}

// AddSELEvent adds the properties of a LogEntry that an event of the IPMI system event log
// decides.
func AddSELEvent(o Object, e sel.Event) {
	o["SensorType"] = sensorTypes[e.Sensor]
	if o["SensorType"] == "" {
		o["SensorType"], o["OemSensorType"] = "OEM", fmt.Sprintf("%02Xh", byte(e.Sensor))
	}
	switch codes := entryCodes[e.Type]; {
	case e.Gone:
		o["EntryCode"] = "Deassert"
	case e.Type == sel.Specific:
		o["EntryCode"] = "Assert"
	case int(e.Offset()) < len(codes):
		o["EntryCode"] = codes[e.Offset()]
	default:
		o["EntryCode"], o["OemLogEntryCode"] = "OEM", fmt.Sprintf("%02Xh/%Xh", byte(e.Type), e.Offset())
	}
}

// addSELRecord adds the properties of a LogEntry that a client wrote as an IPMI SEL record.
// The message shows the bytes of the record.
func addSELRecord(o Object, e *bmc.Entry) {
	o["Message"], o["Resolution"] = fmt.Sprintf("% X", e.Record), "None."
	is, ok := sel.Parse(e.Record)
	if !ok {
		o["EntryType"], o["OemRecordFormat"] = "Oem", fmt.Sprintf("IPMI SEL record of type %02Xh", e.Record[2])
		return
	}
	o["EntryType"], o["MessageId"] = "SEL", fmt.Sprintf("0x%02X%02X%02X", is.Data[0], is.Data[1], is.Data[2])
	o["SensorNumber"], o["GeneratorId"] = is.Number, fmt.Sprintf("0x%04X", is.Generator)
	AddSELEvent(o, is)
}

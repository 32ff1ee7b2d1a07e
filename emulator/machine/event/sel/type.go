package sel

// Sensor is a type of sensor (IPMI v2.0 rev 1.1, table 42-3). Values are those
// of the wire.
type Sensor byte

// The types.
const (
	Temperature Sensor = 0x01
	Voltage     Sensor = 0x02
	Current     Sensor = 0x03
	Fan         Sensor = 0x04
	Intrusion   Sensor = 0x05
	Violation   Sensor = 0x06 // platform security violation attempt
	Processor   Sensor = 0x07
	Supply      Sensor = 0x08
	PowerUnit   Sensor = 0x09
	Cooling     Sensor = 0x0a
	Units       Sensor = 0x0b // whatever else is measured
	Memory      Sensor = 0x0c
	Drive       Sensor = 0x0d // its slot
	MemorySize  Sensor = 0x0e
	Firmware    Sensor = 0x0f // how far it has come
	Logging     Sensor = 0x10 // that it is off
	System      Sensor = 0x12
	Interrupt   Sensor = 0x13
	Button      Sensor = 0x14
	Board       Sensor = 0x15
	Controller  Sensor = 0x16
	Card        Sensor = 0x17
	Chassis     Sensor = 0x18
	ChipSet     Sensor = 0x19
	OtherFRU    Sensor = 0x1a
	Cable       Sensor = 0x1b
	Terminator  Sensor = 0x1c
	Restart     Sensor = 0x1d
	BootError   Sensor = 0x1e
	OSBoot      Sensor = 0x1f
	OSStop      Sensor = 0x20
	Slot        Sensor = 0x21
	ACPI        Sensor = 0x22 // power state
	Watchdog    Sensor = 0x23
	Alert       Sensor = 0x24
	Presence    Sensor = 0x25
	MonitorIC   Sensor = 0x26
	LAN         Sensor = 0x27
	Management  Sensor = 0x28 // its health
	Battery     Sensor = 0x29
	Sessions    Sensor = 0x2a // audit
	Version     Sensor = 0x2b // change
	FRUState    Sensor = 0x2c
)

// Type is what kind of event a sensor tells (table 42-1). Values are those of
// the wire.
type Type byte

// The types.
const (
	Threshold  Type = 0x01
	Usage      Type = 0x02
	Asserting  Type = 0x03
	Predictive Type = 0x04
	Limit      Type = 0x05
	Performing Type = 0x06
	Severity   Type = 0x07
	Present    Type = 0x08
	Enabled    Type = 0x09
	Available  Type = 0x0a
	Redundancy Type = 0x0b
	ACPIDevice Type = 0x0c
	Specific   Type = 0x6f // to the type of the sensor
)

// Offsets of the threshold events that sensors here tell (table 42-2).
const (
	LowCautionGoingLow  = 0x00
	LowCriticalGoingLow = 0x02
	CautionGoingHigh    = 0x07
	CriticalGoingHigh   = 0x09
	FatalGoingHigh      = 0x0b
)

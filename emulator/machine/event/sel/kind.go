package sel

import "github.com/metalab-dev/metalab/emulator/machine/event"

// shape says how a kind of event is recorded.
type shape struct {
	sensor Sensor // 0: the sensor type follows from the note's unit
	kind   Type
	offset byte
	gone   bool
	// more, when not nil, fills in the event data.
	more func(e *Event, n event.Note)
}

// Of returns the SEL event of a note. The caller sets the sensor number and
// readings.
func Of(n event.Note) Event {
	s, ok := shapes[n.Kind]
	if !ok {
		s = shape{sensor: System, kind: Specific, offset: undetermined} // a kind of a newer release
	}
	e := Event{
		Generator: BMC, Sensor: s.sensor, Type: s.kind, Gone: s.gone, Data: [3]byte{s.offset, Unspecified, Unspecified},
	}
	if s.sensor == 0 {
		e.Sensor = units[arg(n, 3)]
	}
	if e.Sensor == 0 {
		e.Sensor = Units
	}
	if s.more != nil {
		s.more(&e, n)
	}
	return e
}

// arg returns an argument of a note, counted from 1; "" when it has none.
func arg(n event.Note, at int) string {
	if at > len(n.Args) {
		return ""
	}
	return n.Args[at-1]
}

// units maps units of readings to sensor types.
var units = map[string]Sensor{"Cel": Temperature, "V": Voltage, "RPM": Fan, "A": Current}

// Sensor-specific offsets (table 42-3).
const (
	undetermined = 0x02 // offsets of System
	reconfigured = 0x00

	present      = 0x00 // offsets of Drive and Supply
	faulty       = 0x01
	predicted    = 0x02
	inputLost    = 0x03 // offset of Supply
	checked      = 0x04 // offsets of Drive
	inCritical   = 0x05
	inFailed     = 0x06
	rebuilding   = 0x07
	wrongVersion = 0x05 // offsets of Version
	newVersion   = 0x07
)

// extended2 says that event data byte 2 has an extension code (table 29-6).
const extended2 = 0xc0

// levels maps the levels that a reading has left, as package thermal spells
// them, to threshold offsets.
var levels = map[string]byte{
	"low critical": LowCriticalGoingLow, "low caution": LowCautionGoingLow,
	"caution": CautionGoingHigh, "critical": CriticalGoingHigh, "fatal": FatalGoingHigh,
}

// left sets the offset of the threshold in argument 4 as deasserted.
func left(e *Event, n event.Note) {
	if offset, ok := levels[arg(n, 4)]; ok {
		e.Data[0] = offset
	}
}

// timeouts maps watchdog actions, as package machine spells them, to offsets.
var timeouts = map[string]byte{"None": 0x00, "ResetSystem": 0x01, "PowerDown": 0x02, "PowerCycle": 0x03}

// warnings and uses map a watchdog's pre-timeout interrupts and uses, as
// package machine spells them.
var (
	warnings = map[string]byte{"None": 0x00, "SMI": 0x10, "DiagnosticInterrupt": 0x20, "MessagingInterrupt": 0x30}
	uses     = map[string]byte{"BIOS FRB2": 0x01, "BIOS/POST": 0x02, "OS load": 0x03, "SMS/OS": 0x04, "OEM": 0x05}
)

// warned sets the event data of a pre-timeout interrupt.
func warned(e *Event, n event.Note) { e.timer(arg(n, 1), arg(n, 2)) }

// expired sets the event data of a watchdog expiry.
func expired(e *Event, n event.Note) {
	e.Data[0] = timeouts[arg(n, 1)]
	e.timer(arg(n, 3), arg(n, 2))
}

// timer sets the event data of a Watchdog 2 sensor (table 42-3).
func (e *Event) timer(warning, use string) {
	const unknown = 0x0f
	by, ok := warnings[warning]
	if !ok {
		by = unknown << 4
	}
	of, ok := uses[use]
	if !ok {
		of = unknown
	}
	e.Data[0] |= extended2
	e.Data[1] = by | of
}

// firmware sets which firmware has changed: the system's, the BMC's or another.
func firmware(e *Event, n event.Note) {
	changes := map[string]byte{"BIOS": 0x09, "BMC": 0x02}
	if what, ok := changes[arg(n, 1)]; ok {
		e.Data[0] |= extended2
		e.Data[1] = what
	}
}

// shapes has a row for every kind of event in the event log.
var shapes = map[event.Kind]shape{
	event.ACRestored:    {sensor: PowerUnit, kind: Specific, offset: 0x04, gone: true},
	event.NMISent:       {sensor: Interrupt, kind: Specific},
	event.ResetIgnored:  {sensor: OSStop, kind: Specific, offset: 0x05},
	event.SystemCrashed: {sensor: OSStop, kind: Specific, offset: 0x01},
	event.BootFailed:    {sensor: BootError, kind: Specific},

	event.LinkUp:   {sensor: LAN, kind: Specific, offset: 0x01},
	event.LinkDown: {sensor: LAN, kind: Specific},

	event.WatchdogWarned:  {sensor: Watchdog, kind: Specific, offset: 0x08, more: warned},
	event.WatchdogExpired: {sensor: Watchdog, kind: Specific, more: expired},
	event.KeysChanged:     {sensor: System, kind: Specific, offset: reconfigured},

	event.CoverOpened: {sensor: Intrusion, kind: Specific},
	event.CoverClosed: {sensor: Intrusion, kind: Specific, gone: true},

	event.SensorHigh:    {kind: Threshold, offset: CautionGoingHigh},
	event.SensorTooHigh: {kind: Threshold, offset: CriticalGoingHigh},
	event.SensorFatal:   {kind: Threshold, offset: FatalGoingHigh},
	event.SensorLow:     {kind: Threshold, offset: LowCautionGoingLow},
	event.SensorTooLow:  {kind: Threshold, offset: LowCriticalGoingLow},
	event.SensorBetter:  {kind: Threshold, offset: CriticalGoingHigh, gone: true, more: left},
	event.SensorNormal:  {kind: Threshold, offset: CautionGoingHigh, gone: true, more: left},

	event.FanFailed:        {sensor: Fan, kind: Threshold, offset: LowCriticalGoingLow},
	event.FanRestored:      {sensor: Fan, kind: Threshold, offset: LowCriticalGoingLow, gone: true},
	event.FansRedundant:    {sensor: Cooling, kind: Redundancy, offset: 0x00},
	event.FansNotRedundant: {sensor: Cooling, kind: Redundancy, offset: 0x01},
	event.FansInsufficient: {sensor: Cooling, kind: Redundancy, offset: 0x05},

	event.SupplyFailed:         {sensor: Supply, kind: Specific, offset: faulty},
	event.SupplyRestored:       {sensor: Supply, kind: Specific, offset: faulty, gone: true},
	event.SupplyInputLost:      {sensor: Supply, kind: Specific, offset: inputLost},
	event.SupplyInputBack:      {sensor: Supply, kind: Specific, offset: inputLost, gone: true},
	event.SupplyRemoved:        {sensor: Supply, kind: Specific, offset: present, gone: true},
	event.SupplyInserted:       {sensor: Supply, kind: Specific, offset: present},
	event.SuppliesRedundant:    {sensor: PowerUnit, kind: Redundancy, offset: 0x00},
	event.SuppliesNotRedundant: {sensor: PowerUnit, kind: Redundancy, offset: 0x01},
	event.SuppliesInsufficient: {sensor: PowerUnit, kind: Redundancy, offset: 0x05},
	event.Overheated:           {sensor: Processor, kind: Specific, offset: 0x01},

	event.PowerOn:  {sensor: ACPI, kind: Specific, offset: 0x00},
	event.PowerOff: {sensor: ACPI, kind: Specific, offset: 0x06},

	event.BMCReset:      {sensor: Management, kind: Specific, offset: 0x02, gone: true},
	event.LogCleared:    {sensor: Logging, kind: Specific, offset: 0x02},
	event.DumpCollected: {sensor: System, kind: Specific, offset: 0x03},

	// A pending change is asserted until it is applied or discarded.
	event.SettingsPending: {sensor: System, kind: Asserting, offset: 0x01},
	event.SettingsCleared: {sensor: System, kind: Asserting, offset: 0x00},
	event.SettingsApplied: {sensor: System, kind: Specific, offset: reconfigured},
	event.SettingsExpired: {sensor: System, kind: Asserting, offset: 0x00},
	event.DefaultsPending: {sensor: System, kind: Asserting, offset: 0x01},
	event.DefaultsApplied: {sensor: System, kind: Specific, offset: reconfigured},
	event.PasswordChanged: {sensor: System, kind: Specific, offset: reconfigured},

	event.ComponentUpdated: {sensor: Version, kind: Specific, offset: newVersion, more: firmware},
	event.ComponentBroken:  {sensor: Version, kind: Specific, offset: wrongVersion, more: firmware},
	event.ComponentSaved:   {sensor: Version, kind: Severity, offset: 0x01},
	event.UpdateFailed:     {sensor: Version, kind: Specific, offset: newVersion, gone: true},

	event.DriveInserted:     {sensor: Drive, kind: Specific, offset: present},
	event.DriveRemoved:      {sensor: Drive, kind: Specific, offset: present, gone: true},
	event.DriveFailed:       {sensor: Drive, kind: Specific, offset: faulty},
	event.DriveRevived:      {sensor: Drive, kind: Specific, offset: faulty, gone: true},
	event.DrivePredicted:    {sensor: Drive, kind: Specific, offset: predicted},
	event.DriveUnpredicted:  {sensor: Drive, kind: Specific, offset: predicted, gone: true},
	event.DriveForeign:      {sensor: Drive, kind: Severity, offset: 0x01},
	event.DriveErased:       {sensor: Drive, kind: Severity, offset: 0x08},
	event.RebuildStarted:    {sensor: Drive, kind: Specific, offset: rebuilding},
	event.RebuildFinished:   {sensor: Drive, kind: Specific, offset: rebuilding, gone: true},
	event.VolumeCreated:     {sensor: System, kind: Specific, offset: reconfigured},
	event.VolumeDeleted:     {sensor: System, kind: Specific, offset: reconfigured},
	event.VolumeImported:    {sensor: System, kind: Specific, offset: reconfigured},
	event.VolumeOptimal:     {sensor: Drive, kind: Specific, offset: inCritical, gone: true},
	event.VolumeDegraded:    {sensor: Drive, kind: Specific, offset: inCritical},
	event.VolumeRebuilding:  {sensor: Drive, kind: Specific, offset: rebuilding},
	event.VolumeFailed:      {sensor: Drive, kind: Specific, offset: inFailed},
	event.VolumeInitialized: {sensor: System, kind: Specific, offset: reconfigured},
	event.VolumeChecked:     {sensor: Drive, kind: Specific, offset: checked, gone: true},
	event.VolumeRepaired:    {sensor: Drive, kind: Severity, offset: 0x01},
	event.VolumeExpanded:    {sensor: System, kind: Specific, offset: reconfigured},
	event.ControllerReset:   {sensor: System, kind: Specific, offset: reconfigured},
}

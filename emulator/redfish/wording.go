package redfish

import (
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// wording is how a kind of event is told.
type wording struct {
	is message.Entry
	// args are those of the message: %1 is the first of the note, %0 the part
	// that it is about, anything else itself. Nil: those of the note.
	args []string
	// What the record of a system event log says beside that (DSP2046,
	// LogEntry.SensorType and EntryCode, after IPMI v2.0 §42.1 and §42.2). A
	// sensor of %3 is of the type of that unit.
	sensor, code string
	// user and from are who brought it about, and from which address, as args
	// are; "" where that is nobody's doing.
	user, from string
}

// wordings has a row for every kind of event.
var wordings = map[event.Kind]wording{
	event.MainsBack:     {is: message.LineInputPowerRestored, args: []string{"%0"}, sensor: "PowerUnit", code: "Deassert"},
	event.Interrupted:   {is: message.PlatformError, args: []string{}, sensor: "Critical Interrupt", code: "Assert"},
	event.ResetUnheard:  {is: message.OperationFailed, args: []string{}, sensor: "Button/Switch"},
	event.SystemCrashed: {is: message.OperatingSystemCrash, args: []string{}, sensor: "OS Stop/Shutdown", code: "Assert"},
	event.BootFailed:    {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}, sensor: "Boot Error", code: "Assert"},

	event.LinkUp:   {is: message.CableInserted, args: []string{"%2", "%1"}, sensor: "LAN", code: "Assert"},
	event.LinkDown: {is: message.CableRemoved, args: []string{"%2", "%1"}, sensor: "LAN", code: "Deassert"},

	event.WatchdogWarned:  {is: message.PlatformError, args: []string{}, sensor: "Watchdog", code: "Assert"},
	event.WatchdogExpired: {is: message.DeviceWatchdogTimeout, args: []string{"%0"}, sensor: "Watchdog", code: "Assert"},
	event.KeysChanged:     {is: message.ResourceChanged, args: []string{}, sensor: "System Event"},

	event.LidOpened: {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}, sensor: "Physical Chassis Security", code: "Assert"},
	event.LidClosed: {is: message.ResourceStatusChangedOK, args: []string{"%0", "OK"}, sensor: "Physical Chassis Security", code: "Deassert"},

	event.SensorHigh:    {is: message.ReadingAboveUpperCautionThreshold, sensor: "%3", code: "Upper Non-critical - going high"},
	event.SensorTooHigh: {is: message.ReadingAboveUpperCriticalThreshold, sensor: "%3", code: "Upper Critical - going high"},
	event.SensorFatal:   {is: message.ReadingAboveUpperFatalThreshold, sensor: "%3", code: "Upper Non-recoverable - going high"},
	event.SensorLow:     {is: message.ReadingBelowLowerCautionThreshold, sensor: "%3", code: "Lower Non-critical - going low"},
	event.SensorTooLow:  {is: message.ReadingBelowLowerCriticalThreshold, sensor: "%3", code: "Lower Critical - going low"},
	event.SensorBetter:  {is: message.ReadingNoLongerCritical, sensor: "%3", code: "Deassert"},
	event.SensorNormal:  {is: message.SensorReadingNormalRange, sensor: "%3", code: "Deassert"},

	event.FanFailed:        {is: message.FanFailed, sensor: "Fan", code: "Transition to Critical from less severe"},
	event.FanRestored:      {is: message.FanRestored, sensor: "Fan", code: "Transition to OK"},
	event.FansRedundant:    {is: message.FanGroupNormal, args: []string{"%0"}, sensor: "CoolingDevice", code: "Fully Redundant"},
	event.FansNotRedundant: {is: message.FanGroupWarning, args: []string{"%0"}, sensor: "CoolingDevice", code: "Redundancy Lost"},
	event.FansInsufficient: {is: message.FanGroupCritical, args: []string{"%0"}, sensor: "CoolingDevice", code: "Non-redundant:Insufficient Resources"},

	event.SupplyFailed:         {is: message.PowerSupplyFailed, sensor: "Power Supply / Converter", code: "Assert"},
	event.SupplyRestored:       {is: message.PowerSupplyRestored, sensor: "Power Supply / Converter", code: "Deassert"},
	event.SupplyInputLost:      {is: message.LossOfInputPower, sensor: "Power Supply / Converter", code: "Assert"},
	event.SupplyInputBack:      {is: message.LineInputPowerRestored, sensor: "Power Supply / Converter", code: "Deassert"},
	event.SupplyRemoved:        {is: message.PowerSupplyRemoved, sensor: "Power Supply / Converter", code: "Device Removed / Device Absent"},
	event.SupplyInserted:       {is: message.PowerSupplyInserted, sensor: "Power Supply / Converter", code: "Device Inserted / Device Present"},
	event.SuppliesRedundant:    {is: message.PowerSupplyGroupNormal, args: []string{"%0"}, sensor: "PowerUnit", code: "Fully Redundant"},
	event.SuppliesNotRedundant: {is: message.PowerSupplyGroupWarning, args: []string{"%0"}, sensor: "PowerUnit", code: "Redundancy Lost"},
	event.SuppliesInsufficient: {is: message.PowerSupplyGroupCritical, args: []string{"%0"}, sensor: "PowerUnit", code: "Non-redundant:Insufficient Resources"},
	event.Overheated:           {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}, sensor: "Temperature", code: "Transition to Non-recoverable"},

	event.PowerOn:  {is: message.ResourcePoweredOn, args: []string{"%0"}, sensor: "System ACPI PowerState", code: "Assert"},
	event.PowerOff: {is: message.ResourcePoweredOff, args: []string{"%0"}, sensor: "System ACPI PowerState", code: "Assert"},

	event.BMCReset:      {is: message.ManagerReset, args: []string{"%0", "%1"}, sensor: "Management Subsystem Health"},
	event.LogCleared:    {is: message.LogCleared, args: []string{"%0"}, sensor: "Event Logging Disabled"},
	event.DumpCollected: {is: message.DiagnosticDataCollected, sensor: "Management Subsystem Health"},

	event.SettingsPending: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsCleared: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsApplied: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsExpired: {is: message.ResourceChanged, sensor: "System Event"},
	event.DefaultsPending: {is: message.ResourceChanged, sensor: "System Event"},
	event.DefaultsApplied: {is: message.ResourceChanged, sensor: "System Event"},
	event.PasswordChanged: {is: message.PasswordModified, sensor: "System Event"},

	event.ComponentUpdated: {is: message.ResourceChanged, sensor: "Version Change"},
	event.ComponentBroken:  {is: message.ResourceStatusChangedCritical, args: []string{"%1", "Critical"}, sensor: "Version Change"},
	event.ComponentSaved:   {is: message.ResourceStatusChangedWarning, args: []string{"%1", "Warning"}, sensor: "Version Change"},
	event.UpdateFailed:     {is: message.OperationFailed, sensor: "Version Change"},

	event.Asked:            {is: message.ResourceChanged},
	event.LoggedIn:         {is: message.SuccessfulLogin, args: []string{"%1", "%2", "Redfish"}},
	event.LoginFailed:      {is: message.InvalidCredentials},
	event.AccountCreated:   {is: message.AccountCreated},
	event.AccountRemoved:   {is: message.AccountSecurityAccountRemoved},
	event.AccountEnabled:   {is: message.AccountEnabled},
	event.AccountDisabled:  {is: message.AccountDisabled},
	event.AccountLocked:    {is: message.AccountLocked},
	event.AccountUnlocked:  {is: message.AccountUnlocked},
	event.LockExpired:      {is: message.AccountLockoutExpired},
	event.AccountPassword:  {is: message.PasswordModified},
	event.RoleChanged:      {is: message.ManagerAccountRoleChanged},
	event.PrivilegeAdded:   {is: message.RolePrivilegeAdded},
	event.PrivilegeRemoved: {is: message.RolePrivilegeRemoved},

	event.UpdateTransferring:     {is: message.TransferringToComponent},
	event.UpdateVerifying:        {is: message.VerifyingAtComponent},
	event.UpdateInstalling:       {is: message.InstallingOnComponent},
	event.UpdateActivating:       {is: message.ApplyingOnComponent},
	event.UpdateAwaitsTime:       {is: message.AwaitToUpdate},
	event.UpdateAwaitsReset:      {is: message.AwaitToUpdate},
	event.UpdateAwaitsStart:      {is: message.AwaitToActivate},
	event.UpdateAwaitsActivation: {is: message.AwaitToActivate},
	event.UpdateDone:             {is: message.UpdateSuccessful, args: []string{"%2", "%1"}},
	event.UpdateSkipped:          {is: message.UpdateSkipped, args: []string{"%2", "%1"}},
	event.UpdateSame:             {is: message.UpdateSkippedSameVersion, args: []string{"%2", "%1"}},
	event.UpdateTooLow:           {is: message.UpdateSkippedVersionTooLow, args: []string{"%2", "%1"}},
	event.UpdateNotApplicable:    {is: message.UpdateNotApplicable},
	event.UpdateNotTransferred:   {is: message.TransferFailed},
	event.UpdateNotVerified:      {is: message.VerificationFailed},
	event.UpdateNotInstalled:     {is: message.ApplyFailed},
	event.UpdateNotActivated:     {is: message.ActivateFailed},

	event.DriveInserted:     {is: message.DriveInserted, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Device Inserted / Device Present"},
	event.DriveRemoved:      {is: message.DriveRemoved, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Device Removed / Device Absent"},
	event.DriveFailed:       {is: message.DriveFailure, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Assert"},
	event.DriveRevived:      {is: message.DriveFailureCleared, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Deassert"},
	event.DrivePredicted:    {is: message.DrivePredictiveFailure, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Predictive Failure asserted"},
	event.DriveUnpredicted:  {is: message.DrivePredictiveFailureCleared, args: []string{"%0"}, sensor: "Drive Slot/Bay", code: "Predictive Failure deasserted"},
	event.DriveForeign:      {is: message.ResourceStatusChangedWarning, args: []string{"%0", "Warning"}, sensor: "Drive Slot/Bay"},
	event.DriveErased:       {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay"},
	event.RebuildStarted:    {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay", code: "Assert"},
	event.RebuildFinished:   {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay", code: "Deassert"},
	event.VolumeCreated:     {is: message.ResourceCreated, args: []string{}, sensor: "Drive Slot/Bay"},
	event.VolumeDeleted:     {is: message.ResourceRemoved, args: []string{}, sensor: "Drive Slot/Bay"},
	event.VolumeImported:    {is: message.ResourceCreated, args: []string{}, sensor: "Drive Slot/Bay"},
	event.VolumeOptimal:     {is: message.VolumeOK, sensor: "Drive Slot/Bay", code: "Fully Redundant"},
	event.VolumeDegraded:    {is: message.VolumeDegraded, sensor: "Drive Slot/Bay", code: "Redundancy Degraded"},
	event.VolumeRebuilding:  {is: message.VolumeRebuilding, sensor: "Drive Slot/Bay"},
	event.VolumeFailed:      {is: message.VolumeFailure, sensor: "Drive Slot/Bay", code: "Redundancy Lost"},
	event.VolumeInitialized: {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay"},
	event.VolumeChecked:     {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay"},
	event.VolumeMended:      {is: message.ResourceStatusChangedWarning, args: []string{"%0", "Warning"}, sensor: "Drive Slot/Bay"},
	event.VolumeExpanded:    {is: message.ResourceChanged, args: []string{}, sensor: "Drive Slot/Bay"},
	event.ControllerReset:   {is: message.ResourceChanged, args: []string{}, sensor: "Add-in Card"},
}

// unitTypes are the sensor types of readings in some unit.
var unitTypes = map[string]string{
	"Cel": "Temperature", "V": "Voltage", "RPM": "Fan", "W": "Other Units-based Sensor", "kW.h": "Other Units-based Sensor",
}

// sensorType is the sensor type of a note; "" when it has none.
func (w wording) sensorType(n event.Note) string {
	kind := filled(w.sensor, n)
	if t, ok := unitTypes[kind]; ok {
		return t
	}
	return kind
}

// word is the message that tells a note.
func (v view) word(n event.Note) message.Message {
	w, ok := wordings[n.Kind]
	if !ok { // of a release that knew more kinds
		return message.Fill(message.ResourceChanged)
	}
	if w.args == nil {
		return message.Fill(w.is, n.Args...)
	}
	return message.Fill(w.is, list(w.args, func(a string) string {
		if a == "%0" {
			return v.subject(n.Subject)
		}
		return filled(a, n)
	})...)
}

// filled is an argument of a note, if that is what a template names.
func filled(template string, n event.Note) string {
	digits, ok := strings.CutPrefix(template, "%")
	at, err := strconv.Atoi(digits)
	switch {
	case !ok || err != nil:
		return template
	case at < 1 || at > len(n.Args):
		return ""
	}
	return n.Args[at-1]
}

// spoken are the message registries as this vendor's service speaks them.
func (v view) spoken() message.Versions { return v.d.Protocol.Registries }

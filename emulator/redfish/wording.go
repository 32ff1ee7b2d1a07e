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
	// LogEntry.SensorType and EntryCode, after IPMI v2.0 §42.1 and §42.2).
	sensor, code string
}

// wordings has a row for every kind of event.
var wordings = map[event.Kind]wording{
	event.MainsBack:     {message.LineInputPowerRestored, []string{"%0"}, "PowerUnit", "Deassert"},
	event.Interrupted:   {message.PlatformError, []string{}, "Critical Interrupt", "Assert"},
	event.ResetUnheard:  {message.OperationFailed, []string{}, "Button/Switch", ""},
	event.SystemCrashed: {message.OperatingSystemCrash, []string{}, "OS Stop/Shutdown", "Assert"},
	event.BootFailed:    {message.ResourceStatusChangedCritical, []string{"%0", "Critical"}, "Boot Error", "Assert"},

	event.LinkUp:   {message.CableInserted, []string{"%2", "%1"}, "LAN", "Assert"},
	event.LinkDown: {message.CableRemoved, []string{"%2", "%1"}, "LAN", "Deassert"},

	event.PowerOn:  {message.ResourcePoweredOn, []string{"%0"}, "System ACPI PowerState", "Assert"},
	event.PowerOff: {message.ResourcePoweredOff, []string{"%0"}, "System ACPI PowerState", "Assert"},

	event.SettingsPending: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsCleared: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsApplied: {is: message.ResourceChanged, sensor: "System Event"},
	event.SettingsExpired: {is: message.ResourceChanged, sensor: "System Event"},
	event.DefaultsPending: {is: message.ResourceChanged, sensor: "System Event"},
	event.DefaultsApplied: {is: message.ResourceChanged, sensor: "System Event"},
	event.PasswordChanged: {is: message.PasswordModified, sensor: "System Event"},

	event.ComponentUpdated: {is: message.ResourceChanged, sensor: "Version Change"},
	event.ComponentBroken:  {message.ResourceStatusChangedCritical, []string{"%1", "Critical"}, "Version Change", ""},
	event.ComponentSaved:   {message.ResourceStatusChangedWarning, []string{"%1", "Warning"}, "Version Change", ""},
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

	event.DriveInserted:     {message.DriveInserted, []string{"%0"}, "Drive Slot/Bay", "Device Inserted / Device Present"},
	event.DriveRemoved:      {message.DriveRemoved, []string{"%0"}, "Drive Slot/Bay", "Device Removed / Device Absent"},
	event.DriveFailed:       {message.DriveFailure, []string{"%0"}, "Drive Slot/Bay", "Assert"},
	event.DriveRevived:      {message.DriveFailureCleared, []string{"%0"}, "Drive Slot/Bay", "Deassert"},
	event.DrivePredicted:    {message.DrivePredictiveFailure, []string{"%0"}, "Drive Slot/Bay", "Predictive Failure asserted"},
	event.DriveUnpredicted:  {message.DrivePredictiveFailureCleared, []string{"%0"}, "Drive Slot/Bay", "Predictive Failure deasserted"},
	event.DriveForeign:      {message.ResourceStatusChangedWarning, []string{"%0", "Warning"}, "Drive Slot/Bay", ""},
	event.DriveErased:       {message.ResourceChanged, []string{}, "Drive Slot/Bay", ""},
	event.RebuildStarted:    {message.ResourceChanged, []string{}, "Drive Slot/Bay", "Assert"},
	event.RebuildFinished:   {message.ResourceChanged, []string{}, "Drive Slot/Bay", "Deassert"},
	event.VolumeCreated:     {message.ResourceCreated, []string{}, "Drive Slot/Bay", ""},
	event.VolumeDeleted:     {message.ResourceRemoved, []string{}, "Drive Slot/Bay", ""},
	event.VolumeImported:    {message.ResourceCreated, []string{}, "Drive Slot/Bay", ""},
	event.VolumeOptimal:     {message.VolumeOK, nil, "Drive Slot/Bay", "Fully Redundant"},
	event.VolumeDegraded:    {message.VolumeDegraded, nil, "Drive Slot/Bay", "Redundancy Degraded"},
	event.VolumeRebuilding:  {message.VolumeRebuilding, nil, "Drive Slot/Bay", ""},
	event.VolumeFailed:      {message.VolumeFailure, nil, "Drive Slot/Bay", "Redundancy Lost"},
	event.VolumeInitialized: {message.ResourceChanged, []string{}, "Drive Slot/Bay", ""},
	event.VolumeChecked:     {message.ResourceChanged, []string{}, "Drive Slot/Bay", ""},
	event.VolumeMended:      {message.ResourceStatusChangedWarning, []string{"%0", "Warning"}, "Drive Slot/Bay", ""},
	event.VolumeExpanded:    {message.ResourceChanged, []string{}, "Drive Slot/Bay", ""},
	event.ControllerReset:   {message.ResourceChanged, []string{}, "Add-in Card", ""},
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
	args := make([]string, len(w.args))
	for i, a := range w.args {
		args[i] = a
		if at, err := strconv.Atoi(strings.TrimPrefix(a, "%")); a[0] == '%' && err == nil {
			switch {
			case at == 0:
				args[i] = v.subject(n.Subject)
			case at <= len(n.Args):
				args[i] = n.Args[at-1]
			default:
				args[i] = ""
			}
		}
	}
	return message.Fill(w.is, args...)
}

// spoken are the message registries as this vendor's service speaks them.
func (v view) spoken() message.Versions { return v.d.Protocol.Registries }

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
	// user and from are who brought it about, and from which address, as args
	// are; "" where that is nobody's doing.
	user, from string
}

// wordings has a row for every kind of event.
var wordings = map[event.Kind]wording{
	event.ACRestored:    {is: message.LineInputPowerRestored, args: []string{"%0"}},
	event.NMISent:       {is: message.PlatformError, args: []string{}},
	event.ResetIgnored:  {is: message.OperationFailed, args: []string{}},
	event.SystemCrashed: {is: message.OperatingSystemCrash, args: []string{}},
	event.BootFailed:    {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}},

	event.LinkUp:   {is: message.CableInserted, args: []string{"%2", "%1"}},
	event.LinkDown: {is: message.CableRemoved, args: []string{"%2", "%1"}},

	event.WatchdogWarned:  {is: message.PlatformError, args: []string{}},
	event.WatchdogExpired: {is: message.DeviceWatchdogTimeout, args: []string{"%0"}},
	event.KeysChanged:     {is: message.ResourceChanged, args: []string{}},

	event.CoverOpened: {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}},
	event.CoverClosed: {is: message.ResourceStatusChangedOK, args: []string{"%0", "OK"}},

	event.SensorHigh:    {is: message.ReadingAboveUpperCautionThreshold},
	event.SensorTooHigh: {is: message.ReadingAboveUpperCriticalThreshold},
	event.SensorFatal:   {is: message.ReadingAboveUpperFatalThreshold},
	event.SensorLow:     {is: message.ReadingBelowLowerCautionThreshold},
	event.SensorTooLow:  {is: message.ReadingBelowLowerCriticalThreshold},
	event.SensorBetter:  {is: message.ReadingNoLongerCritical, args: []string{"%1", "%2", "%3"}},
	event.SensorNormal:  {is: message.SensorReadingNormalRange, args: []string{"%1", "%2", "%3"}},

	event.FanFailed:        {is: message.FanFailed},
	event.FanRestored:      {is: message.FanRestored},
	event.FansRedundant:    {is: message.FanGroupNormal, args: []string{"%0"}},
	event.FansNotRedundant: {is: message.FanGroupWarning, args: []string{"%0"}},
	event.FansInsufficient: {is: message.FanGroupCritical, args: []string{"%0"}},

	event.SupplyFailed:         {is: message.PowerSupplyFailed},
	event.SupplyRestored:       {is: message.PowerSupplyRestored},
	event.SupplyInputLost:      {is: message.LossOfInputPower},
	event.SupplyInputBack:      {is: message.LineInputPowerRestored},
	event.SupplyRemoved:        {is: message.PowerSupplyRemoved},
	event.SupplyInserted:       {is: message.PowerSupplyInserted},
	event.SuppliesRedundant:    {is: message.PowerSupplyGroupNormal, args: []string{"%0"}},
	event.SuppliesNotRedundant: {is: message.PowerSupplyGroupWarning, args: []string{"%0"}},
	event.SuppliesInsufficient: {is: message.PowerSupplyGroupCritical, args: []string{"%0"}},
	event.Overheated:           {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}},

	event.PowerOn:  {is: message.ResourcePoweredOn, args: []string{"%0"}},
	event.PowerOff: {is: message.ResourcePoweredOff, args: []string{"%0"}},

	event.SELRecordAdded:         {is: message.ResourceStatusChangedOK, args: []string{"%0", "OK"}},
	event.SELRecordAddedWarning:  {is: message.ResourceStatusChangedWarning, args: []string{"%0", "Warning"}},
	event.SELRecordAddedCritical: {is: message.ResourceStatusChangedCritical, args: []string{"%0", "Critical"}},

	event.BMCReset:      {is: message.ManagerReset, args: []string{"%0", "%1"}},
	event.LogCleared:    {is: message.LogCleared, args: []string{"%0"}},
	event.DumpCollected: {is: message.DiagnosticDataCollected},

	event.SettingsPending: {is: message.ResourceChanged},
	event.SettingsCleared: {is: message.ResourceChanged},
	event.SettingsApplied: {is: message.ResourceChanged},
	event.SettingsExpired: {is: message.ResourceChanged},
	event.DefaultsPending: {is: message.ResourceChanged},
	event.DefaultsApplied: {is: message.ResourceChanged},
	event.PasswordChanged: {is: message.PasswordModified},

	event.ComponentUpdated: {is: message.ResourceChanged},
	event.ComponentBroken:  {is: message.ResourceStatusChangedCritical, args: []string{"%1", "Critical"}},
	event.ComponentSaved:   {is: message.ResourceStatusChangedWarning, args: []string{"%1", "Warning"}},
	event.UpdateFailed:     {is: message.OperationFailed},

	event.RequestAudited:   {is: message.ResourceChanged},
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

	event.DriveInserted:     {is: message.DriveInserted, args: []string{"%0"}},
	event.DriveRemoved:      {is: message.DriveRemoved, args: []string{"%0"}},
	event.DriveFailed:       {is: message.DriveFailure, args: []string{"%0"}},
	event.DriveRevived:      {is: message.DriveFailureCleared, args: []string{"%0"}},
	event.DrivePredicted:    {is: message.DrivePredictiveFailure, args: []string{"%0"}},
	event.DriveUnpredicted:  {is: message.DrivePredictiveFailureCleared, args: []string{"%0"}},
	event.DriveForeign:      {is: message.ResourceStatusChangedWarning, args: []string{"%0", "Warning"}},
	event.DriveErased:       {is: message.ResourceChanged, args: []string{}},
	event.RebuildStarted:    {is: message.ResourceChanged, args: []string{}},
	event.RebuildFinished:   {is: message.ResourceChanged, args: []string{}},
	event.VolumeCreated:     {is: message.ResourceCreated, args: []string{}},
	event.VolumeDeleted:     {is: message.ResourceRemoved, args: []string{}},
	event.VolumeImported:    {is: message.ResourceCreated, args: []string{}},
	event.VolumeOptimal:     {is: message.VolumeOK},
	event.VolumeDegraded:    {is: message.VolumeDegraded},
	event.VolumeRebuilding:  {is: message.VolumeRebuilding},
	event.VolumeFailed:      {is: message.VolumeFailure},
	event.VolumeInitialized: {is: message.ResourceChanged, args: []string{}},
	event.VolumeChecked:     {is: message.ResourceChanged, args: []string{}},
	event.VolumeRepaired:    {is: message.ResourceStatusChangedWarning, args: []string{"%0", "Warning"}},
	event.VolumeExpanded:    {is: message.ResourceChanged, args: []string{}},
	event.ControllerReset:   {is: message.ResourceChanged, args: []string{}},
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

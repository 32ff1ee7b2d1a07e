package resource

import (
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// eventMessage is the registry message that reports a kind of event.
type eventMessage struct {
	Message message.Entry
	// Args are the arguments of the message: %1 is the first argument of the note, %0 the part
	// that the note is about, anything else a literal. Nil: the arguments of the note.
	Args []string
	// User and From are the user who caused the event and the user's address, as templates
	// like Args; "" where no user caused it.
	User, From string
}

// EventMessages maps every kind of event to its message.
var EventMessages = map[event.Kind]eventMessage{
	event.ACRestored:    {Message: message.LineInputPowerRestored, Args: []string{"%0"}},
	event.NMISent:       {Message: message.PlatformError, Args: []string{}},
	event.ResetIgnored:  {Message: message.OperationFailed, Args: []string{}},
	event.SystemCrashed: {Message: message.OperatingSystemCrash, Args: []string{}},
	event.BootFailed:    {Message: message.ResourceStatusChangedCritical, Args: []string{"%0", "Critical"}},

	event.LinkUp:   {Message: message.CableInserted, Args: []string{"%2", "%1"}},
	event.LinkDown: {Message: message.CableRemoved, Args: []string{"%2", "%1"}},

	event.WatchdogWarned:  {Message: message.PlatformError, Args: []string{}},
	event.WatchdogExpired: {Message: message.DeviceWatchdogTimeout, Args: []string{"%0"}},
	event.KeysChanged:     {Message: message.ResourceChanged, Args: []string{}},

	event.CoverOpened: {Message: message.ResourceStatusChangedCritical, Args: []string{"%0", "Critical"}},
	event.CoverClosed: {Message: message.ResourceStatusChangedOK, Args: []string{"%0", "OK"}},

	event.SensorHigh:    {Message: message.ReadingAboveUpperCautionThreshold},
	event.SensorTooHigh: {Message: message.ReadingAboveUpperCriticalThreshold},
	event.SensorFatal:   {Message: message.ReadingAboveUpperFatalThreshold},
	event.SensorLow:     {Message: message.ReadingBelowLowerCautionThreshold},
	event.SensorTooLow:  {Message: message.ReadingBelowLowerCriticalThreshold},
	event.SensorBetter:  {Message: message.ReadingNoLongerCritical, Args: []string{"%1", "%2", "%3"}},
	event.SensorNormal:  {Message: message.SensorReadingNormalRange, Args: []string{"%1", "%2", "%3"}},

	event.FanFailed:        {Message: message.FanFailed},
	event.FanRestored:      {Message: message.FanRestored},
	event.FansRedundant:    {Message: message.FanGroupNormal, Args: []string{"%0"}},
	event.FansNotRedundant: {Message: message.FanGroupWarning, Args: []string{"%0"}},
	event.FansInsufficient: {Message: message.FanGroupCritical, Args: []string{"%0"}},

	event.SupplyFailed:         {Message: message.PowerSupplyFailed},
	event.SupplyRestored:       {Message: message.PowerSupplyRestored},
	event.SupplyInputLost:      {Message: message.LossOfInputPower},
	event.SupplyInputBack:      {Message: message.LineInputPowerRestored},
	event.SupplyRemoved:        {Message: message.PowerSupplyRemoved},
	event.SupplyInserted:       {Message: message.PowerSupplyInserted},
	event.SuppliesRedundant:    {Message: message.PowerSupplyGroupNormal, Args: []string{"%0"}},
	event.SuppliesNotRedundant: {Message: message.PowerSupplyGroupWarning, Args: []string{"%0"}},
	event.SuppliesInsufficient: {Message: message.PowerSupplyGroupCritical, Args: []string{"%0"}},
	event.Overheated:           {Message: message.ResourceStatusChangedCritical, Args: []string{"%0", "Critical"}},

	event.PowerOn:  {Message: message.ResourcePoweredOn, Args: []string{"%0"}},
	event.PowerOff: {Message: message.ResourcePoweredOff, Args: []string{"%0"}},

	event.SELRecordAdded:         {Message: message.ResourceStatusChangedOK, Args: []string{"%0", "OK"}},
	event.SELRecordAddedWarning:  {Message: message.ResourceStatusChangedWarning, Args: []string{"%0", "Warning"}},
	event.SELRecordAddedCritical: {Message: message.ResourceStatusChangedCritical, Args: []string{"%0", "Critical"}},

	event.BMCReset:      {Message: message.ManagerReset, Args: []string{"%0", "%1"}},
	event.LogCleared:    {Message: message.LogCleared, Args: []string{"%0"}},
	event.DumpCollected: {Message: message.DiagnosticDataCollected},

	event.SettingsPending: {Message: message.ResourceChanged},
	event.SettingsCleared: {Message: message.ResourceChanged},
	event.SettingsApplied: {Message: message.ResourceChanged},
	event.SettingsExpired: {Message: message.ResourceChanged},
	event.DefaultsPending: {Message: message.ResourceChanged},
	event.DefaultsApplied: {Message: message.ResourceChanged},
	event.PasswordChanged: {Message: message.PasswordModified},

	event.ComponentUpdated: {Message: message.ResourceChanged},
	event.ComponentBroken:  {Message: message.ResourceStatusChangedCritical, Args: []string{"%1", "Critical"}},
	event.ComponentSaved:   {Message: message.ResourceStatusChangedWarning, Args: []string{"%1", "Warning"}},
	event.UpdateFailed:     {Message: message.OperationFailed},

	event.RequestAudited:   {Message: message.ResourceChanged},
	event.LoggedIn:         {Message: message.SuccessfulLogin, Args: []string{"%1", "%2", "Redfish"}},
	event.LoginFailed:      {Message: message.InvalidCredentials},
	event.AccountCreated:   {Message: message.AccountCreated},
	event.AccountRemoved:   {Message: message.AccountSecurityAccountRemoved},
	event.AccountEnabled:   {Message: message.AccountEnabled},
	event.AccountDisabled:  {Message: message.AccountDisabled},
	event.AccountLocked:    {Message: message.AccountLocked},
	event.AccountUnlocked:  {Message: message.AccountUnlocked},
	event.LockExpired:      {Message: message.AccountLockoutExpired},
	event.AccountPassword:  {Message: message.PasswordModified},
	event.RoleChanged:      {Message: message.ManagerAccountRoleChanged},
	event.PrivilegeAdded:   {Message: message.RolePrivilegeAdded},
	event.PrivilegeRemoved: {Message: message.RolePrivilegeRemoved},

	event.UpdateTransferring:     {Message: message.TransferringToComponent},
	event.UpdateVerifying:        {Message: message.VerifyingAtComponent},
	event.UpdateInstalling:       {Message: message.InstallingOnComponent},
	event.UpdateActivating:       {Message: message.ApplyingOnComponent},
	event.UpdateAwaitsTime:       {Message: message.AwaitToUpdate},
	event.UpdateAwaitsReset:      {Message: message.AwaitToUpdate},
	event.UpdateAwaitsStart:      {Message: message.AwaitToActivate},
	event.UpdateAwaitsActivation: {Message: message.AwaitToActivate},
	event.UpdateDone:             {Message: message.UpdateSuccessful, Args: []string{"%2", "%1"}},
	event.UpdateSkipped:          {Message: message.UpdateSkipped, Args: []string{"%2", "%1"}},
	event.UpdateSame:             {Message: message.UpdateSkippedSameVersion, Args: []string{"%2", "%1"}},
	event.UpdateTooLow:           {Message: message.UpdateSkippedVersionTooLow, Args: []string{"%2", "%1"}},
	event.UpdateNotApplicable:    {Message: message.UpdateNotApplicable},
	event.UpdateNotTransferred:   {Message: message.TransferFailed},
	event.UpdateNotVerified:      {Message: message.VerificationFailed},
	event.UpdateNotInstalled:     {Message: message.ApplyFailed},
	event.UpdateNotActivated:     {Message: message.ActivateFailed},

	event.DriveInserted:     {Message: message.DriveInserted, Args: []string{"%0"}},
	event.DriveRemoved:      {Message: message.DriveRemoved, Args: []string{"%0"}},
	event.DriveFailed:       {Message: message.DriveFailure, Args: []string{"%0"}},
	event.DriveRevived:      {Message: message.DriveFailureCleared, Args: []string{"%0"}},
	event.DrivePredicted:    {Message: message.DrivePredictiveFailure, Args: []string{"%0"}},
	event.DriveUnpredicted:  {Message: message.DrivePredictiveFailureCleared, Args: []string{"%0"}},
	event.DriveForeign:      {Message: message.ResourceStatusChangedWarning, Args: []string{"%0", "Warning"}},
	event.DriveErased:       {Message: message.ResourceChanged, Args: []string{}},
	event.RebuildStarted:    {Message: message.ResourceChanged, Args: []string{}},
	event.RebuildFinished:   {Message: message.ResourceChanged, Args: []string{}},
	event.VolumeCreated:     {Message: message.ResourceCreated, Args: []string{}},
	event.VolumeDeleted:     {Message: message.ResourceRemoved, Args: []string{}},
	event.VolumeImported:    {Message: message.ResourceCreated, Args: []string{}},
	event.VolumeOptimal:     {Message: message.VolumeOK},
	event.VolumeDegraded:    {Message: message.VolumeDegraded},
	event.VolumeRebuilding:  {Message: message.VolumeRebuilding},
	event.VolumeFailed:      {Message: message.VolumeFailure},
	event.VolumeInitialized: {Message: message.ResourceChanged, Args: []string{}},
	event.VolumeChecked:     {Message: message.ResourceChanged, Args: []string{}},
	event.VolumeRepaired:    {Message: message.ResourceStatusChangedWarning, Args: []string{"%0", "Warning"}},
	event.VolumeExpanded:    {Message: message.ResourceChanged, Args: []string{}},
	event.ControllerReset:   {Message: message.ResourceChanged, Args: []string{}},
}

// EventMessage returns the message that reports a note.
func (v View) EventMessage(n event.Note) message.Message {
	w, ok := EventMessages[n.Kind]
	if !ok { // a later release wrote it
		return message.Fill(message.ResourceChanged)
	}
	if w.Args == nil {
		return message.Fill(w.Message, n.Args...)
	}
	return message.Fill(w.Message, Map(w.Args, func(a string) string {
		if a == "%0" {
			return v.subjectName(n.Subject)
		}
		return ExpandArgument(a, n)
	})...)
}

// ExpandArgument returns the argument of a note that a template like %1 names, "" when the
// note does not have it, or the template itself when it is a literal.
func ExpandArgument(template string, n event.Note) string {
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

// MessageVersions returns the versions of the message registries that this vendor's service
// uses.
func (v View) MessageVersions() message.Versions { return v.Dialect.Protocol.Registries }

package event

// Part is a kind of part of a server. Values are stored.
type Part string

// The parts.
const (
	System     Part = "system"
	Chassis    Part = "chassis"
	BMC        Part = "bmc"
	Drive      Part = "drive"
	Volume     Part = "volume"
	Controller Part = "controller"
	Sensor     Part = "sensor"
	Fan        Part = "fan"
	Supply     Part = "supply"
	NIC        Part = "nic"
	Component  Part = "component" // firmware component
	Media      Part = "media"
	Account    Part = "account"
	Session    Part = "session"
	Job        Part = "job"
	Log        Part = "log"
	EventEntry Part = "entry" // entry of the event log
	AuditEntry Part = "audit.entry"
)

// Kind is a kind of event. Values are stored; protocols map them to their own
// messages and records.
type Kind string

// The kinds. Each has a row in Kinds.
const (
	ACRestored    Kind = "power.mains.back"
	NMISent       Kind = "system.nmi"
	ResetIgnored  Kind = "system.reset.unheard" // ResetType %1
	SystemCrashed Kind = "system.crashed"
	BootFailed    Kind = "system.boot.failed"

	LinkUp   Kind = "nic.link.up"
	LinkDown Kind = "nic.link.down"

	WatchdogWarned  Kind = "system.watchdog.warned"  // with warning %1, in use %2
	WatchdogExpired Kind = "system.watchdog.expired" // with action %1, in use %2, after warning %3
	KeysChanged     Kind = "system.keys.changed"     // keys of database %1

	CoverOpened Kind = "chassis.lid.opened"
	CoverClosed Kind = "chassis.lid.closed" // or the sensor was re-armed

	SensorHigh    Kind = "sensor.high" // sensor %1 reads %2 %3, threshold %4
	SensorTooHigh Kind = "sensor.high.critical"
	SensorFatal   Kind = "sensor.high.fatal"
	SensorLow     Kind = "sensor.low"
	SensorTooLow  Kind = "sensor.low.critical"
	SensorBetter  Kind = "sensor.better" // no longer at level %4, whose threshold is %5
	SensorNormal  Kind = "sensor.normal"

	FanFailed        Kind = "fan.failed"
	FanRestored      Kind = "fan.restored"
	FansRedundant    Kind = "fans.redundant"
	FansNotRedundant Kind = "fans.redundancy.lost"
	FansInsufficient Kind = "fans.insufficient"

	SupplyFailed         Kind = "supply.failed"
	SupplyRestored       Kind = "supply.restored"
	SupplyInputLost      Kind = "supply.input.lost"
	SupplyInputBack      Kind = "supply.input.back"
	SupplyRemoved        Kind = "supply.removed"
	SupplyInserted       Kind = "supply.inserted"
	SuppliesRedundant    Kind = "supplies.redundant"
	SuppliesNotRedundant Kind = "supplies.redundancy.lost"
	SuppliesInsufficient Kind = "supplies.insufficient"
	Overheated           Kind = "system.overheated"

	PowerOn  Kind = "power.on"
	PowerOff Kind = "power.off"

	// SEL records that a client wrote: %1 is the record, in hexadecimal.
	SELRecordAdded         Kind = "record"
	SELRecordAddedWarning  Kind = "record.warning"
	SELRecordAddedCritical Kind = "record.critical"

	BMCReset      Kind = "bmc.reset"
	LogCleared    Kind = "log.cleared"
	DumpCollected Kind = "dump.collected"

	SettingsPending Kind = "bios.pending"
	SettingsCleared Kind = "bios.cleared"
	SettingsApplied Kind = "bios.applied"
	SettingsExpired Kind = "bios.expired"
	DefaultsPending Kind = "bios.defaults.pending"
	DefaultsApplied Kind = "bios.defaults.applied"
	PasswordChanged Kind = "bios.password"

	ComponentUpdated Kind = "component.updated"
	ComponentBroken  Kind = "component.broken"
	ComponentSaved   Kind = "component.saved" // its second slot was used
	UpdateFailed     Kind = "update.failed"

	// Messages of an update's task: image %1, component %2.
	UpdateTransferring     Kind = "update.transferring"
	UpdateVerifying        Kind = "update.verifying"
	UpdateInstalling       Kind = "update.installing"
	UpdateActivating       Kind = "update.activating"
	UpdateAwaitsTime       Kind = "update.awaits.time"
	UpdateAwaitsReset      Kind = "update.awaits.reset"
	UpdateAwaitsStart      Kind = "update.awaits.start"
	UpdateAwaitsActivation Kind = "update.awaits.activation"
	UpdateDone             Kind = "update.done"
	UpdateSkipped          Kind = "update.skipped"
	UpdateSame             Kind = "update.skipped.same"
	UpdateTooLow           Kind = "update.skipped.low"
	UpdateNotApplicable    Kind = "update.unfit"
	UpdateNotTransferred   Kind = "update.failed.transfer"
	UpdateNotVerified      Kind = "update.failed.verification"
	UpdateNotInstalled     Kind = "update.failed.installation"
	UpdateNotActivated     Kind = "update.failed.activation"

	DriveInserted     Kind = "drive.inserted"
	DriveRemoved      Kind = "drive.removed"
	DriveFailed       Kind = "drive.failed"
	DriveRevived      Kind = "drive.revived"
	DrivePredicted    Kind = "drive.predicted"
	DriveUnpredicted  Kind = "drive.unpredicted"
	DriveForeign      Kind = "drive.foreign"
	DriveErased       Kind = "drive.erased"
	RebuildStarted    Kind = "drive.rebuild.started"
	RebuildFinished   Kind = "drive.rebuild.finished"
	VolumeCreated     Kind = "volume.created"
	VolumeDeleted     Kind = "volume.deleted"
	VolumeImported    Kind = "volume.imported"
	VolumeOptimal     Kind = "volume.optimal"
	VolumeDegraded    Kind = "volume.degraded"
	VolumeRebuilding  Kind = "volume.rebuilding"
	VolumeFailed      Kind = "volume.failed"
	VolumeInitialized Kind = "volume.initialized"
	VolumeChecked     Kind = "volume.checked"
	VolumeRepaired    Kind = "volume.mended"
	VolumeExpanded    Kind = "volume.expanded"
	ControllerReset   Kind = "controller.reset"
	// Kinds of the audit log.
	RequestAudited   Kind = "asked"
	LoggedIn         Kind = "login"
	LoginFailed      Kind = "login.failed"
	AccountCreated   Kind = "account.created"
	AccountRemoved   Kind = "account.removed"
	AccountEnabled   Kind = "account.enabled"
	AccountDisabled  Kind = "account.disabled"
	AccountLocked    Kind = "account.locked"
	AccountUnlocked  Kind = "account.unlocked"
	LockExpired      Kind = "account.lock.expired"
	AccountPassword  Kind = "account.password"
	RoleChanged      Kind = "account.role"
	PrivilegeAdded   Kind = "role.privilege.added"
	PrivilegeRemoved Kind = "role.privilege.removed"
)

// Kinds holds the severity and the message of each kind.
var Kinds = map[Kind]struct {
	Severity Severity
	Text     string // %1, %2: the arguments
}{
	ACRestored:    {OK, "The mains came back after an outage."},
	NMISent:       {Warning, "A diagnostic interrupt was sent to the system."},
	ResetIgnored:  {Warning, "No system answered the reset %1."},
	SystemCrashed: {Critical, "The operating system crashed."},
	BootFailed:    {Critical, "No boot source holds a system."},

	LinkUp:   {OK, "Port %1 of network adapter %2 has a link."},
	LinkDown: {Warning, "Port %1 of network adapter %2 has lost its link."},

	WatchdogWarned:  {Warning, "The system has not fed its watchdog for long."},
	WatchdogExpired: {Critical, "The system has not fed its watchdog, which takes the action %1."},
	KeysChanged:     {OK, "The secure boot keys in %1 were changed."},

	CoverOpened: {Critical, "The cover of the chassis was opened."},
	CoverClosed: {OK, "The cover of the chassis is closed again."},

	SensorHigh:    {Warning, "Sensor %1 reads %2 %3, and warns from %4 on."},
	SensorTooHigh: {Critical, "Sensor %1 reads %2 %3, which from %4 on is critical."},
	SensorFatal:   {Critical, "Sensor %1 reads %2 %3, which from %4 on destroys."},
	SensorLow:     {Warning, "Sensor %1 reads %2 %3, and warns from %4 down."},
	SensorTooLow:  {Critical, "Sensor %1 reads %2 %3, which from %4 down is critical."},
	SensorBetter:  {Warning, "Sensor %1 reads %2 %3, which is less bad than it was."},
	SensorNormal:  {OK, "Sensor %1 reads %2 %3, which is normal."},

	FanFailed:        {Critical, "Fan %1 has failed."},
	FanRestored:      {OK, "Fan %1 works again."},
	FansRedundant:    {OK, "The fans are redundant."},
	FansNotRedundant: {Warning, "The fans have lost their redundancy."},
	FansInsufficient: {Critical, "Too few fans work."},

	SupplyFailed:         {Critical, "Power supply %1 has failed."},
	SupplyRestored:       {OK, "Power supply %1 works again."},
	SupplyInputLost:      {Warning, "Power supply %1 gets no power."},
	SupplyInputBack:      {OK, "Power supply %1 gets power again."},
	SupplyRemoved:        {Warning, "Power supply %1 was taken out."},
	SupplyInserted:       {OK, "Power supply %1 was put in."},
	SuppliesRedundant:    {OK, "The power supplies are redundant."},
	SuppliesNotRedundant: {Warning, "The power supplies have lost their redundancy."},
	SuppliesInsufficient: {Critical, "Too few power supplies work."},
	Overheated:           {Critical, "The system was switched off because it was too hot."},

	PowerOn:  {OK, "The system was switched on."},
	PowerOff: {OK, "The system was switched off."},

	SELRecordAdded:         {OK, "A record was added: %1."},
	SELRecordAddedWarning:  {Warning, "A record was added: %1."},
	SELRecordAddedCritical: {Critical, "A record was added: %1."},

	BMCReset:      {OK, "The BMC was restarted: %1."},
	LogCleared:    {OK, "The log %1 was cleared."},
	DumpCollected: {OK, "Diagnostic data of the %1 were collected."},

	SettingsPending: {OK, "BIOS settings wait to be applied: %1."},
	SettingsCleared: {OK, "BIOS settings that waited to be applied were given up."},
	SettingsApplied: {OK, "BIOS settings were applied: %1."},
	SettingsExpired: {Warning, "BIOS settings were not applied, because no reset came in the maintenance window: %1."},
	DefaultsPending: {OK, "BIOS settings will be reset to their defaults."},
	DefaultsApplied: {OK, "BIOS settings were reset to their defaults."},
	PasswordChanged: {OK, "The BIOS password %1 was changed."},

	ComponentUpdated: {OK, "The firmware of %1 was changed from %2 to %3."},
	ComponentBroken:  {Critical, "The firmware of %1 is damaged, and it does not start."},
	ComponentSaved:   {Warning, "The firmware of %1 is damaged, and it runs its backup."},
	UpdateFailed:     {Warning, "The firmware image %1 was not installed: %2."},

	UpdateTransferring:     {OK, "Image %1 goes to %2."},
	UpdateVerifying:        {OK, "Image %1 is verified by %2."},
	UpdateInstalling:       {OK, "Image %1 is written to %2."},
	UpdateActivating:       {OK, "%2 restarts with image %1."},
	UpdateAwaitsTime:       {OK, "Image %1 waits for the maintenance window of %2."},
	UpdateAwaitsReset:      {OK, "Image %1 waits for a reset of the system to be written to %2."},
	UpdateAwaitsStart:      {OK, "Image %1 waits to be started on %2."},
	UpdateAwaitsActivation: {OK, "Image %1 was written to %2, which runs it after the next reset of the system."},
	UpdateDone:             {OK, "%2 runs image %1."},
	UpdateSkipped:          {OK, "%2 was left out of the update with image %1."},
	UpdateSame:             {OK, "%2 runs the version of image %1 already."},
	UpdateTooLow:           {OK, "%2 takes no version as low as that of image %1."},
	UpdateNotApplicable:    {Warning, "Image %1 is not for %2."},
	UpdateNotTransferred:   {Critical, "Image %1 did not reach %2."},
	UpdateNotVerified:      {Critical, "Image %1 was refused by %2."},
	UpdateNotInstalled:     {Critical, "Image %1 could not be written to %2."},
	UpdateNotActivated:     {Critical, "%2 does not start with image %1."},

	// For drives and volumes, %1 is the ID and %2 the controller's.
	DriveInserted:     {OK, "Drive %1 of controller %2 was inserted."},
	DriveRemoved:      {Critical, "Drive %1 of controller %2 was removed."},
	DriveFailed:       {Critical, "Drive %1 of controller %2 has failed."},
	DriveRevived:      {OK, "Drive %1 of controller %2 works again."},
	DrivePredicted:    {Warning, "Drive %1 of controller %2 says that it will fail."},
	DriveUnpredicted:  {OK, "Drive %1 of controller %2 no longer says that it will fail."},
	DriveForeign:      {Warning, "Drive %1 of controller %2 holds a foreign configuration."},
	DriveErased:       {OK, "Drive %1 of controller %2 has erased itself."},
	RebuildStarted:    {OK, "The rebuild of drive %1 of controller %2 has started."},
	RebuildFinished:   {OK, "The rebuild of drive %1 of controller %2 has finished."},
	VolumeCreated:     {OK, "Volume %1 of controller %2 was created."},
	VolumeDeleted:     {OK, "Volume %1 of controller %2 was deleted."},
	VolumeImported:    {OK, "Volume %1 of controller %2 was imported."},
	VolumeOptimal:     {OK, "Volume %1 of controller %2 has all of its drives."},
	VolumeDegraded:    {Warning, "Volume %1 of controller %2 is degraded."},
	VolumeRebuilding:  {Warning, "Volume %1 of controller %2 is being rebuilt."},
	VolumeFailed:      {Critical, "Volume %1 of controller %2 has failed."},
	VolumeInitialized: {OK, "Volume %1 of controller %2 is initialized."},
	VolumeChecked:     {OK, "The consistency check of volume %1 of controller %2 has finished."},
	VolumeRepaired:    {Warning, "The consistency check of volume %1 of controller %2 has mended %3 rows."},
	VolumeExpanded:    {OK, "Volume %1 of controller %2 has a new layout."},
	ControllerReset:   {Warning, "The configuration of controller %1 was reset."},
	RequestAudited:    {OK, "%1 %2 was answered %3, asked by user \"%4\" in session \"%5\" from %6."},
	LoggedIn:          {OK, "The user %1 logged in from %2."},
	LoginFailed:       {Critical, "Somebody at %1 came over %2 with a wrong name or password."},
	AccountCreated:    {OK, "The account %1 was created."},
	AccountRemoved:    {OK, "The account %1 was deleted."},
	AccountEnabled:    {OK, "The account %1 was enabled."},
	AccountDisabled:   {Warning, "The account %1 was disabled."},
	AccountLocked:     {Critical, "The account %1 was locked after too many wrong passwords."},
	AccountUnlocked:   {OK, "An administrator unlocked the account %1."},
	LockExpired:       {OK, "The lock of the account %1 has expired."},
	AccountPassword:   {OK, "The password of the account %1 was changed."},
	RoleChanged:       {OK, "The role of the account %1 was %2 and is now %3."},
	PrivilegeAdded:    {OK, "The privilege %1 was given to the role %2."},
	PrivilegeRemoved:  {OK, "The privilege %1 was taken from the role %2."},
}

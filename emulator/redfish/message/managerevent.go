package message

// The messages about the BMC.
var (
	ManagerReset                         = two{managerEvent, 0, "ManagerReset", OK, "The manager %1 was reset: %2.", "None."}
	ManagerResetWatchdogTimer            = two{managerEvent, 0, "ManagerResetWatchdogTimer", Warning, "The watchdog has reset the manager %1: %2.", "Read the diagnostic data, if there are any."}
	ManagerSwitchedToBackupSoftwareImage = one{managerEvent, 0, "ManagerSwitchedToBackupSoftwareImage", Warning, "The manager %1 runs its spare software now.", "Update the software of the manager."}
)

// ManagerEvent lists the messages of the ManagerEvent registry (DSP8011).
var ManagerEvent = []Entry{
	ManagerReset, ManagerResetWatchdogTimer, ManagerSwitchedToBackupSoftwareImage,
}

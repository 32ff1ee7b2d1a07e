package message

// The messages about drives, volumes and their controllers. A location is that of the
// part in the enclosure.
var (
	ControllerOK                  = one{storageDevice, 0, "ControllerOK", OK, "The storage controller in %1 is healthy again.", "None."}
	ControllerFailure             = one{storageDevice, 0, "ControllerFailure", Critical, "The storage controller in %1 has failed.", "Check that the controller sits firmly, and update its firmware. If that does not help, replace it."}
	DriveOK                       = one{storageDevice, 0, "DriveOK", OK, "The drive in %1 is healthy again.", "None."}
	DrivePredictedMediaLifeLow    = three{storageDevice, 3, "DrivePredictedMediaLifeLow", Warning, "Of the life of the drive in %1, %2 percent are left, fewer than %3.", "Replace the drive before nothing is left."}
	DrivePredictiveFailure        = one{storageDevice, 0, "DrivePredictiveFailure", Warning, "The drive in %1 expects to fail.", "Save its data unless a volume keeps them elsewhere, then replace the drive."}
	DrivePredictiveFailureCleared = one{storageDevice, 0, "DrivePredictiveFailureCleared", OK, "The drive in %1 no longer expects to fail.", "None."}
	DriveFailure                  = one{storageDevice, 0, "DriveFailure", Critical, "The drive in %1 has failed.", "Check the cables, and that the drive sits firmly. If that does not help, replace it."}
	DriveFailureCleared           = one{storageDevice, 0, "DriveFailureCleared", OK, "The drive in %1 no longer shows a failure.", "None."}
	DriveInserted                 = one{storageDevice, 0, "DriveInserted", OK, "A drive was put into %1.", "None."}
	DriveRemoved                  = one{storageDevice, 0, "DriveRemoved", Critical, "The drive in %1 was taken out.", "Put the drive back if it was not meant to go."}
	VolumeOK                      = two{storageDevice, 0, "VolumeOK", OK, "The volume %1 of the storage controller in %2 is healthy again.", "None."}
	VolumeDegraded                = two{storageDevice, 0, "VolumeDegraded", Warning, "The volume %1 of the storage controller in %2 has lost redundancy.", "Replace the drives that have failed."}
	VolumeRebuilding              = two{storageDevice, 5, "VolumeRebuilding", Warning, "The volume %1 of the storage controller in %2 is being rebuilt.", "Wait until it is done."}
	VolumeReconfiguring           = two{storageDevice, 5, "VolumeReconfiguring", Warning, "The volume %1 of the storage controller in %2 is being rearranged.", "Wait until it is done."}
	VolumeFailure                 = two{storageDevice, 0, "VolumeFailure", Critical, "The volume %1 of the storage controller in %2 has failed.", "Check that all of its drives are there and work."}
	WriteCacheProtected           = one{storageDevice, 0, "WriteCacheProtected", OK, "The write cache of the storage controller in %1 is protected.", "None."}
	WriteCacheTemporarilyDegraded = one{storageDevice, 0, "WriteCacheTemporarilyDegraded", Warning, "The write cache of the storage controller in %1 is out of use for now.", "Wait until the battery is charged or the rebuild is done."}
	WriteCacheDegraded            = one{storageDevice, 0, "WriteCacheDegraded", Critical, "The write cache of the storage controller in %1 is out of use.", "Look for a battery that is missing or broken."}
	WriteCacheDataLoss            = one{storageDevice, 0, "WriteCacheDataLoss", Critical, "Data in the write cache of the storage controller in %1 are lost.", "Check the data of its volumes, and what the controller shows as the cause."}
	BatteryOK                     = one{storageDevice, 1, "BatteryOK", OK, "The battery in %1 is healthy again.", "None."}
	BatteryCharging               = one{storageDevice, 1, "BatteryCharging", Warning, "The battery in %1 is being charged.", "Wait. Until it is charged, things may be slower."}
	BatteryMissing                = one{storageDevice, 1, "BatteryMissing", Critical, "There is no battery in %1.", "Put one in, and check the cables."}
	BatteryFailure                = one{storageDevice, 1, "BatteryFailure", Critical, "The battery in %1 has failed.", "Check the cables. If that does not help, replace the battery."}
	ControllerDegraded            = two{storageDevice, 1, "ControllerDegraded", Warning, "The storage controller in %1 does not work fully: %2", "Check that the controller sits firmly, and update its firmware. If that does not help, replace it."}
	ControllerPreviousError       = two{storageDevice, 1, "ControllerPreviousError", Warning, "The storage controller in %1 has failed before: %2", "Check that the controller sits firmly, and update its firmware. If that does not help, replace it."}
	ControllerPasswordAccepted    = one{storageDevice, 1, "ControllerPasswordAccepted", OK, "The password of the storage controller in %1 was entered.", "None."}
	ControllerPasswordRequired    = one{storageDevice, 1, "ControllerPasswordRequired", Critical, "The storage controller in %1 asks for a password.", "Enter the password."}
	ControllerPortOK              = one{storageDevice, 1, "ControllerPortOK", OK, "The port in %1 is healthy again.", "None."}
	ControllerPortDegraded        = two{storageDevice, 1, "ControllerPortDegraded", Warning, "The port in %1 does not work fully: %2", "Check the cables."}
	ControllerPortFailure         = one{storageDevice, 1, "ControllerPortFailure", Critical, "The port in %1 has failed.", "Check the cables."}
	DriveMissing                  = one{storageDevice, 1, "DriveMissing", Critical, "The drive in %1 is gone.", "Check the cables, and that the drive sits firmly. If that does not help, replace it."}
	DriveMissingCleared           = one{storageDevice, 1, "DriveMissingCleared", OK, "The drive in %1 is there again.", "None."}
	DriveOffline                  = one{storageDevice, 1, "DriveOffline", Critical, "The drive in %1 is offline.", "Wait for what goes on, or configure or import the drive."}
	DriveOfflineCleared           = one{storageDevice, 1, "DriveOfflineCleared", OK, "The drive in %1 is online again.", "None."}
	VolumeOffline                 = two{storageDevice, 2, "VolumeOffline", Critical, "The volume %1 of the storage controller in %2 is offline.", "Enable, repair or import the volume."}
	VolumeOfflineCleared          = two{storageDevice, 1, "VolumeOfflineCleared", OK, "The volume %1 of the storage controller in %2 is online again.", "None."}
	BlockSecurityIDIssued         = one{storageDevice, 4, "BlockSecurityIDIssued", OK, "The drive in %1 was told to let nobody take ownership of it.", "None."}
	BlockSecurityIDFailed         = one{storageDevice, 4, "BlockSecurityIDFailed", Warning, "The drive in %1 could not be told to let nobody take ownership of it.", "Update the firmware of the drive, or replace it."}
	BlockSecurityIDRemoved        = one{storageDevice, 4, "BlockSecurityIDRemoved", OK, "The drive in %1 is no longer told to let nobody take ownership of it.", "None."}
)

// StorageDevice lists the messages of the StorageDevice registry (DSP8011).
var StorageDevice = []Entry{
	ControllerOK, ControllerFailure, DriveOK, DrivePredictedMediaLifeLow,
	DrivePredictiveFailure, DrivePredictiveFailureCleared, DriveFailure, DriveFailureCleared,
	DriveInserted, DriveRemoved, VolumeOK, VolumeDegraded,
	VolumeRebuilding, VolumeReconfiguring, VolumeFailure, WriteCacheProtected,
	WriteCacheTemporarilyDegraded, WriteCacheDegraded, WriteCacheDataLoss, BatteryOK,
	BatteryCharging, BatteryMissing, BatteryFailure, ControllerDegraded,
	ControllerPreviousError, ControllerPasswordAccepted, ControllerPasswordRequired, ControllerPortOK,
	ControllerPortDegraded, ControllerPortFailure, DriveMissing, DriveMissingCleared,
	DriveOffline, DriveOfflineCleared, VolumeOffline, VolumeOfflineCleared,
	BlockSecurityIDIssued, BlockSecurityIDFailed, BlockSecurityIDRemoved,
}

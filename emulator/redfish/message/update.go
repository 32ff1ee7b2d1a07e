package message

// The messages about firmware updates.
var (
	TargetDetermined           = two{update, 0, "TargetDetermined", OK, "%1 will be updated with the image %2.", "None."}
	AllTargetsDetermined       = zero{update, 0, "AllTargetsDetermined", OK, "It is settled which devices will be updated.", "None."}
	NoTargetsDetermined        = one{update, 1, "NoTargetsDetermined", OK, "The image %1 is for none of the devices.", "Use an image that is made for a device of this server."}
	UpdateInProgress           = zero{update, 0, "UpdateInProgress", OK, "An update goes on.", "None."}
	TransferringToComponent    = two{update, 0, "TransferringToComponent", OK, "The image %1 is being sent to %2.", "None."}
	VerifyingAtComponent       = two{update, 0, "VerifyingAtComponent", OK, "The image %1 is being checked at %2.", "None."}
	InstallingOnComponent      = two{update, 0, "InstallingOnComponent", OK, "The image %1 is being installed on %2.", "None."}
	ApplyingOnComponent        = two{update, 0, "ApplyingOnComponent", OK, "The image %1 is being put to use on %2.", "None."}
	TransferFailed             = two{update, 0, "TransferFailed", Critical, "The image %1 could not be sent to %2.", "Check that the image can be reached, then repeat the update."}
	VerificationFailed         = two{update, 0, "VerificationFailed", Critical, "The image %1 did not pass the check at %2.", "Use an image that is whole and made for this device."}
	ApplyFailed                = two{update, 0, "ApplyFailed", Critical, "The image %1 could not be installed on %2.", "Repeat the update. If that does not help, replace the device."}
	ActivateFailed             = two{update, 0, "ActivateFailed", Critical, "The image %1 could not be put to use on %2.", "Repeat the update. If that does not help, replace the device."}
	AwaitToUpdate              = two{update, 0, "AwaitToUpdate", OK, "The image %1 waits for an action to be installed on %2.", "Carry out the action that is due, such as a reset."}
	AwaitToActivate            = two{update, 0, "AwaitToActivate", OK, "The image %1 waits for an action to be put to use on %2.", "Carry out the action that is due, such as a reset."}
	UpdateSuccessful           = two{update, 0, "UpdateSuccessful", OK, "%1 was updated with the image %2.", "None."}
	OperationTransitionedToJob = one{update, 0, "OperationTransitionedToJob", OK, "The update goes on as the job %1.", "Follow the job."}
	UpdateSkipped              = two{update, 2, "UpdateSkipped", OK, "%1 was not updated with the image %2.", "None."}
	UpdateSkippedSameVersion   = two{update, 2, "UpdateSkippedSameVersion", OK, "%1 was not updated with the image %2, for it has that version.", "None."}
	UpdateSkippedVersionTooLow = two{update, 3, "UpdateSkippedVersionTooLow", OK, "%1 was not updated with the image %2, for that is older than the device allows.", "Use a newer image."}
	UpdateNotApplicable        = two{update, 2, "UpdateNotApplicable", Warning, "The image %1 is not for %2.", "Use an image that is made for the device."}
)

// Update lists the messages of the Update registry (DSP8011).
var Update = []Entry{
	TargetDetermined, AllTargetsDetermined, NoTargetsDetermined, UpdateInProgress,
	TransferringToComponent, VerifyingAtComponent, InstallingOnComponent, ApplyingOnComponent,
	TransferFailed, VerificationFailed, ApplyFailed, ActivateFailed,
	AwaitToUpdate, AwaitToActivate, UpdateSuccessful, OperationTransitionedToJob,
	UpdateSkipped, UpdateSkippedSameVersion, UpdateSkippedVersionTooLow, UpdateNotApplicable,
}

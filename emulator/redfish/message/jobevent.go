package message

// The messages about jobs. %1 is the job.
var (
	JobStarted            = one{jobEvent, 0, "JobStarted", OK, "The job %1 was started.", "None."}
	JobCompletedOK        = one{jobEvent, 0, "JobCompletedOK", OK, "The job %1 is done.", "None."}
	JobCompletedException = one{jobEvent, 0, "JobCompletedException", Warning, "The job %1 has ended, with warnings or errors.", "Read the messages of the job."}
	JobCancelled          = one{jobEvent, 0, "JobCancelled", Warning, "The job %1 was stopped on request.", "None."}
	JobRemoved            = one{jobEvent, 0, "JobRemoved", Warning, "The job %1 was deleted.", "None."}
	JobSuspended          = one{jobEvent, 0, "JobSuspended", Warning, "The job %1 stands still.", "None."}
	JobResumed            = one{jobEvent, 0, "JobResumed", OK, "The job %1 goes on.", "None."}
	JobProgressChanged    = two{jobEvent, 0, "JobProgressChanged", OK, "Of the job %1, %2 percent are done.", "None."}
	JobValidationBypassed = one{jobEvent, 1, "JobValidationBypassed", OK, "The job %1 waits for its turn and was not checked.", "None."}
	JobValidationStarted  = one{jobEvent, 1, "JobValidationStarted", OK, "The job %1 is being checked.", "None."}
	JobValidatedOK        = one{jobEvent, 1, "JobValidatedOK", OK, "The job %1 was checked and is in order.", "None."}
	JobValidateException  = one{jobEvent, 1, "JobValidateException", Warning, "The job %1 was checked, with warnings or errors.", "Read the messages of the job."}
)

// JobEvent lists the messages of the JobEvent registry (DSP8011).
var JobEvent = []Entry{
	JobStarted, JobCompletedOK, JobCompletedException, JobCancelled,
	JobRemoved, JobSuspended, JobResumed, JobProgressChanged,
	JobValidationBypassed, JobValidationStarted, JobValidatedOK, JobValidateException,
}

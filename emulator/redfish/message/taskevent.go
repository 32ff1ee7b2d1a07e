package message

// The messages about tasks. %1 is the task.
var (
	TaskStarted          = one{taskEvent, 0, "TaskStarted", OK, "The task %1 was started.", "None."}
	TaskCompletedOK      = one{taskEvent, 0, "TaskCompletedOK", OK, "The task %1 is done.", "None."}
	TaskCompletedWarning = one{taskEvent, 0, "TaskCompletedWarning", Warning, "The task %1 is done, with warnings.", "Read the messages of the task."}
	TaskAborted          = one{taskEvent, 0, "TaskAborted", Critical, "The task %1 has failed.", "Read the messages of the task."}
	TaskCancelled        = one{taskEvent, 0, "TaskCancelled", Warning, "The task %1 was stopped on request.", "None."}
	TaskRemoved          = one{taskEvent, 0, "TaskRemoved", Warning, "The task %1 was deleted.", "None."}
	TaskPaused           = one{taskEvent, 0, "TaskPaused", Warning, "The task %1 stands still.", "None."}
	TaskResumed          = one{taskEvent, 0, "TaskResumed", OK, "The task %1 goes on.", "None."}
	TaskProgressChanged  = two{taskEvent, 0, "TaskProgressChanged", OK, "Of the task %1, %2 percent are done.", "None."}
)

// TaskEvent lists the messages of the TaskEvent registry (DSP8011).
var TaskEvent = []Entry{
	TaskStarted, TaskCompletedOK, TaskCompletedWarning, TaskAborted,
	TaskCancelled, TaskRemoved, TaskPaused, TaskResumed,
	TaskProgressChanged,
}

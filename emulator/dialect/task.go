package dialect

// Tasks is what a vendor's service makes of tasks (DSP0266, "Asynchronous
// operations").
type Tasks struct {
	// Once says that who reads a task monitor whose operation has ended is the
	// last who does: the monitor is gone with the answer.
	MonitorReadOnce bool
	// Late is how many reads of a new task find that there is none.
	MissingReads int
	// Direct says that who asked for an operation is led to its task, not to its
	// monitor: to read the task is answered 202 until it has ended, and then, where
	// the operation has an answer of its own, with that. How long to wait the
	// service does not say then.
	LocationIsTask bool
}

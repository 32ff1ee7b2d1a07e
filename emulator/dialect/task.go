package dialect

// Tasks is what a vendor's service makes of tasks (DSP0266, "Asynchronous
// operations").
type Tasks struct {
	// Once says that who reads a task monitor whose operation has ended is the
	// last who does: the monitor is gone with the answer.
	Once bool
	// Late is how many reads of a new task find that there is none.
	Late int
}

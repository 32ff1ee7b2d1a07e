package dialect

// Tasks describes how the service reports asynchronous operations (DSP0266,
// "Asynchronous operations").
type Tasks struct {
	// MonitorReadOnce removes a task monitor with the first response that shows that
	// its operation has ended.
	MonitorReadOnce bool
	// MissingReads is how many reads of a new task are answered 404.
	MissingReads int
	// LocationIsTask makes the Location of a 202 response name the task instead of
	// its monitor. A GET of the task is answered 202 until the task has ended, and
	// then with the operation's own response, where it has one. There is no
	// Retry-After.
	LocationIsTask bool
}
